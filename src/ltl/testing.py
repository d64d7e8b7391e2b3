"""`triton.testing` for kernels of LTL: modelled time, comparisons, and tables of benchmarks."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

_MODES: Final = ("min", "max", "mean", "median", "all")


def modelled_milliseconds(function: Callable[[], Any]) -> float | None:
    """What the cycle model gives for the kernels that `function` launches; None where it launches none.

    Launches that are checked or interpreted are not modelled.
    """
    from loom_core.isa.machine import L1
    from loom_core.launch import profile

    with profile() as traces:
        function()
    return traces.cycles / (L1.clock_hz / 1e3) if traces else None


def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """Milliseconds that the cycle model gives for the kernels that `fn` launches, which it does once.

    The same each time, so that there is nothing to warm up and all quantiles are equal: a list of them where
    `quantiles` or `return_mode="all"` asks for several, else one number. Where `fn` launches no kernel, the time of the
    host.
    """
    if return_mode not in _MODES:
        raise ValueError(f"return_mode is one of {', '.join(_MODES)}, not {return_mode!r}")
    begin = time.perf_counter()
    milliseconds = modelled_milliseconds(fn)
    if milliseconds is None:
        milliseconds = (time.perf_counter() - begin) * 1e3
    if quantiles is not None:
        return [milliseconds] * len(quantiles)
    return [milliseconds] if return_mode == "all" else milliseconds


def assert_close(x: Any, y: Any, atol: Any = None, rtol: Any = None, err_msg: str = "") -> None:
    """AssertionError unless |x - y| <= atol + rtol |y| everywhere, NaN where there is NaN.

    x, y: arrays, tensors, lists or numbers; atol (by default 0.01) and rtol (by default 0) are numbers, or functions of
    the dtype of x.
    """
    ours, theirs = _as_numpy(x), _as_numpy(y)
    dtype = getattr(x, "dtype", ours.dtype)
    absolute, relative = (value(dtype) if callable(value) else value for value in (atol, rtol))
    absolute, relative = 1e-2 if absolute is None else absolute, relative or 0.0
    np.testing.assert_allclose(ours, theirs, atol=absolute, rtol=relative, equal_nan=True, err_msg=err_msg)


def _as_numpy(value: Any) -> Any:
    if type(value).__module__.split(".", 1)[0] == "torch":
        value = value.detach().cpu()
        value = (value.float() if value.dtype.is_floating_point and value.dtype.itemsize < 4 else value).numpy()
    array = np.asarray(value)
    return array if array.dtype.kind in "biuf" else array.astype(np.float32)


class Benchmark:
    """What `perf_report` measures: a line for each of `line_vals`, over the values of the arguments `x_names`.

    `x_vals` holds a value for all of these, or a tuple with one for each; `args` are fixed. Colours, scales and labels
    of plots are accepted: nothing is plotted.
    """

    def __init__(
        self,
        x_names: Sequence[str],
        x_vals: Sequence[Any],
        line_arg: str,
        line_vals: Sequence[Any],
        line_names: Sequence[str],
        plot_name: str,
        args: Mapping[str, Any],
        xlabel: str = "",
        ylabel: str = "",
        x_log: bool = False,
        y_log: bool = False,
        styles: Any = None,
    ) -> None:
        self.x_names = list(x_names)
        self.x_vals = list(x_vals)
        self.line_arg = line_arg
        self.line_vals = list(line_vals)
        self.line_names = list(line_names)
        self.plot_name = plot_name
        self.args = dict(args)
        self.ylabel = ylabel

    def rows(self, function: Callable[..., Any], options: Mapping[str, Any]) -> list[list[Any]]:
        """The values of x, then what `function` gives for each line: a number, or the first of several."""
        found = []
        for x in self.x_vals:
            values = list(x) if isinstance(x, (tuple, list)) else [x] * len(self.x_names)
            if len(values) != len(self.x_names):
                raise ValueError(f"{x!r} has {len(values)} values for {', '.join(self.x_names)}")
            given = {**dict(zip(self.x_names, values, strict=True)), **self.args, **options}
            results = [function(**given, **{self.line_arg: line}) for line in self.line_vals]
            found.append([*values, *(r[0] if isinstance(r, (tuple, list)) else r for r in results)])
        return found


class Mark:
    """A function with its benchmarks; `run` measures them."""

    def __init__(self, fn: Callable[..., Any], benchmarks: Benchmark | Sequence[Benchmark]) -> None:
        self.fn = fn
        self.benchmarks = [benchmarks] if isinstance(benchmarks, Benchmark) else list(benchmarks)
        self._single = isinstance(benchmarks, Benchmark)

    def run(
        self,
        show_plots: bool = False,
        print_data: bool = False,
        save_path: str = "",
        return_df: bool = False,
        **options: Any,
    ) -> Any:
        """Measure; print tables (`print_data`), write them as CSV into the folder `save_path`, and give them.

        With `return_df` each table is a pandas DataFrame, in a list where the function has a list of benchmarks.
        """
        tables = []
        for benchmark in self.benchmarks:
            header = [*benchmark.x_names, *(f"{name} ({benchmark.ylabel})" for name in benchmark.line_names)]
            rows = benchmark.rows(self.fn, options)
            if print_data:
                print(f"{benchmark.plot_name}:\n{_table(header, rows)}")
            if save_path:
                Path(save_path).mkdir(parents=True, exist_ok=True)
                with (Path(save_path) / f"{benchmark.plot_name}.csv").open("w", newline="", encoding="utf-8") as file:
                    csv.writer(file).writerows([header, *rows])
            tables.append((header, rows))
        if not return_df:
            return None
        pandas = import_module("pandas")

        frames = [pandas.DataFrame(rows, columns=header) for header, rows in tables]
        return frames[0] if self._single else frames


def _table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    shown = [list(header), *([f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in shown)


def perf_report(benchmarks: Benchmark | Sequence[Benchmark]) -> Callable[[Callable[..., Any]], Mark]:
    """A decorator: `function.run()` calls the function for all arguments that the benchmarks name."""
    return lambda function: Mark(function, benchmarks)


__all__ = ["Benchmark", "Mark", "assert_close", "do_bench", "perf_report"]
