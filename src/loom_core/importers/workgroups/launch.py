"""The launch of a kernel: its configuration region evaluated, for given configuration arguments."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from loom_core.importers.workgroups.errors import BadLaunch, NoSuchKernel, NotMappable, location_of
from loom_core.interchange.model import Module, Operation

MASK: Final = (1 << 64) - 1


def wrapped(number: int) -> int:
    """The number as 64 bits hold it, signed."""
    number &= MASK
    return number - (1 << 64) if number >> 63 else number


def _divide(a: int, b: int) -> int:
    return -1 if b == 0 else int(abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)


_BINARY: Final[dict[str, Callable[[int, int], int]]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "scale": operator.mul,
    "div": _divide,
    "rem": lambda a, b: a if b == 0 else a - _divide(a, b) * b,
    "min": min,
    "max": max,
    "andi": operator.and_,
    "ori": operator.or_,
    "xori": operator.xor,
    "shli": lambda a, b: a << b if 0 <= b < 64 else 0,
    "shrsi": lambda a, b: a >> (b if 0 <= b < 64 else 63),
    "shrui": lambda a, b: (a & MASK) >> b if 0 <= b < 64 else 0,
}
_COMPARISONS: Final[dict[str, Callable[[int, int], bool]]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Launch:
    """Workgroups of the grid, and workitems of a workgroup, in x, y, z."""

    count: tuple[int, int, int]
    size: tuple[int, int, int]

    @property
    def lanes(self) -> int:
        """Workitems of a workgroup."""
        x, y, z = self.size
        return x * y * z


def find_kernel(module: Module, name: str | None) -> Operation:
    """The kernel called `name`, or the only one. NoSuchKernel where that is not clear."""
    kernels = {symbol.name: symbol.op for symbol in module.symbols if symbol.op and symbol.op.name == "kernel.def"}
    known = ", ".join(f"@{kernel}" for kernel in kernels) or "none"
    if name is None and len(kernels) == 1:
        return next(iter(kernels.values()))
    if name is None:
        raise NoSuchKernel(problem=f"the module has {len(kernels)} kernels; name the one to run", known=known)
    found = kernels.get(name.removeprefix("@"))
    if found is None:
        raise NoSuchKernel(problem=f"the module has no kernel @{name}", known=known)
    return found


def evaluate_launch(module: Module, kernel: Operation, config: Mapping[str, int]) -> Launch:
    """The launch for configuration arguments by name. BadLaunch for missing or unknown ones, and impossible sizes."""
    block = kernel.regions[0].blocks[0]
    callee = str(kernel.attributes["callee"])
    where = location_of(module, kernel)
    names = [module.values[value].name for value in block.arg_ids]
    missing = [name for name in names if name not in config]
    unknown = [name for name in config if name not in names]
    if missing or unknown:
        reason = f"its configuration needs {missing[0]}" if missing else f"its configuration has no {unknown[0]}"
        raise BadLaunch(where, kernel=callee, reason=reason, hint="pass config={name: number}")
    values = {value: int(config[module.values[value].name]) for value in block.arg_ids}
    for op in block.ops[:-1]:
        values[op.results[0]] = _evaluate(module, op, values)
    sizes = [values[value] for value in block.ops[-1].operands]
    if len(sizes) > 6 and sizes[6:] != [1, 1, 1]:
        raise NotMappable(
            location_of(module, block.ops[-1]), operation="kernel.launch.config", reason="it has clusters"
        )
    for number in sizes[:6]:
        if not 0 < number < 1 << 31:
            raise BadLaunch(where, kernel=callee, reason=f"a size of {number} is none")
    return Launch((sizes[0], sizes[1], sizes[2]), (sizes[3], sizes[4], sizes[5]))


def _evaluate(module: Module, op: Operation, values: Mapping[int, int]) -> int:
    dialect, _, name = op.name.partition(".")
    if op.name == "index.constant":
        return int(op.attributes["value"])
    operands = [values[value] for value in op.operands]
    if dialect == "index" and name in _BINARY:
        return wrapped(_BINARY[name](operands[0], operands[1]))
    if op.name == "index.madd":
        return wrapped(operands[0] * operands[1] + operands[2])
    if op.name == "index.cast":
        return operands[0]
    if op.name == "index.cmp":
        predicate = op.attributes["predicate"]
        signed = predicate in ("eq", "ne") or predicate.startswith("s")
        a, b = operands if signed else [number & MASK for number in operands]
        return int(_COMPARISONS[predicate if predicate in ("eq", "ne") else predicate[1:]](a, b))
    if op.name == "scf.select":
        return operands[1] if operands[0] else operands[2]
    raise NotMappable(location_of(module, op), operation=op.name, reason="a launch is configured by index arithmetic")
