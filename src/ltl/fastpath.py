"""Warm launches: Python generated for the kinds of call that were seen, which checks, binds and runs.

For a kernel `add(x, y, out, n, BLOCK)` called with three NumPy arrays and two ints it makes, in effect:

    def launch(x=MISSING, y=MISSING, out=MISSING, n=MISSING, BLOCK=MISSING, *more, **options):   # kernel[grid]
        match = matches.get((type(x), type(y), type(out), type(n), type(BLOCK)))
        if match is None or more or options and not options.keys() <= SILENT or not quiet():
            return slow(grid, (x, y, out, n, BLOCK, *more), options)
        return match(grid, sizes, x, y, out, n, BLOCK)

    def match(grid, sizes, x, y, out, n, BLOCK):                       # one for each tuple of types
        p0 = id(x) >> 3; ...
        run = runs.get((x.dtype, words[p0 + FLAGS] & FLAG_BITS, ..., <class of n>, BLOCK))
        return slow(...) if run is None else run(grid, sizes, p0, x, ...)

    def run(grid, sizes, p0, x, ..., n):                               # one for each variant of the kernel
        if globals_0.get("ltl") is not value_0: return slow(...)
        a0 = words[p0 + DATA]; e0 = a0 + x.nbytes; ...
        if a0 < e2 and a2 < e0: return slow(...)                       # may overlap the output
        launch = take()
        v = launch.words
        v[1812] = a0; v[1813] = 0; v[1814] = e0 - a0; ...
        v[67] = n
        launch.go()

Anything that is not plain goes through `slow`, which is `JitFunction.launch`: other kinds of argument, a variant that
is not compiled yet, a global that has changed, overlapping or read-only arrays, knobs that are set.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from libloom.arrays import NumpyFields, owner_bounds
from libloom.kernel import buffer_word, float_index, register_word
from loom_core.base import dtype as core
from loom_core.base.diagnostics import LoomError, without_internal_frames
from loom_core.launch import Variant, quiet, relocated
from ltl import dtypes
from ltl.launch import MISSING, SILENT_OPTIONS, Argument
from ltl.signature import Parameter, PointerSpec, ScalarSpec, StaticSpec

if TYPE_CHECKING:
    from loom_core.trace.names import Watch

_FOLDER: Final = Path(__file__).parent
_MISSING: Final = object()


def _define(name: str, lines: Sequence[str], namespace: dict[str, Any]) -> Any:
    # The file name counts as Loom's own, so that tracebacks leave these frames out.
    code = compile("\n".join(lines), str(_FOLDER / f"<{name}>"), "exec")
    exec(code, namespace)  # the text is made of fixed templates, indices and parameter names
    return namespace[name]


# ---- kernel[grid] ----------------------------------------------------------------------------------------------------

Slow = Callable[[Any, Sequence[Any], dict[str, Any]], None]


def launcher_factory(
    name: str,
    parameters: Sequence[Parameter],
    matches: dict[Any, Any],
    slow: Slow,
    guard: Callable[[], bool] = quiet,
    silent: frozenset[str] = SILENT_OPTIONS,
) -> Callable[[Any, Any], Any]:
    """Makes `kernel[grid]`: a function of (grid, sizes) that gives the launching function of the kernel `name`.

    `sizes` is the grid as three ints, or a callable that gives it for the arguments by name. Calls go through `slow`
    where `guard()` does not hold, or with options that are not `silent`.
    """
    if not parameters:
        return lambda grid, sizes: lambda *args, **options: slow(grid, args, options)
    names = [parameter.name for parameter in parameters]
    # Parameters keep their names, so that callers can use keywords; every other name begins with two underscores.
    namespace: dict[str, Any] = {
        "__matches": matches, "__slow": slow, "__guard": guard, "__type": type, "__LoomError": LoomError,
        "__silent": silent,
        "__cleaned": without_internal_frames, "__name__": "ltl.launchers",
        "__shown": f"{name}[grid]",  # in what Python says of a parameter that is given twice
    }  # fmt: skip
    declared = []
    for i, parameter in enumerate(parameters):
        namespace[f"__default_{i}"] = MISSING if parameter.required else parameter.default
        declared.append(f"{parameter.name}=__default_{i}")
    values = "".join(f"{name}, " for name in names)
    types = "".join(f"__type({name}), " for name in names)
    given = "".join(f"{name!r}: {name}, " for name in names)
    signature = ", ".join([*declared, "*__more", "**__options"])
    lines = [
        "def __factory(__grid, __sizes):",
        "    __fixed = __sizes.__class__ is tuple",
        f"    def launch({signature}):",
        "        try:",
        f"            __match = __matches.get(({types}))",
        "            __other = __more or __options and not __options.keys() <= __silent",
        "            if __match is None or __other or not __guard():",
        f"                return __slow(__grid, ({values}*__more), __options)",
        "            if __fixed:",
        f"                return __match(__grid, __sizes, {values})",
        f"            return __match(__grid, __sizes({{{given}}}), {values})",
        "        except __LoomError as __error:",
        "            raise __cleaned(__error) from None",
        "    launch.__qualname__ = __shown",
        "    return launch",
    ]
    made: Callable[[Any, Any], Any] = _define("__factory", lines, namespace)
    return made


class KnownCalls:
    """The kinds of call of one kernel that were seen: generated code by the types of the arguments.

    `matches` holds, for a tuple of types, a function of (grid, sizes, *arguments) that runs the kernel; what this does
    not know goes through `slow`.
    """

    def __init__(self, parameters: Sequence[Parameter], slow: Slow) -> None:
        self._parameters = parameters
        self._slow = slow
        self._keys: dict[tuple[type, ...], tuple[Any, dict[Any, Any]]] = {}
        self._lock = threading.Lock()
        self.matches: dict[tuple[type, ...], Any] = {}

    def remember(
        self, values: Sequence[Any], arguments: Sequence[Argument], variant: Variant, result: Any = None
    ) -> None:
        """Generate code for further calls like this one, if they are plain; they give `result`."""
        types = tuple(map(type, values))
        with self._lock:
            if types not in self._keys:
                runs: dict[Any, Any] = {}
                made = matcher(self._parameters, types, runs, self._slow)
                if made is None:
                    return
                self.matches[types], key = made
                self._keys[types] = key, runs
            key, runs = self._keys[types]
            call = key(None, None, *values)
            known = runs.get(call)
            if known is None or known.variant is not variant or known.changes != variant.changes:
                made = runner(self._parameters, arguments, values, variant, self._slow, result)
                made.variant, made.changes = variant, variant.changes
                runs[call] = made


# ---- one kind of call ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Access:
    """How generated code reads one argument: statements before, parts of the key, and what it hands on to `run`."""

    before: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()


def _access(i: int, parameter: Parameter, kind: type) -> Access | None:
    """The access to argument `i` where its type is one that generated code handles."""
    name = f"a{i}"
    if kind is type(None):
        return Access()
    if parameter.static:
        return _static_access(name, kind)
    if kind is np.ndarray and NumpyFields.usable:
        flags = f"words[p{i} + {NumpyFields.FLAGS}] & {NumpyFields.FLAG_BITS}"
        return Access((f"p{i} = id({name}) >> 3",), (f"{name}.dtype", flags), (f"p{i}", name))
    if _is_torch_tensor(kind):
        parts = (f"{name}.dtype", f"{name}.device", f"{name}.layout", f"{name}.is_neg()")
        return Access((), parts, (name,))
    if kind is bool and (parameter.forced is None or parameter.forced.core is core.bool_):
        return Access((), (), (name,))
    if kind is float and (parameter.forced is None or parameter.forced.core is core.f32):
        return Access((), (), (name,))
    if kind is int:
        return _integer_access(name, parameter)
    return None


def _static_access(name: str, kind: type) -> Access | None:
    if kind in (int, bool, str) or _is_dtype(kind):
        return Access(key=(name,))
    # Equal floats may be different constants: 0.0 and -0.0.
    return Access(key=(f"repr({name})",)) if kind is float else None


def _is_dtype(kind: type) -> bool:
    return kind is dtypes.dtype or (kind.__module__, kind.__name__) == ("triton.language.core", "dtype")


def _integer_access(name: str, parameter: Parameter) -> Access | None:
    if parameter.forced is not None:
        forced = parameter.forced.core
        if not forced.is_integer:
            return None
        return Access((), (f"{forced.min_value} <= {name} <= {forced.max_value}",), (name,))
    one = f"1 if {name} == 1 else " if parameter.specialise else ""
    low, high = core.i32.min_value, core.i32.max_value
    return Access((), (f"({one}0 if {low} <= {name} <= {high} else 3 + ({name} >> 63))",), (name,))


def _is_torch_tensor(kind: type) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and kind in (torch.Tensor, torch.nn.Parameter)


def matcher(parameters: Sequence[Parameter], types: tuple[type, ...], runs: dict[Any, Any], slow: Slow) -> Any:
    """The `match` function for calls with arguments of `types`, and its key function; None where they are not plain.

    Both take (grid, sizes, *arguments); the key function gives what `match` looks up in `runs`.
    """
    accesses = [_access(i, p, kind) for i, (p, kind) in enumerate(zip(parameters, types, strict=True))]
    if any(access is None for access in accesses):
        return None
    found = [access for access in accesses if access is not None]
    arguments = "".join(f"a{i}, " for i in range(len(parameters)))
    before = [f"    {line}" for access in found for line in access.before]
    key = "(" + "".join(f"{part}, " for access in found for part in access.key) + ")"
    passed = "".join(f"{part}, " for access in found for part in access.passed)
    namespace: dict[str, Any] = {"runs": runs, "slow": slow, "words": NumpyFields.words, "__name__": "ltl.launchers"}
    head = f"(grid, sizes, {arguments}):"
    match = [
        f"def match{head}",
        *before,
        f"    run = runs.get({key})",
        f"    if run is None: return slow(grid, ({arguments}), {{}})",
        f"    return run(grid, sizes, {passed})",
    ]
    keys = [f"def key{head}", *before, f"    return {key}"]
    return _define("match", match, namespace), _define("key", keys, namespace)


# ---- one variant -----------------------------------------------------------------------------------------------------


class _RunText:
    """Collects the statements of a `run` function, and the objects that they name."""

    def __init__(self) -> None:
        self.namespace: dict[str, Any] = {"__name__": "ltl.launchers"}
        self.checks: list[str] = []
        self.reads: list[str] = []
        self.writes: list[str] = []
        self.passed: list[str] = []
        self.ranges: dict[int, tuple[str, str]] = {}

    def constant(self, value: Any) -> str:
        name = f"k{len(self.namespace)}"
        self.namespace[name] = value
        return name


def runner(
    parameters: Sequence[Parameter],
    arguments: Sequence[Argument],
    values: Sequence[Any],
    variant: Variant,
    slow: Slow,
    result: Any = None,
) -> Any:
    """The `run` function of a compiled variant, for arguments of the kind of `values`; it gives `result`."""
    text = _RunText()
    kernel = variant.apart
    for watch in _distinct(variant.watches):
        _check_watch(text, watch)
    abi = iter(kernel.object.abi.args)
    for i, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True)):
        spec = argument.spec
        if isinstance(spec, PointerSpec):
            _bind_array(text, i, values[i], next(abi).slot)
        elif isinstance(spec, ScalarSpec):
            _bind_scalar(text, i, spec, next(abi).slot)
        elif not parameter.static and values[i] is not None:
            text.passed.append(f"a{i}")
    lines = _run_lines(text, variant, parameters, arguments, slow)
    lines.append(f"    return {text.constant(result)}")
    return _define("run", lines, text.namespace)


def _run_lines(
    text: _RunText,
    variant: Variant,
    parameters: Sequence[Parameter],
    arguments: Sequence[Argument],
    slow: Slow,
) -> list[str]:
    kernel, function = variant.apart, variant.function
    again = (
        "return slow(grid, ("
        + "".join(
            f"{_again(text, i, p, argument)}, "
            for i, (p, argument) in enumerate(zip(parameters, arguments, strict=True))
        )
        + "), {})"
    )
    clash = [
        f"{text.ranges[a][0]} < {text.ranges[b][1]} and {text.ranges[b][0]} < {text.ranges[a][1]}"
        for a, b in kernel.object.abi.noalias
    ]
    text.namespace.update(
        pool=kernel.pool, take=kernel.take, slow=slow, words=NumpyFields.words, owner_bounds=owner_bounds,
        LoomError=LoomError, relocated=relocated, function=function,
    )  # fmt: skip
    grid = [f"v[{register_word(r)}]" for r in kernel.object.abi.grid_registers]
    return [
        f"def run(grid, sizes, {''.join(f'{name}, ' for name in text.passed)}):",
        *(f"    if {check}: {again}" for check in text.checks),
        *(f"    {line}" for line in text.reads),
        *(f"    if {check}: {again}" for check in clash),
        "    try: launch = pool.pop()",
        "    except IndexError: launch = take()",
        "    try:",
        "        v = launch.words; f = launch.floats",
        f"        {', '.join(grid)} = sizes",
        *(f"        v[{register_word(a.end)}] = v[{register_word(a.extent)}]" for a in kernel.object.abi.core_axes),
        *(f"        {line}" for line in text.writes),
        "        launch.go()",
        "    except LoomError as error: raise relocated(error, function) from None",
        "    finally: pool.append(launch)",
    ]


def _again(text: _RunText, i: int, parameter: Parameter, argument: Argument) -> str:
    """The argument as `slow` needs it: what `run` got, or the static value that it was compiled for."""
    if f"a{i}" in text.passed:
        return f"a{i}"
    assert isinstance(argument.spec, StaticSpec)
    return text.constant(argument.spec.value)


def _distinct(watches: Sequence[Watch]) -> list[Watch]:
    """One watch for each place: kernels and their helpers read many names more than once."""
    return list({(id(watch.owner), watch.name): watch for watch in watches}.values())


def _check_watch(text: _RunText, watch: Watch) -> None:
    if isinstance(watch.owner, dict):
        owner, value, missing = text.constant(watch.owner), text.constant(watch.value), text.constant(_MISSING)
        if watch.absent:
            text.checks.append(f"{watch.name!r} in {owner}")
        else:
            text.checks.append(f"{owner}.get({watch.name!r}, {missing}) is not {value}")
    else:
        text.checks.append(f"not {text.constant(watch.unchanged)}()")


def _bind_array(text: _RunText, i: int, value: Any, slot: int) -> None:
    start, end, at = f"s{i}", f"e{i}", f"d{i}"
    word = buffer_word(slot)
    text.ranges[slot] = (start, end)
    if isinstance(value, np.ndarray):
        text.passed += [f"p{i}", f"a{i}"]
        text.reads.append(f"{at} = words[p{i} + {NumpyFields.DATA}]")
        if value.flags.owndata:
            text.reads.append(f"{start} = {at}; {end} = {at} + a{i}.nbytes")
        else:
            text.reads.append(f"{start}, {end} = owner_bounds(a{i})")
    else:
        text.passed.append(f"a{i}")
        text.reads.append(f"{at} = a{i}.data_ptr(); storage = a{i}.untyped_storage()")
        text.reads.append(f"{start} = storage.data_ptr(); {end} = {start} + storage.nbytes()")
    text.writes.append(f"v[{word}] = {at}; v[{word + 1}] = {start} - {at}; v[{word + 2}] = {end} - {at}")


def _bind_scalar(text: _RunText, i: int, spec: ScalarSpec, register: int) -> None:
    text.passed.append(f"a{i}")
    word = register_word(register)
    if spec.dtype is core.f32:
        text.writes.append(f"f[{float_index(word)}] = a{i}")
    elif spec.dtype is core.u64:
        text.writes.append(f"v[{word}] = a{i} - {1 << 64} if a{i} >> 63 else a{i}")
    else:
        text.writes.append(f"v[{word}] = a{i}")
