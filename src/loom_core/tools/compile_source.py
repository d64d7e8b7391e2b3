"""`loomc compile-palladium`: objects of the kernels in a Python source file, Palladium's and LTL's.

The file is run as a module, so that its kernels exist; what stands under `if __name__ == "__main__"` is not.
"""

from __future__ import annotations

import ast
import functools
import runpy
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loom_core.base.diagnostics import LoomError
from loom_core.base.location import Location
from loom_core.objfile import LoomObject, write_object
from loom_core.tools.arguments import Array, parse_argument
from loom_core.tools.diagnostics import BadUsage, UnreadableFile
from loom_core.tools.files import write_file

if TYPE_CHECKING:
    from ltl.jit import JitFunction
    from palladium import Kernel

Found = dict[str, "Kernel | JitFunction"]


class SourceFails(BadUsage):
    code = "LOOM-K131"
    template = "the source file cannot be run: {error}"
    hint = "run it with Python to see the whole error"


class NoSuchKernel(BadUsage):
    code = "LOOM-K132"
    template = "{problem}"
    hint = "kernels are what @lpl.kernel and @ltl.jit make, at the top level of the file"


class OperandMissing(BadUsage):
    code = "LOOM-K133"
    template = "{kernel}: no --arg for {name}"
    hint = "write --arg {name}=f32[1024,1024], or for a number --arg {name}=1"


def kernels_in(path: Path) -> Found:
    """The kernels of a source file by name. SourceFails where running it does not get to its end."""
    from ltl.jit import JitFunction
    from palladium import Kernel

    if not path.is_file():
        raise UnreadableFile(Location(str(path)), reason="there is no such file")
    saved = list(sys.path)
    sys.path.insert(0, str(path.resolve().parent))
    try:
        namespace = runpy.run_path(str(path), run_name="loom_source")
    except LoomError:
        raise
    except Exception as error:  # noqa: BLE001 (whatever the user's file raises)
        line = getattr(error, "lineno", None) or _line_in(error, path)
        raise SourceFails(Location(str(path), line), error=f"{type(error).__name__}: {error}") from None
    finally:
        sys.path[:] = saved
    return {name: value for name, value in namespace.items() if isinstance(value, (Kernel, JitFunction))}


def _line_in(error: BaseException, path: Path) -> int:
    """The last line of the file that an error came through."""
    line, entry = 0, error.__traceback__
    while entry is not None:
        if entry.tb_frame.f_code.co_filename == str(path):
            line = entry.tb_lineno
        entry = entry.tb_next
    return line


def chosen(found: Found, wanted: str | None, path: Path) -> str:
    """The name of the kernel to compile. NoSuchKernel where that is not clear."""
    names = ", ".join(found) or "none"
    if wanted is not None and wanted not in found:
        raise NoSuchKernel(Location(str(path)), problem=f"there is no kernel {wanted}; there are: {names}")
    if wanted is None and len(found) != 1:
        problem = "there is no kernel in the file" if not found else f"--kernel must say which one: {names}"
        raise NoSuchKernel(Location(str(path)), problem=problem)
    return wanted or next(iter(found))


def compile_source(
    kernel: Kernel | JitFunction, typed: Sequence[str], constants: Mapping[str, Any], grid: str | None
) -> LoomObject:
    """The object of a kernel for operands given as `x=f32[8,8]` or `n=1`, and constants."""
    from palladium import Kernel

    arrays = {name: _scalar(value) for name, value in map(parse_argument, typed)}
    if isinstance(kernel, Kernel):
        made, operands = operands_of(kernel, arrays, constants, grid)
        return made.compile(*operands)
    return kernel.compile(**arrays, **constants)


def _scalar(value: Array) -> Any:
    """Numbers as Python's, arrays as they are."""
    return value.item() if not value.shape else value


def operands_of(
    kernel: Kernel, arrays: Mapping[str, Any], constants: Mapping[str, Any], grid: str | None
) -> tuple[Kernel, list[Any]]:
    """A Palladium kernel with these constants and this grid, and its operands in order. OperandMissing."""
    from palladium import Kernel

    declaration = kernel.declaration
    if constants:
        declaration = replace(declaration, function=functools.partial(declaration.function, **constants))
    if grid is not None:
        declaration = replace(declaration, grid=tuple(int(size) for size in grid.replace("x", ",").split(",")))
    count = len(declaration.parameters) - len(declaration.outputs) - len(declaration.scratch)
    operands = []
    for name in declaration.parameters[:count]:
        if name not in arrays:
            raise OperandMissing(declaration.location, kernel=declaration.name, name=name)
        operands.append(arrays[name])
    return Kernel(declaration), operands


def parse_constants(texts: Sequence[str]) -> dict[str, Any]:
    """`BLOCK=128`, `eps=1e-5`, `mode="fast"`."""
    constants: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"--const {text}: write NAME=VALUE")
        try:
            constants[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            constants[name] = value
    return constants


@click.command(name="compile-palladium")
@click.argument("source", type=click.Path(path_type=Path), metavar="SRC.py")
@click.option("--kernel", "wanted", metavar="NAME", help="Which kernel, where the file has several.")
@click.option("--arg", "typed", multiple=True, metavar="NAME=VALUE", help="An operand: x=f32[1024,1024] or n=1024.")
@click.option("--const", "constants", multiple=True, metavar="NAME=VALUE", help="A compile-time value: BLOCK=128.")
@click.option("--grid", metavar="N[,N...]", help="Another grid than the one that the kernel was declared with.")
@click.option("--out", "-o", type=click.Path(path_type=Path), help="The object's file.  [default: NAME.loom]")
def compile_command(
    source: Path, wanted: str | None, typed: tuple[str, ...], constants: tuple[str, ...], grid: str | None,
    out: Path | None,
) -> None:  # fmt: skip
    """Build the object of a kernel in a Palladium (or LTL) source file."""
    found = kernels_in(source)
    name = chosen(found, wanted, source)
    data = write_object(compile_source(found[name], typed, parse_constants(constants), grid))
    target = out or Path(f"{name}.loom")
    write_file(target, data)
    click.echo(f"wrote {name} to {target}: {len(data)} bytes")
