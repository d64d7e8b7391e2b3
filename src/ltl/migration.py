"""Triton source to LTL source: the same kernels under other imports, and what of the text they consist of."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from loom_core.base.syntax_trees import parse

_LANGUAGE: Final = "triton.language"
_OWN: Final = {
    "jit", "autotune", "heuristics", "Config", "cdiv", "next_power_of_2", "constexpr_function", "aggregate",
}  # fmt: skip
"""Names of the package triton that are LTL's too."""
_FROM: Final = {
    "triton.language.core": "ltl.core",
    "triton.language.standard": "ltl.core",
    "triton.language.random": "ltl.core",
    "triton.language.target_info": "ltl.target_info",
    "triton.language.extra": "ltl.extra",
    "triton.language.extra.libdevice": "ltl.libdevice",
    "triton.language.extra.cuda": "ltl.extra.cuda",
    "triton.language.extra.cuda.libdevice": "ltl.libdevice",
    "triton.language.math": "ltl.math",
    "torch._inductor.runtime": "ltl",
    "torch._inductor.runtime.triton_helpers": "ltl.inductor",
    "triton.tools.tensor_descriptor": "ltl.host_descriptor",
}
"""Modules that are imported from, and where LTL has their names."""
_RENAMED: Final = {("ltl", "triton_helpers"): "inductor as triton_helpers"}


@dataclass(frozen=True)
class Edit:
    """The text between two positions (line from 1, column in UTF-8 bytes) is to be replaced."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True)
class Left:
    """Something of Triton's that has no counterpart and stays as it is."""

    name: str
    line: int


@dataclass
class Migration:
    """The migrated text of a module, and what in it still needs Triton."""

    text: str
    left: list[Left] = field(default_factory=list)


def migrate(text: str) -> Migration:
    """The module with Triton's imports and names replaced by LTL's; everything else, comments included, stays.

    SyntaxError if the text is no Python.
    """
    tree = parse(text)
    rewriter = _Rewriter(tree)
    # An import that goes takes its line with it.
    edits = [replace(e, end_line=e.end_line + 1, end_column=0) if not e.text else e for e in rewriter.edits]
    return Migration(apply_edits(text if text.endswith("\n") else text + "\n", edits), rewriter.left)


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text with edits made, which do not overlap."""
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    for edit in sorted(edits, key=lambda e: (e.line, e.column), reverse=True):
        first, last = edit.line - 1, edit.end_line - 1
        rest = lines[last][edit.end_column :] if last < len(lines) else b""
        joined = lines[first][: edit.column] + edit.text.encode() + rest
        lines[first : last + 1] = [joined]
    return b"".join(lines).decode()


class _Rewriter:
    """Finds the names under which a module knows Triton, and the edits that make them LTL's."""

    def __init__(self, tree: ast.Module) -> None:
        self.edits: list[Edit] = []
        self.left: list[Left] = []
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        self.packages = {"triton"}
        self.languages: set[str] = set()
        # A module that has a name `ltl` of its own keeps its name for the language.
        self.taken = "ltl" in names
        self._imports(tree)
        self._names(tree)

    def _imports(self, tree: ast.Module) -> None:
        imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
        for node in imports:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name == _LANGUAGE and alias.asname:
                        self.languages.add(alias.asname)
                    elif alias.name == "triton":
                        self.packages.add(alias.asname or "triton")
            elif node.module == "triton":
                self.languages |= {alias.asname or "language" for alias in node.names if alias.name == "language"}
        self.done = False
        for node in imports:
            replacement = self._import(node) if isinstance(node, ast.Import) else self._import_from(node)
            if replacement is not None:
                self.edits.append(_over(node, replacement or ("" if node in tree.body else "pass")))

    @property
    def alias(self) -> str:
        """What the migrated module calls the language."""
        return min(self.languages, default="tl") if self.taken else "ltl"

    def _language_import(self) -> str:
        return f"import loom.triton.language as {self.alias}"

    def _import(self, node: ast.Import) -> str | None:
        ours = [alias for alias in node.names if alias.name.split(".", 1)[0] == "triton" or _renamed(alias)]
        others = [alias for alias in node.names if alias not in ours]
        if not ours:
            return None
        lines = [f"import {_alias(alias)}" for alias in others]
        for alias in ours:
            if alias.name in ("triton", _LANGUAGE):
                if not self.done:
                    lines.append(self._language_import())
                    self.done = True
            elif _renamed(alias):
                lines.append(f"import {_FROM[alias.name]} as {alias.asname}")
            else:
                self.left.append(Left(alias.name, node.lineno))
                lines.append(f"import {_alias(alias)}")
        return "; ".join(lines)

    def _import_from(self, node: ast.ImportFrom) -> str | None:
        module = node.module or ""
        if module == "triton":
            kept = [alias for alias in node.names if alias.name != "language"]
            lines = [] if self.done else [self._language_import()]
            self.done = True
            own = [alias for alias in kept if alias.name in _OWN]
            if own:
                lines.append(f"from ltl import {', '.join(map(_alias, own))}")
            foreign = [alias for alias in kept if alias.name not in _OWN]
            if foreign:
                self.left += [Left(f"triton.{alias.name}", node.lineno) for alias in foreign]
                lines.append(f"from triton import {', '.join(map(_alias, foreign))}")
            return "; ".join(lines)
        if module == _LANGUAGE:
            return f"from loom.triton.language import {', '.join(map(_alias, node.names))}"
        if module not in _FROM:
            if module.split(".", 1)[0] == "triton":
                self.left.append(Left(module, node.lineno))
            return None
        target = _FROM[module]
        parts = [_RENAMED.get((target, alias.name), _alias(alias)) for alias in node.names]
        return f"from {target} import {', '.join(parts)}"

    def _names(self, tree: ast.Module) -> None:
        inside: set[ast.AST] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node not in inside:
                self._attribute(node, inside)
            elif isinstance(node, ast.Name) and node.id in self.languages and node not in inside:
                self.edits.append(_over(node, self.alias))

    def _attribute(self, node: ast.Attribute, inside: set[ast.AST]) -> None:
        """`triton.jit`, `triton.language.load`, ...: the part up to the name that LTL has."""
        base = node.value
        if isinstance(base, ast.Attribute) and isinstance(base.value, ast.Name) and base.value.id in self.packages:
            if base.attr == "language":
                inside.update((base, base.value))
                self.edits.append(_over(base, self.alias))
            return
        if not isinstance(base, ast.Name) or base.id not in self.packages:
            return
        inside.add(base)
        if node.attr in _OWN:
            self.edits.append(_over(base, self.alias))
        elif node.attr == "language":
            self.edits.append(_over(node, self.alias))
        else:
            self.left.append(Left(f"triton.{node.attr}", node.lineno))


