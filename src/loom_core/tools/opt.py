"""`loomc opt`: passes over the text of Tile IR, as LOOM_DUMP_DIR writes it down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click

import loom_core.ops  # noqa: F401 (registers the operations that texts name)
from loom_core.base.diagnostics import UserError
from loom_core.base.location import Location
from loom_core.ir.block import Function
from loom_core.ir.parser import parse_functions
from loom_core.ir.printer import print_function
from loom_core.ir.verifier import verify_function
from loom_core.isa.machine import PRESETS, MachineConfig
from loom_core.objfile import write_object
from loom_core.passes.pipeline import PIPELINE, Pass
from loom_core.tools.diagnostics import BadUsage
from loom_core.tools.file_kinds import TILE_IR, identify
from loom_core.tools.files import file_bytes, shown_name, write_file

PASSES: Final[dict[str, Pass]] = {step.__name__: step for step in PIPELINE}


class NotIrText(BadUsage):
    code = "LOOM-K141"
    template = "this is not the text of Tile IR but {what}"
    hint = "LOOM_DUMP_DIR=FOLDER writes it for each kernel that is compiled; loomc import-ttir --ir prints it"


class OneKernelAnObject(UserError):
    code = "LOOM-K142"
    template = "the text has {count} functions, and an object is one kernel"
    hint = "put each function into a file of its own"


def read_functions(path: Path) -> list[Function]:
    """The functions of a text of Tile IR, verified. NotIrText for what is no text, SyntaxProblem with its place."""
    data = file_bytes(path)
    what = identify(data)
    if what != TILE_IR:
        raise NotIrText(Location(shown_name(path)), what=what)
    functions = parse_functions(data.decode(), shown_name(path))
    for function in functions:
        verify_function(function)
    return functions


def steps(function: Function, passes: Sequence[Pass]) -> Iterator[tuple[str, str, Function]]:
    """Run passes one after the other and verify after each; gives its name, the text after it, and the function."""
    for step in passes:
        function = step(function)
        verify_function(function)
        yield step.__name__, print_function(function), function


def optimised(function: Function, passes: Sequence[Pass], show_changes: bool) -> Function:
    """The function after all passes; what each of them changed is shown where that is wanted."""
    text = print_function(function)
    for name, after, result in steps(function, passes):
        if show_changes and after != text:
            click.echo(f"// after {name}\n{after}")
        text, function = after, result
    return function


def _chosen(names: Sequence[str], until: str | None) -> list[Pass]:
    if names:
        return [PASSES[name] for name in names]
    chosen = list(PIPELINE)
    if until is not None:
        last = max(number for number, step in enumerate(PIPELINE) if step.__name__ == until)
        return chosen[: last + 1]
    return chosen


_NAMES: Final = click.Choice(list(PASSES))


@click.command(name="opt")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--pass", "names", multiple=True, type=_NAMES, help="Only this pass; may be said several times.")
@click.option("--until", type=_NAMES, help="The pipeline up to the last run of this pass.")
@click.option("--changes", is_flag=True, help="Show the IR after each pass that changed it.")
@click.option(
    "--emit",
    type=click.Choice(["ir", "asm", "object"]),
    default="ir",
    show_default=True,
    help="What to give: the IR, its commands, or the object (these run the whole pipeline).",
)
@click.option("--machine", type=click.Choice(list(PRESETS)), default="l1", show_default=True)
@click.option(
    "--out", "-o", "output", type=click.Path(path_type=Path), help="A file for the result.  [default: print it]"
)
def opt_command(
    file: Path, names: tuple[str, ...], until: str | None, changes: bool, emit: str, machine: str, output: Path | None
) -> None:  # fmt: skip
    """Run the compiler's passes over Tile IR text (- is standard input) and verify after each."""
    if names and until:
        raise click.UsageError("say --pass or --until, not both")
    if emit != "ir" and (names or until):
        raise click.UsageError(f"--emit {emit} needs the whole pipeline: leave out --pass and --until")
    if emit == "object" and output is None:
        raise click.UsageError("--emit object needs --out FILE")
    functions = read_functions(file)
    if emit == "ir":
        results = [optimised(function, _chosen(names, until), changes) for function in functions]
        _give(b"\n".join(print_function(function).encode() for function in results), output)
        return
    if len(functions) != 1:
        raise OneKernelAnObject(Location(shown_name(file)), count=len(functions))
    _give(_compiled(functions[0], PRESETS[machine], emit), output)


def _compiled(function: Function, machine: MachineConfig, emit: str) -> bytes:
    from loom_core.compile import compile_kernel
    from loom_core.isa.describe import disassemble

    obj = compile_kernel(function, machine=machine)
    return write_object(obj) if emit == "object" else disassemble(obj).encode()


def _give(data: bytes, output: Path | None) -> None:
    if output is None:
        click.echo(data.decode(), nl=False)
    else:
        write_file(output, data)
        click.echo(f"wrote {output}: {len(data)} bytes")
