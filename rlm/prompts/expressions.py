"""Tell whether an answer that was written as text is code: `FINAL(context[at:at + 500])`. Pure.

It is where it parses as Python and uses the namespace of the cells. `FINAL(os.path.join)` and `FINAL(count)` are words,
as long as no cell made such a variable.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection

from rlm.prompts.finals import TextFinal
from rlm.runners.syntax import parse

_CALLED = frozenset(("llm_query", "llm_query_batched", "rlm_query", "rlm_query_batched", "SHOW_VARS"))
_HELD = frozenset(("context", "answer"))


def may_be_code(final: TextFinal) -> bool:
    """Whether it is Python that uses names, so that what names there are decides."""
    return bool(final.call) and bool(_loaded(final.call)) and not (final.is_name and _is_simple(final.call))


def is_code(final: TextFinal, variables: Collection[str]) -> bool:
    """Whether it uses variables of the namespace, and is no sentence that has one of their names in it."""
    tree = parse(final.call)
    known = {*variables, *_HELD}
    loaded = _loaded(final.call)
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    if any(isinstance(node, ast.JoinedStr) for node in ast.walk(tree)) or called & _CALLED:
        return True
    if not loaded & known:
        return False
    if loaded <= known | set(dir(builtins)):
        return True
    inside = [node for part in _arguments(tree) for node in ast.walk(part)]
    return any(
        isinstance(node, (ast.Subscript, ast.Call, ast.Attribute)) and known & {
            name.id for name in ast.walk(node) if isinstance(name, ast.Name)
        }
        for node in inside
    )  # fmt: skip


def _arguments(tree: ast.Module) -> list[ast.expr]:
    match tree.body:
        case [ast.Expr(value=ast.Call(args=args, keywords=keywords))]:
            return [*args, *(keyword.value for keyword in keywords)]
    return []


def _is_simple(call: str) -> bool:
    return all(isinstance(part, (ast.Name, ast.Constant)) for part in _arguments(parse(call))[:1])


def _loaded(call: str) -> set[str]:
    """Names that the arguments use and do not bind themselves."""
    try:
        parts = _arguments(parse(call))
    except SyntaxError:
        return set()
    names = [node for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return {node.id for node in names} - bound
