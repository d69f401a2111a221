"""Rewrite the code of a cell so that its calls and patterns take lazy values. Pure.

    isinstance(x, T)    __monocontext__.call(*__monocontext__.ask(isinstance, x, T))
    type(x), str(x)     the same, and repr(x)
    f"{x}", "%s" % x    f"{__monocontext__.shown(x)}", which makes texts in lists, tuples and dicts real
    map(str, xs)        map(__monocontext__.map_function(map, str), xs)
    ", ".join(xs)       ", ".join(__monocontext__.join_items(xs))
    x in y              __monocontext__.call(*__monocontext__.sought(x, y)) is True
    x in y.lower()      the same with __monocontext__.searched(y).lower()
    return x            return __monocontext__.whole(x), in `__str__` and other methods that must return a `str`
    case str(s):        case str(s) | __monocontext__.Text(s):
    case [a, *b]:       case __monocontext__.Items([a, *b]):
    f(x), t[k] = x      see `foreign_calls`; not where the callee takes lazy texts, or no argument can be one

`ask` gets the current value of the callee's name, and returns the callee and arguments for `call`, which is written in
C. Without a lazy value, this is the call that was written, in the frame that wrote it. Order of evaluation and scopes
stay the same, since each name and argument is evaluated once, in its old place. Annotations stay unchanged, since code
may only show them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from copy import deepcopy
from typing import TypeVar

HELPER = "__monocontext__"
"""The global of the namespace that rewritten code calls. It ends in underscores, so no class mangles it."""

_CHECKED = {"isinstance": 2, "repr": 1, "str": 1, "type": 1}
"""Builtins whose calls are rewritten, with the number of arguments of their plain form."""
_CASE_METHODS = ("casefold", "lower", "upper")
_CLASSES = {"dict": "Dict", "list": "List", "str": "Text"}
"""The helper's class for each builtin class in a pattern."""
_TEXT_METHODS = frozenset({"__str__", "__repr__", "__format__", "__fspath__"})
"""Methods for which C code demands a real `str`."""
_SKIPPED_FIELDS = frozenset({"annotation", "returns"})

_Node = TypeVar("_Node", bound=ast.AST)


def rewrite(tree: ast.Module, takes_lazy: Callable[[str], bool] = lambda name: False) -> ast.Module:
    """Rewrite a module in place and return it. Calls of names for which `takes_lazy` returns True stay unchanged.

    It uses a list of nodes instead of recursion, so the code may be nested to any depth.
    """
    nodes: list[ast.AST] = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Call):
            if not _rewrite_call(node):
                _rewrite_foreign_call(node, takes_lazy)
        elif isinstance(node, ast.Assign) and _may_be_text(node.value):
            for target in node.targets:
                _rewrite_target(target)
        elif isinstance(node, ast.Compare):
            _rewrite_in(node)
        elif isinstance(node, ast.FunctionDef) and node.name in _TEXT_METHODS:
            _rewrite_returns(node)
        elif isinstance(node, ast.FormattedValue):
            if node.format_spec is None:
                node.value = _shown(node.value)
        elif isinstance(node, ast.BinOp):
            _rewrite_format(node)
        elif isinstance(node, ast.match_case):
            node.pattern = _rewrite_pattern(node.pattern)
        for field, value in ast.iter_fields(node):
            if field in _SKIPPED_FIELDS:
                continue
            if isinstance(value, ast.AST):
                nodes.append(value)
            elif isinstance(value, list):
                nodes.extend(item for item in value if isinstance(item, ast.AST))
    return tree


def _rewrite_call(call: ast.Call) -> bool:
    """Rewrite a call of a builtin that checks types, or of `join`. Returns whether it was one."""
    plain = not call.keywords and not any(isinstance(argument, ast.Starred) for argument in call.args)
    if not plain or not call.args:
        return isinstance(call.func, ast.Name) and call.func.id in _CHECKED
    match call.func:
        case ast.Name(id=name) if _CHECKED.get(name) == len(call.args):
            checked = _helper_call("ask", [call.func, *call.args], call)
            call.func = _helper("call", call)
            call.args = [_at(call, ast.Starred(checked, ast.Load()))]
        case ast.Name(id="map") if (
            len(call.args) > 1 and isinstance(call.args[0], ast.Name) and call.args[0].id == "str"
        ):
            call.args[0] = _helper_call("map_function", [deepcopy(call.func), call.args[0]], call.args[0])
        case ast.Attribute(value=ast.Constant(value=str()) | ast.JoinedStr(), attr="join") if len(call.args) == 1:
            call.args = [_helper_call("join_items", call.args, call.args[0])]
        case _:
            return False
    return True


def _rewrite_in(compared: ast.Compare) -> None:
    """Rewrite `x in y`, where `x` may be a lazy text and `y` a `str`, which needs a real one."""
    match compared:
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn() as how], comparators=[where]) if _may_be_text(
            left
        ) and not isinstance(where, ast.List | ast.Tuple | ast.Set | ast.Dict):
            match where:
                case ast.Call(func=ast.Attribute() as method, args=[], keywords=[]) if method.attr in _CASE_METHODS:
                    method.value = _helper_call("searched", [method.value], method.value)
            asked = _at(compared, ast.Starred(_helper_call("sought", [left, where], compared), ast.Load()))
            compared.left = _at(compared, ast.Call(_helper("call", compared), [asked], []))
            compared.ops = [ast.Is() if isinstance(how, ast.In) else ast.IsNot()]
            compared.comparators = [_at(compared, ast.Constant(True))]


