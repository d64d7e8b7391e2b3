"""`loomc migrate-pallas`: Pallas text becomes Palladium text that computes the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from loom_core.tools.loomc import main
from palladium.migration import migrate

MATMUL = """
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(x_ref, y_ref, o_ref, acc_ref, *, scale):  # one block
    @pl.when(pl.program_id(2) == 0)
    def _():
        acc_ref[...] = jnp.zeros_like(acc_ref)

    acc_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _():
        o_ref[...] = (jax.nn.relu(acc_ref[...]) * scale).astype(o_ref.dtype)


@functools.partial(jax.jit, static_argnames=("block",))
def matmul(x, y, block=32):
    m, k = x.shape
    n = y.shape[1]
    return pl.pallas_call(
        functools.partial(kernel, scale=0.5),
        jax.ShapeDtypeStruct((m, n), x.dtype),
        grid=(m // block, n // block, k // block),
        in_specs=[
            pl.BlockSpec((block, block), lambda i, j, k: (i, k)),
            pl.BlockSpec((block, block), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((block, block), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((block, block), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
        interpret=True,
    )(x, y)
"""

LEFT = """
from jax.experimental import pallas as pl
import jax.experimental.pallas.tpu as pltpu
import jax

def body(x_ref, o_ref):
    o_ref[...] = pltpu.stochastic_round(x_ref[...], 1, target_dtype="bfloat16")

def run(x):
    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
"""


def invoke(folder: Path, text: str, *arguments: str) -> Result:
    path = folder / "kernels.py"
    path.write_text(text, encoding="utf-8")
    return CliRunner().invoke(main, ["migrate-pallas", str(path), *arguments])


def test_the_text_keeps_its_layout_and_changes_its_names() -> None:
    found = migrate(MATMUL)
    assert found.calls == 1 and not found.left
    assert found.text.startswith("\nimport functools\nfrom loom.experimental import palladium as lpl\n")
    assert "jax" not in found.text and "interpret" not in found.text and "pltpu" not in found.text
    assert "def kernel(x_ref, y_ref, o_ref, acc_ref, *, scale):  # one block" in found.text
    assert "out_shape=lpl.ShapeDtypeStruct((m, n), x.dtype)," in found.text
    assert "scratch=[lpl.SRAM((block, block), lpl.float32)]" in found.text
    assert found.notes == ["line 21: jax.jit is dropped; kernels run outside it"]


def test_the_migrated_text_computes_what_upstream_does(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    out = tmp_path / "migrated.py"
    arguments = ["--call", "matmul", "--arg", "x=f32[64,96]", "--arg", "y=f32[96,64]", "--out", str(out), "--json"]
    result = invoke(tmp_path, MATMUL, *arguments)
    assert result.exit_code == 0, result.output
    document = json.loads(result.output)
    assert document["compared"].startswith("matmul gives what upstream gives")
    assert document["text"] == out.read_text(encoding="utf-8")


def test_what_has_no_counterpart_is_named(tmp_path: Path) -> None:
    result = invoke(tmp_path, LEFT)
    assert result.exit_code == 1
    assert "line 7: pltpu.stochastic_round has no counterpart and stays" in result.output
    assert "import jax.experimental.pallas.tpu as pltpu" in result.output


def test_other_files_are_refused(tmp_path: Path) -> None:
    for text, reason in (("x = 1\n", "there is no pallas_call in it"), ("def (", "invalid syntax")):
        result = invoke(tmp_path, text)
        assert result.exit_code == 2 and reason in result.output
    result = invoke(tmp_path, MATMUL, "--call", "nothing")
    assert result.exit_code == 2 and "there is no function nothing" in result.output
