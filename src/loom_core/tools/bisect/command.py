"""The command `loomc bisect`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from loom.testing.values import fill
from loom_core.base.dtype import from_numpy
from loom_core.isa.machine import L1
from loom_core.tools.arguments import parse_argument, parse_grid, read_arrays
from loom_core.tools.bisect.operations import Launch, bisect
from loom_core.tools.bisect.recorded import bisect_recording
from loom_core.tools.compile_source import chosen, kernels_in, operands_of, parse_constants
from loom_core.tools.replay import FORMS


@click.command(name="bisect")
@click.argument("target", type=click.Path(path_type=Path, exists=True), metavar="SRC.py|DIR")
@click.option("--kernel", "wanted", metavar="NAME", help="Which kernel of a source file, where it has several.")
@click.option("--arg", "typed", multiple=True, metavar="NAME=VALUE", help="x=f32[1024,64] (random) or n=1024.")
@click.option("--const", "constants", multiple=True, metavar="NAME=VALUE", help="A compile-time value: BLOCK=128.")
@click.option("--inputs", type=click.Path(path_type=Path), help="An .npz file: arrays by argument name.")
@click.option("--grid", default="1", show_default=True, help="Programs in x, y, z, of an LTL kernel: 8 or 4,2,1.")
@click.option("--seed", default=0, show_default=True, help="Of the contents of arrays that --inputs does not have.")
@click.option(
    "--from", "form", type=click.Choice(list(FORMS)), default="source", show_default=True,
    help="What of a recorded launch to take: the Triton source, or Triton's IR.",
)  # fmt: skip
def bisect_command(
    target: Path, wanted: str | None, typed: tuple[str, ...], constants: tuple[str, ...], inputs: Path | None,
    grid: str, seed: int, form: str,
) -> None:  # fmt: skip
    """Find the first tile that a kernel computes otherwise than it should.

    Of a source file: what the object of a kernel gives for each operation, against the operation's reference. Of a
    folder with a recorded launch: what Loom stores, against what the device stored. Leaves with 1 if anything differs.
    """
    if target.is_dir():
        found: Any = bisect_recording(target, form)
    else:
        kernels = kernels_in(target)
        kernel = kernels[chosen(kernels, wanted, target)]
        arrays = _filled(typed, read_arrays(inputs) if inputs else {}, seed)
        found = bisect(_launch(kernel, arrays, parse_constants(constants), grid), _say)
    if found is None:
        click.echo("nothing differs")
        return
    click.echo(str(found))
    raise SystemExit(1)


def _say(text: str) -> None:
    if sys.stderr.isatty():
        click.echo(text, err=True)


def _filled(typed: Sequence[str], given: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The operands: as the file has them, or random."""
    arrays: dict[str, Any] = {}
    for number, (name, value) in enumerate(map(parse_argument, typed)):
        if not value.shape:
            arrays[name] = value.item()
            continue
        values = fill(from_numpy(value.dtype), value.size, "random", 1000 * seed + number, None, None, False)
        arrays[name] = values.reshape(value.shape)
    return {**arrays, **{name: np.array(value) for name, value in given.items()}}


def _launch(kernel: Any, arrays: dict[str, Any], constants: dict[str, Any], grid: str) -> Launch:
    from palladium import Kernel
    from palladium.arguments import given_operand

    if isinstance(kernel, Kernel):
        made, operands = operands_of(kernel, arrays, constants, None)
        given = [given_operand(f"operand{i}", operand) for i, operand in enumerate(operands)]
        variant, views = made.plan(operands, given).prepare(given)
        return Launch(variant.function, variant.machine, views, [], (1, 1, 1))
    views, numbers = kernel.leaves((), {**arrays, **constants})
    function = kernel.lower(**arrays, **constants)
    return Launch(function, kernel.machine or L1, views, numbers, parse_grid(grid))
