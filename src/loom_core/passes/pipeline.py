"""The order of the passes, as a list."""

from __future__ import annotations

from collections.abc import Callable

from loom_core.ir.block import Function
from loom_core.passes.bound_gathers import bound_gathers
from loom_core.passes.expand_products import expand_products
from loom_core.passes.fold_dot import fold_dot_accumulator
from loom_core.passes.hoist import hoist_invariants
from loom_core.passes.lower_addresses import lower_addresses
from loom_core.passes.lower_ranks import lower_ranks
from loom_core.passes.materialize import materialize
from loom_core.passes.promote_windows import promote_windows
from loom_core.passes.reduce_assertions import reduce_assertions
from loom_core.passes.simplify import simplify
from loom_core.passes.split_pointers import split_pointers

Pass = Callable[[Function], Function]

PIPELINE: tuple[Pass, ...] = (
    fold_dot_accumulator,  # on the traced program, which defines what it rounds: merging products first would change it
    promote_windows,
    split_pointers,
    reduce_assertions,
    simplify,
    lower_addresses,
    bound_gathers,
    lower_ranks,
    expand_products,
    simplify,
    hoist_invariants,
    simplify,
    materialize,
)
