"""Published numbers of the machine's elementary functions: data only, shared by engine and reference.

Everything that an elementary function uses beyond small integers, simple fractions and powers of two stands here as a
hexadecimal literal, so both sides read the same bits. `docs/numerics.md` prints these tables;
`tools/fit_coefficients.py` derives them again.
"""

from __future__ import annotations

from dataclasses import dataclass

_REMEZ = "weighted minimax (Remez exchange); from the lowest on, each coefficient rounded and the rest refitted"


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
    source: str = _REMEZ

    @property
    def degree(self) -> int:
        return len(self.literals) - 1

    @property
    def values(self) -> tuple[float, ...]:
        """The coefficients as Python floats, ascending; exact in the storage format."""
        return tuple(float.fromhex(literal) for literal in self.literals)


_POLYNOMIALS = (
    Polynomial(
        name="exp",
        formula="(exp(r) - 1 - r) / r**2",
        domain=(-0.3467, 0.3467),
        max_error=0.067,
        literals=(
            "0x1.fffffcp-2",
            "0x1.555494p-3",
            "0x1.555888p-5",
            "0x1.123a3ap-7",
            "0x1.6aa628p-10",
        ),
    ),
    Polynomial(
        name="expm1",
        formula="(exp(r) - 1 - r) / r**2",
        domain=(-0.3467, 0.3467),
        max_error=0.014,
        literals=(
            "0x1.000000p-1",
            "0x1.555554p-3",
            "0x1.5554fap-5",
            "0x1.1112b8p-7",
            "0x1.6d3e10p-10",
            "0x1.9ecd84p-13",
        ),
    ),
    Polynomial(
        name="exp2",
        formula="(2**r - 1) / r",
        domain=(-0.5, 0.5),
        max_error=0.084,
        literals=(
            "0x1.62e430p-1",
            "0x1.ebfbdep-3",
            "0x1.c6af76p-5",
            "0x1.3b2b9ap-7",
            "0x1.5f11fcp-10",
            "0x1.43b6a2p-13",
        ),
    ),
    Polynomial(
        name="log",
        formula="(log(1 + f) - f + f**2 / 2) / f**3",
        domain=(-0.2928932188134525, 0.41421356237309503),
        max_error=0.05,
        literals=(
            "0x1.555548p-2",
            "-0x1.00000ap-2",
            "0x1.99a490p-3",
            "-0x1.555a82p-3",
            "0x1.233616p-3",
            "-0x1.fc4b70p-4",
            "0x1.e71872p-4",
            "-0x1.dda3b2p-4",
            "0x1.13cea4p-4",
        ),
    ),
    Polynomial(
        name="tanh",
        formula="(tanh(x) - x) / x**3 in z = x**2",
        domain=(0.0, 0.390625),
        max_error=0.079,
        literals=(
            "-0x1.555532p-2",
            "0x1.1106f6p-3",
            "-0x1.b835a4p-5",
            "0x1.51f8cep-6",
            "-0x1.750ce4p-8",
        ),
    ),
    Polynomial(
        name="erf",
        formula="(erf(x) - x) / x in z = x**2",
        domain=(0.0, 0.7225),
        max_error=0.118,
        literals=(
            "0x1.06eba8p-3",
            "-0x1.812726p-2",
            "0x1.ce256ap-4",
            "-0x1.b735eap-6",
            "0x1.4b7630p-8",
            "-0x1.4cd860p-11",
        ),
    ),
    Polynomial(
        name="erf_tail",
        formula="-log2(erfc(a))",
        domain=(0.85, 3.94),
        max_error=0.038,
        literals=(
            "0x1.3c4e98p-13",
            "0x1.a0a06cp+0",
            "0x1.d62bd4p-1",
            "0x1.34d5d8p-3",
            "-0x1.0a23b6p-5",
            "0x1.26c738p-8",
            "-0x1.34176ep-12",
        ),
    ),
    Polynomial(
        name="erfc",
        formula="exp(z**2) * erfc(z) / t in t = 1 / (1 + z / 2)",
        domain=(0.1652892561983471, 0.8),
        max_error=0.148,
        literals=(
            "0x1.20d898p-2",
            "0x1.215c6ep-2",
            "0x1.ee718ap-3",
            "0x1.ae3ba6p-3",
            "-0x1.76713cp-5",
            "0x1.3b00dcp-2",
            "-0x1.072044p-1",
            "0x1.3081f0p-2",
            "-0x1.f7e8a2p-5",
        ),
    ),
    Polynomial(
        name="gelu_small",
        formula="(Phi(x) - 1/2) / x in z = x**2, Phi the normal distribution function",
        domain=(0.0, 1.0),
        max_error=0.05,
        literals=(
            "0x1.988454p-2",
            "-0x1.105862p-4",
            "0x1.46d558p-7",
            "-0x1.376ea0p-10",
            "0x1.e26a9ep-14",
            "-0x1.12166ap-17",
        ),
    ),
    Polynomial(
        name="gelu_tail",
        formula="a * Phi(-a) * exp(a**2 / 2) in v = (a - 1) / (1 + a / 2)",
        domain=(0.0, 1.6363636363636365),
        max_error=0.128,
        literals=(
            "0x1.0bdb2ep-2",
            "0x1.7d9618p-3",
            "-0x1.37f99ep-4",
            "0x1.1e61c2p-9",
            "0x1.ddc570p-9",
            "0x1.9e3db6p-13",
            "0x1.e66b4ep-15",
            "-0x1.d8b646p-13",
            "0x1.96d04ap-15",
        ),
    ),
    Polynomial(
        name="sin",
        formula="(sin(r) - r) / r**3 in z = r**2",
        domain=(0.0, 0.7),
        max_error=0.005,
        literals=(
            "-0x1.555556p-3",
            "0x1.111166p-7",
            "-0x1.a0476ep-13",
            "0x1.76f2f2p-19",
        ),
    ),
    Polynomial(
        name="cos",
        formula="(cos(r) - 1 + r**2 / 2) / r**4 in z = r**2",
        domain=(0.0, 0.7),
        max_error=0.006,
        literals=(
            "0x1.555544p-5",
            "-0x1.6c08b6p-10",
            "0x1.98fa20p-16",
        ),
    ),
)

