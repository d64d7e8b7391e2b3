"""`loomc run` on modules: a kernel of a module of text or bytecode, launched on arrays of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click
import numpy as np

from loom_core.base.location import Location
from loom_core.tools.arguments import Array, parse_argument
from loom_core.tools.diagnostics import BadArgument, MissingArgument, UnknownArgument, UnusableModule
from loom_core.tools.module_files import ModuleFaults, load_module


def run_module(
    data: bytes, file: str, arrays: Mapping[str, Array], typed: Sequence[str], kernel: str | None, config: Sequence[str]
) -> dict[str, Array]:
    """Run a kernel over the grid that it configures; the buffers that it writes, by name. Arrays are copied.

    UnusableModule, shown with what is wrong, for a module that is not sound; UnknownArgument, MissingArgument.
    """
    from loom.execution import match_arguments, prepare

    try:
        module = load_module(data, file)
    except ModuleFaults as faults:
        click.echo(faults.render(file), err=True)
        raise UnusableModule(Location(file), count=len(faults.faults)) from faults
    prepared = prepare(module, kernel=kernel, config=dict(map(_setting, config)))
    given: dict[str, Any] = {**arrays, **dict(map(parse_argument, typed))}
    names = [argument.name for argument in prepared.arguments]
    for name in given:
        if name not in names:
            raise UnknownArgument(name=name, known=", ".join(names) or "none")
    for argument in prepared.arguments:
        if argument.name not in given:
            kind = "buffer" if argument.is_buffer else "scalar"
            example = f"{argument.name}={'u8[1024]' if argument.is_buffer else '1024'}"
            raise MissingArgument(name=argument.name, kind=kind, dtype=argument.type, example=example)
    copies = {name: np.array(value, order="C", copy=True) for name, value in given.items()}
    scalars = {argument.name for argument in prepared.arguments if not argument.is_buffer}
    values = {name: value[()] if name in scalars and value.ndim == 0 else value for name, value in copies.items()}
    prepared.launch(match_arguments(prepared, (), values))
    return {name: copies[name] for name in prepared.written}


def _setting(text: str) -> tuple[str, int]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value.lstrip("-").isdigit() or len(value) > 20:
        raise BadArgument(text=text, reason="not NAME=NUMBER", hint="write --config n=4")
    return name, int(value)
