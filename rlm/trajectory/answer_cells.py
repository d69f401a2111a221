"""Find the cells that made the values of an answer.

Only the code is examined, backwards from the answer: a cell counts if it stores a name that a later counted cell loads.
An answer typed as a literal uses no name and depends on the last output, so the search begins again at the last cell
that printed something. The result is coarse: whole cells, without branches or aliases. If the model itself copied a
value from an earlier output, that cell is not found.

The ranges of a cell that searches or goes through all of the text are no evidence: it read far more than the answer
came from. A pass whose pieces a sub-model reads is evidence.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence

from rlm.models.syntax import parse

_BUILTINS = frozenset(dir(builtins))
_CHANGING = frozenset((
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft", "put", "remove",
    "reverse", "setdefault", "sort", "subtract", "update", "write", "writelines",
))  # fmt: skip
"""Methods that change their object; all others are assumed to leave it unchanged."""

_SEARCHES = frozenset(("count", "find", "grep", "index", "rfind", "rindex"))
"""Methods that search a text."""
_OF_RE = frozenset(("findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn"))
_PASSES = frozenset(("chunks", "lower", "partition", "replace", "rpartition", "split", "splitlines", "upper"))
"""Methods that go through all of a text, as a loop does."""
_LOOKS = frozenset(("hasattr", "isinstance", "len", "print", "repr", "type"))
"""Functions that take a text and read little or nothing of it."""
_SUB_CALLS = frozenset(("llm_query", "llm_query_batched", "rlm_query", "rlm_query_batched"))


def scans(code: str) -> bool:
    """Whether code searches `context` or goes through all of it, so that its ranges are no evidence."""
    is_read = calls_sub_model(code)
    return any(_searches(node) or (_passes(node) and not is_read) for node in ast.walk(_parse(code)))


def calls_sub_model(code: str) -> bool:
    """Whether code names a function that asks a sub-model."""
    return any(isinstance(node, ast.Name) and node.id in _SUB_CALLS for node in ast.walk(_parse(code)))


def counts(code: str) -> bool:
    """Whether code may have counted or added up its result, so that the number is not in the text."""
    try:
        tree = parse(code)
    except SyntaxError:
        return True
    for node in ast.walk(tree):
        match node:
            case ast.AugAssign() | ast.Call(func=ast.Name(id="len" | "sum" | "Counter" | "enumerate" | "round")):
                return True
            case ast.Attribute(attr="count" | "Counter" | "most_common" | "sum" | "mean"):
                return True
    return False


def assigned_names(code: str) -> set[str]:
    """The names that code assigns or changes."""
    assigned, changed, _ = _names(code)
    return assigned | changed


def _parse(code: str) -> ast.Module:
    """The tree of the code; an empty one where the code does not parse, since then it has run nothing."""
    try:
        return parse(code)
    except SyntaxError:
        return ast.Module([], [])


def _is_context(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "context"


def _searches(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=value, attr=method) if method in _SEARCHES:
            return _is_context(value)
        case ast.Compare(ops=ops, comparators=others):
            return any(
                isinstance(op, (ast.In, ast.NotIn)) and _is_context(other)
                for op, other in zip(ops, others, strict=True)
            )
        case ast.Call(func=ast.Attribute(attr=method), args=args) if method in _OF_RE:
            return any(map(_is_context, args))
    return False


def _passes(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=value, attr=method) if method in _PASSES:
            return _is_context(value)
        case ast.For(iter=over) | ast.AsyncFor(iter=over) | ast.comprehension(iter=over):
            return _is_context(over) or (
                isinstance(over, ast.Attribute) and over.attr == "lines" and _is_context(over.value)
            )
        case ast.Call(func=ast.Name(id=name), args=args) if name not in _LOOKS:
            return any(map(_is_context, args))
    return False


def find_evidence(cells: Sequence[tuple[str, bool]]) -> list[int]:
    """The indices of the cells that made the answer, ascending.

    `cells`: the code of each cell up to the one that answered, and whether it printed something.
    """
    if not cells:
        return []
    found = _makers(cells, len(cells) - 1)
    if len(found) == 1:
        shown = next((i for i in range(len(cells) - 2, -1, -1) if cells[i][1]), None)
        if shown is not None:
            found += _makers(cells, shown)
    return sorted(found)


def _makers(cells: Sequence[tuple[str, bool]], last: int) -> list[int]:
    """The index `last`, and those of earlier cells that made the values it uses."""
    found = [last]
    _, _, needed = _names(cells[last][0])
    for i in range(last - 1, -1, -1):
        if not needed:
            break
        if not any(name in cells[i][0] for name in needed):
            continue  # cheaper than a parse, and most cells of a long run share no name with the answer
        assigned, changed, loaded = _names(cells[i][0])
        if needed & (assigned | changed):
            found.append(i)
            needed = (needed - (assigned - changed)) | loaded
    return found


def _names(code: str) -> tuple[set[str], set[str], set[str]]:
    """Names that the code assigns, changes in place, and loads before it has assigned them itself."""
    assigned: set[str] = set()
    changed: set[str] = set()
    loaded: set[str] = set()
    for statement in _parse(code).body:
        now_assigned, now_changed, now_loaded = _names_of_statement(statement)
        loaded |= now_loaded - assigned
        assigned |= now_assigned
        changed |= now_changed
    return assigned, changed, loaded


def _names_of_statement(statement: ast.stmt) -> tuple[set[str], set[str], set[str]]:
    """Names that a statement assigns, changes in place, and loads; names that it only binds in a loop are left out."""
    assigned: set[str] = set()
    changed: set[str] = set()
    loaded: set[str] = set()
    bound: set[str] = set()
    for node in ast.walk(statement):
        match node:
            case ast.For(target=target) | ast.AsyncFor(target=target) | ast.comprehension(target=target):
                bound |= {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
            case ast.arg(arg=name):
                bound.add(name)
            case ast.Name(id=name, ctx=ast.Load()):
                loaded.add(name)
            case ast.Name(id=name):
                assigned.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                assigned.add(name)
            case ast.alias(name=name, asname=other):
                assigned.add(other or name.partition(".")[0])
            case ast.AugAssign(target=ast.Name(id=name)):
                changed.add(name)
                loaded.add(name)
            case ast.Call(func=ast.Name(id="FINAL_VAR"), args=[ast.Constant(value=str(name)), *_]):
                loaded.add(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if method in _CHANGING:
                changed.add(name)
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                changed.add(name)
            case ast.Attribute(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                changed.add(name)
    return assigned, changed, loaded - bound - _BUILTINS
