"""Pallas source to Palladium source: names of the upstream modules become those of `lpl`, calls take its keywords.

The text is edited where names stand, so that layout and comments stay. What has no counterpart stays as it is, and is
reported.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Final

import palladium
from loom_core.base.syntax_trees import parse

MODULES: Final[dict[str, str]] = {
    "jax.experimental.pallas": "pl", "jax.experimental.pallas.tpu": "tpu", "jax.experimental.pallas.triton": "triton",
    "jax.numpy": "numpy", "jax.lax": "lax", "jax.nn": "nn", "jax": "jax",
    "loom.experimental.pallas": "pl", "loom.experimental.pallas.tpu": "tpu",
    "loom.experimental.pallas.triton": "triton", "loom.experimental.pallas.numpy": "numpy",
    "loom.experimental.pallas.lax": "lax", "loom.experimental.pallas.nn": "nn",
}  # fmt: skip
"""Modules whose names are migrated -> which of our tables they use."""

RENAMED: Final[dict[tuple[str, str], str]] = {
    ("pl", "pallas_call"): "call", ("pl", "Slice"): "ds", ("tpu", "VMEM"): "SRAM", ("tpu", "SMEM"): "SCALAR",
    ("numpy", "absolute"): "abs", ("numpy", "divide"): "true_divide", ("numpy", "mod"): "remainder",
    ("numpy", "rint"): "round_even", ("numpy", "round"): "round_even",
    ("lax", "max"): "maximum", ("lax", "min"): "minimum", ("lax", "mul"): "multiply", ("lax", "sub"): "subtract",
    ("lax", "neg"): "negative", ("lax", "pow"): "power", ("lax", "integer_pow"): "integer_power",
    ("lax", "logistic"): "sigmoid", ("lax", "select"): "where", ("lax", "is_finite"): "isfinite",
    ("lax", "convert_element_type"): "astype", ("lax", "fori_loop"): "fori",
    ("jax", "ShapeDtypeStruct"): "ShapeDtypeStruct",
}  # fmt: skip
"""Names that are spelled otherwise in Palladium."""

DIFFERENT: Final = frozenset(
    {("lax", "dot"), ("lax", "div"), ("lax", "rem"), ("pl", "dot"), ("triton", "dot"), ("triton", "load"),
     ("triton", "store"), ("lax", "round"), ("lax", "reduce_max"), ("lax", "sort")}
)  # fmt: skip
"""Names that Palladium has with another meaning or other parameters."""

DROPPED: Final = frozenset({"interpret", "debug", "compiler_params", "cost_estimate", "backend", "metadata"})
"""Keywords of pallas_call that mean nothing here."""

KEYWORDS: Final = {"scratch_shapes": "scratch"}


@dataclass(frozen=True)
class Left:
    """A name without a counterpart, and its line."""

    name: str
    line: int


@dataclass
class Migration:
    """The new text, what stays upstream's, what else changed, and how many calls of pallas_call were migrated."""

    text: str
    left: list[Left] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    calls: int = 0


@dataclass(frozen=True)
class _Edit:
    start: int
    end: int
    text: str


def migrate(text: str) -> Migration:
    """Palladium source for Pallas source. SyntaxError for what is no Python."""
    return _Migrator(text).run()


