"""Kernels launched by Triton itself on Loom as its driver: run as a process of its own, for `interpreter.py`.

Triton decides when it is imported whether its kernels are interpreted, so that one process has either.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

from benchmarks.measure import compare


def measured() -> dict[str, Any]:
    """Seconds of CPU time of a warm and of the first call of each kernel, and a warm scalar addition beside JAX's.

    The first call includes Triton's frontend and the compiler; nothing of the kernel is in a cache, engines are.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": folder, "LOOM_CACHE": "0"}
        command = [sys.executable, "-m", "benchmarks.triton_driver"]
        text = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    found: dict[str, Any] = json.loads(text)
    return found


def _measure() -> dict[str, Any]:
    import torch
    import triton
    import triton.language

    import loom.triton
    from benchmarks.interpreter import cases
    from benchmarks.language import kernels_in

    torch.set_num_threads(1)
    loom.triton.install()
    kernels = kernels_in(triton.language, triton.jit)
    found: dict[str, Any] = {}
    for claim, _, name, grid, arrays, scalars, blocks in cases():
        tensors = [torch.from_numpy(array) for array in arrays]
        launch = getattr(kernels, name)[grid]
        begin = time.process_time()
        launch(*tensors, *scalars, **blocks)
        first = time.process_time() - begin
        warm = compare(lambda: launch(*tensors, *scalars, **blocks), lambda: None)  # noqa: B023 (in this iteration)
        found[claim] = {"first": first, "warm": warm.ours}
    return {**found, "scalar add": _scalar_add(kernels)}


def _scalar_add(kernels: Any) -> dict[str, float]:
    import jax
    import jax.numpy as jnp
    import torch

    x, y, z = (torch.from_numpy(np.float32([value])) for value in (1, 2, 0))
    add = jax.jit(lambda a, b: a + b)
    a, b = jnp.float32(1), jnp.float32(2)
    result = compare(lambda: kernels.scalar_add[(1,)](x, y, z), lambda: add(a, b).block_until_ready(), pairs=21)
    assert z.item() == 3
    return {"ours": result.ours, "theirs": result.theirs, "ratio": result.ratio}


if __name__ == "__main__":
    print(json.dumps(_measure()))
