"""`check_kernel`: a kernel against its reference over launches that hypothesis makes, and the smallest that fails."""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from loom.testing.cases import Built, Case, View
from loom.testing.comparison import Fault, Tolerance, as_expected, flat_results, observe
from loom.testing.declarations import Array
from loom.testing.errors import BadDeclaration, KernelDiffers, NoHypothesis, ReferenceFails
from loom.testing.options import options
from loom.testing.reproduction import Failure, save
from loom.testing.values import PLAIN
from loom_core.base.diagnostics import LoomError, without_internal_frames
from loom_core.base.dtype import from_numpy
from loom_core.base.location import UNKNOWN, Location
from loom_core.trace.context import caller

Grid = Any


def check_kernel(
    kernel: Any,
    reference: Callable[..., Any],
    arguments: Mapping[str, Any],
    *,
    grid: Grid = None,
    ulp: float = 0,
    rtol: float = 0,
    atol: float = 0,
    sizes: Mapping[str, Any] | None = None,
    in_place: Iterable[tuple[str, str]] = (),
    torch: bool | None = None,
    examples: int | None = None,
    seed: int | None = None,
) -> None:
    """Launch `kernel` in many ways under `loom.check()`, and compare each time with `reference`.

    kernel: an LTL kernel, a Triton kernel under `loom.triton.install()`, a Palladium kernel, or any function that
        launches some. With `grid` it is launched as `kernel[grid](**arguments)`, else called as `kernel(*arguments)`.
    reference: a function of NumPy arrays or tensors. It gets the arguments that its parameters name, or else the arrays
        that are read, in order; and gives what is written (or what the kernel returns): one array, or several in the
        order of the arguments. If it gives None, it has written into the arrays that it got, which are copies.
    arguments: name -> `array`, `output`, `updated`, `size`, `stride`, `choice`, `number`, a function of the sizes and
        arguments so far by name, or any other value, which stands for itself.
    grid: ints, or a function of the arguments by name.
    ulp, rtol, atol: an element is right if it is as near as any of these says. By default: the same bits, any NaN.
    sizes: bounds of sizes: an int for (0, int), or (least, most).
    in_place: pairs of arguments that may be one array, one of which is written. Arrays that are only read may always
        overlap each other.
    torch: whether arrays are tensors; by default for Triton's own kernels.
    examples, seed: how many launches, and which; by default those of the pytest options.

    Deterministic. Raises KernelDiffers (LOOM-R130) for the smallest launch found that is wrong; a Python file that
    repeats it is saved. ReferenceFails, BadDeclaration.
    """
    __tracebackhide__ = True  # pytest shows the test and the diagnostic
    try:
        from loom.testing.strategies import Plan
    except ModuleNotFoundError as error:
        if error.name != "hypothesis":
            raise
        raise NoHypothesis(caller()) from None
    tensors = _is_upstream(kernel) if torch is None else torch
    plan = Plan(
        dict(arguments),
        {name: (0, given) if isinstance(given, int) else tuple(given) for name, given in (sizes or {}).items()},
        frozenset(frozenset(pair) for pair in in_place),
        free=grid is None,
        negative=not tensors,
    )
    _check_declarations(plan)
    check = _Check(kernel, reference, plan.arguments, grid, Tolerance(ulp, rtol, atol), tensors)
    count = options().examples if examples is None else examples
    found = _search(check, plan, count, options().seed if seed is None else seed)
    if found is not None:
        _report(check, found)


