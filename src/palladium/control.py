"""Control flow: branches and loops decided at run time, and the program's position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from loom_core.base import dtype as core
from loom_core.ir.block import Block
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops.control import For, If, While, Yield
from loom_core.ops.debug import Assert, Print
from palladium import operators, promotion, refs
from palladium.errors import CarriedDiffers, WrongAxis, WrongDtype, WrongShape, fail
from palladium.hints import PRINT_HINTS, SCAN_HINTS, check_hints
from palladium.specs import leaves, rebuild
from palladium.trace import KernelTrace, kernel_trace
from palladium.values import array, convert, is_value, known_scalar, to_array
from palladium.views import whole_ref

# ---- position --------------------------------------------------------------------------------------------------------


def program_id(axis: int | str) -> array:
    """The index of this grid point along `axis`, a number or a name, int32."""
    trace = kernel_trace("program_id")
    return trace.program_ids[_axis(axis, trace, "program_id")]  # type: ignore[no-any-return]


def num_programs(axis: int | str) -> Any:
    """The size of the grid along `axis`: an int, in a pipeline a scalar where that is known only at run time."""
    trace = kernel_trace("num_programs")
    return trace.grid[_axis(axis, trace, "num_programs")]


def _axis(axis: Any, trace: KernelTrace, function: str) -> int:
    if isinstance(axis, str) and axis in trace.axis_names:
        return trace.axis_names.index(axis)
    if not isinstance(axis, int) or not 0 <= axis < len(trace.grid):
        hint = "grid axes count from 0" if not trace.axis_names else f"the axes are {', '.join(trace.axis_names)}"
        fail(WrongAxis, function=function, axis=repr(axis), rank=len(trace.grid), hint=hint)
    return axis


def cdiv(a: Any, b: Any) -> Any:
    """a / b rounded up; of ints an int."""
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    return operators.truncated_divide(operators.add(a, operators.subtract(b, 1)), b)


# ---- what is carried -------------------------------------------------------------------------------------------------


class _Carried:
    """A tree of values that a loop or branch hands on."""

    def __init__(self, tree: Any, function: str) -> None:
        self.tree = tree
        self.function = function
        self.values = [to_array(leaf, function) for leaf in leaves(tree)]

    def shown(self) -> str:
        return "(" + ", ".join(map(str, self.values)) + ")"

    def around(self, values: Sequence[Value]) -> Any:
        """The tree around other IR values of the same types."""
        made = [array(new, weak=old.weak) for old, new in zip(self.values, values, strict=True)]
        return rebuild(self.tree, iter(made))

    def match(self, result: Any) -> list[array]:
        """The leaves of a result that must be like this; CarriedDiffers where it is not."""
        other = _Carried(result, self.function)
        if len(other.values) != len(self.values):
            fail(CarriedDiffers, function=self.function, before=self.shown(), after=other.shown())
        found = []
        for old, new in zip(self.values, other.values, strict=True):
            if new.weak and new.core is not old.core and promotion.result_dtype(
                [(old.core, old.weak), (new.core, True)], self.function
            )[0] is old.core:  # fmt: skip
                new = convert(new, old.core)
            if new.ir_type != old.ir_type:
                fail(CarriedDiffers, function=self.function, before=self.shown(), after=other.shown())
            found.append(new)
        return found

    def widened(self, result: Any) -> _Carried | None:
        """With weak initial values in the dtypes of a result, where only these differ; None where nothing changes."""
        other = [to_array(leaf, self.function) for leaf in leaves(result)]
        if len(other) != len(self.values):
            return None
        wanted = [
            convert(old, new.core) if old.weak and old.core is not new.core and old.shape == new.shape else old
            for old, new in zip(self.values, other, strict=True)
        ]
        if all(new is old for new, old in zip(wanted, self.values, strict=True)):
            return None
        return _Carried(rebuild(self.tree, iter(wanted)), self.function)


def _yield(trace: KernelTrace, values: Sequence[array]) -> None:
    trace.builder.create(Yield, [value.value for value in values])


# ---- branches --------------------------------------------------------------------------------------------------------


def when(condition: Any) -> Callable[[Callable[[], Any]], None]:
    """`@when(condition)` above a function without parameters runs it where the condition holds."""

    def run(body: Callable[[], Any]) -> None:
        cond(condition, body, lambda: None)

    return run


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """What true_fun(*operands) gives where `pred` holds, else what false_fun gives; only one of them runs."""
    trace = kernel_trace("cond")
    flag = convert(refs.require_scalar(pred, "cond"), core.bool_)
    if flag.known is not None:
        return (true_fun if flag.known else false_fun)(*operands)
    location = trace.location()
    blocks, results = [Block(), Block()], []
    for block, function in zip(blocks, (true_fun, false_fun), strict=True):
        with trace.region(block):
            results.append(function(*operands))
    first, second = (_Carried(result, "cond") for result in results)
    with trace.region(blocks[1]):
        others = first.match(results[1]) if first.values or second.values else []
        _yield(trace, others)
    with trace.region(blocks[0]):
        _yield(trace, first.values)
    types = tuple(value.ir_type for value in first.values)
    op = trace.builder.create_op(If, flag.value, regions=blocks, location=location, types=types)
    return first.around(op.results)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """What the branch of that index gives; an index outside is the nearest one."""
    if len(branches) == 1:
        return branches[0](*operands)
    at = refs.require_scalar(index, "switch")
    first, *rest = branches
    return cond(
        operators.compare("le", at, 0),
        lambda *given: first(*given),
        lambda *given: switch(operators.subtract(at, 1), rest, *given),
        *operands,
    )


# ---- loops -----------------------------------------------------------------------------------------------------------


def fori(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any, *, unroll: Any = None) -> Any:
    """`for i in range(lower, upper): value = body_fun(i, value)`, from init_val; a known loop may be unrolled."""
    trace = kernel_trace("fori")
    low, high = (_bound(bound) for bound in (lower, upper))
    if isinstance(low, int) and isinstance(high, int) and (unroll is True or (unroll or 1) >= max(high - low, 2)):
        value = init_val
        for i in range(low, high):
            value = body_fun(known_scalar(i, core.i32), value)
        return value
    carried = _Carried(init_val, "fori")
    wider = carried.widened(_trial(trace, carried, body_fun)) if any(value.weak for value in carried.values) else None
    return _counted(trace, low, high, 1, body_fun, wider or carried)


def _bound(bound: Any) -> int | array:
    value = refs.require_scalar(bound, "a loop")
    if not value.core.is_integer:
        fail(WrongDtype, function="a loop", given=str(value), takes="bounds are integers")
    return int(value.known) if value.known is not None else value


def _trial(trace: KernelTrace, carried: _Carried, body: Callable[[Any, Any], Any]) -> Any:
    """What the body gives, without keeping what it does."""
    block = Block((TileType(core.i32), *(value.ir_type for value in carried.values)))
    trace.attempt(block)
    try:
        return body(array(block.arguments[0]), carried.around(block.arguments[1:]))
    finally:
        trace.forget()


Body = Callable[[Any, Any], Any]


def _counted(
    trace: KernelTrace, low: int | array, high: int | array, step: int, body: Body, carried: _Carried
) -> Any:  # fmt: skip
    location = trace.location()
    index = TileType(core.i32)
    numbers = [convert(to_array(number, "a loop"), core.i32).value for number in (low, high, step)]
    initial = [value.value for value in carried.values]
    block = Block((index, *(value.type for value in initial)))
    with trace.region(block):
        interval = _interval(low, high)
        result = body(array(block.arguments[0], interval=interval), carried.around(block.arguments[1:]))
        _yield(trace, carried.match(result))
    op = trace.builder.create_op(For, *numbers, initial, regions=[block], location=location)
    return carried.around(op.results)


def _interval(low: int | array, high: int | array) -> tuple[int, int] | None:
    least = low if isinstance(low, int) else (low.interval[0] if low.interval else None)
    most = high if isinstance(high, int) else (high.interval[1] if high.interval else None)
    return None if least is None or most is None else (least, max(least, most - 1))


def loop(lower: Any, upper: Any, *, step: int = 1, unroll: Any = None) -> Callable[[Callable[[Any], Any]], None]:
    """`@loop(lower, upper)` above a function of the index runs it for each, in order."""

    def run(body: Callable[[Any], Any]) -> None:
        def stepped(i: Any, value: Any) -> Any:
            body(i)
            return value

        trace = kernel_trace("loop")
        low, high = _bound(lower), _bound(upper)
        if isinstance(low, int) and isinstance(high, int) and (unroll is True or (unroll or 1) >= max(high - low, 2)):
            for i in range(low, high, step):
                body(known_scalar(i, core.i32))
            return
        _counted(trace, low, high, step, stepped, _Carried((), "loop"))

    return run


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """`while cond_fun(value): value = body_fun(value)`, from init_val."""
    trace = kernel_trace("while_loop")
    location = trace.location()
    carried = _Carried(init_val, "while_loop")
    types = tuple(value.ir_type for value in carried.values)
    condition, body = Block(types), Block(types)
    with trace.region(condition):
        given = carried.around(condition.arguments)
        flag = convert(refs.require_scalar(cond_fun(given), "while_loop"), core.bool_)
        _yield(trace, [flag, *map(array, condition.arguments)])
    with trace.region(body):
        result = body_fun(carried.around(body.arguments))
        _yield(trace, carried.match(result))
    initial = [value.value for value in carried.values]
    op = trace.builder.create_op(While, initial, regions=[condition, body], location=location, types=types)
    return carried.around(op.results)


def scan(
    f: Callable[[Any, Any], Any], init: Any, xs: Any = None, length: int | None = None, reverse: bool = False,
    unroll: Any = 1, **options: Any,
) -> Any:  # fmt: skip
    """`carry, y = f(carry, x)` for the parts x of `xs` along its first dimension (from the last if `reverse`).

    Gives the last carry, and the ys as xs were: one behind the other in a new first dimension.
    """
    from palladium.staging import staged

    check_hints(scan, options, SCAN_HINTS)
    trace = kernel_trace("scan")
    tiles = [to_array(leaf, "scan") for leaf in leaves(xs)]
    counts = {tile.shape[0] if tile.shape else None for tile in tiles} | ({length} if length is not None else set())
    if len(counts) != 1 or None in counts:
        problem = f"first dimensions {sorted(map(str, counts))}" if counts else "neither xs nor length is given"
        fail(WrongShape, function="scan", problem=problem)
    count = next(one for one in counts if one is not None)
    sources = [staged(tile) for tile in tiles]

    def step(i: Any, carry: Any) -> tuple[Any, Any]:
        parts = [source[i] for source in sources]
        result = f(carry, rebuild(xs, iter(parts)))
        if not isinstance(result, tuple) or len(result) != 2:
            fail(CarriedDiffers, function="scan", before="(carry, x)", after=f"{result!r}, not (carry, y)")
        return result

    carried = _Carried(init, "scan")
    after, ys = _trial(trace, carried, step)
    carried = carried.widened(after) or carried
    results = [to_array(leaf, "scan") for leaf in leaves(ys)]
    places = [whole_ref(refs.window("stacked", (count, *one.shape), one.core)) for one in results]

    def body(i: Any, carry: Any) -> Any:
        at = operators.subtract(count - 1, i) if reverse else i
        carry, made = step(at, carry)
        for place, leaf in zip(places, leaves(made), strict=True):
            place[at] = leaf
        return carry

    last = fori(0, count, body, carried.tree, unroll=unroll)
    return last, rebuild(ys, iter([place[...] for place in places]))


# ---- messages --------------------------------------------------------------------------------------------------------


def debug_print(fmt: str, *args: Any, **options: Any) -> None:
    """Print values while the kernel runs: one line for each, with the text before the first `{}` as its label."""
    check_hints(debug_print, options, PRINT_HINTS)
    trace = kernel_trace("debug_print")
    values = [to_array(arg, "debug_print").value for arg in args if is_value(arg)]
    trace.builder.create(Print, values, prefix=fmt.split("{", 1)[0].strip() or fmt)


def debug_check(condition: Any, message: str = "") -> None:
    """Stop the run with `message` unless every element of the condition holds."""
    trace = kernel_trace("debug_check")
    trace.builder.create(Assert, convert(to_array(condition, "debug_check"), core.bool_).value, message=message)
