"""`ltl.core`, `ltl.standard`, `ltl.random`: the modules in which Triton defines its functions; here all is `ltl`."""

from __future__ import annotations

from typing import Any

from ltl.constant import constexpr
from ltl.dtypes import get_int_dtype as get_int_dtype

CONSTEXPR_0 = constexpr(0)


def _unwrap_if_constexpr(value: Any) -> Any:
    return value.value if isinstance(value, constexpr) else value


def _log2(i: int) -> int:
    return int(i).bit_length() - 1


def _is_power_of_two(i: int) -> bool:
    return i > 0 and i & (i - 1) == 0


def __getattr__(name: str) -> Any:
    import ltl

    return getattr(ltl, name)
