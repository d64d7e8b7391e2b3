"""`triton.testing` without Triton: `do_bench` gives modelled time."""

from ltl.testing import Benchmark as Benchmark
from ltl.testing import Mark as Mark
from ltl.testing import assert_close as assert_close
from ltl.testing import do_bench as do_bench
from ltl.testing import perf_report as perf_report
