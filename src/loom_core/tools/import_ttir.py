"""`loomc import-ttir`: an object, or Tile IR, from Triton IR text."""

from __future__ import annotations

from pathlib import Path

import click

from loom_core.base.location import Location
from loom_core.ir.printer import print_function
from loom_core.objfile import write_object
from loom_core.tools.diagnostics import UnreadableFile


@click.command(name="import-ttir")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--output", "-o", type=click.Path(path_type=Path), help="The object's file.  [default: FILE with .loom]")
@click.option("--name", help="The kernel, where the module has several public functions.")
@click.option("--assertions", is_flag=True, help="Check device assertions.")
@click.option("--ir", is_flag=True, help="Print the Tile IR instead of writing an object.")
def import_ttir_command(file: Path, output: Path | None, name: str | None, assertions: bool, ir: bool) -> None:
    """Make an object of a kernel in Triton IR text (TTIR, or TTGIR with a sequential meaning)."""
    from ltl.imported import ImportedKernel

    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UnreadableFile(Location(str(file)), reason=reason) from error
    kernel = ImportedKernel(text, str(file), name=name, assertions=assertions)
    if ir:
        click.echo(print_function(kernel.function), nl=False)
        return
    target = output or file.with_suffix(".loom")
    target.write_bytes(write_object(kernel.compile()))
    click.echo(f"wrote {kernel.name} to {target}")
