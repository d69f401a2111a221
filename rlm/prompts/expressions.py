"""Decide whether an answer that was written as text is code, as `FINAL(context[at:at + 500])` is. Pure.

It is code if it parses as Python and uses a name of the cells' namespace, or a name that the model has assigned in code
that did not run or that failed. It also is code if it cannot be anything else: an f-string, a slice, a sum of strings.
`FINAL(os.path.join)` and `FINAL(count)` are words, unless code made such a variable. Broken code, and a template whose
fields are variables, as `FINAL(It is {count})`, are no answers.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Iterable

from rlm.prompts.finals import TextFinal
from rlm.runners.syntax import parse

_CALLED = frozenset(("llm_query", "llm_query_batched", "rlm_query", "rlm_query_batched", "SHOW_VARS"))
_ANSWERS = frozenset(("FINAL", "FINAL_VAR", "SUBMIT"))
_HELD = frozenset(("context", "answer"))
_ASSIGNED = re.compile(
    r"^[ \t]*(?:>>>[ \t]*)?(?:([A-Za-z_]\w*(?:[ \t]*,[ \t]*[A-Za-z_]\w*)*)[ \t]*(?:[-+*/|&%]?=(?!=))"
    r"|(?:async[ \t]+)?def[ \t]+([A-Za-z_]\w*)\()",
    re.MULTILINE,
)
_BROKEN = re.compile(
    r"""[\s`]*(?:\w+\s*=\s*)?(?P<calls>(?:[A-Za-z_][\w.]*\((?:[rbf]?(?:'[^'\n]*'|"[^"\n]*"),\s*)?)*)"""
    r"(?P<name>[A-Za-z_]\w*)(?:\[|\.[a-z_]+\(|(?P<alone>\s*(?:[,)]|\Z)))"
)
_STRING = re.compile(r"""'[^'\n]*'|"[^"\n]*"|\b(?:for|in|if|else|and|or|not|is|lambda|return|while|import|from)\b""")
_PROSE = re.compile(r"[A-Za-z]{2,},? [A-Za-z]{2,}")
_FIELD = re.compile(r"(?<![\w\\^_$}{])\{([A-Za-z_][^{}\n]*)\}(?!\})")


def may_be_code(final: TextFinal) -> bool:
    """Whether the answer can be code: it is Python that uses names, or that can only be code. See `is_code`."""
    if not final.call or (final.is_name and _is_simple(final.call)):
        return False
    return bool(_loaded(final.call)) or _is_computed(parse(final.call))


def assigned_names(texts: Iterable[str]) -> set[str]:
    """The names that lines of these texts assign, whether or not the lines ran."""
    found = (match[1] or match[2] for text in texts for match in _ASSIGNED.finditer(text))
    return {name.strip() for names in found for name in names.split(",")}


def may_be_broken(final: TextFinal) -> bool:
    """Whether the answer can be broken code or a template; `is_broken` decides by the existing names."""
    return not final.is_name and (
        (not final.call and _BROKEN.match(final.text) is not None) or _FIELD.search(final.text) is not None
    )


def is_broken(final: TextFinal, variables: Collection[str]) -> bool:
    """Whether the answer is code over variables that does not parse, or a template with variables as fields."""
    known = {*variables, "context"}
    begun = None if final.call else _BROKEN.match(final.text)
    begins = begun and begun["name"] in known and (begun["calls"] or begun["alone"] is None)
    if begins and not _PROSE.search(_STRING.sub("", final.text)):
        return True
    return any(_is_over(match[1], known) for match in _FIELD.finditer(final.text))


def _is_over(field: str, known: Collection[str]) -> bool:
    """Whether the field of a template is an expression over known names."""
    try:
        tree = parse(f'f"""{{{field}}}"""')
    except SyntaxError:
        return False
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if any(isinstance(node, ast.Tuple) for node in ast.walk(tree)):
        return False
    return bool(names & set(known)) and names <= {*known, *dir(builtins)}


def is_code(final: TextFinal, variables: Collection[str]) -> bool:
    """Whether the answer uses variables of the namespace, and is not a sentence that contains one of their names."""
    tree = parse(final.call)
    known = {*variables, *_HELD}
    loaded = _loaded(final.call)
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    if _is_computed(tree) or called & _CALLED:
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


def _is_computed(tree: ast.Module) -> bool:
    """Whether a call can only be code: it has an f-string, a slice, a sum of strings, or a method of a string."""
    for node in (node for part in _arguments(tree) for node in ast.walk(part)):
        match node:
            case ast.JoinedStr() | ast.Slice() | ast.Call(func=ast.Attribute(value=ast.Constant(value=str()))):
                return True
            case ast.BinOp(left=ast.Constant(value=str()), op=ast.Add() | ast.Mod() | ast.Mult()):
                return True
            case ast.Call(func=ast.Name(id=name)) if name in _ANSWERS:
                return True
            case ast.Call(func=ast.Name(id=name), args=[ast.Constant(), *_]) if hasattr(builtins, name):
                return True
    return False


def _arguments(tree: ast.Module) -> list[ast.expr]:
    """The arguments of a call that is the whole source; empty for any other source."""
    match tree.body:
        case [ast.Expr(value=ast.Call(args=args, keywords=keywords))]:
            return [*args, *(keyword.value for keyword in keywords)]
    return []


def _is_simple(call: str) -> bool:
    """Whether the first argument of a call is a plain name or literal."""
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
