"""What a Triton kernel may be launched with, where its source file does not say."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from loom_core.tools.diagnostics import BadArgument

if TYPE_CHECKING:
    from ltl.jit import JitFunction
    from ltl.signature import Parameter

STATIC_SIZE: Final = 32
_SIZE: Final = re.compile(r"(^|_)(BLOCK|TILE|SIZE|DIM|HEAD|GROUP|NUM|[BMNKD])", re.IGNORECASE)
_UNROLLED: Final = 4
"""What is assumed of sizes called MAX_...: they bound loops that are unrolled."""
_FLAG: Final = re.compile(r"^(IS|HAS|USE|EVEN|CAUSAL|WITH|ENABLE|ALLOW|DO|NEED|TRANS|STORE|OUTPUT)(_|$)", re.IGNORECASE)
_INDEX: Final = re.compile(r"ids|idx|index|indices|label|target|offset|lens|table|count|position", re.IGNORECASE)
_POINTER: Final = re.compile(r"(ptrs?|pointers?)\d*$", re.IGNORECASE)
_TYPE: Final = re.compile(r"dtype|_type$|^type", re.IGNORECASE)
MAX_ATTEMPTS: Final = 80
_MEMORY: Final = frozenset(
    {"load", "store", "make_block_ptr", "make_tensor_descriptor", "atomic_load", "atomic_store", "atomic_cas"}
    | {f"atomic_{kind}" for kind in ("add", "and", "max", "min", "or", "xchg", "xor")}
)


@dataclass
class Assumptions:
    """What the command line says of arguments: `NAME` or `KERNEL.NAME` to a type ("*fp32", "i32") or a constant."""

    types: dict[str, str] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)

    def of(self, kernel: str, name: str) -> Any:
        """What is given for a parameter; None if nothing is."""
        for table in (self.types, self.constants):
            for key in (f"{kernel}.{name}", name):
                if key in table:
                    return table[key]
        return None


def parse_assumptions(types: Sequence[str], constants: Sequence[str]) -> Assumptions:
    """`x=*fp32` and `BLOCK=128`. BadArgument for what is neither."""
    found = Assumptions()
    for text in types:
        name, equals, value = text.partition("=")
        if not equals:
            raise BadArgument(text=text, reason="there is no `name=`", hint='write x="*fp32" or n=i32')
        found.types[name] = value
    for text in constants:
        name, equals, value = text.partition("=")
        if not equals:
            raise BadArgument(text=text, reason="there is no `name=`", hint="write BLOCK=128")
        try:
            found.constants[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found.constants[name] = value
    return found


def assumed_arguments(kernel: JitFunction, found: Any, given: Assumptions) -> dict[str, Any]:
    """A type or constant for each parameter."""
    configured = _first_configuration(found)
    pointers, indices = pointer_parameters(kernel), index_parameters(kernel)
    compared = compared_constants(kernel)
    arguments: dict[str, Any] = {}
    for parameter in kernel.parameters:
        stated = given.of(kernel.traced.name, parameter.name)
        if stated is not None:
            arguments[parameter.name] = stated
        elif parameter.name in configured:
            arguments[parameter.name] = configured[parameter.name]
        elif not parameter.required:
            arguments[parameter.name] = parameter.default
        elif parameter.static:
            literals = compared.get(parameter.name)
            arguments[parameter.name] = literals[0] if literals else _assumed_constant(parameter)
        else:
            pointer = "*i64" if parameter.name in indices or _INDEX.search(parameter.name) else "*fp32"
            arguments[parameter.name] = pointer if parameter.name in pointers else "i32"
    return arguments


def _first_configuration(found: Any) -> dict[str, Any]:
    from ltl.tuning import Autotuned, Tuned

    constants: dict[str, Any] = {}
    while isinstance(found, Tuned):
        if isinstance(found, Autotuned):
            constants |= found.configs[0].kwargs
        found = found.kernel
    return constants


def _assumed_constant(parameter: Parameter) -> Any:
    import ltl

    name = parameter.name
    if _FLAG.search(name):
        return False
    if _TYPE.search(name):
        return ltl.float32
    if name.upper().startswith("MAX_"):
        return _UNROLLED
    return STATIC_SIZE if _SIZE.search(name) else 1


def pointer_parameters(kernel: JitFunction, callers: frozenset[JitFunction] = frozenset()) -> set[str]:
    """The parameters that are used as pointers, as far as the text shows: what loads and stores add offsets to.

    `a = x + offsets; load(a + i)` makes x one: names that lead to a pointer through assignments count, and of several
    in one sum, those that are called like one, or else the first. So does what is given to other kernels as a pointer,
    and what is asked for the dtype it points to.
    """
    function = kernel.traced.source.tree
    parameters = [a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    assigned: dict[str, list[ast.expr]] = {}
    pending: list[ast.expr] = []
    for node in ast.walk(function):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    assigned.setdefault(target.id, []).append(node.value)
        elif isinstance(node, ast.Attribute) and node.attr == "element_ty" and isinstance(node.value, ast.Attribute):
            pending.append(node.value.value)
        elif isinstance(node, ast.Call):
            pending += _pointer_arguments(node, kernel, callers | {kernel})
    found: set[str] = set()
    seen: set[str] = set()
    while pending:
        names = _addends(pending.pop())
        direct = [name for name in names if name in parameters and name not in assigned]
        chosen = [name for name in direct if "ptr" in name.lower()] or direct[:1]
        found.update(chosen)
        for name in names:
            if name in assigned and name not in seen and (not chosen or "ptr" in name.lower()):
                seen.add(name)
                pending += assigned[name]
                if name in parameters:
                    found.add(name)
    return found | {name for name in parameters if _POINTER.search(name)}


def _pointer_arguments(call: ast.Call, kernel: JitFunction, callers: frozenset[JitFunction]) -> Iterator[ast.expr]:
    """The arguments of a call that are used as pointers: of an access, or of another kernel's parameters."""
    target = call.func
    if (target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")) in _MEMORY:
        yield from call.args[:1]
    elif isinstance(target, ast.Name):
        callee = innermost(kernel.function.__globals__.get(target.id))
        if callee is None or callee in callers:
            return
        pointers = pointer_parameters(callee, callers)
        yield from (v for p, v in zip(callee.parameters, call.args, strict=False) if p.name in pointers)
        yield from (keyword.value for keyword in call.keywords if keyword.arg in pointers)


def index_parameters(kernel: JitFunction) -> set[str]:
    """The pointer parameters from which indices are loaded: what is loaded through them is part of an address.

    `k = load(ids + i); load(x + k * stride)` makes `ids` one.
    """
    function = kernel.traced.source.tree
    assigned: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    assigned.setdefault(target.id, []).append(node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            assigned.setdefault(node.target.id, []).append(node.value)
    pointers = pointer_parameters(kernel)
    found: set[str] = set()
    seen: set[str] = set()
    pending = [argument for node in ast.walk(function) if _is_access(node) for argument in node.args[:1]]
    while pending:
        loads, names = _terms(pending.pop())
        for load in loads:
            found |= {name for argument in load.args[:1] for name in _terms(argument)[1] if name in pointers}
        for name in names - seen:
            seen.add(name)
            pending += assigned.get(name, [])
    return found


def _is_access(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and (isinstance(node.func, ast.Attribute) and node.func.attr in _MEMORY)


def _terms(node: ast.AST) -> tuple[list[ast.Call], set[str]]:
    """The loads, and the names outside of them, that an expression is made of."""
    if _is_access(node):
        return [node], set()
    if isinstance(node, ast.Name):
        return [], {node.id}
    loads: list[ast.Call] = []
    names: set[str] = set()
    for child in ast.iter_child_nodes(node):
        inner_loads, inner_names = _terms(child)
        loads += inner_loads
        names |= inner_names
    return loads, names


def descriptor_parameters(kernel: JitFunction) -> list[str]:
    """The parameters that are used as tensor descriptors: `x.load([i, j])`."""
    used = {
        node.func.value.id
        for node in ast.walk(kernel.traced.source.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
        and node.func.attr in ("load", "store", "gather", "scatter")
    }  # fmt: skip
    return [parameter.name for parameter in kernel.parameters if parameter.name in used]


def compared_constants(kernel: JitFunction) -> dict[str, list[Any]]:
    """For each name the texts and integers that it is compared with, in order."""
    found: dict[str, list[Any]] = {}
    for node in ast.walk(kernel.traced.source.tree):
        if not isinstance(node, ast.Compare) or not isinstance(node.left, ast.Name) or len(node.ops) != 1:
            continue
        if not isinstance(node.ops[0], (ast.Eq, ast.In)):
            continue
        (side,) = node.comparators
        items = side.elts if isinstance(side, (ast.Tuple, ast.List)) else [side]
        for item in items:
            if isinstance(item, ast.Constant) and type(item.value) in (int, str):
                found.setdefault(node.left.id, []).append(item.value)
    return found


def innermost(found: Any) -> JitFunction | None:
    """The kernel inside autotuners and heuristics; None for what is no kernel."""
    from ltl.jit import JitFunction
    from ltl.tuning import Tuned

    kernel = found.jit_function if isinstance(found, Tuned) else found
    return kernel if isinstance(kernel, JitFunction) else None


def _addends(node: ast.expr) -> list[str]:
    """The names that an expression adds up, outermost sum only."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return _addends(node.left) + (_addends(node.right) if isinstance(node.op, ast.Add) else [])
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        passed_on = node.args[1:3] if node.func.attr == "where" else node.args[:1]
        return [name for argument in passed_on for name in _addends(argument)]
    return []


def variations(arguments: Mapping[str, Any], parameters: Sequence[Parameter]) -> Iterator[dict[str, Any]]:
    """The arguments with one of them otherwise."""
    for parameter in parameters:
        for value in _alternatives(parameter, arguments[parameter.name]):
            yield {**arguments, parameter.name: value}


def _alternatives(parameter: Parameter, value: Any) -> list[Any]:
    if not parameter.static:
        pointers, numbers = ("*fp32", "*i64", "*i32"), ("i32", "fp32")
        kinds = pointers if _POINTER.search(parameter.name) else (*pointers, *numbers)
        return [text for text in kinds if text != value]
    if isinstance(value, bool):
        return [not value]
    return [other for other in (16, 64, True, False, None) if other != value] if isinstance(value, int) else []
