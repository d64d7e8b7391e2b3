"""`tlc run`: runs a program's Python text in this process, and shows its errors where they are in the program."""

from __future__ import annotations

import contextlib
import linecache
import os
import socket
import subprocess
import sys
import traceback
import types
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from loom_core.base.diagnostics import LoomError, render
from loom_core.base.location import Location
from tensorloom.emit import Emitted
from tensorloom.text import Origin


def run(emitted: Emitted, name: str, folder: Path) -> int:
    """Run a program in a folder, as the main module. `name`: what the text is called. The exit code."""
    lines = emitted.text.splitlines(keepends=True)
    linecache.cache[name] = (len(emitted.text), None, lines, name)
    module = types.ModuleType("__main__")
    module.__file__ = name
    code = compile(emitted.text, name, "exec", dont_inherit=True)
    with _main_module(module), contextlib.chdir(folder):
        try:
            exec(code, module.__dict__)  # the user's own program, which is what is asked for
        except KeyboardInterrupt:
            return 130
        except LoomError as error:
            for diagnostic in error.diagnostics:
                where = _mapped(diagnostic.location, emitted, name)
                print(render(replace(diagnostic, location=where)), file=sys.stderr)
            return 1
        except Exception as error:  # noqa: BLE001 - any error of the user's program is shown as Python would
            sys.stderr.writelines(_traceback_lines(error, emitted, name))
            return 1
    return 0


@contextlib.contextmanager
def _main_module(module: types.ModuleType) -> Iterator[None]:
    before = sys.modules["__main__"]
    sys.modules["__main__"] = module
    try:
        yield
    finally:
        sys.modules["__main__"] = before


def _origin(emitted: Emitted, line: int | None) -> Origin | None:
    """Where a line comes from: the line itself, or the nearest before it that the user wrote."""
    if line is None:
        return None
    for i in range(min(line, len(emitted.origins)) - 1, -1, -1):
        if emitted.origins[i] is not None:
            return emitted.origins[i]
    return None


def _mapped(location: Location, emitted: Emitted, name: str) -> Location:
    """A location in the Python text as one in the program."""
    parent = None if location.parent is None else _mapped(location.parent, emitted, name)
    origin = _origin(emitted, location.line) if location.file == name else None
    if origin is None:
        return replace(location, parent=parent)
    return Location(origin.file, origin.line, function=location.function, parent=parent)


def _traceback_lines(error: BaseException, emitted: Emitted, name: str) -> list[str]:
    """The traceback without this module's frames, those of the text at their places in the program."""
    shown = traceback.TracebackException.from_exception(error)
    part: Any = shown
    while part is not None:
        part.stack = traceback.StackSummary.from_list(list(_frames(part.stack, emitted, name)))
        part = part.__cause__ or part.__context__
    return list(shown.format())


def _frames(stack: traceback.StackSummary, emitted: Emitted, name: str) -> Iterator[traceback.FrameSummary]:
    for frame in stack:
        if frame.filename == __file__:
            continue
        origin = _origin(emitted, frame.lineno) if frame.filename == name else None
        if origin is None:
            yield frame
        else:
            line = linecache.getline(origin.file, origin.line)
            yield traceback.FrameSummary(origin.file, origin.line, frame.name, line=line)


def run_processes(count: int, command: list[str]) -> int:
    """Run a command in `count` processes that find each other as those of torchrun do. The first exit code but 0."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shared = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(count)}
    processes = [
        subprocess.Popen(command, env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(count)
    ]
    try:
        codes = [process.wait() for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
    return next((code for code in codes if code), 0)