class _Migrator:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = parse(text)
        self.lines = [0]
        for line in text.encode().splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.aliases: dict[str, str] = {}
        self.edits: list[_Edit] = []
        self.removed: list[tuple[int, int]] = []
        self.result = Migration(text)
        self.kept: set[str] = set()

    def run(self) -> Migration:
        imports = [node for node in ast.walk(self.tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        for statement in imports:
            for alias in statement.names:
                module = alias.name if isinstance(statement, ast.Import) else f"{statement.module}.{alias.name}"
                if module in MODULES:
                    self.aliases[alias.asname or alias.name.partition(".")[0]] = MODULES[module]
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                self._call(node)
            elif isinstance(node, ast.FunctionDef):
                self._decorators(node)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute):
                self._attribute(node)
        self._imports(imports)
        data = self.text.encode()
        for edit in sorted(self.edits, key=lambda edit: (edit.start, edit.end), reverse=True):
            data = data[: edit.start] + edit.text.encode() + data[edit.end :]
        self.result.text = data.decode()
        self.result.left.sort(key=lambda left: left.line)
        return self.result

    # ---- names ----

    def _attribute(self, node: ast.Attribute) -> None:
        table, root = self._module(node.value)
        if self._is_removed(node) or table is None or (table == "jax" and node.attr in ("numpy", "lax", "nn")):
            return
        name = self._counterpart(table, node.attr)
        if name is None:
            shown = ast.unparse(node)
            self.result.left.append(Left(shown, node.lineno))
            self.kept.add(root)
            return
        self._replace(node, f"lpl.{name}")

    def _module(self, node: ast.expr) -> tuple[str | None, str]:
        """Which table the names of an expression that is a module are looked up in, and the imported name."""
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id), node.id
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            inner = self.aliases.get(node.value.id)
            if inner == "jax" and node.attr in ("numpy", "lax", "nn"):
                return node.attr, node.value.id
        return None, ""

    def _counterpart(self, table: str, name: str) -> str | None:
        renamed = RENAMED.get((table, name))
        if renamed is not None:
            return renamed if renamed in palladium.__all__ else None
        if table == "jax" or (table, name) in DIFFERENT:
            return None
        return name if name in palladium.__all__ else None

    # ---- calls ----

    def _call(self, node: ast.Call) -> None:
        if not isinstance(node.func, ast.Attribute) or node.func.attr != "pallas_call":
            return
        if self._module(node.func.value)[0] != "pl":
            return
        self.result.calls += 1
        if len(node.args) > 1:
            self._insert(node.args[1], "out_shape=")
        for keyword in node.keywords:
            if keyword.arg in KEYWORDS:
                self._rename(keyword, KEYWORDS[keyword.arg])
            elif keyword.arg in DROPPED:
                self._drop(keyword)

    def _rename(self, keyword: ast.keyword, name: str) -> None:
        start = self._at(keyword.lineno, keyword.col_offset)
        assert keyword.arg is not None
        self.edits.append(_Edit(start, start + len(keyword.arg), name))

    def _drop(self, keyword: ast.keyword) -> None:
        """Take the keyword out, with the comma and the white space before it."""
        assert keyword.end_lineno is not None and keyword.end_col_offset is not None
        start, end = self._at(keyword.lineno, keyword.col_offset), self._at(keyword.end_lineno, keyword.end_col_offset)
        data = self.text.encode()
        while data[start - 1 : start].isspace():
            start -= 1
        if data[start - 1 : start] == b",":
            start -= 1
        self._remove(start, end)

    def _decorators(self, node: ast.FunctionDef) -> None:
        """Kernels are launched outside jax.jit, so it goes."""
        for decorator in node.decorator_list:
            named = [ast.unparse(inner) for inner in ast.walk(decorator) if isinstance(inner, ast.Attribute)]
            if "jax.jit" in named and self.aliases.get("jax") == "jax":
                assert decorator.end_lineno is not None
                self._remove(self.lines[decorator.lineno - 1], self.lines[decorator.end_lineno])
                self.result.notes.append(f"line {decorator.lineno}: jax.jit is dropped; kernels run outside it")

    def _remove(self, start: int, end: int) -> None:
        self.edits = [edit for edit in self.edits if not start <= edit.start < end]
        self.edits.append(_Edit(start, end, ""))
        self.removed.append((start, end))

    # ---- imports ----

    def _imports(self, nodes: list[ast.Import | ast.ImportFrom]) -> None:
        """One import of Palladium in place of the first that is no longer needed."""
        written = False
        for node in nodes:
            kept = [alias for alias in node.names if not self._unneeded(node, alias)]
            if len(kept) == len(node.names):
                continue
            lines = []
            if not written:
                lines.append("from loom.experimental import palladium as lpl")
                written = True
            if kept:
                node.names[:] = kept
                lines.append(ast.unparse(node))
            start = self._at(node.lineno, node.col_offset)
            assert node.end_lineno is not None and node.end_col_offset is not None
            end = self._at(node.end_lineno, node.end_col_offset)
            if not lines and self.text.encode()[end : end + 1] == b"\n":
                end += 1
            self.edits.append(_Edit(start, end, "\n".join(lines)))

    def _unneeded(self, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> bool:
        module = alias.name if isinstance(node, ast.Import) else f"{node.module}.{alias.name}"
        return module in MODULES and (alias.asname or alias.name.partition(".")[0]) not in self.kept

    # ---- text ----

    def _at(self, line: int, column: int) -> int:
        return self.lines[line - 1] + column

    def _replace(self, node: ast.expr, text: str) -> None:
        assert node.end_lineno is not None and node.end_col_offset is not None
        start, end = self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)
        self.edits.append(_Edit(start, end, text))

    def _is_removed(self, node: ast.expr) -> bool:
        start = self._at(node.lineno, node.col_offset)
        return any(low <= start < high for low, high in self.removed)

    def _insert(self, node: ast.expr, text: str) -> None:
        start = self._at(node.lineno, node.col_offset)
        self.edits.append(_Edit(start, start, text))
