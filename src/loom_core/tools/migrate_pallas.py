"""`loomc migrate-pallas`: a Pallas source file in Palladium, what has no counterpart, and whether both agree."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import numpy as np

from loom_core.base.diagnostics import LoomError, render
from loom_core.base.location import Location
from loom_core.tools.arguments import Array, parse_argument
from loom_core.tools.compile_source import SourceFails
from loom_core.tools.diagnostics import BadUsage
from loom_core.tools.files import file_text, write_file

TOLERANCE = 1e-4


class NotPallasSource(BadUsage):
    code = "LOOM-K134"
    template = "this source cannot be read as Pallas kernels: {reason}"
    hint = "it imports jax.experimental.pallas, and calls pallas_call"


class NoSuchFunction(BadUsage):
    code = "LOOM-K135"
    template = "there is no function {name}"
    hint = "--call names a function of the file that takes the arrays of --arg, in their order"


@click.command(name="migrate-pallas")
@click.argument("source", type=click.Path(path_type=Path), metavar="SRC.py")
@click.option("--call", "entry", metavar="NAME", help="A function of the file: it is called, before and after.")
@click.option("--arg", "typed", multiple=True, metavar="NAME=VALUE", help="Its arguments: x=f32[64,64] or n=4.")
@click.option("--out", "-o", type=click.Path(path_type=Path), help="Write the source here instead of printing it.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def migrate_pallas_command(
    source: Path, entry: str | None, typed: tuple[str, ...], out: Path | None, as_json: bool
) -> None:
    """Print a Pallas source file in Palladium, and say what has no counterpart.

    With --call the migrated function runs on random arrays, and where jax is there, so does the original, interpreted.
    Leaves with 1 if something has no counterpart, does not run, or gives other results.
    """
    from palladium.migration import migrate

    text = file_text(source)
    try:
        migration = migrate(text)
    except SyntaxError as error:
        raise NotPallasSource(Location(str(source), error.lineno or 0), reason=str(error.msg)) from None
    if not migration.calls:
        raise NotPallasSource(Location(str(source)), reason="there is no pallas_call in it")
    if out is not None:
        write_file(out, migration.text.encode())
    problems: list[str] = []
    compared: str | None = None
    if entry is not None:
        arrays = [_filled(value) for _, value in map(parse_argument, typed)]
        compared, problems = _compare(source, text, migration.text, entry, arrays)
    left = [{"name": one.name, "line": one.line} for one in migration.left]
    if as_json:
        document = {"file": str(source), "calls": migration.calls, "not_migrated": left, "notes": migration.notes}
        click.echo(
            json.dumps({**document, "compared": compared, "problems": problems, "text": migration.text}, indent=2)
        )
    else:
        click.echo(f"{migration.calls} calls of pallas_call")
        for one in left:
            click.echo(f"line {one['line']}: {one['name']} has no counterpart and stays")
        for line in (*migration.notes, *([compared] if compared else []), *problems):
            click.echo(line)
        if out is None:
            click.echo()
            click.echo(migration.text, nl=False)
    if left or problems:
        raise SystemExit(1)


def _filled(value: Array) -> Any:
    """Random numbers in the shape and dtype of an array; a number as it is."""
    if not value.shape:
        return value.item()
    rng = np.random.default_rng(0)
    if value.dtype.kind in "iu":
        return rng.integers(0, 4, value.shape).astype(value.dtype)
    return rng.standard_normal(value.shape).astype(value.dtype)


def _compare(source: Path, before: str, after: str, entry: str, arrays: Sequence[Any]) -> tuple[str | None, list[str]]:
    """What the comparison says, and problems."""
    try:
        ours = _flat(_function(after, f"<Palladium of {source.name}>", entry)(*arrays))
    except LoomError as error:
        if isinstance(error, BadUsage):
            raise
        return None, [render(diagnostic) for diagnostic in error.diagnostics]
    if find_spec("jax") is None:
        return f"{entry} runs; without jax there is nothing to compare with", []
    theirs = _flat(_upstream(before, str(source), entry, arrays))
    worst = 0.0
    for mine, other in zip(ours, theirs, strict=True):
        a, b = mine.astype(np.float64), other.astype(np.float64)
        if a.shape != b.shape or not np.array_equal(np.isnan(a), np.isnan(b)):
            return None, [f"{entry} gives {mine.dtype}{mine.shape}, upstream {other.dtype}{other.shape}, or other NaNs"]
        scale = max(float(np.nanmax(np.abs(b), initial=0.0)), 1e-30)
        worst = max(worst, float(np.nanmax(np.abs(a - b), initial=0.0)) / scale)
    if worst > TOLERANCE:
        return None, [f"{entry} differs from upstream by {worst:.1e} of its largest element"]
    return f"{entry} gives what upstream gives, up to {worst:.1e} of its largest element", []


def _flat(result: Any) -> list[Array]:
    return [np.asarray(one) for one in (result if isinstance(result, (tuple, list)) else [result])]


def _function(text: str, file: str, name: str) -> Callable[..., Any]:
    """A function of a source text, run as a module."""
    import linecache

    module = ModuleType("loom_source")
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    try:
        exec(compile(text, file, "exec"), vars(module))
    except LoomError:
        raise
    except Exception as error:  # noqa: BLE001 (whatever the user's file raises)
        raise SourceFails(Location(file), error=f"{type(error).__name__}: {error}") from None
    found = getattr(module, name, None)
    if not callable(found):
        raise NoSuchFunction(Location(file), name=name)
    return found  # type: ignore[no-any-return]


def _upstream(text: str, file: str, entry: str, arrays: Sequence[Any]) -> Any:
    """What the original gives, its kernels interpreted."""
    import jax
    import jax.experimental.pallas as upstream

    original = upstream.pallas_call

    def interpreted(*args: Any, **options: Any) -> Any:
        return original(*args, **{**options, "interpret": True})

    upstream.pallas_call = interpreted
    try:
        given = [jax.numpy.asarray(one) if isinstance(one, np.ndarray) else one for one in arrays]
        return _function(text, file, entry)(*given)
    finally:
        upstream.pallas_call = original
