"""Calls of kernels: `@kernel(...)`, and the functional form `call(function, ...)`."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from loom_core.base.cells import shown_file
from loom_core.base.diagnostics import LoomError, without_internal_frames
from loom_core.isa.machine import L1, MachineConfig
from loom_core.launch import quiet
from loom_core.trace.context import caller
from palladium.arguments import Given, UnsupportedOperand, given_operand
from palladium.fastpath import call_key, is_plain, same_operands, warm_call
from palladium.fingerprint import Unchanged, fingerprint
from palladium.hints import KERNEL_HINTS, check_hints
from palladium.plan import Plan, make_plan
from palladium.signature import Declaration, declare
from palladium.specs import leaves, rebuild

if TYPE_CHECKING:
    from loom_core.ir.block import Function
    from loom_core.objfile import LoomObject

PLANS_KEPT: Final = 512


class Kernel:
    """A kernel with its specs: called with arrays, gives the outputs.

    A call traces and compiles the kernel for the shapes, dtypes and strides of its operands; each such plan is kept,
    its object also on disk. `declaration` is what the kernel was declared with; `alike` a kernel declared in the same
    way, whose plans are shared.
    """

    def __init__(self, declaration: Declaration, alike: Kernel | None = None) -> None:
        self.declaration = declaration
        self._plans: dict[Any, Plan] = {} if alike is None else alike._plans
        self._warm: dict[Any, Callable[[Sequence[Any]], Any]] = {} if alike is None else alike._warm
        self._recent: tuple[Unchanged, Callable[[Sequence[Any]], bool], Callable[[Sequence[Any]], Any]] | None = None
        self._lock: threading.Lock = threading.Lock() if alike is None else alike._lock
        functools.update_wrapper(self, declaration.function, updated=())

    def __call__(self, *operands: Any) -> Any:
        try:
            if self._recent is not None and quiet():
                unchanged, fits, again = self._recent
                if fits(operands) and unchanged.holds():
                    return again(operands)
            state = fingerprint(self.declaration.functions)
            key = call_key(operands)
            if key is not None and quiet():
                warm = self._warm.get((key, state))
                if warm is not None:
                    self._recall(operands, warm)
                    return warm(operands)
            given = self._given(operands)
            plan = self._plan(operands, given, state)
            result = plan.run(given)
            if key is not None and quiet() and is_plain(plan):
                self._remember((key, state), plan)
            return result
        except LoomError as error:
            raise without_internal_frames(error) from None

    def _recall(self, operands: Sequence[Any], warm: Callable[[Sequence[Any]], Any]) -> None:
        """Keep what the next call needs that is like this one."""
        unchanged = Unchanged(self.declaration.functions)
        self._recent = (unchanged, same_operands(operands), warm) if unchanged.known else None

    def _remember(self, key: Any, plan: Plan) -> None:
        """Keep what further calls with arrays of this kind need."""
        with self._lock:
            if len(self._warm) >= PLANS_KEPT:
                self._warm.clear()
            self._warm[key] = warm_call(plan)

    def _given(self, operands: Sequence[Any]) -> list[Given]:
        flat = leaves(operands)
        if len(flat) == len(operands):
            names: Sequence[str] = self.declaration.parameters
            return [given_operand(names[i] if i < len(names) else f"operand{i}", one) for i, one in enumerate(flat)]
        for name, one in zip(self.declaration.parameters, operands, strict=False):
            if isinstance(one, (list, tuple)) and one and not any(hasattr(leaf, "shape") for leaf in leaves(one)):
                reason = "make it one: np.array(...)"
                raise UnsupportedOperand(caller(), name=name, given="a sequence of numbers, no array", reason=reason)
        names = self.declaration.operand_names(operands)
        return [given_operand(name, one) for name, one in zip(names, flat, strict=True)]

    def plan(self, operands: Sequence[Any], given: Sequence[Given]) -> Plan:
        """The compiled kernel for such operands, of which `given` are the leaves."""
        return self._plan(operands, given, fingerprint(self.declaration.functions))

    def _plan(self, operands: Sequence[Any], given: Sequence[Given], state: Hashable) -> Plan:
        """`plan` for the present state of what the kernel reads from outside."""
        shape = len(operands) if len(given) == len(operands) else str(rebuild(operands, iter(range(len(given)))))
        key = (shape, tuple(one.kind for one in given), state)
        found = self._plans.get(key)
        if found is None:
            with self._lock:
                found = self._plans.get(key)
                if found is None:
                    found = make_plan(self.declaration, operands, given)
                    if len(self._plans) >= PLANS_KEPT:
                        self._plans.clear()
                    self._plans[key] = found
        return found

    def lower(self, *operands: Any) -> Function:
        """The Tile IR of the kernel for such operands, as traced."""
        return self._looked_at(operands).variant.function

    def compile(
        self, *operands: Any, machine: MachineConfig | None = None, options: Mapping[str, Any] | None = None
    ) -> LoomObject:
        """The object of the kernel for such operands."""
        variant = self._looked_at(operands).variant
        if machine is not None:
            variant = replace(variant, machine=machine)
        return variant.compile(options or {})

    def trace(self, *operands: Any) -> Any:
        """Run the kernel under the cycle model of its machine; gives the simulator's trace."""
        given = self._given(operands)
        return self.plan(operands, given).trace(given)

    def explain(self, *operands: Any) -> Any:
        """How a call with such operands is divided among cores, or why it runs on one; `str` of it says so."""
        given = self._given(operands)
        return self.plan(operands, given).explain(given)

    def _looked_at(self, operands: Sequence[Any]) -> Plan:
        try:
            return self.plan(operands, self._given(operands))
        except LoomError as error:
            raise without_internal_frames(error) from None

    def _shown(self) -> tuple[str, str]:
        """The signature, and where the kernel is."""
        declaration = self.declaration
        grid = f", grid={declaration.grid}" if declaration.grid else ""
        where = declaration.location
        return (
            f"{declaration.name}({', '.join(declaration.parameters)}{grid})",
            f"{os.path.basename(shown_file(where.file))}:{where.line}",
        )

    def __repr__(self) -> str:
        from loom_core.kernel_view import kernel_text

        return kernel_text(*self._shown(), len(self._plans))

    def _repr_html_(self) -> str:
        from loom_core.kernel_view import kernel_html

        variants = [plan.variant for plan in list(self._plans.values())]
        columns = max((len(variant.specs) for variant in variants), default=0)
        names = [*self.declaration.parameters, *[""] * columns][:columns]
        return kernel_html(*self._shown(), names, variants)