def _renamed(alias: ast.alias) -> bool:
    """Whether `import name as x` brings in a module that LTL has elsewhere."""
    return alias.asname is not None and alias.name in _FROM


def _alias(alias: ast.alias) -> str:
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name


def _over(node: ast.expr | ast.stmt, text: str) -> Edit:
    assert node.end_lineno is not None and node.end_col_offset is not None
    return Edit(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset, text)


# ---- the part of a module that its kernels need ----------------------------------------------------------------------


def kernel_names(tree: ast.Module) -> list[str]:
    """The functions that a module decorates with jit, in order."""
    return [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and any(is_jit(decorator) for decorator in node.decorator_list)
    ]


def is_jit(decorator: ast.expr) -> bool:
    """Whether a decorator is `jit` or `x.jit`, called or not."""
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
    return name == "jit"


def needed_statements(tree: ast.Module, names: Iterable[str]) -> list[ast.stmt]:
    """What the names of a module need, in order: definitions, assignments and imports of these and all that they name.

    Imports are cut down to the names that are needed.
    """
    defined: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for name in defined_names(statement):
            defined.setdefault(name, []).append(statement)
    kept: dict[ast.stmt, None] = {}
    wanted: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name in wanted:
            continue
        wanted.add(name)
        for statement in defined.get(name, ()):
            if statement not in kept:
                kept[statement] = None
                pending += [node.id for node in ast.walk(statement) if isinstance(node, ast.Name)]
    return [_only(statement, wanted) for statement in tree.body if statement in kept]


def _only(statement: ast.stmt, wanted: set[str]) -> ast.stmt:
    """An import of just the names that are wanted; other statements as they are."""
    if not isinstance(statement, (ast.Import, ast.ImportFrom)):
        return statement
    names = [alias for alias in statement.names if bound_name(alias) in wanted]
    made: ast.stmt = (
        ast.Import(names)
        if isinstance(statement, ast.Import)
        else ast.ImportFrom(statement.module, names, statement.level)
    )
    return ast.copy_location(made, statement)


def bound_name(alias: ast.alias) -> str:
    """The name that an import binds."""
    return alias.asname or alias.name.split(".", 1)[0]


def defined_names(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module defines, those inside `if`, `try` and `with` too."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        yield from map(bound_name, statement.names)
    elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))
    elif isinstance(statement, (ast.If, ast.Try, ast.With)):
        for child in ast.walk(statement):
            if isinstance(child, ast.stmt) and child is not statement and not isinstance(child, (ast.If, ast.Try)):
                yield from defined_names(child)


__all__ = ["Left", "Migration", "bound_name", "defined_names", "is_jit", "kernel_names", "migrate", "needed_statements"]
