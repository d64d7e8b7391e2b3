"""What an engine was made from: digests of the sources of this package and of `loom_core.isa`.

An engine comes from one module and from what that imports, directly or not; edits elsewhere leave it as it is. Imports
are found in the text, at any depth of a module, so that nothing need be imported to know them.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).resolve().parent
_PACKAGES: Final = {"loom_sim": _HERE, "loom_core.isa": _HERE.parent / "loom_core" / "isa"}
_IMPORT: Final = re.compile(
    r"^[ \t]*(?:from[ \t]+(loom_\w+(?:\.\w+)*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+(loom_\w+(?:\.\w+)*))",
    re.MULTILINE,
)


def _sources() -> dict[str, bytes]:
    """The source of each module, by its name; a package's own is that of its `__init__`."""
    found = {}
    for package, folder in _PACKAGES.items():
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join([package, *(part for part in parts if part != "__init__")])] = path.read_bytes()
    return found


def imported_modules(text: str, known: Iterable[str]) -> set[str]:
    """Those of the known modules that a source imports, or takes names from; a package only where the name is its
    own.
    """
    modules, found = set(known), set()
    for match in _IMPORT.finditer(text):
        origin, taken, plain = match.groups()
        if plain:
            found.add(plain)
            continue
        for part in re.sub(r"#[^\n]*", "", taken).strip("()").split(","):
            name = part.split()[0] if part.split() else ""
            found.add(f"{origin}.{name}" if f"{origin}.{name}" in modules else origin)
    return found & modules


class Sources:
    """The sources at one moment."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self._contents = contents
        self._imports: dict[str, set[str]] = {}

    def closure(self, module: str) -> frozenset[str]:
        """A module with all that it imports."""
        reached: set[str] = set()
        pending = [module]
        while pending:
            name = pending.pop()
            if name not in reached:
                reached.add(name)
                if name not in self._imports:
                    self._imports[name] = imported_modules(self._contents[name].decode(), self._contents)
                pending.extend(self._imports[name])
        return frozenset(reached)

    def digest(self, modules: Iterable[str]) -> str:
        """Of the names and contents of modules."""
        digest = hashlib.blake2b(digest_size=16)
        for name in sorted(modules):
            content = self._contents[name]
            digest.update(f"{name}:{len(content)}\n".encode())
            digest.update(content)
        return digest.hexdigest()

    def stamp(self, home: str | None) -> str:
        """Digest of all that an engine from the module `home` may consist of; of everything where that is not known."""
        return self.digest(self._contents if home is None else self.closure(home) | self.closure("loom_sim.jit"))


_IMPORTED: Final = Sources(_sources())


@functools.cache
def source_stamp(home: str | None = None) -> str:
    """The stamp of a module (`Sources.stamp`) as the sources were when this process imported them."""
    return _IMPORTED.stamp(home)


def sources_are_as_imported() -> bool:
    """Whether nobody has edited a source since: an engine may come from a module that was imported after the edit."""
    return Sources(_sources()).stamp(None) == source_stamp()
