"""What libraries do with Triton beside launching, under Loom's driver: kernels looked into, devices, operators."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

pytestmark = [
    pytest.mark.usefixtures("triton_on_loom"),
    pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION", "ignore::DeprecationWarning"),
]


@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


def test_compiled_kernels_are_looked_into_and_launched() -> None:
    x, z = torch.ones(100), torch.zeros(100)
    kernel = add.warmup(torch.float32, torch.float32, torch.float32, 100, BLOCK=32, grid=(1,))
    assert not z.any(), "warming up launches nothing"
    assert "tt.load" in kernel.asm["ttir"]
    assert (kernel.name, kernel.metadata.num_warps, kernel.metadata.shared) == ("add", 4, 0)
    kernel._init_handles()
    assert (kernel.n_regs, kernel.n_spills) == (0, 0)
    kernel[(4, 1, 1)](x, x, z, 100, 32)
    assert torch.equal(z, x + x)
    signature = {"x": "*fp32", "y": "*fp32", "z": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    source = triton.compiler.ASTSource(fn=add, signature=signature, constexprs={"BLOCK": 64})
    triton.compile(source)[(2, 1, 1)](z, z, z, 100, 64)
    assert torch.equal(z, x * 4)


def test_the_device() -> None:
    active = triton.runtime.driver.active
    device = active.get_current_device()
    properties = active.utils.get_device_properties(device)
    assert properties["multiprocessor_count"] == 1
    assert properties["max_shared_mem"] >= 1 << 20
    target = active.get_current_target()
    assert (target.backend, target.warp_size) == ("cpu", 32)
    interface = active.get_device_interface()
    assert (interface.is_available(), interface.device_count(), interface.current_device()) == (True, 1, 0)
    assert active.get_active_torch_device() == torch.device("cpu")


libdevice = pytest.importorskip("triton.language.extra.libdevice")
of_cuda = pytest.importorskip("triton.language.extra.cuda.libdevice")


@triton.jit
def functions(x, z, BLOCK: tl.constexpr):
    v = tl.load(x + tl.arange(0, BLOCK))
    result = libdevice.tanh(v) + of_cuda.exp(v) + tl.math.log2(v) + tl.extra.libdevice.rsqrt(v)
    tl.store(z + tl.arange(0, BLOCK), result)


def test_libraries_of_functions_by_both_paths() -> None:
    x, z = torch.rand(64) + 1, torch.zeros(64)
    functions[(1,)](x, z, BLOCK=64)
    triton.testing.assert_close(z, torch.tanh(x) + torch.exp(x) + torch.log2(x) + torch.rsqrt(x), atol=1e-5)


def test_operators_of_torch_made_of_kernels() -> None:
    @torch.library.triton_op("loom_tests::add", mutates_args={})
    def by_triton(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(a)
        torch.library.wrap_triton(add)[(triton.cdiv(a.numel(), 32),)](a, b, out, a.numel(), BLOCK=32)
        return out

    @torch.library.custom_op("loom_tests::opaque", mutates_args={})
    def opaque(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(a)
        add[(triton.cdiv(a.numel(), 32),)](a, b, out, a.numel(), BLOCK=32)
        return out

    opaque.register_fake(lambda a, b: torch.empty_like(a))
    x, y = torch.randn(100), torch.randn(100)
    assert torch.equal(by_triton(x, y), x + y)
    assert torch.equal(opaque(x, y), x + y)
    compiled = torch.compile(lambda a, b: by_triton(a, b) * opaque(a, b), backend="aot_eager")
    assert torch.equal(compiled(x, y), (x + y) * (x + y))
