"""The pass over the code of a cell: which calls and patterns are asked about lazy values. Pure.

    isinstance(x, T)    __monocontext__.call(*__monocontext__.ask(isinstance, x, T))
    type(x), str(x)     the same
    map(str, xs)        map(__monocontext__.mapped(map, str), xs)
    ", ".join(xs)       ", ".join(__monocontext__.joined(xs))
    case str(s):        case str(s) | __monocontext__.Text(s):
    case [a, *b]:       case __monocontext__.Items([a, *b]):

`ask` gets the callee that the name stands for at that moment, and answers with callee and arguments to be called by
`call`, which is C: for all but lazy values it is the call that was written, in the frame that wrote it. Order of
evaluation and scopes are unchanged, since each name and argument is still evaluated once, where it stood.
Annotations are left as they are: some are only ever shown.
"""

from __future__ import annotations

import ast
from copy import deepcopy
from typing import TypeVar

HELPER = "__monocontext__"
"""Global of the namespace that rewritten code asks. Ends in underscores, so that no class mangles it."""

_ASKED = {"isinstance": 2, "str": 1, "type": 1}
"""Builtins whose calls are asked about, with the number of arguments of their plain form."""
_CLASSES = {"list": "List", "str": "Text"}
_UNSEEN = frozenset({"annotation", "returns"})

_Node = TypeVar("_Node", bound=ast.AST)


def rewrite(tree: ast.Module) -> ast.Module:
    """Rewrite a module in place. Does not recurse into expressions, however deep they are."""
    nodes: list[ast.AST] = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Call):
            _rewrite_call(node)
        elif isinstance(node, ast.match_case):
            node.pattern = _pattern(node.pattern)
        for field, value in ast.iter_fields(node):
            if field in _UNSEEN:
                continue
            if isinstance(value, ast.AST):
                nodes.append(value)
            elif isinstance(value, list):
                nodes.extend(item for item in value if isinstance(item, ast.AST))
    return tree


def _rewrite_call(call: ast.Call) -> None:
    plain = not call.keywords and not any(isinstance(argument, ast.Starred) for argument in call.args)
    if not plain or not call.args:
        return
    match call.func:
        case ast.Name(id=name) if _ASKED.get(name) == len(call.args):
            asked = _helper_call("ask", [call.func, *call.args], call)
            call.func = _helper("call", call)
            call.args = [_at(call, ast.Starred(asked, ast.Load()))]
        case ast.Name(id="map"):
            match call.args:
                case [ast.Name(id="str") as function, _, *_]:
                    call.args[0] = _helper_call("mapped", [deepcopy(call.func), function], function)
        case ast.Attribute(value=ast.Constant(value=str()) | ast.JoinedStr(), attr="join") if len(call.args) == 1:
            call.args = [_helper_call("joined", call.args, call.args[0])]


def _pattern(pattern: ast.pattern) -> ast.pattern:
    """The pattern that also takes a lazy text where it takes a `str`, and none where it takes items."""
    for field, value in ast.iter_fields(pattern):
        if isinstance(value, ast.pattern):
            setattr(pattern, field, _pattern(value))
        elif isinstance(value, list) and value and isinstance(value[0], ast.pattern):
            value[:] = [_pattern(item) for item in value]
    match pattern:
        case ast.MatchSequence():
            return _class_pattern("Items", [pattern], pattern)
        case ast.MatchClass(cls=ast.Name(id=name)) if name in _CLASSES:
            ours = deepcopy(pattern)
            ours.cls = _helper(_CLASSES[name], pattern)
            return _at(pattern, ast.MatchOr([pattern, ours]))
    return pattern


def _class_pattern(name: str, patterns: list[ast.pattern], place: ast.pattern) -> ast.pattern:
    return _at(place, ast.MatchClass(_helper(name, place), patterns, [], []))


def _helper(name: str, place: ast.AST) -> ast.Attribute:
    return _at(place, ast.Attribute(_at(place, ast.Name(HELPER, ast.Load())), name, ast.Load()))


def _helper_call(name: str, arguments: list[ast.expr], place: ast.AST) -> ast.Call:
    return _at(place, ast.Call(_helper(name, place), arguments, []))


def _at(place: ast.AST, node: _Node) -> _Node:
    return ast.copy_location(node, place)
