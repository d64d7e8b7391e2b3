"""`loomc import-ttir`: objects, or Tile IR, from Triton IR text, and what is needed to run them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from loom_core.ir.printer import print_function
from loom_core.objfile import LoomObject, write_object
from loom_core.tools.console import show_table
from loom_core.tools.files import file_text, shown_name, write_file

if TYPE_CHECKING:
    from loom_core.importers.ttir import ImportedFunction
    from ltl.imported import ImportedKernel

_LAUNCH: Final = {
    "ttg.num-warps": "num_warps", "ttg.num-ctas": "num_ctas", "ttg.threads-per-warp": "threads_per_warp",
    "ttg.target": "target", "ttg.shared": "shared_bytes", "ttg.maxnreg": "maxnreg",
}  # fmt: skip
"""What a module says of launches on a GPU. Nothing of it has a meaning here; it is shown."""


@click.command(name="import-ttir")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--out", "--output", "-o", "output", type=click.Path(path_type=Path),
    help="The object's file.  [default: FILE with .loom; of several kernels each FILE.NAME.loom]",
)  # fmt: skip
@click.option("--name", help="Only this kernel, where the module has several public functions.")
@click.option("--assertions", is_flag=True, help="Check device assertions.")
@click.option("--ir", is_flag=True, help="Print the Tile IR instead of writing an object.")
@click.option("--json", "as_json", is_flag=True, help="Print what was imported as JSON.")
def import_ttir_command(
    file: Path, output: Path | None, name: str | None, assertions: bool, ir: bool, as_json: bool
) -> None:
    """Make objects of the kernels in Triton IR text (TTIR, or TTGIR with a sequential meaning).

    Says for each what arguments it takes, and how `loomc run` is given them.
    """
    from loom_core.importers.ttir import kernel_names
    from ltl.imported import ImportedKernel

    text, shown = file_text(file), shown_name(file)
    names: list[str | None] = [name] if name else [*kernel_names(text, shown)] or [None]
    if output is not None and len(names) > 1:
        raise click.UsageError(f"{shown} has several kernels, {', '.join(map(str, names))}: say --name too")
    kernels = [ImportedKernel(text, shown, name=wanted, assertions=assertions) for wanted in names]
    if ir:
        click.echo("\n".join(print_function(kernel.function) for kernel in kernels), nl=False)
        return
    reports = []
    for kernel in kernels:
        target = output or file.with_suffix(".loom" if len(kernels) == 1 else f".{kernel.name}.loom")
        reports.append(_written(kernel, shown, target))
    if as_json:
        click.echo(json.dumps(reports, indent=2))
        return
    for report in reports:
        _show(report)


def _written(kernel: ImportedKernel, file: str, target: Path) -> dict[str, Any]:
    """Write a kernel's object; gives the report on it."""
    found = kernel.compile()
    write_file(target, write_object(found))
    imported = kernel.imported
    arguments = list(_arguments(imported, found))
    return {
        "kernel": kernel.name,
        "file": file,
        "object": str(target),
        "source": str(kernel.function.location),
        "arguments": arguments,
        "launch": _launch(imported.module.attributes),
        "calls": [name for name, one in imported.module.functions.items() if not one.public],
        "loops": list(_loops(imported)),
        "run": _command(target, arguments),
    }


def _arguments(imported: ImportedFunction, found: LoomObject) -> Iterator[dict[str, Any]]:
    """Each argument of the object, with the parameter of the kernel that it is or belongs to."""
    by_name = {argument.name: argument for argument in found.abi.args}
    values = iter(imported.function.arguments)
    parameters = zip(imported.source.arguments, imported.source.hints, imported.ranks, imported.given, strict=True)
    for (name, type), hints, rank, given in parameters:
        for place in range(1 + 2 * rank if given else 0):
            value = next(values)
            argument = by_name[value.name or ""]
            meaning = _meaning(name[1:], rank, place) if rank else ""
            yield {
                "name": argument.name,
                "kind": "array" if argument.kind == "buffer" else "number",
                "dtype": argument.dtype,
                "parameter": f"{name}: {type}",
                "meaning": meaning,
                "read": argument.kind == "scalar" or argument.read,
                "written": argument.kind == "buffer" and argument.written,
                "hints": {key: getattr(hint, "value", hint) for key, hint in hints.items()},
            }


def _meaning(name: str, rank: int, place: int) -> str:
    """What a part of a descriptor is: its base, then its sizes, then its strides."""
    what, number = ("size", place - 1) if place <= rank else ("stride", place - rank - 1)
    return f"{what} {number} of descriptor {name}" if place else f"what descriptor {name} is of"


def _launch(attributes: dict[str, Any]) -> dict[str, Any]:
    return {
        ours: getattr(attributes[key], "value", attributes[key]) for key, ours in _LAUNCH.items() if key in attributes
    }


def _loops(imported: ImportedFunction) -> Iterator[dict[str, Any]]:
    """The loops that were made of blocks, with their witnesses."""
    for loop in imported.loops:
        counts = {"variable": loop.variable, "upper": loop.upper, "step": loop.step} if loop.variable else {}
        yield {"at": str(loop.location), "kind": "for" if counts else "while", **counts, "carried": list(loop.carried)}


def _command(target: Path, arguments: list[dict[str, Any]]) -> str:
    """How `loomc run` is called, with what the user has to fill in in capitals."""
    arrays = [argument["name"] for argument in arguments if argument["kind"] == "array"]
    numbers = [f"--arg {argument['name']}=N" for argument in arguments if argument["kind"] == "number"]
    inputs = ["--inputs ARRAYS.npz"] if arrays else []
    return " ".join(["loomc run", str(target), *inputs, *numbers, "--grid X,Y,Z", "--outputs RESULTS.npz"])


def _show(report: dict[str, Any]) -> None:
    click.echo(f"wrote {report['kernel']} to {report['object']}")
    rows = []
    for argument in report["arguments"]:
        use = " and ".join(word for word in ("read", "written") if argument[word]) or "not used"
        kind = f"array of {argument['dtype']}, {use}" if argument["kind"] == "array" else argument["dtype"]
        rows.append((argument["name"], kind, argument["meaning"] or argument["parameter"].partition(": ")[2]))
    show_table(("argument", "is", "of"), rows)
    for loop in report["loops"]:
        text = f"from its first value to {loop['upper']} by {loop['step']}" if "upper" in loop else "while it goes on"
        click.echo(f"loop at {loop['at']}: {loop.get('variable', '')} {text}".replace(":  ", ": "))
    click.echo(f"run it with: {report['run']}")
