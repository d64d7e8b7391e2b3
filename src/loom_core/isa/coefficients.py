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
        max_error=0.0649,
        literals=(
            "0x1.fffffcp-2",
            "0x1.555494p-3",
            "0x1.55588ap-5",
            "0x1.123a02p-7",
            "0x1.6a9ea2p-10",
        ),
    ),
    Polynomial(
        name="expm1",
        formula="(exp(r) - 1 - r) / r**2",
        domain=(-0.3467, 0.3467),
        max_error=0.0125,
        literals=(
            "0x1.000000p-1",
            "0x1.555554p-3",
            "0x1.5554fap-5",
            "0x1.1112b8p-7",
            "0x1.6d3e0ep-10",
            "0x1.9ecd7cp-13",
        ),
    ),
    Polynomial(
        name="exp2",
        formula="(2**r - 1) / r",
        domain=(-0.5, 0.5),
        max_error=0.0826,
        literals=(
            "0x1.62e430p-1",
            "0x1.ebfbdep-3",
            "0x1.c6af76p-5",
            "0x1.3b2b90p-7",
            "0x1.5f11f2p-10",
            "0x1.43c09ep-13",
        ),
    ),
    Polynomial(
        name="log",
        formula="(log(1 + f) - f + f**2 / 2) / f**3",
        domain=(-0.2928932188134525, 0.41421356237309503),
        max_error=0.0666,
        literals=(
            "0x1.555548p-2",
            "-0x1.00000ap-2",
            "0x1.99a482p-3",
            "-0x1.555a22p-3",
            "0x1.23371cp-3",
            "-0x1.fc5368p-4",
            "0x1.e700bep-4",
            "-0x1.dd7efcp-4",
            "0x1.1408dcp-4",
        ),
    ),
    Polynomial(
        name="tanh",
        formula="(tanh(x) - x) / x**3 in z = x**2",
        domain=(0.0, 0.390625),
        max_error=0.0781,
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
        max_error=0.117,
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
        max_error=0.0365,
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
        formula="exp(z**2) * erfc(z) * (1 + 0.625 * z) in v = (z - 2.0546875) / (1 + 0.625 * z)",
        domain=(-0.8882978723404256, 1.1065400843881856),
        max_error=0.0292,
        literals=(
            "0x1.23ff88p-1",
            "-0x1.6bc19ap-3",
            "0x1.8e08fap-6",
            "0x1.8b9c12p-9",
            "-0x1.24b268p-10",
            "-0x1.89ed36p-13",
            "0x1.b63276p-15",
            "0x1.3dc482p-16",
            "-0x1.4ad9fep-20",
            "-0x1.aa4eb2p-20",
        ),
    ),
    Polynomial(
        name="erfinv_low",
        formula="erfinv(x) / x in w = -log(1 - x**2)",
        domain=(1e-09, 5.5),
        max_error=0.643,
        literals=(
            "0x1.c5bf88p-1",
            "0x1.db2a94p-3",
            "0x1.7a3e5cp-7",
            "-0x1.306686p-9",
            "-0x1.25aeb4p-13",
            "0x1.b394e0p-15",
            "0x1.8abc08p-20",
            "-0x1.8d3d08p-20",
            "0x1.69952ap-23",
            "-0x1.bcea0ep-28",
        ),
    ),
    Polynomial(
        name="erfinv_high",
        formula="erfinv(x) / x in u = sqrt(w) - 2.1875, w = -log(1 - x**2)",
        domain=(0.15770787991171478, 1.89906334834051),
        max_error=0.669,
        literals=(
            "0x1.044c30p+1",
            "0x1.e59f18p-1",
            "0x1.3eaa2cp-4",
            "-0x1.fcc00ap-5",
            "0x1.f1c9f2p-6",
            "-0x1.d32accp-8",
            "-0x1.e84a74p-12",
            "0x1.510302p-11",
            "-0x1.aeca96p-14",
        ),
    ),
    Polynomial(
        name="gelu_small",
        formula="(Phi(x) - 1/2) / x in z = x**2, Phi the normal distribution function",
        domain=(0.0, 1.0),
        max_error=0.0495,
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
        max_error=0.00327,
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
        max_error=0.00417,
        literals=(
            "0x1.555544p-5",
            "-0x1.6c08b6p-10",
            "0x1.98fa20p-16",
        ),
    ),
    Polynomial(
        name="tan",
        formula="(tan(r) - r) / r**3 in z = r**2",
        domain=(0.0, 0.7),
        max_error=0.0733,
        literals=(
            "0x1.555576p-2",
            "0x1.1107f2p-3",
            "0x1.bbd07cp-5",
            "0x1.5333b8p-6",
            "0x1.924b3ap-7",
            "-0x1.b43c12p-10",
            "0x1.5532a6p-8",
        ),
    ),
    Polynomial(
        name="asin",
        formula="(asin(s) - s) / s**3 in z = s**2",
        domain=(0.0, 0.25),
        max_error=0.0839,
        literals=(
            "0x1.5555c8p-3",
            "0x1.330204p-4",
            "0x1.747bb8p-5",
            "0x1.8c3e50p-6",
            "0x1.595c60p-5",
        ),
    ),
    Polynomial(
        name="atan",
        formula="(atan(t) - t) / t**3 in z = t**2",
        domain=(0.0, 1.0),
        max_error=0.0453,
        literals=(
            "-0x1.55553ep-2",
            "0x1.9991e4p-3",
            "-0x1.242084p-3",
            "0x1.c08c18p-4",
            "-0x1.580806p-4",
            "0x1.da247ep-5",
            "-0x1.fd6ef4p-6",
            "0x1.640fe6p-7",
            "-0x1.d32bbcp-10",
        ),
    ),
    Polynomial(
        name="sinh",
        formula="(sinh(a) - a) / a**3 in z = a**2",
        domain=(0.0, 1.0),
        max_error=0.00524,
        literals=(
            "0x1.555556p-3",
            "0x1.1110e0p-7",
            "0x1.a022bcp-13",
            "0x1.756c1ep-19",
        ),
    ),
    Polynomial(
        name="log_wide",
        formula="(log((1 + s) / (1 - s)) - 2 * s) / s**3 in z = s**2",
        domain=(0.0, 0.02944),
        max_error=3.25e-09,
        bits=64,
        literals=(
            "0x1.5555555553976p-1",
            "0x1.999999a28fafep-2",
            "0x1.24924179d79cep-2",
            "0x1.c722770aa805ep-3",
            "0x1.732c42e350c7ap-3",
            "0x1.58765111eba2dp-3",
        ),
    ),
    Polynomial(
        name="exp2_wide",
        formula="(2**r - 1) / r",
        domain=(-0.5, 0.5),
        max_error=6.36e-05,
        bits=64,
        literals=(
            "0x1.62e42fef89d2ap-1",
            "0x1.ebfbdff8e07e8p-3",
            "0x1.c6b08dcf34161p-5",
            "0x1.3b2ab5a6c958bp-7",
            "0x1.5d8750f8e53d1p-10",
            "0x1.430c7888d460ap-13",
            "0x1.00d4bde9c92adp-16",
            "0x1.5ea374088232ap-20",
        ),
    ),
    Polynomial(
        name="sinpi_wide",
        formula="sin(pi * t) / t in z = t**2",
        domain=(0.0, 0.25),
        max_error=3.12e-09,
        bits=64,
        literals=(
            "0x1.921fb54442d17p+1",
            "-0x1.4abbce625bd26p+2",
            "0x1.466bc6774f2f9p+1",
            "-0x1.32d2cce0c3ef9p-1",
            "0x1.5078320459e8ep-4",
            "-0x1.e3060916883bbp-8",
            "0x1.e897d8e984946p-12",
            "-0x1.6201d8513578ep-16",
        ),
    ),
    Polynomial(
        name="lgamma_wide",
        formula="lgamma(1 + u) / (u * (u - 1))",
        domain=(0.0001, 2.0001),
        max_error=4.23e-07,
        bits=64,
        literals=(
            "0x1.2788cfc6fb593p-1",
            "-0x1.f646597895137p-3",
            "0x1.3e5451eff4430p-3",
            "-0x1.d7a3e1503dd0ap-4",
            "0x1.79cf3d416ddb9p-4",
            "-0x1.3cade5f95c508p-4",
            "0x1.11370f873dce2p-4",
            "-0x1.e0414c7de4525p-5",
            "0x1.a990f5c8fcc37p-5",
            "-0x1.763b1c0fa4948p-5",
            "0x1.3e98fb405285ap-5",
            "-0x1.fc761f6879999p-6",
            "0x1.6f40e39b123bep-6",
            "-0x1.d0b2dce51dd61p-7",
            "0x1.f4438a7c99be0p-8",
            "-0x1.be2c5e5c1dab0p-9",
            "0x1.40ee3c2c745b6p-10",
            "-0x1.68e640ffbb509p-12",
            "0x1.30432269bd27cp-14",
            "-0x1.68b36b105bb50p-17",
            "0x1.0b8b6ef144151p-20",
            "-0x1.7516da392f1d7p-25",
        ),
    ),
    Polynomial(
        name="stirling_wide",
        formula="(lgamma(y) - ((y - 1/2) * log(y) - y + log(2 * pi) / 2)) * y in u = y**-2, relative to lgamma(y)",
        domain=(1e-08, 0.015625),
        max_error=1.8e-08,
        bits=64,
        literals=(
            "0x1.555555550b293p-4",
            "-0x1.6c16ad3331c02p-9",
            "0x1.9fe0b5945d500p-11",
            "-0x1.27935bdebf631p-11",
        ),
    ),
    Polynomial(
        name="digamma_wide",
        formula="(digamma(y) - log(y) + 1 / (2 * y)) * y**2 in u = y**-2, absolute",
        domain=(1e-08, 0.015625),
        max_error=2.35e-09,
        bits=64,
        literals=(
            "-0x1.555555554e497p-4",
            "0x1.1111104746e74p-7",
            "-0x1.040e6a83c795fp-8",
            "0x1.10200a080d21cp-8",
            "-0x1.b76991cc6e476p-8",
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
    "ln2_wide": "0x1.62e42fefa39efp-1",
    "log2_e_wide": "0x1.71547652b82fep+0",
    "pi_wide": "0x1.921fb54442d18p+1",
    "log_pi_wide": "0x1.250d048e7a1bdp+0",
    "half_log_two_pi_wide": "0x1.d67f1c864beb5p-1",
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