def _rewrite_returns(method: ast.FunctionDef) -> None:
    """Rewrite the values that a method returns, except those of functions inside it."""
    nodes: list[ast.AST] = list(method.body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Return) and node.value is not None:
            node.value = _helper_call("whole", [node.value], node.value)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            nodes.extend(ast.iter_child_nodes(node))


def _rewrite_format(formatted: ast.BinOp) -> None:
    """Rewrite the values in `"..." % x`."""
    match formatted:
        case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod(), right=ast.Tuple() as right):
            right.elts = [_shown(each) for each in right.elts]
        case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod(), right=ast.Dict() as right):
            right.values = [_shown(each) for each in right.values]
        case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod()):
            formatted.right = _shown(formatted.right)


def _shown(value: ast.expr) -> ast.expr:
    """An expression for a value that is shown as text."""
    if isinstance(value, ast.Starred) or not _may_be_text(value):
        return value
    return _helper_call("shown", [value], value)


def _rewrite_foreign_call(call: ast.Call, takes_lazy: Callable[[str], bool]) -> None:
    """Rewrite a call whose callee may be foreign, and whose arguments may be texts or contain some."""
    func, named = call.func, any(_may_be_text(keyword.value) for keyword in call.keywords)
    if not named and not any(map(_may_be_text, call.args)):
        return
    match func:
        case ast.Name(id=name) if takes_lazy(name):
            return
        case ast.Attribute(value=ast.Name(id=name)) if name == HELPER:
            return
        case ast.Attribute(attr=attribute) if func.lineno != func.end_lineno:
            # Tracebacks show a method call on the line of the method's name, which is no longer the callee.
            call.lineno = func.end_lineno or call.lineno
            call.col_offset = max((func.end_col_offset or 0) - len(attribute), 0)
    if named:
        bound = _at(call, ast.Call(_helper("bind", call), [func, *call.args], call.keywords))
        call.func, call.args, call.keywords = bound, [], []
    else:
        call.args = [_at(call, ast.Starred(_helper_call("prepare", [func, *call.args], call), ast.Load()))]
        call.func = _helper("call", call)


def _rewrite_target(target: ast.expr) -> None:
    """Rewrite an assignment target that may get a text."""
    match target:
        case ast.Tuple() | ast.List():
            for each in target.elts:
                _rewrite_target(each)
        case ast.Starred():
            _rewrite_target(target.value)
        case ast.Attribute(value=ast.Name(id="self")):
            pass  # an object of the cell
        case ast.Subscript() | ast.Attribute():
            target.value = _helper_call("at", [target.value], target.value)


def _may_be_text(value: ast.expr) -> bool:
    """Whether an expression may be a lazy text, or a container with one, as far as its form shows."""
    match value:
        case ast.Constant() | ast.JoinedStr() | ast.Compare() | ast.Lambda() | ast.UnaryOp():
            return False
        case ast.BinOp(left=left, right=right):
            numbers = [each.value for each in (left, right) if isinstance(each, ast.Constant)]
            return not any(isinstance(each, int | float) for each in numbers)
        case ast.Tuple() | ast.List() | ast.Set():
            return any(map(_may_be_text, value.elts))
        case ast.Call(func=ast.Name(id="len" | "range" | "int" | "float" | "round" | "sum" | "abs")):
            return False
    return True


def _rewrite_pattern(pattern: ast.pattern) -> ast.pattern:
    """A pattern that also takes a lazy text where the original takes a `str`, but not where it takes a sequence."""
    for field, value in ast.iter_fields(pattern):
        if isinstance(value, ast.pattern):
            setattr(pattern, field, _rewrite_pattern(value))
        elif isinstance(value, list) and value and isinstance(value[0], ast.pattern):
            value[:] = [_rewrite_pattern(item) for item in value]
    match pattern:
        case ast.MatchSequence():
            return _at(pattern, ast.MatchClass(_helper("Items", pattern), [pattern], [], []))
        case ast.MatchClass(cls=ast.Name(id=name)) if name in _CLASSES:
            ours = deepcopy(pattern)
            ours.cls = _helper(_CLASSES[name], pattern)
            return _at(pattern, ast.MatchOr([pattern, ours]))
    return pattern


def _helper(name: str, place: ast.AST) -> ast.Attribute:
    return _at(place, ast.Attribute(_at(place, ast.Name(HELPER, ast.Load())), name, ast.Load()))


def _helper_call(name: str, arguments: list[ast.expr], place: ast.AST) -> ast.Call:
    return _at(place, ast.Call(_helper(name, place), arguments, []))


def _at(place: ast.AST, node: _Node) -> _Node:
    return ast.copy_location(node, place)
