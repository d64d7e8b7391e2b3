"""`loom.triton.install()`: Triton's own launches on the simulator."""

from __future__ import annotations

from typing import Any

import pytest

from loom_core.base.diagnostics import LoomError

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

pytestmark = [pytest.mark.usefixtures("triton_on_loom"), pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")]


@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


def test_a_kernel_runs_on_tensors() -> None:
    x, y = torch.randn(1000), torch.randn(1000)
    z = torch.zeros(1000)
    add[(triton.cdiv(1000, 256),)](x, y, z, 1000, BLOCK=256)
    assert torch.equal(z, x + y)


def test_the_grid_may_depend_on_the_constants() -> None:
    x = torch.arange(100, dtype=torch.bfloat16)
    z = torch.zeros_like(x)
    add[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, x, z, 100, BLOCK=32, num_warps=1)
    assert torch.equal(z, x + x)


def test_tensors_taken_as_another_dtype() -> None:
    x, z = torch.tensor([-1, 5], dtype=torch.int32), torch.zeros(2, dtype=torch.int64)
    add[(1,)](triton.reinterpret(x, tl.uint32), triton.reinterpret(x, tl.uint32), z, 2, BLOCK=2)
    assert z.tolist() == [2**32 - 2, 10]


@triton.jit
def softmax(x, y, columns, scale, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * columns + at, mask=at < columns, other=float("-inf")) * scale
    v = tl.exp(v - tl.max(v, 0))
    tl.store(y + tl.program_id(0) * columns + at, v / tl.sum(v, 0), mask=at < columns)


def test_the_same_bits_as_the_source() -> None:
    import ltl

    x = torch.randn(8, 100)
    ours, theirs = torch.zeros_like(x), torch.zeros_like(x)
    softmax[(8,)](x, ours, 100, 0.5, BLOCK=128)
    ltl.jit(softmax)[(8,)](x, theirs, 100, 0.5, BLOCK=128)
    assert torch.equal(ours, theirs)
    assert torch.allclose(ours, torch.softmax(x * 0.5, -1))


def test_autotuning_is_by_cycles() -> None:
    """The same times each run, and the quicker configuration wins."""
    found = []
    for _ in range(2):
        tuned = triton.autotune([triton.Config({"BLOCK": size}) for size in (32, 256)], key=["n"])(add)
        x, z = torch.ones(500), torch.zeros(500)
        tuned[lambda meta: (triton.cdiv(500, meta["BLOCK"]),)](x, x, z, 500)
        assert torch.equal(z, x + x)
        found.append([tuned.best_config.kwargs["BLOCK"], *(times[0] for times in tuned.configs_timings.values())])
    assert found[0] == found[1]
    assert found[0][0] == 256


def test_equal_configurations_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from loom_core.launch import Variant

    compiled = []
    plain = Variant.compile

    def compile(self: Variant, options: Any) -> Any:
        compiled.append(self.kernel_name)
        return plain(self, options)

    monkeypatch.setattr(Variant, "compile", compile)
    configs = [
        triton.Config({"BLOCK": 48}, num_warps=warps, num_stages=stages) for warps in (1, 8) for stages in (1, 3)
    ]
    tuned = triton.autotune(configs, key=["n"], reset_to_zero=["z"])(blocked)
    x, z = torch.ones(96), torch.ones(96)
    tuned[(2,)](x, z, 96)
    assert torch.equal(z, x)
    assert compiled == ["blocked"]


@triton.jit
def blocked(x, z, n, BLOCK: tl.constexpr):
    for i in range(BLOCK // 16):
        at = tl.program_id(0) * BLOCK + i * 16 + tl.arange(0, 16)
        tl.store(z + at, tl.load(z + at, mask=at < n) + tl.load(x + at, mask=at < n), mask=at < n)


@triton.jit
def product(x, exact, rounded, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    v = tl.load(x + at)
    tl.store(exact + at, tl.dot(v, v))
    tl.store(rounded + at, tl.dot(v, v, input_precision="tf32"))


def test_products_are_exact_unless_they_ask() -> None:
    x, exact, rounded = torch.randn(8, 8), torch.zeros(8, 8), torch.zeros(8, 8)
    product[(1,)](x, exact, rounded, SIZE=8)
    errors = [float((y.double() - x.double() @ x.double()).abs().max()) for y in (exact, rounded)]
    assert errors[0] < 1e-5 < errors[1]


@triton.jit
def block(source, out, BLOCK: tl.constexpr):
    tile = source.load([0, 8])
    at = tl.arange(0, BLOCK)
    tl.store(out + at[:, None] * BLOCK + at[None, :], tile)


def test_descriptors_of_the_host() -> None:
    from triton.tools.tensor_descriptor import TensorDescriptor

    a, out = torch.randn(16, 20), torch.zeros(16, 16)
    block[(1,)](TensorDescriptor(a, [16, 20], [20, 1], [16, 16]), out, BLOCK=16)
    assert torch.equal(out[:, :12], a[:, 8:])
    assert not out[:, 12:].any()
    bits = triton.reinterpret(a.view(torch.int32), tl.float32)
    again = torch.zeros_like(out)
    block[(1,)](TensorDescriptor(bits, [16, 20], [20, 1], [16, 16]), again, BLOCK=16)
    assert torch.equal(again, out)


def test_descriptors_of_the_host_read_what_their_padding_says() -> None:
    from triton.tools.tensor_descriptor import TensorDescriptor

    a = torch.randn(16, 20)
    for padding in ("nan", "zero", "nan"):
        out = torch.zeros(16, 16)
        block[(1,)](TensorDescriptor(a, [16, 20], [20, 1], [16, 16], padding), out, BLOCK=16)
        assert torch.equal(out[:, :12], a[:, 8:])
        assert torch.isnan(out[:, 12:]).all() if padding == "nan" else not out[:, 12:].any()


@triton.jit
def shown(x, BLOCK: tl.constexpr):
    tl.device_print("values", tl.load(x + tl.arange(0, BLOCK)), tl.program_id(0))


def test_prints(capsys: pytest.CaptureFixture[str]) -> None:
    shown[(2,)](torch.tensor([3, 5]), BLOCK=2)
    assert capsys.readouterr().out.splitlines() == [
        "pid (0, 0, 0) values: [3 5]",
        "pid (0, 0, 0) values: 0",
        "pid (1, 0, 0) values: [3 5]",
        "pid (1, 0, 0) values: 1",
    ]


@triton.jit
def stored(out, value, KIND: tl.constexpr = tl.int64):
    tl.store(out, value.to(KIND))


def test_launches_again_and_again_with_other_arguments() -> None:
    """What generated code handles and what goes through Triton give the same."""
    out = torch.zeros(1, dtype=torch.int64)
    for _ in range(3):
        for value in (2, 0, -1, 2**31 - 1, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63), 2**64 - 1, 2.0, True):
            stored[(1,)](out, value)
            assert out.item() == int(value) - (2**64 if value == 2**64 - 1 else 0)
        stored[(1,)](out, 300, KIND=tl.int8, num_warps=8)
        assert out.item() == 44
        bits = torch.zeros(1)
        stored[1,](triton.reinterpret(bits, tl.int32), 2, KIND=tl.int32)
        assert bits.view(torch.int32).item() == 2
        small = torch.zeros(1, dtype=torch.int16)
        kernel = stored[[1]](small, 7)
        assert small.item() == 7
        assert "tt.store" in kernel.asm["ttir"]


LEVEL = tl.constexpr(1)


@triton.jit
def levelled(out):
    tl.store(out, LEVEL)


def test_a_changed_global_is_refused_as_by_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    out = torch.zeros(1)
    for _ in range(2):
        levelled[(1,)](out)
    monkeypatch.setitem(levelled.fn.__globals__, "LEVEL", tl.constexpr(2))
    with pytest.raises(RuntimeError, match="LEVEL has changed"):
        levelled[(1,)](out)


def test_hooks_see_warm_launches() -> None:
    seen: list[str] = []
    x, z = torch.ones(4), torch.zeros(4)
    add[(1,)](x, x, z, 4, BLOCK=4)
    hook: Any = lambda metadata: seen.append(metadata.get()["name"])  # noqa: E731
    triton.knobs.runtime.launch_enter_hook.add(hook)
    add[(1,)](x, x, z, 4, BLOCK=4)
    triton.knobs.runtime.launch_enter_hook.remove(hook)
    add[(1,)](x, x, z, 4, BLOCK=4)
    assert seen == ["add"]


def test_wrong_launches_stay_wrong_when_warm() -> None:
    x, z = torch.ones(4), torch.zeros(4)
    for _ in range(2):
        add[(1,)](x, x, z, 4, BLOCK=4)
        with pytest.raises(LoomError, match="negative"):
            add[(-1,)](x, x, z, 4, BLOCK=4)
        with pytest.raises(KeyError, match="unknown"):
            add[(1,)](x, x, z, 4, BLOCK=4, unknown=1)
        with pytest.raises(TypeError, match="multiple values"):
            add[(1,)](x, x, z, 4, 4, x=x)


def test_threads_launch_at_once() -> None:
    """The same and different kernels and constants, first calls included."""
    from concurrent.futures import ThreadPoolExecutor

    def work(seed: int) -> bool:
        x = torch.full((96,), float(seed))
        for _ in range(5):
            z, total = torch.zeros(96), torch.zeros(1, 96)
            block = (16, 32)[seed % 2]
            add[(96 // block,)](x, x, z, 96, BLOCK=block)
            softmax[(1,)](x, total, 96, seed + 1.5, BLOCK=128)
            if not (torch.equal(z, x + x) and torch.allclose(total, torch.full((96,), 1 / 96))):
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


@triton.jit
def checked(x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.device_assert(tl.load(x + at) < 3, "too large")


def test_assertions_of_debug_launches() -> None:
    x = torch.arange(4)
    checked[(1,)](x, BLOCK=4)
    with pytest.raises(LoomError, match="too large") as caught:
        checked[(1,)](x, BLOCK=4, debug=True)
    assert caught.value.location.root().file.endswith("test_driver.py")


def test_benchmarks_take_the_time_of_the_host() -> None:
    x, z = torch.ones(100), torch.zeros(100)
    assert triton.testing.do_bench(lambda: add[(1,)](x, x, z, 100, BLOCK=128), warmup=1, rep=1) > 0


SCRIPT = """
import sys
import torch
from tests.ltl.test_driver import add

if __name__ == "__main__":
    x, z = torch.ones(10), torch.zeros(10)
    add[(1,)](x, x, z, 10, BLOCK=16)
    print(sys.argv[1], z.sum().item())
"""


def test_a_script(tmp_path: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from loom.triton.__main__ import main

    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    assert main([str(script), "total"]) == 0
    assert capsys.readouterr().out == "total 20.0\n"
    assert main([]) == 2
