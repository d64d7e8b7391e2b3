"""A published approximation: what the tables of coefficients are made of."""

from __future__ import annotations

from dataclasses import dataclass

REMEZ = "weighted minimax (Remez exchange); from the lowest on, each coefficient rounded and the rest refitted"
LEAST_SQUARES = (
    "weighted least squares on Chebyshev points; from the lowest on, each coefficient rounded and the rest refitted"
)


@dataclass(frozen=True)
class Polynomial:
    """One approximation: `formula` on `domain`, coefficients ascending in powers of the variable.

    `max_error` bounds the approximation error of the exact polynomial with these rounded coefficients (evaluation
    rounding excluded), relative to the function that it serves and in units of 2**-24. `bits` is the storage format of
    the coefficients (32 or 64).
    """

    name: str
    formula: str
    domain: tuple[float, float]
    max_error: float
    literals: tuple[str, ...]
    bits: int = 32
    source: str = REMEZ

    @property
    def degree(self) -> int:
        return len(self.literals) - 1

    @property
    def values(self) -> tuple[float, ...]:
        """The coefficients as Python floats, ascending; exact in the storage format."""
        return tuple(float.fromhex(literal) for literal in self.literals)
