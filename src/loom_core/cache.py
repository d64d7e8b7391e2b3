"""Compiled objects on disk: written atomically, shared by any number of processes, bounded in size."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from loom_core.base.atomic import replace_file
from loom_core.base.diagnostics import UserError, warn
from loom_core.base.knobs import knobs

SUFFIX = ".loom"
PRUNE_EVERY = 64
PRUNE_TO = 0.8


class ObjectCacheUnwritable(UserError):
    """Objects cannot be kept; everything else goes on."""

    code = "LOOM-C201"
    severity = "warning"
    template = "compiled objects cannot be kept in {folder}: {reason}"
    hint = "set LOOM_CACHE_DIR to a writable folder, or LOOM_CACHE=0"


class ObjectCache:
    """Key (hex text) to bytes of an object, in `LOOM_CACHE_DIR`/objects."""

    def __init__(self) -> None:
        self._writes = 0
        self._warned: set[Path] = set()

    @property
    def folder(self) -> Path:
        return knobs.cache_dir / "objects"

    def get(self, key: str) -> bytes | None:
        """The bytes stored under `key`, or None."""
        if not knobs.cache:
            return None
        path = self._path(key)
        try:
            data = path.read_bytes()
        except OSError:
            return None  # absent, or removed by another process meanwhile
        with contextlib.suppress(OSError):
            os.utime(path)  # recently used: pruning takes the others first
        return data

    def put(self, key: str, data: bytes) -> None:
        """Store; a folder that cannot be written gives one warning."""
        if not knobs.cache:
            return
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, data)
        except OSError as error:
            self._warn(error)
            return
        self._writes += 1
        if self._writes % PRUNE_EVERY == 1:
            self._prune()

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / (key + SUFFIX)

    def _warn(self, error: OSError) -> None:
        if self.folder not in self._warned:
            self._warned.add(self.folder)
            warn(ObjectCacheUnwritable.diagnostic(folder=str(self.folder), reason=error.strerror or str(error)))

    def _prune(self) -> None:
        """Remove the least recently used objects while the folder is over its limit."""
        limit = knobs.cache_limit_mb << 20
        if not limit:
            return
        files = []
        for path in self.folder.glob(f"*/*{SUFFIX}"):
            with contextlib.suppress(OSError):  # another process may prune as well
                status = path.stat()
                files.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in files)
        if total <= limit:
            return
        for _, size, path in sorted(files, key=lambda entry: entry[:2]):
            if total <= limit * PRUNE_TO:
                return
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size


object_cache = ObjectCache()
