"""What Python syntax a kernel may use, and early exits brought to where structured control flow can have them."""

from __future__ import annotations

import ast
import copy
from typing import Final

from loom_core.trace.errors import TooManyReturns, UnsupportedControl, UnsupportedSyntax
from loom_core.trace.source import FunctionSource

COPIES_LIMIT: Final = 64
"""How many times statements after partial early exits may be copied before the kernel is refused."""

_ALLOWED: Final = (
    # statements
    ast.FunctionDef, ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.While, ast.If, ast.Assert,
    ast.Expr, ast.Pass, ast.Break, ast.Continue, ast.Raise,
    # expressions
    ast.BoolOp, ast.NamedExpr, ast.BinOp, ast.UnaryOp, ast.Lambda, ast.IfExp, ast.Dict, ast.Set, ast.ListComp,
    ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Compare, ast.Call, ast.FormattedValue, ast.JoinedStr,
    ast.Constant, ast.Attribute, ast.Subscript, ast.Starred, ast.Name, ast.List, ast.Tuple, ast.Slice,
    # parts of them
    ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop, ast.comprehension, ast.arguments, ast.arg,
    ast.keyword,
)  # fmt: skip

_DESCRIPTIONS: Final[dict[type[ast.AST], str]] = {
    ast.Try: "try",
    ast.With: "with",
    ast.AsyncWith: "async with",
    ast.AsyncFor: "async for",
    ast.AsyncFunctionDef: "an async function",
    ast.ClassDef: "a class definition",
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.Delete: "del",
    ast.Yield: "yield",
    ast.YieldFrom: "yield from",
    ast.Await: "await",
    ast.Match: "match",
}
_HINTS: Final[dict[type[ast.AST], str]] = {
    ast.Import: "import at the top of the file",
    ast.ImportFrom: "import at the top of the file",
    ast.ClassDef: "define the class outside the kernel",
    ast.Global: "return the value, or store it through a pointer",
    ast.Nonlocal: "return the value, or store it through a pointer",
}

_LOOPS: Final = (ast.For, ast.While)
_SCOPES: Final = (ast.Lambda, ast.FunctionDef)


def check_syntax(source: FunctionSource) -> None:
    """UnsupportedSyntax or UnsupportedControl at the first construct that a kernel cannot have."""
    _Checker(source).visit(source.tree)


class _Checker(ast.NodeVisitor):
    def __init__(self, source: FunctionSource) -> None:
        self.source = source
        self.loops = 0
        self.lazy = 0

    def refuse(self, node: ast.AST, what: str, hint: str | None = None) -> None:
        raise UnsupportedSyntax(self.source.locate(node), what=what, hint=hint)

    def visit(self, node: ast.AST) -> None:
        if not isinstance(node, _ALLOWED):
            kind = type(node)
            self.refuse(node, _DESCRIPTIONS.get(kind, kind.__name__), _HINTS.get(kind))
        super().visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node is not self.source.tree:
            self.refuse(node, "a nested function", "define it at module level and decorate it with @jit")
        for statement in node.body:
            self.visit(statement)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._target(target)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._target(node.target)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._target(node.target)
        if node.value is not None:
            self.visit(node.value)

    def _target(self, target: ast.expr) -> None:
        if isinstance(target, ast.Attribute):
            self.refuse(target, "assigning to an attribute", "values in a kernel are immutable; use a new name")
        if isinstance(target, ast.Subscript):
            self.refuse(
                target, "assigning to an element", "tiles are immutable; use where(), or store through a pointer"
            )
        if isinstance(target, ast.Starred):
            self.refuse(target, "a starred target")
        if isinstance(target, (ast.Tuple, ast.List)):
            for part in target.elts:
                self._target(part)

    def _loop(self, node: ast.For | ast.While) -> None:
        if node.orelse:
            self.refuse(node, "else after a loop", "move the statements behind the loop")
        if isinstance(node, ast.For):
            self._target(node.target)
        self.loops += 1
        self.generic_visit(node)
        self.loops -= 1

    visit_For = _loop
    visit_While = _loop

    def visit_Raise(self, node: ast.Raise) -> None:
        # Refused where it is reached; see `Hooks.raised`.
        pass

    def visit_Return(self, node: ast.Return) -> None:
        if self.loops:
            hint = "let the loop end, and return after it"
            raise UnsupportedControl(self.source.locate(node), what="return inside a loop", hint=hint)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self.visit(node.values[0])
        self._lazy(*node.values[1:])

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.visit(node.test)
        self._lazy(node.body, node.orelse)

    def _lazy(self, *nodes: ast.AST) -> None:
        self.lazy += 1
        for node in nodes:
            self.visit(node)
        self.lazy -= 1

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        if self.lazy:
            self.refuse(node, "an assignment in an operand that may not be evaluated", "assign on a line of its own")
        self.generic_visit(node)


# ---- early exits -----------------------------------------------------------------------------------------------------


def exits_at_tails(source: FunctionSource) -> ast.FunctionDef:
    """A copy of the function in which `return`, `continue` and `break` stand only where nothing follows them.

        if c: return            if c: return
        rest             ->     else: rest

    Where both branches of an `if` may fall through, the rest is copied into both.
    """
    function = copy.deepcopy(source.tree)
    normaliser = _Normaliser(source)
    function.body = normaliser.block(function.body, (ast.Return,))
    return function


class _Normaliser:
    def __init__(self, source: FunctionSource) -> None:
        self.source = source
        self.copies = 0

    def block(self, statements: list[ast.stmt], exits: tuple[type[ast.stmt], ...]) -> list[ast.stmt]:
        done: list[ast.stmt] = []
        for i, statement in enumerate(statements):
            done.append(statement)
            if isinstance(statement, exits):
                return done
            if isinstance(statement, _LOOPS):
                statement.body = self.block(statement.body, (ast.Continue, ast.Break))
            elif isinstance(statement, ast.If):
                rest = statements[i + 1 :]
                if rest and may_exit(statement, exits):
                    self._move_rest(statement, rest, exits)
                    return done
                statement.body = self.block(statement.body, exits)
                statement.orelse = self.block(statement.orelse, exits)
        return done

    def _move_rest(self, statement: ast.If, rest: list[ast.stmt], exits: tuple[type[ast.stmt], ...]) -> None:
        open_branches = [branch for branch in (statement.body, statement.orelse) if not always_exits(branch, exits)]
        for branch in open_branches[1:]:
            self.copies += 1
            if self.copies > COPIES_LIMIT:
                raise TooManyReturns(self.source.locate(statement), function=self.source.name, limit=COPIES_LIMIT)
            branch.extend(copy.deepcopy(rest))
        for branch in open_branches[:1]:
            branch.extend(rest)
        statement.body = self.block(statement.body, exits)
        statement.orelse = self.block(statement.orelse, exits)


def may_exit(node: ast.AST, exits: tuple[type[ast.stmt], ...]) -> bool:
    """Whether one of the `exits` of the present function or loop stands somewhere in `node`."""
    if isinstance(node, exits):
        return True
    if isinstance(node, _SCOPES) or (isinstance(node, _LOOPS) and ast.Return not in exits):
        return False
    return any(may_exit(child, exits) for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt))


def always_exits(statements: list[ast.stmt], exits: tuple[type[ast.stmt], ...]) -> bool:
    """Whether every path through the statements ends in one of the `exits`."""
    for statement in statements:
        if isinstance(statement, exits):
            return True
        if isinstance(statement, ast.If) and all(always_exits(b, exits) for b in (statement.body, statement.orelse)):
            return True
    return False
