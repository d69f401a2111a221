"""Follow a program statement by statement without running it: names, conditions, functions.

A condition that is not known lets both of its arms be followed, in doubt. Nothing here raises, whatever the program.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from enum import Enum, auto

from monocontext.engine.hints.bounded import is_plain, truth
from monocontext.engine.hints.expressions import FLAGS
from monocontext.engine.hints.repetition import Repetition
from monocontext.engine.hints.state import Names, join_names, restore
from monocontext.engine.hints.trace import Spent
from monocontext.engine.hints.values import (
    UNKNOWN,
    Function,
    Items,
    LineList,
    Loaded,
    Module,
    Pieces,
    Table,
    TextValue,
    run_of,
)

ENDLESS = 1 << 30
"""Rounds of a loop that goes on as long as there is something to find."""
MOST_CALLS = 8
"""Deepest nesting of function calls that is followed."""


class Flow(Enum):
    """How a statement is left, other than by its end."""

    BREAK = auto()
    CONTINUE = auto()
    RETURN = auto()
    RAISE = auto()


class AbstractInterpreter(Repetition):
    """Follows statements."""

    _calls = 0

    def follow(self, tree: ast.Module) -> None:
        """A block, or as much of it as its work allows."""
        base = self.scopes[-1]
        for statement in tree.body:
            self._begin(base)
            try:
                self.block([statement])
            except Spent:
                return
            except RecursionError:  # the caller's stack was nearly full: the next statement may be flatter
                continue

    def _begin(self, base: Names) -> None:
        """The outermost level, also after a statement that could not be followed to its end."""
        self.scopes, self.owed, self.trace.doubt = (base,), [0], int(self.is_draft)
        self.results, self.yields = [], None
        self.decisions.clear()
        self._depth = self._calls = 0

    def block(self, statements: Sequence[ast.stmt]) -> Flow | None:
        for statement in statements:
            self.trace.work -= 1
            if self.trace.work < 0:
                raise Spent
            method: Callable[[ast.stmt], Flow | None] | None = getattr(self, "_" + type(statement).__name__, None)
            flow = method(statement) if method is not None else None
            if flow is not None:
                return flow
        return None

    def _Expr(self, node: ast.Expr) -> None:
        self.value(node.value)

    def _Assert(self, node: ast.Assert) -> None:
        self.value(node.test)

    def _Assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self.assign(target, value)

    def _AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.value(node.value))

    def _AugAssign(self, node: ast.AugAssign) -> None:
        value = self.value(node.value)
        if not isinstance(node.target, ast.Name):
            self.assign(node.target, UNKNOWN)
            return
        old = self.look_up(node.target.id)
        if isinstance(old, Items) and isinstance(node.op, ast.Add):
            self.call_method(old, "extend", [value], {})
        else:
            self.names[node.target.id] = self.operate(type(node.op), old, value)

    def _Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.names.pop(target.id, None)

    def assign(self, target: ast.expr, value: object) -> None:
        match target:
            case ast.Name(id=name):
                self.names[name] = value
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                self._unpack(targets, value)
            case ast.Starred(value=inner):
                self.assign(inner, value)
            case ast.Subscript():
                self._store(self.value(target.value), self.value(target.slice), value)

    def _unpack(self, targets: Sequence[ast.expr], value: object) -> None:
        self.consume(value)
        run = run_of(value)
        plain = run is not None and run.count == len(targets) and not any(isinstance(t, ast.Starred) for t in targets)
        for k, target in enumerate(targets):
            self.assign(target, run.item(k) if run is not None and plain else UNKNOWN)

    def _store(self, holder: object, key: object, value: object) -> None:
        if not isinstance(holder, Items | Table):
            return
        self.touch(holder)
        if not self.trace.doubt and isinstance(holder, Table) and holder.items is not None and is_plain(key):
            holder.items[key] = value
        elif isinstance(holder, Table):
            holder.items = None
        else:
            holder.items, holder.length = None, holder.known_length

    def _Import(self, node: ast.Import) -> None:
        for alias in node.names:
            path = "re" if alias.name == "regex" else alias.name
            self.names[alias.asname or path.partition(".")[0]] = Module(
                path if alias.asname else path.partition(".")[0]
            )

    def _ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            path = f"{node.module}.{alias.name}"
            if path == "monocontext.regex":
                path = "re"
            flag = FLAGS.get(alias.name) if node.module == "re" else None
            self.names[alias.asname or alias.name] = Module(path) if flag is None else flag

    def _Global(self, node: ast.Global | ast.Nonlocal) -> None:
        for scope in self.scopes[1:]:
            for name in node.names:
                if name in scope and not isinstance(scope[name], TextValue):
                    scope[name] = UNKNOWN

    _Nonlocal = _Global

    def _ClassDef(self, node: ast.ClassDef) -> None:
        self.names[node.name] = UNKNOWN

    def _FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.names[node.name] = Function(node, self.scopes)

    _AsyncFunctionDef = _FunctionDef

    def _Break(self, _: ast.Break) -> Flow:
        return Flow.BREAK

    def _Continue(self, _: ast.Continue) -> Flow:
        return Flow.CONTINUE

    def _Raise(self, node: ast.Raise) -> Flow:
        self.value(node.exc)
        return Flow.RAISE

    def _Return(self, node: ast.Return) -> Flow:
        self.results.append(self.value(node.value))
        return Flow.RETURN

    def _If(self, node: ast.If) -> Flow | None:
        known = self.decide(node.test)
        if known is not None:
            return self.block(node.body if known else node.orelse)
        return self._arms([(None, node.body), (None, node.orelse)])

    def _arms(self, arms: Sequence[tuple[ast.pattern | None, Sequence[ast.stmt]]]) -> Flow | None:
        """One of these is gone through; which one is not known."""
        before = self.copy_names()
        after: dict[str, object] | None = None
        left: list[Flow] = []
        for pattern, statements in arms:
            restore(self.names, before)
            with self.doubt():
                self.forget(_bound_names(pattern) if pattern is not None else ())
                flow = self.block(statements)
            if flow is not None:
                left.append(flow)
            else:
                after = self.copy_names() if after is None else join_names(after, self.names)
        if after is None:
            return left[0]
        restore(self.names, after)
        if left:  # what follows is only reached if that arm was not taken
            self.trace.doubt += 1
            self.owed[-1] += 1
        return None

    def _Match(self, node: ast.Match) -> Flow | None:
        self.value(node.subject)
        return self._arms([*((case.pattern, case.body) for case in node.cases), (None, [])])

    def _With(self, node: ast.With | ast.AsyncWith) -> Flow | None:
        for item in node.items:
            value = self.value(item.context_expr)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value)
        return self.block(node.body)

    _AsyncWith = _With

    def _Try(self, node: ast.Try) -> Flow | None:
        before = self.copy_names()
        flow = self.block([*node.body, *node.orelse])
        after = self.copy_names()
        for handler in node.handlers:
            restore(self.names, join_names(before, after))
            with self.doubt():
                caught = self.block(handler.body)
            if flow is Flow.RAISE and caught is None:
                flow, after = None, self.copy_names()
            elif caught is None:
                after = join_names(after, self.names)
        restore(self.names, after)
        return self.block(node.finalbody) or flow

    _TryStar = _Try

    def _For(self, node: ast.For | ast.AsyncFor) -> Flow | None:
        trace, may_leave = self.trace, _may_leave(node)
        outer = trace.may_leave, trace.ends_early
        trace.may_leave, trace.ends_early = self.is_draft or may_leave, trace.ends_early or may_leave
        try:
            values = self.value(node.iter)
            self.consume(values)
        finally:
            trace.may_leave, trace.ends_early = outer
        run = run_of(values)
        leaving: list[Flow] = []

        def turn(item: object) -> object:
            leaving.clear()  # a round that was only tried may have left
            self.assign(node.target, item)
            flow = self.block(node.body)
            if flow is not None and flow is not Flow.CONTINUE:
                leaving.append(flow)
            return None if not leaving else self.LEAVE

        ends_empty = run is not None and not self.is_draft and _ends_empty(node.body)
        with self.loop(min(run.count, ENDLESS) if run is not None and ends_empty else 0):
            if run is not None:
                self.repeat(run, turn)
            else:
                item = Loaded() if isinstance(values, TextValue | LineList | Pieces) else UNKNOWN
                self.once(assigned_names(node.body), lambda: turn(item))
                leaving.clear()
        if leaving and leaving[0] is not Flow.BREAK:
            return leaving[0]
        return None if leaving else self.block(node.orelse)

    _AsyncFor = _For

    def _While(self, node: ast.While) -> Flow | None:
        leaving: list[Flow] = []

        def turn() -> bool:
            flow = self.block(node.body)
            if flow is not None and flow is not Flow.CONTINUE:
                leaving.append(flow)
            return not leaving

        ends_empty = not self.is_draft and _ends_empty(node.body) and _is_found(node.test)
        with self.loop(ENDLESS if ends_empty else 0):
            ended = self.repeat_while(
                lambda: truth(self.value(node.test)), turn, assigned_names(node.body), leaving.clear
            )
        if ended and leaving and leaving[0] is not Flow.BREAK:
            return leaving[0]
        return None if leaving else self.block(node.orelse)

    def comprehend(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> object:
        outer = self.scopes
        self.scopes = ({}, *outer)
        try:
            made = self._generate(node, 0)
        finally:
            self.scopes = outer
        return Table(None) if isinstance(node, ast.DictComp) else made

    def _generate(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, level: int) -> object:
        """The items that the loops from this one on give."""
        if level == len(node.generators):
            if isinstance(node, ast.DictComp):
                self.value(node.key)
                return self.value(node.value)
            return self.value(node.elt)
        generator = node.generators[level]
        values = self.value(generator.iter)
        self.consume(values)
        innermost = level == len(node.generators) - 1
        certain = innermost

        def turn(item: object) -> object:
            nonlocal certain
            self.assign(generator.target, item)
            doubts = 0
            try:
                for test in generator.ifs:
                    known = self.decide(test)
                    if known is False:
                        return self.SKIP
                    if known is None:
                        self.trace.doubt += 1
                        doubts += 1
                        certain = False
                return self._generate(node, level + 1)
            finally:
                self.trace.doubt -= doubts

        run = run_of(values)
        if run is None:
            self.once((), lambda: turn(Loaded() if isinstance(values, TextValue | LineList | Pieces) else UNKNOWN))
            return Items(None)
        made = self.repeat(run, turn)
        return made if certain else Items(None)

    def call_function(self, function: Function, arguments: Sequence[object], keywords: dict[str, object]) -> object:
        if self._calls >= MOST_CALLS:
            return UNKNOWN
        node = function.node
        names = self._bind(function, arguments, keywords)
        scopes, results, yields = self.scopes, self.results, self.yields
        self.scopes, self.results, self.yields = (names, *function.scopes), [], None
        self._calls += 1
        self.owed.append(0)
        try:
            if isinstance(node, ast.Lambda):
                return self.value(node.body)
            flow = self.block(node.body)
            if self.yields is not None:
                return self.yields
            if flow is not Flow.RETURN and not self.results:
                return None
            texts = [result for result in self.results if isinstance(result, TextValue)]
            return texts[0] if texts else self.results[0] if len(self.results) == 1 else UNKNOWN
        finally:
            self.trace.doubt -= self.owed.pop()
            self._calls -= 1
            self.scopes, self.results, self.yields = scopes, results, yields

    def _bind(self, function: Function, arguments: Sequence[object], keywords: dict[str, object]) -> dict[str, object]:
        spec = function.node.args
        parameters = [*spec.posonlyargs, *spec.args]
        names: dict[str, object] = {argument.arg: UNKNOWN for argument in (*parameters, *spec.kwonlyargs)}
        defaults = zip(parameters[len(parameters) - len(spec.defaults) :], spec.defaults, strict=True)
        for argument, default in (*defaults, *zip(spec.kwonlyargs, spec.kw_defaults, strict=True)):
            if default is not None:
                names[argument.arg] = self.value(default)
        for argument, value in zip(parameters, arguments, strict=False):
            names[argument.arg] = value
        names.update((name, value) for name, value in keywords.items() if name in names)
        if spec.vararg is not None:
            names[spec.vararg.arg] = tuple(arguments[len(parameters) :])
        if spec.kwarg is not None:
            names[spec.kwarg.arg] = UNKNOWN
        return names

    def _Yield(self, node: ast.Yield) -> object:
        value = self.value(node.value)
        self.yields = self.yields or Items([])
        self.touch(self.yields)
        self.call_method(self.yields, "append", [value], {})
        return UNKNOWN

    def _YieldFrom(self, node: ast.YieldFrom) -> object:
        value = self.value(node.value)
        self.consume(value)
        self.yields = self.yields or Items([])
        self.call_method(self.yields, "extend", [value], {})
        return UNKNOWN


def _may_leave(loop: ast.For | ast.AsyncFor) -> bool:
    """Whether a loop may end before its items do."""
    return any(isinstance(node, ast.Break | ast.Return) for body in loop.body for node in ast.walk(body))


def _ends_empty(body: Sequence[ast.stmt]) -> bool:
    """Whether a loop is left early only where a search has found nothing."""
    for statement in body:
        if isinstance(statement, ast.If) and _is_not_found(statement.test):
            continue
        if any(isinstance(node, ast.Break | ast.Return | ast.Raise) for node in ast.walk(statement)):
            return False
    return True


def _is_not_found(test: ast.expr) -> bool:
    """`at < 0`, `at == -1`."""
    match test:
        case ast.Compare(ops=[ast.Lt()], comparators=[ast.Constant(value=0)]):
            return True
        case ast.Compare(ops=[ast.Eq()], comparators=[ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1))]):
            return True
    return False


def _is_found(test: ast.expr) -> bool:
    """`True`, `at >= 0`, `at != -1`, `at > -1`."""
    match test:
        case ast.Constant(value=True):
            return True
        case ast.Compare(ops=[ast.GtE()], comparators=[ast.Constant(value=0)]):
            return True
        case ast.Compare(
            ops=[ast.NotEq() | ast.Gt()], comparators=[ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1))]
        ):
            return True
    return False


def assigned_names(statements: Sequence[ast.stmt]) -> list[str]:
    """Names that the statements bind."""
    return [
        node.id
        for statement in statements
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    ]


def _bound_names(pattern: ast.pattern) -> list[str]:
    """Names that a pattern captures."""
    names = (getattr(node, "name", None) or getattr(node, "rest", None) for node in ast.walk(pattern))
    return [name for name in names if isinstance(name, str)]