POLYNOMIALS: dict[str, Polynomial] = {polynomial.name: polynomial for polynomial in _POLYNOMIALS}

# A value split into several floats: each is the float32 nearest to what the earlier ones leave.
CONSTANTS: dict[str, str] = {
    "log2_e": "0x1.715476p+0",
    "log2_e_low": "0x1.4ae0c0p-26",
    "ln2_high": "0x1.62e430p-1",
    "ln2_low": "-0x1.05c610p-29",
    "log10_e": "0x1.bcb7b2p-2",
    "log10_e_low": "-0x1.5b235ep-27",
    "log10_2_high": "0x1.344136p-2",
    "log10_2_low": "-0x1.ec10c0p-27",
    "two_over_pi": "0x1.45f306p-1",
    "half_pi_1": "0x1.921fb6p+0",
    "half_pi_2": "-0x1.777a5cp-25",
    "half_pi_3": "-0x1.ee59dap-50",
    "half_pi_scaled": "0x1.921fb54442d18p-62",
}


def constant(name: str) -> float:
    """The constant as a Python float; exact in its storage format."""
    return float.fromhex(CONSTANTS[name])


# The binary fraction of 2 / pi, 32 bits a word, most significant first: enough for the largest finite float32.
TWO_OVER_PI_WORDS: tuple[int, ...] = (
    0xA2F9836E,
    0x4E441529,
    0xFC2757D1,
    0xF534DDC0,
    0xDB629599,
    0x3C439041,
    0xFE5163AB,
    0xDEBBC561,
)
