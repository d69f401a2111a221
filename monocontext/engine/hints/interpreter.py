"""Follow a program statement by statement without running it: names, conditions, loops.

If the outcome of a condition is unknown, both blocks are followed with more *doubt* (`trace.doubt`: how many open
questions stand before a read). `Spent` ends the work early. `follow` never raises, whatever the program.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from enum import Enum, auto

from monocontext.engine.hints import values
from monocontext.engine.hints.expressions import Names, module_value, restore
from monocontext.engine.hints.loops import Loops
from monocontext.engine.hints.reads import Spent
from monocontext.engine.hints.values import (
    UNKNOWN,
    LineList,
    Loaded,
    Pieces,
    TextValue,
    is_plain,
    run_of,
    truth,
)

ENDLESS = 1 << 30
"""Stands for the unknown number of rounds of a loop that continues as long as a search finds something."""
_MADE = "<made>"
"""A name that no program can have, under which a comprehension collects its items, in a tuple."""
_NODES_A_WORK = 8
"""Walking over this many nodes costs as much as evaluating one."""
_FOUND = {(ast.GtE, 0), (ast.NotEq, -1), (ast.Gt, -1)}
"""Comparisons of a result of `find` that hold if it has found something."""
_NOT_FOUND = {(ast.Lt, 0), (ast.Eq, -1)}


class Flow(Enum):
    """How a block was left before its end."""

    BREAK = auto()
    CONTINUE = auto()


class Interpreter(Loops):
    """Follows statements: a method `_<node type>` for each kind."""

    def follow(self, tree: ast.Module) -> None:
        """Follow a program, or as much of it as its work allows."""
        for statement in tree.body:
            self.trace.doubt, self.trace.loops, self._depth = int(self.is_draft), 0, 0
            try:
                self.block([statement])
            except Spent:
                return
            except RecursionError:  # the caller's stack was nearly full: the next statement may be flatter
                continue

    def block(self, statements: Sequence[ast.stmt]) -> Flow | None:
        """Follow statements in order. Returns how the block was left early, or None if its end may be reached. Raises
        `Spent`."""
        for statement in statements:
            self.trace.spend()
            method: Callable[[ast.stmt], Flow | None] = getattr(
                self, "_" + type(statement).__name__, self._other_statement
            )
            flow = method(statement)
            if flow is not None:
                return flow
        return None

    def _other_statement(self, node: ast.stmt) -> None:
        """A statement without a method: evaluate its expressions, forget the names that it assigns to."""
        self._other(node)
        self.forget(self._assigned(node))

    def _assigned(self, node: ast.stmt) -> list[str]:
        """The names that are assigned to in a statement; not those of imports, definitions, patterns and
        `except ... as`."""
        return [
            inner.id
            for inner in self._walk([node])
            if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load)
        ]

    def _walk(self, statements: Sequence[ast.stmt]) -> list[ast.AST]:
        """These statements and all nodes below them. Costs work (`trace.spend`)."""
        nodes = [inner for statement in statements for inner in ast.walk(statement)]
        self.trace.spend(len(nodes) // _NODES_A_WORK)
        return nodes

    def _Assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self.assign(target, value)

    def _AugAssign(self, node: ast.AugAssign) -> None:
        value = self.value(node.value)
        self.consume(value)
        old = self.look_up(node.target.id) if isinstance(node.target, ast.Name) else UNKNOWN
        self.assign(node.target, values.binary(type(node.op), old, value))

    def assign(self, target: ast.expr, value: object) -> None:
        """Bind a target to a value. Attributes are ignored."""
        match target:
            case ast.Name(id=name):
                self.names[name] = value
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                self.consume(value)
                run = run_of(value)
                known = (
                    run is not None
                    and len(run) == len(targets)
                    and not any(isinstance(t, ast.Starred) for t in targets)
                )
                for number, one in enumerate(targets):
                    self.assign(one, run[number] if run is not None and known else UNKNOWN)
            case ast.Starred(value=inner):
                self.assign(inner, value)
            case ast.Subscript():
                self.value(target.slice)
                self.forget_changed(target)

    def _Import(self, node: ast.Import | ast.ImportFrom) -> None:
        owner = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            name, path = alias.name.partition(".")[0], owner + alias.name
            path = "re" if path in ("regex", "monocontext.regex") else path
            self.names[alias.asname or name] = module_value(path if alias.asname or owner else path.partition(".")[0])

    _ImportFrom = _Import

    def _FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.names[node.name] = UNKNOWN

    _AsyncFunctionDef = _ClassDef = _FunctionDef

    def _Break(self, _: ast.Break) -> Flow:
        return Flow.BREAK

    def _Continue(self, _: ast.Continue) -> Flow:
        return Flow.CONTINUE

    def _If(self, node: ast.If) -> Flow | None:
        known = self.decide(node.test)
        if known is not None:
            return self.block(node.body if known else node.orelse)
        return self._one_of([node.body, node.orelse])

    def _one_of(self, blocks: Sequence[Sequence[ast.stmt]]) -> Flow | None:
        """Follow several blocks, of which exactly one runs; it is unknown which.

        Returns a flow only if every block left early; the names are joined from those that did not.
        """
        before, outer, may_leave = self.copy_names(), self.trace.doubt, False
        after: Names | None = None
        flow: Flow | None = None
        for statements in blocks:
            restore(self.names, before)
            self.trace.doubt = outer + 1
            left = self.block(statements)
            may_leave = may_leave or left is not None or self.trace.doubt > outer + 1
            if left is None:
                after = self.copy_names() if after is None else _joined(after, self.names)
            flow = flow or left
        self.trace.doubt = outer + may_leave  # later code runs only if no block has left the outer one
        if after is None:
            return flow
        restore(self.names, after)
        return None

    def _With(self, node: ast.With) -> Flow | None:
        for item in node.items:
            value = self.value(item.context_expr)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value)
        return self.block(node.body)

    def _Try(self, node: ast.Try) -> Flow | None:
        """Body and `else` are followed as if nothing failed, then each handler as something that may run."""
        flow, doubt = self.block([*node.body, *node.orelse]), self.trace.doubt
        self._one_of([*(handler.body for handler in node.handlers), []])
        self.trace.doubt = doubt
        return self.block(node.finalbody) or flow

    def _For(self, node: ast.For) -> Flow | None:
        may_leave = any(isinstance(inner, ast.Break) for inner in self._walk(node.body))
        with self.trace.taken_in_part(may_leave, self.is_draft or may_leave):
            items = self.value(node.iter)
            self.consume(items)
        run = run_of(items)
        item = Loaded() if isinstance(items, TextValue | LineList | Pieces) else UNKNOWN

        def follow(number: int) -> bool:
            """Follow round `number`. Returns False if it leaves the loop."""
            self.assign(node.target, run[number] if run is not None else item)
            return self.block(node.body) is not Flow.BREAK

        ends_empty = run is not None and not self.is_draft and self._ends_empty(node.body)
        with self.loop(min(len(run), ENDLESS) if run is not None and ends_empty else 0):
            if run is None:
                self.once(self._assigned(node), lambda: follow(0))
            else:
                self.repeat(follow, len(run), self._assigned(node))
        return self._one_of([node.orelse, []])

    def _While(self, node: ast.While) -> Flow | None:
        names = self._assigned(node)

        def follow(number: int) -> bool | None:
            """Follow a round. Returns False if the loop ends, None if the condition is unknown."""
            going = truth(self.value(node.test))
            if going is None:
                self.once(names, lambda: self.block(node.body))
            return self.block(node.body) is not Flow.BREAK if going else going

        is_endless = isinstance(node.test, ast.Constant) or _compared(node.test) in _FOUND
        ends_empty = is_endless and not self.is_draft and self._ends_empty(node.body)
        with self.loop(ENDLESS if ends_empty else 0):
            self.repeat(follow, None, names)
        return self._one_of([node.orelse, []])

    def comprehend(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> object:
        """Follow a comprehension as nested `for` and `if`. Returns its items as a tuple; UNKNOWN for a dict."""
        made = ast.Tuple([node.key, node.value], ast.Load()) if isinstance(node, ast.DictComp) else node.elt
        body: ast.stmt = ast.Expr(ast.Yield(made))
        for generator in reversed(node.generators):
            for test in reversed(generator.ifs):
                body = ast.If(test, [body], [])
            body = ast.For(generator.target, generator.iter, [body], [])
        outer = self.copy_names()
        self.names[_MADE] = ()
        self.trace.loops -= len(node.generators)  # their rounds do not continue a search
        try:
            self.block([body])
            return UNKNOWN if isinstance(node, ast.DictComp) else self.names[_MADE]
        finally:
            self.trace.loops += len(node.generators)
            restore(self.names, outer)

    def _Yield(self, node: ast.Yield) -> object:
        made, value = self.names.get(_MADE), self.value(node.value)
        self.names[_MADE] = (*made, value) if isinstance(made, tuple) else UNKNOWN
        return UNKNOWN

    def _ends_empty(self, body: Sequence[ast.stmt]) -> bool:
        """Whether the only ways out of the body are `if at < 0` and the like: a search that found nothing."""
        others = [
            statement
            for statement in body
            if not isinstance(statement, ast.If) or _compared(statement.test) not in _NOT_FOUND
        ]
        return not any(isinstance(inner, ast.Break | ast.Raise) for inner in self._walk(others))


def _joined(one: Names, other: Names) -> Names:
    """The names after one of two blocks. Where their values differ: the first that is a text, lines or pieces, else
    UNKNOWN."""
    names = dict(one)
    for name, value in other.items():
        first = names.setdefault(name, value)
        if first is not value and not (is_plain(first) and is_plain(value) and first == value):
            texts = (each for each in (first, value) if isinstance(each, TextValue | LineList | Pieces))
            names[name] = next(texts, UNKNOWN)
    return names


def _compared(test: ast.expr) -> tuple[type[ast.cmpop], int] | None:
    """The operator and number of a comparison with 0 or -1: `at < 0` gives (Lt, 0). None for other tests."""
    match test:
        case ast.Compare(ops=[kind], comparators=[ast.Constant(value=0)]):
            return type(kind), 0
        case ast.Compare(ops=[kind], comparators=[ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1))]):
            return type(kind), -1
    return None