@dataclass(frozen=True, eq=False)
class _Check:
    kernel: Any
    reference: Callable[..., Any]
    arguments: Mapping[str, Any]
    grid: Grid
    tolerance: Tolerance
    torch: bool

    @property
    def name(self) -> str:
        return str(getattr(self.kernel, "__name__", None) or type(self.kernel).__name__)

    @property
    def written(self) -> list[str]:
        return [name for name, value in self.arguments.items() if isinstance(value, Array) and value.written]

    def failure(self, case: Case) -> _Found | None:
        """What is wrong with one launch; None if nothing is."""
        built = case.build(torch=self.torch)
        expected, returned = self._expected(case, built)
        sizes: list[Any] = []
        wanted = {name: (built.views[name], array) for name, array in expected.items()}
        faults = observe(lambda: self._call(built, sizes), built.memories, wanted, returned, self.tolerance)
        grid = sizes[-1] if sizes else self.grid
        return _Found(case, faults, expected, returned, grid) if faults else None

    def _call(self, built: Built, sizes: list[Any]) -> Any:
        if self.grid is None:
            return self.kernel(*built.given.values())
        if not callable(self.grid):
            return self.kernel[self.grid](**built.given)

        def grid(named: Mapping[str, Any]) -> Any:
            sizes.append(self.grid({**built.given, **named}))
            return sizes[-1]

        return self.kernel[grid](**built.given)

    def _expected(self, case: Case, built: Built) -> tuple[dict[str, Any], list[Any] | None]:
        """What the reference says that each output holds afterwards, and what the kernel returns."""
        copies = {name: _copy(value) if name in built.views else value for name, value in built.given.items()}
        try:
            with np.errstate(all="ignore"):
                result = self._refer(copies)
        except Exception as error:
            where = ", ".join(f"{name} = {value}" for name, value in case.sizes.items())
            raise ReferenceFails(
                caller(), error=f"{type(error).__name__}: {error}", sizes=where or "no sizes"
            ) from error
        names = self.written
        if result is None:
            return {name: _in_type_of(built.views[name], copies[name]) for name in names}, None
        results = flat_results(result)
        if not names:
            return {}, results
        if len(results) != len(names):
            problem = f"the reference gives {len(results)} arrays, and {len(names)} are written: {', '.join(names)}"
            raise BadDeclaration(caller(), problem=problem)
        return {name: _in_type_of(built.views[name], one) for name, one in zip(names, results, strict=True)}, None

    def _refer(self, copies: Mapping[str, Any]) -> Any:
        try:
            parameters = list(inspect.signature(self.reference).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        named = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
        if named and set(named) <= copies.keys():
            extra = any(p.kind is p.VAR_KEYWORD for p in parameters)
            return self.reference(**{name: value for name, value in copies.items() if extra or name in named})
        declared = self.arguments
        return self.reference(
            *(v for n, v in copies.items() if isinstance(declared[n], Array) and declared[n].use != "write")
        )


@dataclass(frozen=True, eq=False)
class _Found:
    """A launch that is wrong, and why; `launches` and `failed` count the search."""

    case: Case
    faults: list[Fault]
    expected: dict[str, Any]
    returned: list[Any] | None
    grid: Any
    launches: int = 0
    failed: int = 0

    def after(self, before: _Found) -> _Found:
        """The same, with the launches of the search before it."""
        return replace(self, launches=self.launches + before.launches, failed=self.failed + before.failed)


class _Wrong(Exception):
    """Tells hypothesis that a launch is wrong."""


def _search(check: _Check, plan: Any, examples: int, seed: int) -> _Found | None:
    """The smallest wrong launch of a plan that is found; None if all are right."""
    found = _shrunk(check, plan, examples, seed)
    if found is None:
        return None
    # Contents that come from a seed do not shrink: look for something as small with others.
    sizes = {name: (plan.sizes.get(name, (0, 0))[0], most) for name, most in found.case.sizes.items()}
    plain = _shrunk(check, replace(plan, fills=PLAIN, sizes=sizes), examples, seed)
    return found if plain is None else plain.after(found)


def _shrunk(check: _Check, plan: Any, examples: int, seed: int) -> _Found | None:
    import hypothesis

    from loom.testing.strategies import cases

    last: list[_Found] = []
    launches = failed = 0

    def one(case: Case) -> None:
        nonlocal launches, failed
        launches += 1
        found = check.failure(case)
        if found is not None:
            failed += 1
            last[:] = [found]
            raise _Wrong

    settings = hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=hypothesis.Verbosity.quiet,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    digest = zlib.crc32(f"{check.name} {seed}".encode())
    run = hypothesis.seed(digest)(settings(hypothesis.given(cases(plan))(one)))
    try:
        run()
    except _Wrong:
        # Hypothesis runs the smallest one last.
        return replace(last[0], launches=launches, failed=failed)
    return None


def _report(check: _Check, found: _Found) -> None:
    __tracebackhide__ = True
    types = {
        name: from_numpy(found.case.memories[v.memory].values.dtype)
        for name, v in found.case.arguments.items()
        if isinstance(v, View)
    }
    described = found.case.describe(types)
    if found.grid is not None:
        described += f"\ngrid {found.grid}"
    first, *others = found.faults
    saved = save(
        Failure(
            check.kernel, check.name, found.case, found.grid, found.expected, found.returned, check.tolerance,
            check.torch, _is_upstream(check.kernel), first.text.splitlines()[0],
        )
    )  # fmt: skip
    notes = [
        *first.notes,
        *(fault.text for fault in others),
        f"the launch:\n{described}",
        f"the smallest of {found.failed} wrong launches among {found.launches}",
    ]
    if isinstance(first.error, LoomError) and 0 in found.case.sizes.values():
        notes.append("if the kernel is not meant for empty arrays, bound the sizes: sizes=dict(n=(1, 100))")
    where = first.location if first.location.known else _place(check.kernel)
    error = KernelDiffers(where, kernel=check.name, fault=first.text, notes=notes, hint=saved.advice)
    # What Loom says of an error is in the notes; what others say, in their traceback.
    raise without_internal_frames(error) from (None if isinstance(first.error, LoomError) else first.error)


def _place(kernel: Any) -> Location:
    """Where a kernel is defined."""
    function = inspect.unwrap(kernel) if callable(kernel) else kernel
    function = getattr(function, "fn", function)
    code = getattr(function, "__code__", None)
    return UNKNOWN if code is None else Location(code.co_filename, code.co_firstlineno)


def _is_upstream(kernel: Any) -> bool:
    return type(kernel).__module__.partition(".")[0] == "triton"


def _copy(value: Any) -> Any:
    return np.array(value, order="C") if isinstance(value, np.ndarray) else value.clone().contiguous()


def _in_type_of(array: Any, value: Any) -> Any:
    found = as_expected(value, from_numpy(array.dtype))
    if found.shape != array.shape:
        problem = f"the reference gives an array of shape {found.shape} for one of shape {array.shape}"
        raise BadDeclaration(caller(), problem=problem)
    return found


def _check_declarations(plan: Any) -> None:
    """BadDeclaration for names that nothing has."""
    arrays = [name for name, value in plan.arguments.items() if isinstance(value, Array)]
    problems: list[str] = []
    for name, value in plan.arguments.items():
        of = getattr(value, "array", None) or getattr(getattr(value, "dtypes", None), "name", None)
        if of is not None and (of not in arrays or list(plan.arguments).index(of) >= list(plan.arguments).index(name)):
            problems.append(f"{name} speaks of the array {of}, which is not among the arguments before it")
    for pair in plan.in_place:
        problems += [f"in_place names {name}, which is no array" for name in sorted(pair) if name not in arrays]
    problems += [f"no argument has the size {name}" for name in plan.sizes if name not in plan.size_names()]
    if problems:
        raise BadDeclaration(caller(), problem=problems[0])
