"""Evaluate the expressions of a program without running it, as far as their values are known.

The reads of the context that the program would do are recorded in a `Trace`, in the order of Python.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from monocontext.engine.hints import reads, values
from monocontext.engine.hints.reads import Trace
from monocontext.engine.hints.values import (
    UNKNOWN,
    LineList,
    Loaded,
    Module,
    PatternValue,
    Pieces,
    TextValue,
    run_of,
    truth,
)

MOST_DEPTH = 80
"""Deepest nesting of expressions that is followed."""
_NAMES_A_NODE = 16
"""Copying this many names counts as the work of one node."""

_NAMED = values.BUILTINS | {"re", "math", "json"}
_FLAGS = {"I": 2, "IGNORECASE": 2, "M": 8, "MULTILINE": 8, "S": 16, "DOTALL": 16, "X": 64, "VERBOSE": 64}
_READS_NOTHING = frozenset(
    {"len", "isinstance", "type", "callable", "hasattr", "id", "dir", "repr", "bool", "str", "reversed"}
)
"""Functions that read nothing of a text that they are given, or do not read it in order."""
_ENDS_EARLY = frozenset({"all", "any", "islice", "iter", "next", "read", "readline", "takewhile", "zip"})
"""Functions and methods that may use only a part of their argument."""

Names = dict[str, object]


class Unready(Exception):
    """Raised for a draft: a condition in its loop is known, but the rest of the loop is not written yet, so that a hint
    would be premature."""


class Expressions:
    """Evaluates expressions: a method `_<node type>` for each kind. `UNKNOWN` is a value too."""

    def __init__(self, trace: Trace, names: Names) -> None:
        self.trace = trace
        self.names = names
        self.is_draft = False
        """Whether the program is incomplete, and all of it in doubt."""
        self._depth = 0

    # -- for the interpreter ------------------------------------------------------------------------------------------

    @abstractmethod
    def comprehend(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> object:
        """Follow a comprehension; returns its value."""

    def copy_names(self) -> Names:
        """A copy of the names and their values."""
        self.trace.spend(1 + len(self.names) // _NAMES_A_NODE)
        return dict(self.names)

    def look_up(self, name: str) -> object:
        """The value of a name."""
        return self.names.get(name, Module(name) if name in _NAMED else UNKNOWN)

    def forget(self, names: Iterable[str]) -> None:
        """Make these names unknown, except texts."""
        for name in names:
            if not isinstance(self.names.get(name), TextValue):
                self.names[name] = UNKNOWN

    def forget_changed(self, node: ast.expr) -> None:
        """Make a name unknown whose value `name.method(...)` or `name[...] = ...` has changed."""
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        if isinstance(node, ast.Name):
            self.forget([node.id])

    @contextmanager
    def doubt(self) -> Iterator[None]:
        """Inside, code runs only under a condition that could not be evaluated."""
        outer = self.trace.doubt
        self.trace.doubt += 1
        try:
            yield
        finally:
            self.trace.doubt = outer

    @contextmanager
    def try_out(self) -> Iterator[None]:
        """Inside, code is followed without effect on names and doubt, which are restored afterwards."""
        doubt, names = self.trace.doubt, dict(self.names)
        try:
            yield
        finally:
            self.trace.doubt = doubt
            restore(self.names, names)

    def value(self, node: ast.expr | None) -> object:
        """The value of an expression, whose reads are recorded; None for no expression."""
        if node is None:
            return None
        self.trace.spend()
        if self._depth >= MOST_DEPTH:
            return UNKNOWN
        method = getattr(self, "_" + type(node).__name__, self._other)
        self._depth += 1
        try:
            return method(node)
        finally:
            self._depth -= 1

    def decide(self, test: ast.expr) -> bool | None:
        """Whether a condition is true; None if that is unknown."""
        truth_value = truth(self.value(test))
        if truth_value is not None and self.is_draft and self.trace.loops > 0:
            raise Unready
        return truth_value

    def consume(self, value: object) -> None:
        """Record that a value is read to its end, if it is a text or made of one."""
        if isinstance(value, TextValue | LineList | Pieces):
            reads.whole(self.trace, value if isinstance(value, TextValue) else value.text)

    # -- by the type of node -----------------------------------------------------------------------------------------

    def _other(self, node: ast.AST) -> object:
        """Evaluate the parts of an expression or statement of another kind."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)
        return UNKNOWN

    def _Constant(self, node: ast.Constant) -> object:
        return values.plain(node.value)

    def _Name(self, node: ast.Name) -> object:
        return self.look_up(node.id)

    def _Tuple(self, node: ast.Tuple | ast.List | ast.Set) -> object:
        items = self._items(node.elts)
        return UNKNOWN if items is None else tuple(items)

    _List = _Set = _Tuple

    def _items(self, nodes: Sequence[ast.expr]) -> list[object] | None:
        """The values of several expressions, with starred ones unpacked; None if their number is unknown."""
        items: list[object] = []
        known = len(nodes) <= values.MOST_ITEMS
        for node in nodes:
            if isinstance(node, ast.Starred):
                value = self.value(node.value)
                self.consume(value)
                run = run_of(value)
                known = known and run is not None and len(run) + len(items) <= values.MOST_ITEMS
                items += run if run is not None and known else ()
            else:
                items.append(self.value(node))
        return items if known else None

    def _UnaryOp(self, node: ast.UnaryOp) -> object:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            truth_value = truth(value)
            return UNKNOWN if truth_value is None else not truth_value
        return -value if isinstance(node.op, ast.USub) and isinstance(value, int | float) else UNKNOWN

    def _BinOp(self, node: ast.BinOp) -> object:
        left, right = self.value(node.left), self.value(node.right)
        self.consume(left)
        self.consume(right)
        return values.binary(type(node.op), left, right)

    def _BoolOp(self, node: ast.BoolOp) -> object:
        is_and, known = isinstance(node.op, ast.And), True
        value: object = UNKNOWN
        outer = self.trace.doubt
        for operand in node.values:
            value = self.value(operand)
            decided = truth(value)
            if decided is None:
                known = False
                self.trace.doubt += 1
            elif decided != is_and:
                break
        self.trace.doubt = outer
        return value if known else UNKNOWN

    def _Compare(self, node: ast.Compare) -> object:
        left = self.value(node.left)
        results: list[object] = []
        for kind, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator)
            if isinstance(kind, ast.In | ast.NotIn) and isinstance(right, TextValue):
                results.append(reads.contains(self.trace, right, left))
            elif isinstance(kind, ast.In | ast.NotIn) and isinstance(right, LineList | Pieces):
                self.consume(right)
                results.append(UNKNOWN)
            else:
                results.append(values.compare(type(kind), left, right))
            left = right
        return False if False in results else UNKNOWN if UNKNOWN in results else True

    def _IfExp(self, node: ast.IfExp) -> object:
        truth_value = self.decide(node.test)
        if truth_value is not None:
            return self.value(node.body if truth_value else node.orelse)
        with self.doubt():
            one, other = self.value(node.body), self.value(node.orelse)
        return next((value for value in (one, other) if isinstance(value, TextValue)), UNKNOWN)

    def _Lambda(self, node: ast.Lambda) -> object:
        return UNKNOWN

    def _ListComp(self, node: Any) -> object:
        return self.comprehend(node)

    _SetComp = _GeneratorExp = _DictComp = _ListComp

    def _FormattedValue(self, node: ast.FormattedValue) -> object:
        self.consume(self.value(node.value))
        return UNKNOWN

    def _Subscript(self, node: ast.Subscript) -> object:
        return self._index(self.value(node.value), self.value(node.slice))

    def _Slice(self, node: ast.Slice) -> object:
        bounds = (self.value(node.lower), self.value(node.upper), self.value(node.step))
        usable = all(bound is None or isinstance(bound, int) for bound in bounds) and bounds[2] != 0
        return slice(*bounds) if usable else UNKNOWN

    def _index(self, value: object, key: object) -> object:
        """The value of `value[key]`."""
        if isinstance(value, TextValue | LineList) and isinstance(key, int):
            key = slice(key, key + 1 or None)
            if isinstance(value, LineList):
                reads.line_slice(self.trace, value, key)
                return Loaded()  # one line is text, a slice of lines is a list
        match value, key:
            case TextValue(), slice():
                return reads.text_slice(self.trace, value, key)
            case LineList(), slice():
                return reads.line_slice(self.trace, value, key)
            case Loaded(length=int() as length), slice():
                return Loaded(len(range(*key.indices(length))))
            case Loaded(), _:
                return Loaded()
            case ((tuple() | str() | range()), (int() | slice())):
                try:
                    return value[key]
                except LookupError:
                    return UNKNOWN
        return UNKNOWN

    def _Attribute(self, node: ast.Attribute) -> object:
        value = self.value(node.value)
        match value:
            case TextValue() if node.attr == "lines":
                return LineList(value, counted=True)
            case Module():
                return module_value(f"{value.path}.{node.attr}")
        return UNKNOWN

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _Call(self, node: ast.Call) -> object:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        with self.trace.taken_in_part(name in _ENDS_EARLY, self.trace.may_leave):
            receiver = self.value(node.func.value if isinstance(node.func, ast.Attribute) else node.func)
            arguments = self._items(node.args)
            keywords = {keyword.arg: self.value(keyword.value) for keyword in node.keywords if keyword.arg is not None}
            if arguments is None:
                return UNKNOWN
            if isinstance(receiver, Module):
                if name == "len" and _counts_lines(node, arguments):
                    return UNKNOWN if self.trace.lines is None else self.trace.lines
                path = f"{receiver.path}.{name}" if isinstance(node.func, ast.Attribute) else receiver.path
                return self._call_named(path, arguments, keywords)
            if isinstance(node.func, ast.Attribute):
                return self._call_method(node.func, receiver, name, arguments, keywords)
            return UNKNOWN if name in self.names else self._call_named(name, arguments, keywords)

    def _call_method(
        self, func: ast.expr, receiver: object, name: str, arguments: list[object], keywords: Names
    ) -> object:
        """The value of `receiver.name(...)`."""
        match receiver:
            case TextValue():
                return reads.text_method(self.trace, receiver, name, arguments or list(keywords.values())[:1])
            case PatternValue() if name in reads.REGEX:
                return reads.regex(self.trace, name, receiver, arguments, keywords)
            case Loaded():
                return receiver if name in ("lower", "upper") else UNKNOWN
            case LineList() | Pieces():
                self.consume(receiver)
                return UNKNOWN
        for argument in arguments if name != "append" else ():
            self.consume(argument)
        if isinstance(receiver, tuple) and name not in values.KEEPING:
            self.forget_changed(func)
        return values.method(receiver, name, arguments)

    def _call_named(self, name: str, arguments: list[object], keywords: Names) -> object:
        """The value of a call of a builtin, of a function of a module, or of another function."""
        first = arguments[0] if arguments else None
        owner, _, function = name.rpartition(".")
        match name, first:
            case "len", LineList():
                return reads.line_count(self.trace, first)
            case "len", Pieces():
                self.consume(first)
            case "str", TextValue():
                return first
            case "re.compile", str():
                flags = arguments[1] if len(arguments) > 1 else keywords.get("flags", 0)
                return PatternValue(first, flags if isinstance(flags, int) else 0)
        if owner == "re" and function in reads.REGEX:
            return reads.regex(self.trace, function, first, arguments[1:], keywords)
        for argument in arguments if name not in _READS_NOTHING else ():
            self.consume(argument)
        return values.call(name, arguments) if not keywords else UNKNOWN


def _counts_lines(node: ast.Call, arguments: list[object]) -> bool:
    """Whether a call is `len(context.split("\\n"))`, which reads nothing."""
    match node.args, arguments:
        case [ast.Call(func=ast.Attribute(attr="split"))], [LineList()]:
            return True
    return False


def module_value(path: str) -> object:
    """The value of a module, or of a name in it; flags of `re` are numbers."""
    owner, _, name = path.rpartition(".")
    return _FLAGS[name] if owner == "re" and name in _FLAGS else Module(path)


def restore(names: Names, saved: Names) -> None:
    """Set all names back to saved values."""
    names.clear()
    names.update(saved)
