"""Autotuners and heuristics: what is compared, what is chosen, what hooks see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ltl
from loom_core.base.diagnostics import LoomError
from loom_core.launch import Variant
from ltl.tuning import Autotuned


def accumulate(x, out, n, BLOCK: ltl.constexpr):
    i = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    ltl.store(out + i, ltl.load(out + i, mask=i < n) + ltl.load(x + i, mask=i < n), mask=i < n)


def tuned(*sizes: int, **options: Any) -> Autotuned:
    configs = [ltl.Config({"BLOCK": size}, num_warps=warps) for size in sizes for warps in (4, 8)]
    return ltl.autotune(configs, **{"key": ["n"], **options})(ltl.jit(accumulate))


def launch(kernel: Autotuned, n: int = 200) -> Any:
    x, out = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
    kernel[lambda meta: (ltl.cdiv(n, meta["BLOCK"]),)](x, out, n)
    return out


def test_the_quickest_wins_and_arrays_are_used_once() -> None:
    chosen = []
    for _ in range(2):
        kernel = tuned(8, 128, 32)
        assert np.array_equal(launch(kernel), np.arange(200) + 1)
        ((measured, best),) = [(kernel.cycles[key], best) for key, best in kernel.cache.items()]
        assert min(cycles for _, cycles in measured) == {str(config): cycles for config, cycles in measured}[str(best)]
        chosen.append([str(best), *(cycles for _, cycles in measured)])
    assert chosen[0] == chosen[1]
    assert "BLOCK: 128, num_warps: 4" in chosen[0][0], "ties go to the earlier"


def test_equal_configurations_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, launched = [], []
    plain, trace = Variant.compile, ltl.JitFunction.trace

    def compile(self: Variant, options: Any) -> Any:
        compiled.append(self.specs)
        return plain(self, options)

    def traced(self: Any, *args: Any, **kwargs: Any) -> Any:
        launched.append(kwargs)
        return trace(self, *args, **kwargs)

    monkeypatch.setattr(Variant, "compile", compile)
    monkeypatch.setattr(ltl.JitFunction, "trace", traced)
    launch(tuned(16, 64))
    assert len(compiled) == 2
    assert len(launched) == 2, "four configurations, two kernels"


def test_one_choice_for_each_key_and_dtype() -> None:
    kernel = tuned(16, 64)
    for n in (100, 100, 50):
        launch(kernel, n)
    assert [key[0] for key in kernel.cache] == [100, 50]
    out = np.zeros(50, np.float64)
    kernel[(4,)](np.ones(50), out, 50)
    assert len(kernel.cache) == 3
    with pytest.raises(LoomError, match="names m, and the kernel has no such parameters"):
        tuned(16, key=["m"])


def test_pruning() -> None:
    seen: list[Any] = []

    def early(configs: Any, given: Any, **options: Any) -> Any:
        seen.append((sorted(given), sorted(options)))
        return [config for config in configs if config.num_warps == 8]

    def model(x: Any, out: Any, n: int, BLOCK: int, **options: Any) -> float:
        return -BLOCK

    kernel = tuned(16, 64, 128, prune_configs_by={"early_config_prune": early, "perf_model": model, "top_k": 0.7})
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    kernel[(4,)](x, out, n=64)
    assert seen == [(["out", "x"], ["n"])]
    (measured,) = kernel.cycles.values()
    assert [(config.kwargs["BLOCK"], config.num_warps) for config, _ in measured] == [(128, 8), (64, 8)]
    empty = tuned(16, 64, prune_configs_by={"early_config_prune": lambda configs, given, **options: []})
    with pytest.raises(LoomError, match="none of the configurations of accumulate were left by pruning"):
        launch(empty)


def test_arguments_that_are_reset() -> None:
    """Before each launch that is compared, and before the one that counts; not before later ones."""
    kernel = tuned(16, 64, reset_to_zero=["out"])
    x, out = np.ones(64, np.float32), np.full(64, 7, np.float32)
    for expected in (1, 2):
        kernel[lambda meta: (64 // meta["BLOCK"],)](x, out, 64)
        assert out.tolist() == [expected] * 64


def test_hooks() -> None:
    calls: list[Any] = []

    def before(values: Any, reset_only: bool = False) -> None:
        calls.append(("before", values["BLOCK"], reset_only))

    def after(values: Any, exception: Any) -> None:
        calls.append(("after", values["BLOCK"], type(exception).__name__))

    def own(values: Any) -> None:
        calls.append(("config", values["BLOCK"], values["num_warps"]))

    configs = [ltl.Config({"BLOCK": 64}, pre_hook=own), ltl.Config({"BLOCK": 1 << 22})]
    kernel = ltl.autotune(configs, key=["n"], pre_hook=before, post_hook=after)(ltl.jit(accumulate))
    assert np.array_equal(launch(kernel), np.arange(200) + 1)
    assert calls == [
        ("config", 64, 4), ("before", 64, False), ("after", 64, "NoneType"),
        ("before", 1 << 22, False), ("after", 1 << 22, "TileTooLarge"),
        ("before", 64, True), ("config", 64, 4),
    ]  # fmt: skip


def test_heuristics_see_what_is_chosen_before() -> None:
    values = {"BLOCK": lambda given: 32 if given["n"] > 100 else 16}
    kernel = ltl.heuristics(values)(ltl.jit(accumulate))
    x, out = np.ones(150, np.float32), np.zeros(150, np.float32)
    kernel[lambda meta: (ltl.cdiv(150, meta["BLOCK"]),)](x, out, 150)
    assert out.tolist() == [1] * 150


def test_upstream_autotuners_keep_their_hooks() -> None:
    triton = pytest.importorskip("triton")
    tl = pytest.importorskip("triton.language")
    del tl
    seen: list[int] = []
    upstream = triton.autotune(
        [triton.Config({"BLOCK": size}) for size in (16, 64, 128)],
        key=["n"],
        prune_configs_by={"early_config_prune": lambda configs, given, **options: configs[:2]},
        pre_hook=lambda values, reset_only=False: seen.append(values["BLOCK"]),
    )(triton.jit(_upstream))
    kernel = ltl.jit(upstream)
    assert np.array_equal(launch(kernel), np.arange(200) + 1)
    assert seen == [16, 64, 64]


def _upstream(x, out, n, BLOCK: ltl.constexpr):
    i = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    ltl.store(out + i, ltl.load(out + i, mask=i < n) + ltl.load(x + i, mask=i < n), mask=i < n)
