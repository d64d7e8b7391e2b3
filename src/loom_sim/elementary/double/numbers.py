"""Numbers that the f64 functions share."""

from __future__ import annotations

import numpy as np

from loom_sim.elementary.numbers import constant64

ZERO = np.float64(0.0)
HALF = np.float64(0.5)
QUARTER = np.float64(0.25)
ONE = np.float64(1.0)
TWO = np.float64(2.0)
INFINITY = np.float64(np.inf)
SMALLEST_NORMAL = np.float64(2.0**-1022)

# Adding and subtracting 1.5 * 2**52 rounds a float below 2**51 to an integer (ties to even), which then also stands in
# the low bits of the sum.
ROUND_MAGIC = np.float64(1.5 * 2.0**52)
ROUND_MAGIC_BITS = ROUND_MAGIC.view(np.int64)

LN2 = constant64("ln2_wide")
LN2_LOW = constant64("ln2_wide_low")
LOG2_E = constant64("log2_e_wide")
LOG2_E_LOW = constant64("log2_e_wide_low")
HALF_PI = constant64("half_pi_wide_1")
HALF_PI_LOW = constant64("half_pi_wide_2")
