"""Evaluate calls: methods of texts and values, builtins, `re`, functions of the program."""

from __future__ import annotations

import ast

from monocontext.engine.hints import bounded, builtin_calls, reads
from monocontext.engine.hints.expressions import Expressions
from monocontext.engine.hints.values import (
    UNKNOWN,
    Function,
    Items,
    LineList,
    Loaded,
    Module,
    PatternValue,
    Pieces,
    Table,
    TextValue,
    run_of,
)

_REGEX = frozenset({"search", "match", "fullmatch", "findall", "finditer", "split", "sub", "subn"})
_ASKS_NOTHING = frozenset({"len", "isinstance", "type", "callable", "hasattr", "getattr", "id", "dir", "repr", "bool"})
"""Functions that take a text without reading it."""


_ENDS_EARLY = frozenset({"all", "any", "islice", "iter", "next", "read", "readline", "takewhile", "zip"})
"""Functions and methods that may take a part of what they are given."""


class CallEvaluator(Expressions):
    """Works calls out."""

    def _Call(self, node: ast.Call) -> object:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        outer, self.trace.ends_early = self.trace.ends_early, self.trace.ends_early or name in _ENDS_EARLY
        try:
            return self._call(node)
        finally:
            self.trace.ends_early = outer

    def _call(self, node: ast.Call) -> object:
        receiver: object = None
        method = ""
        if isinstance(node.func, ast.Attribute):
            receiver, method = self.value(node.func.value), node.func.attr
            if isinstance(receiver, Module):
                receiver, method = Module(f"{receiver.path}.{method}"), ""
        else:
            receiver = self.value(node.func)
        arguments = self._items(node.args)
        keywords: dict[str, object] = {}
        for keyword in node.keywords:
            if keyword.arg is not None:
                keywords[keyword.arg] = self.value(keyword.value)
        if arguments is None:
            return UNKNOWN
        if method:
            return self.call_method(receiver, method, arguments, keywords)
        if isinstance(receiver, Function):
            return self.call_function(receiver, arguments, keywords)
        if isinstance(receiver, Module):
            if receiver.path == "len" and self._is_line_count(node.args, arguments):
                return UNKNOWN if self.trace.lines is None else self.trace.lines
            return self.call_named(receiver.path, arguments, keywords)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        for argument in arguments if name not in _ASKS_NOTHING else ():
            self.consume(argument)
        return UNKNOWN

    def _is_line_count(self, nodes: list[ast.expr], arguments: list[object]) -> bool:
        """Whether it is `len(context.split("\\n"))`, which reads nothing."""
        match nodes, arguments:
            case [ast.Call(func=ast.Attribute(attr="split"))], [LineList(text=text)]:
                return reads.is_all(self.trace, text)
        return False

    def call_method(self, receiver: object, name: str, arguments: list[object], keywords: dict[str, object]) -> object:
        """`receiver.name(...)`."""
        certain = not self.trace.doubt
        match receiver:
            case TextValue():
                for argument in arguments if name == "join" else ():
                    self.consume(argument)
                if name == "chunks" and not arguments:
                    arguments = list(keywords.values())[:1]
                return reads.text_method(self.trace, receiver, name, arguments)
            case PatternValue() if name in _REGEX:
                return reads.use_pattern(self.trace, name, receiver, arguments)
            case str():
                for argument in arguments:
                    self.consume(argument)
                made = bounded.text_method(receiver, name, arguments) if not keywords else UNKNOWN
                return Loaded() if made is UNKNOWN and name in ("join", "format", "replace") else made
            case Loaded():
                same = name in ("lower", "upper", "replace", "strip", "title")
                return (receiver if name in ("lower", "upper") else Loaded()) if same else UNKNOWN
            case Items():
                for argument in arguments if name in ("extend", "update") else ():
                    self.consume(argument)
                self.touch(receiver)
                return builtin_calls.list_method(receiver, name, arguments, certain=certain and not keywords)
            case Table():
                self.touch(receiver)
                return builtin_calls.table_method(receiver, name, arguments, certain=certain)
            case LineList() | Pieces():
                self.consume(receiver)
                return UNKNOWN
        if arguments and isinstance(arguments[0], Function) and name in ("map", "submit"):  # an executor
            function, *rest = arguments
            return self._map(function, rest) if name == "map" else self.call_function(arguments[0], rest, keywords)
        for argument in arguments:
            self.consume(argument)
        return UNKNOWN

    def call_named(self, name: str, arguments: list[object], keywords: dict[str, object]) -> object:
        """A builtin, or a function of a module."""
        first = arguments[0] if arguments else None
        module, _, function = name.rpartition(".")
        match name, first:
            case "len", LineList():
                return reads.line_count(self.trace, first)
            case "len", Pieces():
                self.consume(first)
                return UNKNOWN
            case "str", TextValue():
                return first
            case "io.StringIO", TextValue():
                return LineList(first, counted=False)
            case (("map" | "filter"), Function()):
                return self._map(first, arguments[1:])
            case "reversed", (LineList() | TextValue()):
                reads.whole(self.trace, first if isinstance(first, TextValue) else first.text, backward=True)
                return Items(None)
            case "re.compile", str():
                flags = arguments[1] if len(arguments) > 1 else keywords.get("flags", 0)
                return PatternValue(first, flags if isinstance(flags, int) else 0)
        if module == "re" and function in _REGEX and arguments:
            return reads.regex(self.trace, function, first, arguments[1:], keywords)
        if module == "re" and function in _REGEX and isinstance(keywords.get("pattern"), str | PatternValue):
            return reads.regex(self.trace, function, keywords["pattern"], arguments, keywords)
        if name not in _ASKS_NOTHING:
            for argument in arguments:
                self.consume(argument)
        if keywords and name not in ("enumerate", "zip", "sorted"):
            return UNKNOWN
        if name == "enumerate" and "start" in keywords:
            arguments = [first, keywords["start"]]
        if name == "sorted" and keywords:
            run = run_of(first)
            return Items(None, run.count if run is not None else None)
        return builtin_calls.call(name, arguments)

    def _map(self, function: object, columns: list[object]) -> object:
        rows = run_of(builtin_calls.call("zip", columns)) if columns else None
        if rows is None or not isinstance(function, Function):
            return Items(None)
        return self.repeat(rows, lambda row: self.call_function(function, list(row), {}))  # type: ignore[call-overload]
