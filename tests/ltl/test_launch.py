"""Launches on the simulator: what arrays may be, what is specialised, what is cached, what is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ltl
from libloom.arrays import NumpyFields, view_array
from loom_core.base.diagnostics import LoomError
from loom_core.base.knobs import knobs


@ltl.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: ltl.constexpr):
    i = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    mask = i < n
    ltl.store(out_ptr + i, ltl.load(x_ptr + i, mask=mask) + ltl.load(y_ptr + i, mask=mask), mask=mask)


@ltl.jit
def copy_strided(x_ptr, out_ptr, n, stride, BLOCK: ltl.constexpr):
    i = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    ltl.store(out_ptr + i, ltl.load(x_ptr + i * stride, mask=i < n), mask=i < n)


@ltl.jit
def fill(out, value):
    ltl.store(out, value)


def code_of(call: Callable[[], Any]) -> str:
    with pytest.raises(LoomError) as caught:
        call()
    return caught.value.diagnostics[0].code


def arrays(n: int = 100) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(n)
    x, y = (rng.standard_normal(n, dtype=np.float32) for _ in range(2))
    return x, y, np.zeros(n, np.float32)


@pytest.mark.parametrize("n", [1, 31, 100, 128])
def test_launches_again_and_again(n: int) -> None:
    for _ in range(3):
        x, y, out = arrays(n)
        add[(ltl.cdiv(n, 32),)](x, y, out, n, BLOCK=32)
        assert np.array_equal(out, x + y)


def test_grids() -> None:
    x, y, out = arrays()
    for grid in ((4,), 4, [4], (4, 1), (4, 1, 1), (np.int64(4),), lambda meta: (ltl.cdiv(meta["n"], meta["BLOCK"]),)):
        for _ in range(2):
            out[:] = 0
            add[grid](x, y, out, 100, BLOCK=32)
            assert np.array_equal(out, x + y)
    for empty in ((0,), (4, 0), lambda meta: (0,)):
        for _ in range(2):
            out[:] = 7
            add[empty](x, y, out, 100, BLOCK=32)
            assert (out == 7).all()


@pytest.mark.parametrize(
    "grid", [(), (1, 2, 3, 4), (-1,), (1.0,), "4", None, (True,), (2**31,), lambda meta: "x", lambda meta: meta["N"]]
)
def test_wrong_grids(grid: Any) -> None:
    x, y, out = arrays()
    assert code_of(lambda: add[grid](x, y, out, 100, BLOCK=32)) == "LOOM-R104"


def test_grid_of_three_dimensions() -> None:
    @ltl.jit
    def number(out):
        x, y, z = ltl.program_id(0), ltl.program_id(1), ltl.program_id(2)
        place = (z * ltl.num_programs(1) + y) * ltl.num_programs(0) + x
        ltl.store(out + place, x + 10 * y + 100 * z)

    out = np.zeros((3, 2, 4), np.int32)
    number[(4, 2, 3)](out)
    z, y, x = np.indices(out.shape)
    assert np.array_equal(out, x + 10 * y + 100 * z)


def test_arguments_by_position_keyword_and_default() -> None:
    @ltl.jit
    def scaled(x, out, n, factor=3, BLOCK: ltl.constexpr = 32):
        i = ltl.arange(0, BLOCK)
        ltl.store(out + i, ltl.load(x + i, mask=i < n) * factor, mask=i < n)

    x = np.arange(20, dtype=np.int32)
    calls: list[tuple[tuple[Any, ...], dict[str, Any], int]] = [
        ((20,), {}, 3), ((20, 5), {}, 5), ((), {"n": 20, "factor": 2}, 2), ((20,), {"factor": 1, "BLOCK": 64}, 1),
    ]  # fmt: skip
    for args, kwargs, factor in calls * 2:
        out = np.zeros(20, np.int32)
        scaled[(1,)](x, out, *args, **kwargs)
        assert np.array_equal(out, x * factor)


def test_parameters_may_have_any_name() -> None:
    @ltl.jit
    def odd(launch, grid, slow, type, words, run):
        ltl.store(launch, ltl.load(grid) + slow + type + words + run)

    out = np.zeros(1, np.float32)
    for _ in range(3):
        odd[(1,)](out, np.ones(1, np.float32), slow=1.0, run=2.0, type=3.0, words=4.0)
        assert out[0] == 11


def test_wrong_arguments() -> None:
    x, y, out = arrays()
    launch = add[(1,)]
    wrong: list[tuple[Callable[[], Any], str]] = [
        (lambda: launch(x, y, out, 100), "LOOM-R102"),
        (lambda: launch(x, y, out, 100, 32, 5), "LOOM-R102"),
        (lambda: launch(x, y, out, 100, BLOCK=32, SIZE=4), "LOOM-R102"),
        (lambda: launch(x, y, out, "100", BLOCK=32), "LOOM-R103"),
        (lambda: launch(x, y, object(), 100, BLOCK=32), "LOOM-R103"),
        (lambda: launch(x.astype(complex), y, out, 100, BLOCK=32), "LOOM-R103"),
        (lambda: launch(x.astype(">f4"), y, out, 100, BLOCK=32), "LOOM-R103"),
        (lambda: launch(x, y, out, 2**64, BLOCK=32), "LOOM-R103"),
        (lambda: launch(x, y, out, 100, BLOCK=x), "LOOM-R107"),
        (lambda: launch(x, y, out, 100, BLOCK={}), "LOOM-R107"),
        (lambda: add(x, y, out, 100, 32), "LOOM-R105"),
    ]
    for call, code in wrong:
        assert code_of(call) == code
    with pytest.raises(TypeError, match=r"add\[grid\]\(\) got multiple values for argument 'n'"):
        launch(x, y, out, 100, n=3, BLOCK=32)


def test_misaligned_arrays_are_refused() -> None:
    _, y, out = arrays(8)
    skewed = np.zeros(33, np.uint8)[1:].view(np.float32)
    assert code_of(lambda: add[(1,)](skewed, y, out, 8, BLOCK=8)) == "LOOM-R103"


def test_gpu_options_of_triton_are_accepted() -> None:
    x, y, out = arrays()
    add[(4,)](x, y, out, 100, BLOCK=32, num_warps=8, num_stages=3)
    assert np.array_equal(out, x + y)


def test_kernels_take_no_star_arguments() -> None:
    def stars(*pointers):
        pass

    assert code_of(lambda: ltl.jit(stars)) == "LOOM-R101"


# ---- arrays ----------------------------------------------------------------------------------------------------------


def test_views_and_strides() -> None:
    base = np.arange(60, dtype=np.float32).reshape(6, 10)
    for view in (base[2], base[:, 3], base[::-1, 0], base[1:5:2, 4], base.T[7]):
        for _ in range(2):
            out = np.zeros(view.size, np.float32)
            copy_strided[(2,)](view, out, view.size, view.strides[0] // 4, BLOCK=8)
            assert np.array_equal(out, view)


def test_a_view_may_reach_all_of_its_base_and_nothing_else() -> None:
    base = np.arange(16, dtype=np.float32)
    out = np.zeros(8, np.float32)
    copy_strided[(1,)](base[8:10], out, 8, 1, BLOCK=8)
    assert np.array_equal(out, base[8:])
    copy_strided[(1,)](base[7:], out, 8, -1, BLOCK=8)
    assert np.array_equal(out, base[7::-1])
    for _ in range(2):
        assert code_of(lambda: copy_strided[(1,)](base[9:], out, 8, 1, BLOCK=8)) == "LOOM-S101"


def test_out_of_bounds_is_said_at_the_kernels_line() -> None:
    x = np.zeros(4, np.float32)
    for _ in range(2):
        with pytest.raises(LoomError) as caught:
            add[(1,)](x, x.copy(), np.zeros(64, np.float32), 64, BLOCK=64)
        location = caught.value.diagnostics[0].location
        assert location.file == __file__
        assert location.end_column > location.column + 1


def test_zero_size_and_zero_dimensional_arrays() -> None:
    empty = np.zeros(0, np.float32)
    add[(1,)](empty, empty.copy(), empty.copy(), 0, BLOCK=8)
    scalar = np.array(2.0, np.float32)
    out = np.array(0.0, np.float32)
    add[(1,)](scalar, scalar.copy(), out, 1, BLOCK=1)
    assert out == 4


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(5, np.int32), (-5, np.int32), (1, np.int32), (2**40, np.int64), (2**63 + 5, np.uint64), (1.5, np.float32),
     (-0.0, np.float32), (1e300, np.float32), (float("nan"), np.float32), (True, np.bool_), (False, np.bool_),
     (np.int64(7), np.int32), (np.float32(0.1), np.float32), (np.bool_(True), np.bool_)],
)  # fmt: skip
def test_numbers_arrive_exactly(value: Any, dtype: Any) -> None:
    for _ in range(2):
        out = np.zeros(1, dtype)
        fill[(1,)](out, value)
        with np.errstate(over="ignore"):
            expected = np.array([value]).astype(dtype)
        assert out.tobytes() == expected.tobytes()


def test_annotated_numbers() -> None:
    @ltl.jit
    def wide(out, n: ltl.int64):
        ltl.static_assert(n.dtype == ltl.int64)
        ltl.store(out, n)

    out = np.zeros(1, np.int64)
    for n in (1, 5, 2**40, 1):
        wide[(1,)](out, n)
        assert out[0] == n
    assert code_of(lambda: wide[(1,)](out, 2**63)) == "LOOM-R108"
    assert code_of(lambda: wide[(1,)](out, 1.5)) == "LOOM-R108"


def test_read_only_outputs_are_refused_and_read_only_inputs_taken() -> None:
    x, y, out = arrays()
    x.flags.writeable = False
    add[(4,)](x, y, out, 100, BLOCK=32)
    assert np.array_equal(out, x + y)
    out.flags.writeable = False
    for _ in range(2):
        assert code_of(lambda: add[(4,)](x, y, out, 100, BLOCK=32)) == "LOOM-R106"


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    for _ in range(3):
        x, y = torch.randn(10, 10), torch.randn(100)
        out = torch.zeros(200)
        add[(4,)](x.t(), y, out[100:], 100, BLOCK=32)
        assert torch.equal(out[100:], x.flatten() + y)
        assert not out[:100].any()
    left, right = torch.split(torch.arange(32.0).reshape(4, 8), 4, 1)
    out = torch.zeros(4)
    copy_strided[(1,)](right[:, 0], out, 4, 8, BLOCK=4)
    assert torch.equal(out, right[:, 0])
    assert left.shape == (4, 4)
    assert code_of(lambda: fill[(1,)](torch.zeros(2, dtype=torch.complex64), 1.0)) == "LOOM-R103"
    assert code_of(lambda: fill[(1,)](torch.zeros(2).to_sparse(), 1.0)) == "LOOM-R103"


def test_jax_arrays_are_read_only_inputs() -> None:
    jnp = pytest.importorskip("jax.numpy")
    x, y, out = arrays()
    add[(4,)](jnp.asarray(x), y, out, 100, BLOCK=32)
    assert np.array_equal(out, x + y)
    assert code_of(lambda: fill[(1,)](jnp.zeros(1), 1.0)) == "LOOM-R106"


def test_numpy_fields_are_read_directly_here() -> None:
    assert NumpyFields.usable
    assert view_array("text") is None


def test_overlapping_arrays() -> None:
    x, y, out = arrays()
    expected = x + y
    for _ in range(2):
        inplace = x.copy()
        add[(4,)](inplace, y, inplace, 100, BLOCK=32)
        assert np.array_equal(inplace, expected)
    # Each program reads what the one before it wrote.
    buffer = np.ones(65, np.float32)
    add[(64,)](buffer, buffer, buffer[1:], 64, BLOCK=1)
    assert np.array_equal(buffer[:20], 2.0 ** np.arange(20))
    add[(4,)](x, y, out, 100, BLOCK=32)
    assert np.array_equal(out, expected)


# ---- specialisation and caches ---------------------------------------------------------------------------------------


def test_integers_share_a_variant_except_one() -> None:
    @ltl.jit
    def store_n(out, n):
        ltl.store(out, n)

    out = np.zeros(1, np.int32)
    for n in (0, 1, 16, 32, 1024, -3, 2**31 - 1):
        store_n[(1,)](out, n)
        assert out[0] == n
    assert len(store_n._variants) == 2


def test_a_kernel_for_one_is_not_taken_for_other_integers() -> None:
    out = np.zeros(1, np.int64)
    for _ in range(2):
        for value in (1, 0, -1, 7, 2**31 - 1, -(2**31), 2**31, -(2**31) - 1, 2**63 - 1, -(2**63)):
            fill[(1,)](out, value)
            assert out[0] == value


def test_constexprs_share_nothing() -> None:
    @ltl.jit
    def store_constant(out, N: ltl.constexpr):
        ltl.store(out, N)

    out = np.zeros(1, np.float32)
    values = [32, 1024, 1, 1.0, True, 0.0, -0.0]
    for value in values * 2:
        store_constant[(1,)](out, value)
        assert out.tobytes() == np.array([value], np.float32).tobytes()
    assert len(store_constant._variants) == len(values)


def test_do_not_specialize() -> None:
    @ltl.jit(do_not_specialize=["n"])
    def store_n(out, n):
        ltl.store(out, n)

    out = np.zeros(1, np.int32)
    for n in (1, 2, 1):
        store_n[(1,)](out, n)
        assert out[0] == n
    assert len(store_n._variants) == 1


SCALE = 3
OFFSET = ltl.constexpr(10)


@ltl.jit
def scale(x):
    return x * SCALE


@ltl.jit
def use_globals(out, x):
    ltl.store(out, scale(ltl.load(x)) + OFFSET)


def test_changed_globals_and_helpers_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    x, out = np.array([5], np.int32), np.zeros(1, np.int32)
    module = globals()

    def run() -> int:
        for _ in range(2):
            out[0] = 0
            use_globals[(1,)](out, x)
        return int(out[0])

    assert run() == 25
    monkeypatch.setitem(module, "SCALE", 4)
    assert run() == 30
    monkeypatch.setitem(module, "OFFSET", ltl.constexpr(0))
    assert run() == 20

    @ltl.jit
    def negate(x):
        return -x

    original = scale
    monkeypatch.setitem(module, "scale", negate)
    assert run() == -5
    monkeypatch.setitem(module, "scale", original)
    monkeypatch.setitem(module, "SCALE", int("1000000"))
    assert run() == 5_000_000
    before = use_globals._variants.copy()
    monkeypatch.setitem(module, "SCALE", int("1000000"))
    assert run() == 5_000_000
    assert use_globals._variants == before


def test_changed_closures_are_seen() -> None:
    factor = 2

    @ltl.jit
    def times(out, x):
        ltl.store(out, ltl.load(x) * factor)

    x, out = np.array([5], np.int32), np.zeros(1, np.int32)
    for factor in (2, 3, 3, 7):
        times[(1,)](out, x)
        assert out[0] == 5 * factor


def test_a_global_may_come_to_hide_a_builtin(monkeypatch: pytest.MonkeyPatch) -> None:
    @ltl.jit
    def smaller(out, x):
        ltl.store(out, min(ltl.load(x), 3))

    x, out = np.array([5], np.int32), np.zeros(1, np.int32)
    smaller[(1,)](out, x)
    smaller[(1,)](out, x)
    assert out[0] == 3
    monkeypatch.setitem(globals(), "min", ltl.maximum)
    smaller[(1,)](out, x)
    assert out[0] == 5


def test_objects_come_from_the_disk_cache_and_are_the_same(tmp_path: Any) -> None:
    from loom_core.objfile import write_object

    def make(factor: int) -> ltl.JitFunction:
        namespace: dict[str, Any] = {"ltl": ltl, "FACTOR": factor}
        text = "def kernel(out, x):\n    ltl.store(out, ltl.load(x) * FACTOR)\n"
        exec(text, namespace)
        return ltl.jit(namespace["kernel"], source=text)

    with knobs.override(cache_dir=tmp_path):
        first = write_object(make(2).compile("*i32", "*i32"))
        stored = [p for p in tmp_path.rglob("*") if p.is_file() and "engines" not in p.parts]
        assert stored
        assert write_object(make(2).compile("*i32", "*i32")) == first
        assert write_object(make(3).compile("*i32", "*i32")) != first


def test_threads_launch_the_same_kernel() -> None:
    failures: list[int] = []

    def work(seed: int) -> None:
        x, y, _ = arrays(100 + seed)
        for _ in range(50):
            out = np.zeros_like(x)
            add[(8,)](x, y, out, x.size, BLOCK=32)
            if not np.array_equal(out, x + y):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_debug_shows_launches(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, out = arrays()
    add[(4,)](x, y, out, 100, BLOCK=32)
    monkeypatch.setenv("LOOM_DEBUG", "1")
    add[(4,)](x, y, out, 100, BLOCK=32)
    assert "launch add(*f32, *f32, *f32, i32, 32) over (4, 1, 1)" in capsys.readouterr().err
    monkeypatch.delenv("LOOM_DEBUG")
    add[(4,)](x, y, out, 100, BLOCK=32)
    assert capsys.readouterr().err == ""


def test_interpret_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, out = arrays()
    add[(4,)](x, y, out, 100, BLOCK=32)
    monkeypatch.setenv("LOOM_INTERPRET", "1")
    again = np.zeros_like(out)
    add[(4,)](x, y, again, 100, BLOCK=32)
    assert np.array_equal(out, again)


def test_compile_and_lower_take_values_or_texts() -> None:
    x, y, out = arrays()
    from loom_core.objfile import write_object

    by_text = add.compile("*fp32", "*f32", "*fp32", "i32", BLOCK=32)
    assert write_object(add.compile(x, y, out, 100, BLOCK=32)) == write_object(by_text)
    assert [arg.name for arg in by_text.abi.args] == ["x_ptr", "y_ptr", "out_ptr", "n"]
    assert str(add.lower("*fp32", "*f32", "*fp32", "i32", 32)).startswith("func @add(%x_ptr: ptr<f32>")
    assert code_of(lambda: add.lower("*fp31", "*f32", "*fp32", "i32", 32)) == "LOOM-R103"


@ltl.jit
def deep_products(a, b, c, K: ltl.constexpr):
    i, k = ltl.arange(0, 16), ltl.arange(0, K)
    acc = ltl.full((16, 16), 1.5, ltl.float32)
    for _ in range(3):
        acc += ltl.dot(ltl.load(a + i[:, None] * K + k[None, :]), ltl.load(b + k[:, None] * 16 + i[None, :]))
    ltl.store(c + i[:, None] * 16 + i[None, :], acc)


def test_the_interpreter_adds_to_accumulators_as_the_simulator_does() -> None:
    """A product of more than one pass depth: adding it to the accumulator after all passes would round otherwise."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((16, 256), (256, 16)))
    simulated, interpreted = np.zeros((2, 16, 16), np.float32)
    deep_products[(1,)](a, b, simulated, K=256)
    with knobs.override(interpret=True):
        deep_products[(1,)](a, b, interpreted, K=256)
    assert np.array_equal(simulated.view(np.int32), interpreted.view(np.int32))


@ltl.jit
def increment(x: Any, n: Any, BLOCK: ltl.constexpr) -> None:
    at = ltl.arange(0, BLOCK)
    ltl.store(x + at, ltl.load(x + at, mask=at < n, other=0) + 1, mask=at < n)


@pytest.mark.parametrize("interpret", [False, True])
def test_read_only_and_empty_arrays_whatever_runs_them(interpret: bool) -> None:
    fixed = bytes(16)
    with knobs.override(interpret=interpret):
        with pytest.raises(LoomError, match="LOOM-R106"):
            increment[(1,)](np.frombuffer(fixed, np.float32), 4, BLOCK=4)
        assert fixed == bytes(16)
        increment[(1,)](np.zeros(0, np.float32), 0, BLOCK=4)
        x = np.zeros(4, np.float32)
        increment[(1,)](x, 3, BLOCK=4)
    assert x.tolist() == [1, 1, 1, 0]
