"""One kernel text for two spellings: upstream Pallas (interpreted by jax) and the shim, compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

import loom.experimental.pallas as pl
from loom.experimental.pallas import lax, nn, tpu, triton
from loom.experimental.pallas import numpy as jnp
from loom_core.base.knobs import knobs

SHIM = SimpleNamespace(pl=pl, jnp=jnp, lax=lax, nn=nn, tpu=tpu, triton=triton, shape=pl.ShapeDtypeStruct)
Maker = Callable[[Any], Callable[..., Any]]


def upstream() -> SimpleNamespace:
    """The same names from jax."""
    import jax
    import jax.experimental.pallas as upl
    import jax.experimental.pallas.tpu as utpu
    import jax.experimental.pallas.triton as utriton

    return SimpleNamespace(
        pl=upl, jnp=jax.numpy, lax=jax.lax, nn=jax.nn, tpu=utpu, triton=utriton, shape=jax.ShapeDtypeStruct
    )


def flat(result: Any) -> list[np.ndarray]:
    return [np.asarray(one) for one in (result if isinstance(result, (tuple, list)) else [result])]


def by_shim(make: Maker, args: Sequence[Any]) -> list[np.ndarray]:
    """The outputs of the shim; the simulator and the reference must agree in every bit."""
    found = flat(make(SHIM)(*args))
    with knobs.override(interpret=True):
        reference = flat(make(SHIM)(*args))
    for one, other in zip(found, reference, strict=True):
        assert one.dtype == other.dtype and one.tobytes() == other.tobytes(), "simulator and reference differ"
    return found


def by_pallas(make: Maker, args: Sequence[Any]) -> list[np.ndarray]:
    """The outputs of upstream's interpreter."""
    names = upstream()
    names.pl = SimpleNamespace(**vars(names.pl))
    original = names.pl.pallas_call
    names.pl.pallas_call = lambda *a, **k: original(*a, **{**k, "interpret": True})
    return flat(make(names)(*map(names.jnp.asarray, args)))


def differences(make: Maker, args: Sequence[Any], rtol: float = 1e-5) -> list[str]:
    """How the two differ: shapes and dtypes, integers exactly, floats by `rtol` of the largest."""
    found = []
    for i, (mine, theirs) in enumerate(zip(by_shim(make, args), by_pallas(make, args), strict=True)):
        if (mine.shape, mine.dtype) != (theirs.shape, theirs.dtype):
            found.append(f"output {i} is {mine.dtype}{mine.shape}, upstream {theirs.dtype}{theirs.shape}")
            continue
        a, b = mine.astype(np.float64), theirs.astype(np.float64)
        largest = np.abs(b[np.isfinite(b)]).max(initial=0.0)
        close = np.isclose(a, b, rtol=rtol, atol=rtol * largest, equal_nan=True)
        if not (close.all() if mine.dtype.kind not in "iub" else np.array_equal(a, b)):
            found.append(f"output {i}:\n{mine}\nupstream:\n{theirs}")
    return found
