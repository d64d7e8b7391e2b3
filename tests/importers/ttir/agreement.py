"""A recorded kernel from its source and from Triton's IR of it: what must be the same bits, and what may differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loom_core.base.diagnostics import InternalError, LoomError
from loom_core.base.knobs import knobs
from loom_core.ir.block import Function
from loom_core.tools.comparison import compare_launch
from loom_core.tools.error_bounds import bounds_of_launch
from loom_core.tools.recording import Argument, Memory, Recording, read_recording
from loom_core.tools.replay import FORMS
from ltl.imported import ImportedKernel
from tests.importers.ttir.upstream import unoptimised_ttir

MOVES = frozenset(
    {"load", "store", "splat", "broadcast", "expand_dims", "reshape", "transpose", "addptr", "constant", "for", "if",
     "while", "yield", "concat", "slice", "window", "bitcast", "return"}
)  # fmt: skip


@dataclass(frozen=True)
class Agreement:
    """What one form gives beside the source: `kind` as it is counted, whether that is right, and details."""

    kind: str
    right: bool
    details: str = ""


def agreement(folder: Path, scratch: Path) -> dict[str, Agreement]:
    """The forms that can be had, each compared with the source; nothing where the source itself is refused."""
    recording = read_recording(folder)
    try:
        source, taken = FORMS["source"](recording)
        first = _run(recording, source, taken)
        unoptimised = _upstream(recording, scratch)
    except LoomError:
        return {}
    found: dict[str, Agreement] = {}
    listed: Counter[Any] = Counter()
    if unoptimised is not None:
        kernel = ImportedKernel(unoptimised)
        listed = float_operations(kernel.function)
        second = _run(recording, kernel, recording.run_time)
        found["unoptimised TTIR"] = _exact(recording, first, second)
    for form in ("ttir", "ttgir"):
        text = (folder / f"kernel.{form}").read_text(encoding="utf-8")
        try:
            kernel = ImportedKernel(text, str(folder / f"kernel.{form}"))
        except InternalError:
            raise
        except LoomError as error:
            found[form.upper()] = Agreement("refused", True, str(error))
            continue
        second = _run(recording, kernel, recording.run_time)
        same = unoptimised is not None and float_operations(kernel.function) == listed
        found[form.upper()] = _within(recording, first, second, source, taken, same)
    return found


def _upstream(recording: Recording, scratch: Path) -> str | None:
    """The TTIR before any pass; None where the installed Triton does not take the source."""
    try:
        return unoptimised_ttir(recording, scratch)
    except Exception as error:  # noqa: BLE001
        # Names that this version of Triton has no more, and helpers that the recording does not hold.
        print(f"{recording.folder.name}: {type(error).__name__}")
        return None


def _run(recording: Recording, kernel: Any, taken: Sequence[Argument]) -> Memory:
    memory = Memory(recording)
    with knobs.override(interpret=True):
        kernel[recording.grid](*map(memory.argument, taken))
    return memory


def float_operations(function: Function) -> Counter[Any]:
    """What computes floats in a function, and how often each stands there."""
    found: Counter[Any] = Counter()
    for op in function.walk():
        floats = [value for value in op.results if not value.type.is_pointer and value.type.dtype.is_float]
        if floats and op.name not in MOVES:
            # The combine functions of reductions are walked too.
            attributes = {key: value for key, value in op.attributes.items() if key not in ("axis", "type")}
            found[op.name, tuple(sorted(map(str, attributes.items()))), floats[0].type.dtype.name] += 1
    return found


def _exact(recording: Recording, first: Memory, second: Memory) -> Agreement:
    differ = [a.name for a in recording.tensors if first.bytes_of(a).tobytes() != second.bytes_of(a).tobytes()]
    return Agreement("identical", True) if not differ else Agreement("different", False, ", ".join(differ))


def _within(
    recording: Recording, first: Memory, second: Memory, source: Any, taken: Sequence[Argument], same: bool
) -> Agreement:
    """Integers exact, floats within the bound of docs/replay.md; exact too where the float operations are the same."""
    exact = _exact(recording, first, second)
    if exact.right:
        return Agreement("identical, with the same float operations" if same else "identical", True)
    if same:
        return Agreement("different with the same float operations", False, exact.details)
    left = {a.name: first.bytes_of(a).copy() for a in recording.tensors}
    arguments = tuple(replace(a, after=left[a.name]) if a.name in left else a for a in recording.arguments)
    expected = replace(recording, arguments=arguments)
    found = compare_launch(expected, second, lambda: bounds_of_launch(recording, source, taken))
    return Agreement("within the bound" if found.right else "outside the bound", found.right, found.text)
