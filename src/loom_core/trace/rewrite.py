"""Rewrites a kernel's syntax tree so that its control flow calls the hooks of `loom_core.trace.hooks`.

    if test: A             $c1 = $.branch(test, ("x",), (x,), False)
    else: B                if $c1.on_true():
                               A
                               x, = $c1.switch((x,))
                           if $c1.on_false():
                               B
                           x, = $c1.join((x,))

    for i in it: A         $l1 = $.loop(it, ("x", "i"), (x, i), ("i",), False)
                           for $i1 in $l1:
                               x, i = $l1.state
                               i = $i1
                               A
                               $l1.state = (x, i)
                           x, i = $l1.finish()

    while test: A          $l1 = $.while_loop(("x",), (x,), False)
                           while $l1.more():
                               x, = $l1.state
                               if $l1.holds(test, (x,)):
                                   x, = $l1.state
                                   A
                                   $l1.advance((x,))
                           x, = $l1.finish()

    break                  $b1 = True
                           ($b1 is the last name of its loop, which is told so, and False before)

    x = e                  x = $.assign(e, "x")
    a and b                $.and_(a, lambda: b)
    a if c else b          $.choose(c, lambda: a, lambda: b)
    return e (at a tail)   $r = e

A condition that is known while tracing takes one way through this as plain Python would; one that is not takes both.
Names that control flow may leave without a value start as UNDEFINED, and reads that cannot be proved to come after an
assignment go through `$.use`. Every inserted node carries the position of what it stands for, so that positions of the
compiled code are the user's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from types import CodeType
from typing import Any, Final

from loom_core.base.syntax_trees import compile_tree
from loom_core.trace.errors import TraceError
from loom_core.trace.source import FunctionSource
from loom_core.trace.syntax import check_syntax, exits_at_tails, may_exit

HOOKS: Final = "$"
"""The global through which the rewritten code reaches its hooks; no Python identifier can collide with it."""
RESULT: Final = "$r"

_STATIC_ANNOTATION: Final = "constexpr"


@dataclass(frozen=True)
class Rewritten:
    """A kernel ready to run under a trace.

    `free_names` are the names that it reads from outside: globals, builtins and closure variables.
    """

    source: FunctionSource
    code: CodeType
    free_names: tuple[str, ...]


def rewrite(source: FunctionSource) -> Rewritten:
    """Check and rewrite a function. UnsupportedSyntax, UnsupportedControl, TooManyReturns or BadSource."""
    try:
        check_syntax(source)
        rewriter = _Rewriter(exits_at_tails(source))
    except TraceError as error:
        # The frames of the visitor say nothing about the user's code.
        raise error.with_traceback(None) from None
    function = rewriter.function()
    module = ast.Module([function], [])
    namespace: dict[str, Any] = {}
    exec(compile_tree(module, source.file), namespace)  # the user's own function, rewritten
    code: CodeType = namespace[function.name].__code__
    return Rewritten(source, code, tuple(sorted(rewriter.free)))


def assigned_names(statements: Iterable[ast.AST]) -> list[str]:
    """Names that the statements assign, in order of first assignment; not those of comprehensions and lambdas."""
    found: dict[str, None] = {}

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = None
        if isinstance(node, ast.comprehension):
            visit(node.iter)
        elif not isinstance(node, ast.Lambda):
            for child in ast.iter_child_nodes(node):
                visit(child)

    for statement in statements:
        visit(statement)
    return list(found)


def _is_static_annotation(annotation: ast.expr) -> bool:
    name = annotation.attr if isinstance(annotation, ast.Attribute) else getattr(annotation, "id", None)
    return name == _STATIC_ANNOTATION


class _Rewriter:
    def __init__(self, function: ast.FunctionDef) -> None:
        self.node = function
        arguments = function.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        names += [a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None]
        self.locals = {*names, *assigned_names(function.body)}
        self.parameters = frozenset(names)
        self.definite = set(names)
        self.bound: list[set[str]] = []
        self.free: set[str] = set()
        self.controlled: dict[str, None] = {}
        self.count = 0
        self.loops: list[str] = []

    # -- functions ---------------------------------------------------------------------------------------------------

    def function(self) -> ast.FunctionDef:
        node = self.node
        body = self.block(node.body)
        begin: list[ast.stmt] = [
            _at(ast.Expr(_hook("begin")), node),
            _at(_assign([RESULT], _constant(None)), node),
        ]
        unset = [name for name in self.controlled if name not in self.parameters]
        if unset:
            targets: list[ast.expr] = [_store(name) for name in unset]
            begin.append(_at(ast.Assign(targets, ast.Attribute(_load(HOOKS), "UNDEFINED", ast.Load())), node))
        end = _at(ast.Return(_load(RESULT)), node)
        stripped = _strip(node.args)
        function = ast.FunctionDef(node.name, stripped, [*begin, *body, end], [], None, None, **_no_parameters())
        _at(function, node)
        return function

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        rewritten: list[ast.stmt] = []
        for statement in statements:
            rewritten.extend(getattr(self, f"stmt_{type(statement).__name__}")(statement))
        return rewritten or [ast.Pass(lineno=self.node.lineno, col_offset=0)]

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"${prefix}{self.count}"

    # -- statements --------------------------------------------------------------------------------------------------

    def stmt_Pass(self, node: ast.Pass) -> list[ast.stmt]:
        return [node]

    def stmt_Expr(self, node: ast.Expr) -> list[ast.stmt]:
        return [_at(ast.Expr(self.expr(node.value)), node)]

    def stmt_Return(self, node: ast.Return) -> list[ast.stmt]:
        value = self.expr(node.value) if node.value is not None else _constant(None)
        return [_at(_assign([RESULT], value), node)]

    def stmt_Break(self, node: ast.Break) -> list[ast.stmt]:
        return [_at(_assign([self.loops[-1]], _constant(True)), node)]

    def stmt_Continue(self, node: ast.Continue) -> list[ast.stmt]:
        # It stands at the end of the loop's body: nothing is left to skip.
        return [_at(ast.Pass(), node)]

    def stmt_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        value = self._assigned(node.targets, node.value)
        self.define(node.targets)
        return [_at(ast.Assign(node.targets, value), node)]

    def stmt_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        assert isinstance(node.target, ast.Name)
        left = self.expr(_at(ast.Name(node.target.id, ast.Load()), node.target))
        value = _at(ast.BinOp(left, node.op, self.expr(node.value)), node)
        return [_at(ast.Assign([node.target], self._wrapped([node.target], value)), node)]

    def stmt_AnnAssign(self, node: ast.AnnAssign) -> list[ast.stmt]:
        if node.value is None:
            return []
        value = self.expr(node.value)
        value = self._wrapped([node.target], value, "static" if _is_static_annotation(node.annotation) else "assign")
        self.define([node.target])
        return [_at(ast.Assign([node.target], value), node)]

    def _assigned(self, targets: list[ast.expr], value: ast.expr) -> ast.expr:
        return self._wrapped(targets, self.expr(value))

    def _wrapped(self, targets: list[ast.expr], value: ast.expr, function: str = "assign") -> ast.expr:
        only = targets[0] if len(targets) == 1 else None
        name = only.id if isinstance(only, ast.Name) else None
        hook = _hook(function, value, _constant(name))
        _at(hook, value)
        return hook

    def define(self, targets: Iterable[ast.expr]) -> None:
        self.definite.update(assigned_names(targets))

    def stmt_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        test = self.expr(node.test)
        message = _lambda(self.expr(node.msg)) if node.msg is not None else _constant(None)
        return [_at(ast.Expr(_hook("assert_", test, message)), node)]

    def stmt_Raise(self, node: ast.Raise) -> list[ast.stmt]:
        return [_at(ast.Expr(_hook("raised", _constant(ast.unparse(node)))), node)]

    def stmt_If(self, node: ast.If) -> list[ast.stmt]:
        test = self.expr(node.test)
        tail = may_exit(node, (ast.Return,))
        names = assigned_names([*node.body, *node.orelse])
        if self.loops and may_exit(node, (ast.Break,)):
            names.append(self.loops[-1])
        if tail:
            names.insert(0, RESULT)
        self.controlled.update(dict.fromkeys(n for n in names if n != RESULT))
        branch = self.fresh("c")
        before = set(self.definite)
        body = self.block(node.body)
        after_true, self.definite = self.definite, before
        orelse = self.block(node.orelse) if node.orelse else []
        self.definite &= after_true
        start = _assign([branch], _hook("branch", test, _names(names), _tuple(names), _constant(tail)))
        statements: list[ast.stmt] = [
            start,
            ast.If(_method(branch, "on_true"), [*body, _update(names, _method(branch, "switch", _tuple(names)))], []),
        ]
        if orelse:
            statements.append(ast.If(_method(branch, "on_false"), orelse, []))
        statements.append(_update(names, _method(branch, "join", _tuple(names))))
        return [_at(statement, node.test) for statement in statements]

    def _loop_names(self, names: list[str], body: list[ast.stmt]) -> tuple[list[str], bool]:
        """The names of a loop, ending in its flag where it may be left by a `break`."""
        breaks = any(may_exit(statement, (ast.Break,)) for statement in body)
        flag = self.fresh("b")
        self.loops.append(flag)
        return ([*names, flag] if breaks else names), breaks

    def stmt_For(self, node: ast.For) -> list[ast.stmt]:
        iterable = self.expr(node.iter)
        targets = assigned_names([node.target])
        own = [*(n for n in assigned_names(node.body) if n not in targets), *targets]
        names, breaks = self._loop_names(own, node.body)
        self.controlled.update(dict.fromkeys(own))
        loop, item = self.fresh("l"), self.fresh("i")
        before = set(self.definite)
        self.define([node.target])
        body = self.block(node.body)
        flag = self.loops.pop()
        self.definite = before
        state = _attribute(loop, "state", ast.Load())
        inside = [
            _update(names, state),
            ast.Assign([node.target], _load(item)),
            *body,
            ast.Assign([_attribute(loop, "state", ast.Store())], _tuple(names)),
        ]
        begin = _hook("loop", iterable, _names(names), _tuple(names), _names(targets), _constant(breaks))
        statements = [
            _assign([flag], _constant(False)),
            _assign([loop], begin),
            ast.For(_store(item), _load(loop), inside, []),
            _update(names, _method(loop, "finish")),
        ]
        return [_at(statement, node.iter) for statement in statements[not breaks :]]

    def stmt_While(self, node: ast.While) -> list[ast.stmt]:
        own = assigned_names([node.test, *node.body])
        names, breaks = self._loop_names(own, node.body)
        self.controlled.update(dict.fromkeys(own))
        loop = self.fresh("l")
        before = set(self.definite)
        test = self.expr(node.test)
        body = self.block(node.body)
        flag = self.loops.pop()
        self.definite = before
        fresh = _update(names, _attribute(loop, "state", ast.Load()))
        again = _update(names, _attribute(loop, "state", ast.Load()))
        advance = ast.Expr(_method(loop, "advance", _tuple(names)))
        inside: list[ast.stmt] = [
            fresh,
            ast.If(_method(loop, "holds", test, _tuple(names)), [again, *body, advance], []),
        ]
        statements = [
            _assign([flag], _constant(False)),
            _assign([loop], _hook("while_loop", _names(names), _tuple(names), _constant(breaks))),
            ast.While(_method(loop, "more"), inside, []),
            _update(names, _method(loop, "finish")),
        ]
        return [_at(statement, node.test) for statement in statements[not breaks :]]

    # -- expressions -------------------------------------------------------------------------------------------------

    def expr(self, node: ast.expr) -> Any:
        special = getattr(self, f"expr_{type(node).__name__}", None)
        if special is not None:
            return _at(special(node), node)
        for field, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(node, field, [self._part(item) for item in value])
            elif isinstance(value, ast.AST):
                setattr(node, field, self._part(value))
        return node

    def _part(self, value: Any) -> Any:
        if isinstance(value, ast.expr):
            return self.expr(value)
        if isinstance(value, ast.keyword):
            value.value = self.expr(value.value)
        return value

    def expr_Name(self, node: ast.Name) -> ast.expr:
        name = node.id
        if not isinstance(node.ctx, ast.Load) or any(name in names for names in self.bound):
            return node
        if name not in self.locals:
            self.free.add(name)
            return node
        return node if name in self.definite else _hook("use", node, _constant(name))

    def expr_Attribute(self, node: ast.Attribute) -> ast.expr:
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        from_outside = isinstance(root, ast.Name) and root.id not in self.locals and not self._is_bound(root.id)
        node.value = self.expr(node.value)
        # What stands behind a name from outside is looked up by a hook, which notes that the kernel depends on it.
        return _hook("attribute", node.value, _constant(node.attr)) if from_outside else node

    def _is_bound(self, name: str) -> bool:
        return any(name in names for names in self.bound)

    def expr_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        node.value = self._assigned([node.target], node.value)
        self.define([node.target])
        return node

    def expr_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        hook = "and_" if isinstance(node.op, ast.And) else "or_"
        result = self.expr(node.values[0])
        for value in node.values[1:]:
            result = _at(_hook(hook, result, _lambda(self.expr(value))), node)
        return result  # type: ignore[no-any-return]

    def expr_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        node.operand = self.expr(node.operand)
        return _hook("not_", node.operand) if isinstance(node.op, ast.Not) else node

    def expr_IfExp(self, node: ast.IfExp) -> ast.expr:
        return _hook("choose", self.expr(node.test), _lambda(self.expr(node.body)), _lambda(self.expr(node.orelse)))

    def expr_Compare(self, node: ast.Compare) -> ast.expr:
        node.left = self.expr(node.left)
        node.comparators = [self.expr(c) for c in node.comparators]
        if len(node.ops) == 1:
            return node
        operators = ast.Tuple([_constant(type(op).__name__) for op in node.ops], ast.Load())
        return _hook("compare", operators, node.left, *(_lambda(c) for c in node.comparators))

    def expr_Lambda(self, node: ast.Lambda) -> ast.expr:
        arguments = node.args
        node.args.defaults = [self.expr(d) for d in arguments.defaults]
        node.args.kw_defaults = [None if d is None else self.expr(d) for d in arguments.kw_defaults]
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
        self.bound.append({a.arg for a in every})
        node.body = self.expr(node.body)
        self.bound.pop()
        return node

    def _comprehension(self, node: Any) -> ast.expr:
        scope: set[str] = set()
        self.bound.append(scope)
        for generator in node.generators:
            generator.iter = _at(_hook("static_iterable", self.expr(generator.iter)), generator.iter)
            scope.update(assigned_names([generator.target]))
            generator.ifs = [_at(_hook("static_truth", self.expr(test)), test) for test in generator.ifs]
        for field in ("elt", "key", "value"):
            if hasattr(node, field):
                setattr(node, field, self.expr(getattr(node, field)))
        self.bound.pop()
        return node  # type: ignore[no-any-return]

    expr_ListComp = expr_SetComp = expr_DictComp = expr_GeneratorExp = _comprehension


# ---- making nodes ----------------------------------------------------------------------------------------------------


def _at(node: Any, where: ast.AST) -> Any:
    """Give `node` and what it holds without a position the position of `where`."""
    pending = [node]
    while pending:
        current = pending.pop()
        if "lineno" in current._attributes:
            if hasattr(current, "lineno"):
                continue
            ast.copy_location(current, where)
        pending.extend(ast.iter_child_nodes(current))
    return node


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _store(name: str) -> ast.Name:
    return ast.Name(name, ast.Store())


def _attribute(name: str, attribute: str, context: ast.expr_context) -> ast.Attribute:
    return ast.Attribute(_load(name), attribute, context)


def _constant(value: Any) -> ast.Constant:
    return ast.Constant(value)


def _method(name: str, method: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(_attribute(name, method, ast.Load()), list(arguments), [])


def _hook(name: str, *arguments: ast.expr) -> ast.Call:
    return _method(HOOKS, name, *arguments)


def _lambda(body: ast.expr) -> ast.Lambda:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), body)


def _names(names: Iterable[str]) -> ast.Constant:
    return _constant(tuple(names))


def _tuple(names: Iterable[str]) -> ast.Tuple:
    return ast.Tuple([_load(name) for name in names], ast.Load())


def _assign(names: list[str], value: ast.expr) -> ast.Assign:
    return ast.Assign([_store(name) for name in names], value)


def _update(names: list[str], value: ast.expr) -> ast.stmt:
    if not names:
        return ast.Expr(value)
    return ast.Assign([ast.Tuple([_store(name) for name in names], ast.Store())], value)


def _strip(arguments: ast.arguments) -> ast.arguments:
    """The parameters without annotations and defaults: callers bind them before."""

    def bare(argument: ast.arg) -> ast.arg:
        return ast.copy_location(ast.arg(argument.arg), argument)

    return ast.arguments(
        [bare(a) for a in arguments.posonlyargs],
        [bare(a) for a in arguments.args],
        bare(arguments.vararg) if arguments.vararg else None,
        [bare(a) for a in arguments.kwonlyargs],
        [None] * len(arguments.kwonlyargs),
        bare(arguments.kwarg) if arguments.kwarg else None,
        [],
    )


def _no_parameters() -> dict[str, Any]:
    # Python 3.12 gave function definitions a list of type parameters.
    return {"type_params": []} if "type_params" in ast.FunctionDef._fields else {}
