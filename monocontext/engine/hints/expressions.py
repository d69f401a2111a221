"""Evaluate expressions as far as their values are known, and record the reads that evaluating them takes."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from monocontext.engine.hints import bounded, reads
from monocontext.engine.hints.bounded import MOST_BITS, MOST_ITEMS, is_plain, plain, truth
from monocontext.engine.hints.builtin_calls import BUILTINS
from monocontext.engine.hints.state import Machine
from monocontext.engine.hints.trace import Spent, Unready
from monocontext.engine.hints.values import (
    UNKNOWN,
    Function,
    Items,
    Iteration,
    LineList,
    Loaded,
    Module,
    PatternValue,
    Pieces,
    Progression,
    Table,
    TextValue,
    run_of,
)

MOST_DEPTH = 80
"""Deepest nesting of expressions that is followed."""

_TYPES = frozenset({"str", "int", "float", "list", "tuple", "dict", "bool", "set"})
_MODULES = frozenset({"re", "math", "json", "io"})
FLAGS = {"A": 256, "ASCII": 256, "I": 2, "IGNORECASE": 2, "L": 4, "M": 8, "MULTILINE": 8, "S": 16, "DOTALL": 16}
FLAGS |= {"U": 32, "UNICODE": 32, "X": 64, "VERBOSE": 64, "NOFLAG": 0}


class Expressions(Machine):
    """Works expressions out. Reads are recorded in the order in which Python would make them."""

    _depth = 0

    @abstractmethod
    def call_function(self, function: Function, arguments: Sequence[object], keywords: dict[str, object]) -> object:
        """Follow a function of the program."""

    @abstractmethod
    def comprehend(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> object:
        """Follow a comprehension."""

    @abstractmethod
    def repeat(self, run: Iteration, body: Callable[[object], object]) -> object:
        """Follow a loop; gives what its rounds gave."""

    @abstractmethod
    def assign(self, target: ast.expr, value: object) -> None:
        """Bind a target."""

    def value(self, node: ast.expr | None) -> object:
        """The value of an expression."""
        if node is None:
            return None
        self.trace.work -= 1
        if self.trace.work < 0:
            raise Spent
        if self._depth >= MOST_DEPTH:
            return UNKNOWN
        method = getattr(self, "_" + type(node).__name__, None)
        self._depth += 1
        try:
            return method(node) if method is not None else self._others(node)
        finally:
            self._depth -= 1

    def _others(self, node: ast.expr) -> object:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)
        return UNKNOWN

    def _Constant(self, node: ast.Constant) -> object:
        value = node.value
        return value if type(value) is int and value.bit_length() <= MOST_BITS else plain(value)

    def _Name(self, node: ast.Name) -> object:
        return self.look_up(node.id)

    def look_up(self, name: str) -> object:
        """The value of a name."""
        for scope in self.scopes:
            if name in scope:
                return scope[name]
        return Module(name) if name in BUILTINS or name in _TYPES or name in _MODULES else UNKNOWN

    def _Tuple(self, node: ast.Tuple) -> object:
        items = self._items(node.elts)
        return UNKNOWN if items is None else tuple(items)

    def _List(self, node: ast.List | ast.Set) -> object:
        return Items(self._items(node.elts))

    _Set = _List

    def _items(self, nodes: Sequence[ast.expr]) -> list[object] | None:
        items: list[object] = []
        known = len(nodes) <= MOST_ITEMS
        for node in nodes:
            if isinstance(node, ast.Starred):
                run = run_of(self.value(node.value))
                known = known and run is not None and run.count + len(items) <= MOST_ITEMS
                items += [run.item(k) for k in range(run.count)] if run is not None and known else []
            else:
                items.append(self.value(node))
        return items if known else None

    def _Dict(self, node: ast.Dict) -> object:
        table: dict[object, object] | None = {}
        for key_node, value_node in zip(node.keys, node.values, strict=True):
            key, value = self.value(key_node), self.value(value_node)
            if key_node is None or not is_plain(key):
                table = None
            elif table is not None:
                table[key] = value
        return Table(table)

    def _UnaryOp(self, node: ast.UnaryOp) -> object:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            known = truth(value)
            return UNKNOWN if known is None else not known
        if isinstance(value, int | float):
            if isinstance(node.op, ast.USub):
                return -value
            return ~value if isinstance(node.op, ast.Invert) and isinstance(value, int) else +value
        return UNKNOWN

    def _BinOp(self, node: ast.BinOp) -> object:
        left, right = self.value(node.left), self.value(node.right)
        return self.operate(type(node.op), left, right)

    def operate(self, kind: type[ast.operator], left: object, right: object) -> object:
        """`left op right`; a text in it is read whole."""
        for side in (left, right):
            if isinstance(side, TextValue):
                reads.whole(self.trace, side)
        return bounded.binary(kind, left, right)

    def _BoolOp(self, node: ast.BoolOp) -> object:
        is_and = isinstance(node.op, ast.And)
        value: object = UNKNOWN
        doubts = 0
        try:
            for operand in node.values:
                value = self.value(operand)
                known = truth(value)
                if known is None:
                    self.trace.doubt += 1
                    doubts += 1
                elif known != is_and:
                    break
            return UNKNOWN if doubts else value
        finally:
            self.trace.doubt -= doubts

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
                results.append(bounded.compare(type(kind), left, right))
            left = right
        if False in results:
            return False
        return UNKNOWN if UNKNOWN in results else True

    def decide(self, test: ast.expr) -> bool | None:
        """Whether a condition holds; None if it is not known."""
        known = truth(self.value(test))
        if known is not None:
            self.decisions.append(known)
            if self.is_draft and len(self.owed) > 1:
                raise Unready
        return known

    def _IfExp(self, node: ast.IfExp) -> object:
        known = self.decide(node.test)
        if known is not None:
            return self.value(node.body if known else node.orelse)
        with self.doubt():
            one, other = self.value(node.body), self.value(node.orelse)
        texts = [value for value in (one, other) if isinstance(value, TextValue)]
        return texts[0] if texts else UNKNOWN

    def _NamedExpr(self, node: ast.NamedExpr) -> object:
        value = self.value(node.value)
        self.assign(node.target, value)
        return value

    def _Lambda(self, node: ast.Lambda) -> object:
        return Function(node, self.scopes)

    def _ListComp(self, node: Any) -> object:
        return self.comprehend(node)

    _SetComp = _GeneratorExp = _DictComp = _ListComp

    def _JoinedStr(self, node: ast.JoinedStr) -> object:
        parts: list[object] = []
        for part in node.values:
            parts.append(self._field(part) if isinstance(part, ast.FormattedValue) else self.value(part))
        return bounded.text_method("", "join", [tuple(parts)]) if all(isinstance(p, str) for p in parts) else Loaded()

    def _field(self, node: ast.FormattedValue) -> object:
        value = self.value(node.value)
        spec = self.value(node.format_spec) if node.format_spec is not None else ""
        if isinstance(value, TextValue):
            reads.whole(self.trace, value)
        return bounded.format_value(value, node.conversion, spec)

    def _Starred(self, node: ast.Starred) -> object:
        self.consume(self.value(node.value))
        return UNKNOWN

    def _Await(self, node: ast.Await) -> object:
        return self.value(node.value)

    def _Subscript(self, node: ast.Subscript) -> object:
        return self.subscript(self.value(node.value), self.value(node.slice))

    def _Slice(self, node: ast.Slice) -> object:
        bounds = (self.value(node.lower), self.value(node.upper), self.value(node.step))
        usable = all(bound is None or isinstance(bound, int) for bound in bounds) and bounds[2] != 0
        return slice(*bounds) if usable else UNKNOWN

    def subscript(self, value: object, key: object) -> object:
        """`value[key]`."""
        match value, key:
            case TextValue(), slice():
                return reads.text_slice(self.trace, value, key)
            case TextValue(), int():
                return reads.text_item(self.trace, value, key)
            case LineList(), slice():
                return reads.line_slice(self.trace, value, key)
            case LineList(), int():
                return reads.line_item(self.trace, value, key)
            case Loaded(length=int() as length), slice():
                return Loaded(len(range(*key.indices(length))))
            case Loaded(), _:
                return Loaded()
            case ((tuple() | str()), (int() | slice())):
                return bounded.attempt(value.__getitem__, key) if is_plain(value) else _part(value, key)
            case range(), (int() | slice()):
                return _part(value, key)
            case Items(items=list() as items), slice():
                return Items(items[key])
            case Items(items=list() as items), int():
                return _part(items, key)
            case Progression(), int() if -value.count <= key < value.count:
                return value.item(key % value.count)
            case Items(length=int() as length), slice():
                return Items(None, len(range(*key.indices(length))))
            case Table(items=dict() as table), _ if is_plain(key):
                return table.get(key, UNKNOWN)
        return UNKNOWN

    def _Attribute(self, node: ast.Attribute) -> object:
        value = self.value(node.value)
        match value:
            case TextValue() if node.attr == "lines":
                return LineList(value, counted=True)
            case Module(path="re") if node.attr in FLAGS:
                return FLAGS[node.attr]
            case Module(path="math") if node.attr == "inf":
                return float("inf")
            case Module():
                return Module(f"{value.path}.{node.attr}")
            case PatternValue(pattern=pattern) if node.attr == "pattern":
                return pattern
        return UNKNOWN

    def consume(self, value: object) -> None:
        """The value is handed to something that reads it to its end."""
        match value:
            case TextValue():
                reads.whole(self.trace, value)
            case LineList() | Pieces():
                reads.whole(self.trace, value.text)


def _part(items: Any, key: Any) -> object:
    try:
        return items[key]
    except (LookupError, TypeError, ValueError):
        return UNKNOWN
