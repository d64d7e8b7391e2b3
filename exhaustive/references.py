"""The f32 functions on stratified operands: engine against reference bit by bit, and the measured error against f64.

The true value is taken from the f64 opcode of the same name, whose own error is a few 2**-30 of an f32 ulp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from exhaustive.engines import differences, run_element
from exhaustive.inputs import is_of_rows, mixed_values
from loom_core.isa.sce import ALL_SCE_OPS, SCE_OPS, SceOp
from loom_core.reference.accuracy import ACCURACY_F32
from loom_core.reference.opcodes import reference_of

Array = NDArray[Any]

STRATA: Final = 512  # signs times exponents
_BLOCK: Final = 1 << 20
_SMALLEST_NORMAL: Final = 2.0**-126
# Next to their zeros these claim an absolute error.
_ABSOLUTE: Final = {"lgamma": 2.0**-40, "digamma": 2.0**-40}


@dataclass
class Measured:
    """What was found of one opcode: operands tried, bits that differ, largest errors in ulp (None: no f64 form)."""

    operands: int = 0
    different: int = 0
    first: str = ""
    ulp: float | None = None
    subnormal_ulp: float | None = None

    def score(self) -> dict[str, int | float | None]:
        """What is kept of a full run; errors to three digits."""
        ulp, subnormal = (None if x is None else round(x, 3) for x in (self.ulp, self.subnormal_ulp))
        return {"operands": self.operands, "different": self.different, "ulp": ulp, "subnormal_ulp": subnormal}

    def faults(self, op: SceOp) -> Iterator[str]:
        """Differing bits, and errors beyond the claim of `loom_core.reference.accuracy`."""
        if self.different:
            yield f"{op.mnemonic}: {self.different} of {self.operands} differ, the first at {self.first}"
        claim = ACCURACY_F32.get(op.function)
        if claim is None or self.ulp is None or self.subnormal_ulp is None:
            return
        if self.ulp > claim.ulp:
            yield f"{op.mnemonic}: error {self.ulp:.3f} ulp, {claim.ulp} are claimed"
        if self.subnormal_ulp > (0.5 if claim.subnormal_ulp is None else claim.subnormal_ulp):
            yield f"{op.mnemonic}: error {self.subnormal_ulp:.3f} of the smallest subnormal number is beyond the claim"


def measured_ops() -> list[SceOp]:
    """The f32 functions: one or two operands, no reductions, no casts."""
    return [
        op
        for op in ALL_SCE_OPS
        if op.mnemonic.endswith(".f32") and not is_of_rows(op) and op.operands[0] == "f32" and op.function != "cast"
    ]


def stratified(count: int, seed: int) -> NDArray[np.float32]:
    """float32 values, the same number for each sign and exponent, in a random order."""
    rng = np.random.default_rng(seed)
    upper = np.repeat(np.arange(STRATA, dtype=np.uint32), -(-count // STRATA))[:count] << np.uint32(23)
    return rng.permutation(upper | rng.integers(0, 1 << 23, count, dtype=np.uint32)).view(np.float32)


def _operands(op: SceOp, count: int, seed: int) -> list[Array]:
    arguments: list[Array] = [stratified(count, seed)]
    for number, name in enumerate(op.operands[1:], 1):
        if name == "i32":
            arguments.append(np.random.default_rng(seed).integers(-300, 300, count).astype(np.int32))
        else:
            # Half of the pairs are of like size, or two-operand functions would mostly see one of them vanish.
            other = stratified(count, seed + 1000 * number)
            near = mixed_values("f32", np.random.default_rng(seed + number), count)
            arguments.append(np.where(np.arange(count) % 2 == 0, other, near))
    if len(arguments) == 2 and arguments[1].dtype == np.float32:
        arguments[0][1::2] = mixed_values("f32", np.random.default_rng(seed + 7), count)[1::2]
    return arguments


def measure(op: SceOp, count: int, seed: int = 0) -> Measured:
    """`count` operands through the engine, the reference and the f64 opcode."""
    found, reference = Measured(), reference_of(op)
    for block, start in enumerate(range(0, count, _BLOCK)):
        arguments = _operands(op, min(_BLOCK, count - start), seed + 17 * block)
        got = run_element(op, arguments)
        with np.errstate(all="ignore"):
            different = differences(got, reference(*arguments))
        found.operands += len(got)
        found.different += len(different)
        if len(different) and not found.first:
            found.first = ", ".join(str(argument[different[0]]) for argument in arguments)
        _add_errors(found, op, arguments, got)
    return found


def _add_errors(found: Measured, op: SceOp, arguments: Sequence[Array], got: Array) -> None:
    wide = SCE_OPS.get(f"{op.function}.f64")
    if wide is None or op.function not in ACCURACY_F32:
        return
    with np.errstate(invalid="ignore"):  # signalling NaNs
        exact = run_element(wide, [argument.astype(np.float64) for argument in arguments])
    if op.function in _ABSOLUTE:
        with np.errstate(invalid="ignore"):  # inf - inf
            near = np.abs(got.astype(np.float64) - exact) <= _ABSOLUTE[op.function]
        exact = np.where(near & (arguments[0] < 0), got, exact)
    normal, subnormal = error_in_ulp(got, exact)
    found.ulp = max(found.ulp or 0.0, normal)
    found.subnormal_ulp = max(found.subnormal_ulp or 0.0, subnormal)


def error_in_ulp(got: Array, exact: NDArray[np.float64]) -> tuple[float, float]:
    """Largest error where the exact result is normal, and where it is subnormal (in units of 2**-149)."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        unit = np.spacing(np.minimum(np.abs(rounded), np.finfo(np.float32).max)).astype(np.float64)
        error = np.abs(got.astype(np.float64) - exact) / unit
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    error = np.where(same & ~(error < 1), 0.0, np.where(np.isnan(error), np.inf, error))
    subnormal = np.abs(exact) < _SMALLEST_NORMAL
    return float(np.max(error[~subnormal], initial=0.0)), float(np.max(error[subnormal], initial=0.0))