def kernel(
    function: Callable[..., Any] | None = None,
    *,
    out_shape: Any,
    grid: Any = None,
    in_specs: Any = None,
    out_specs: Any = None,
    scratch: Any = (),
    scratch_shapes: Any = (),
    grid_spec: Any = None,
    num_scalar_prefetch: int = 0,
    input_output_aliases: Mapping[int, int] | None = None,
    name: str | None = None,
    machine: MachineConfig = L1,
    out_of_bounds_reads: str = "raise",
    dimension_semantics: Any = None,
    axis_names: Any = None,
    **hints: Any,
) -> Any:
    """Make a kernel of a Python function of refs: of the operands, of the outputs, of scratch.

    out_shape: shape and dtype of the outputs (anything with both), or a tree of them.
    grid: an int or a tuple of them; the last axis runs fastest. () or None is one grid point.
    in_specs, out_specs: a `BlockSpec` for each operand and output, or None for the whole array in place.
    scratch: buffers of SRAM that live over all grid points: SRAM(shape, dtype), Semaphore().
    grid_spec: grid, specs and scratch in one object, in place of the above.
    input_output_aliases: operand number to output number: the output begins with the operand's contents.
    out_of_bounds_reads: what an input block that begins outside its array does: "raise", or "uninitialized" for poison.
    dimension_semantics: for each grid axis "arbitrary"; "parallel": then an output that accumulates along the axis is
        an error; or "permitted": parallel unless one does.
    axis_names: a name for each grid axis, by which program_id and num_programs know it too.
    hints: what says how another machine should compile or run it (`palladium.hints.KERNEL_HINTS`); without meaning
        here.
    """
    check_hints(kernel, hints, KERNEL_HINTS)

    def make(function: Callable[..., Any]) -> Kernel:
        try:
            return Kernel(
                declare(
                    function,
                    out_shape=out_shape,
                    grid=grid,
                    in_specs=in_specs,
                    out_specs=out_specs,
                    scratch=scratch or scratch_shapes,
                    grid_spec=grid_spec,
                    num_scalar_prefetch=num_scalar_prefetch,
                    aliases=input_output_aliases or {},
                    name=name,
                    machine=machine,
                    out_of_bounds_reads=out_of_bounds_reads,
                    dimension_semantics=dimension_semantics,
                    axis_names=axis_names,
                )
            )
        except LoomError as error:
            raise without_internal_frames(error) from None

    return make if function is None else make(function)


def call(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """`kernel(**options)(function)`, for functions made on the spot: equal ones share what was compiled."""
    made: Kernel = kernel(function, **options)
    key = made.declaration.key
    with _SHARED_LOCK:
        found = _SHARED.get(key)
        if found is None:
            if len(_SHARED) >= PLANS_KEPT:
                _SHARED.clear()
            found = _SHARED[key] = made
    return made if found is made else Kernel(made.declaration, found)


_SHARED: Final[dict[Any, Kernel]] = {}
_SHARED_LOCK: Final = threading.Lock()
