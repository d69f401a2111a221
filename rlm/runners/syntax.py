"""Parse the source of a cell without warnings, and find out what it would do, without running it."""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

ANSWERS = frozenset(("FINAL", "FINAL_VAR", "SUBMIT"))  # the functions that give an answer
HELPERS = frozenset(("llm_query", "llm_query_batched", "rlm_query", "rlm_query_batched", "SHOW_VARS"))
_KNOWN = HELPERS | frozenset(dir(builtins))
# The names that lines bind, as in "a, b = 1", ">>> n += 2", "def f(", "for x in" and "with g() as h:"; not "a == b".
_ASSIGNED = re.compile(
    r"""^[ \t]*(?:>>>[ ]?)?(?:
      ([A-Za-z_]\w*(?:[ \t]*,[ \t]*[A-Za-z_]\w*)*)[ \t]*[-+*/|&%]?=(?!=)
      |(?:async[ ]+)?def[ ]+([A-Za-z_]\w*)\(
      |for[ ]+([A-Za-z_]\w*)[ ]in\b
      |with\b[^\n]*[ ]as[ ]+([A-Za-z_]\w*):)""",
    re.MULTILINE | re.VERBOSE,
)
_warnings_lock = Lock()  # `catch_warnings` changes the filters of all threads
NOT_LITERAL = object()  # what `literal_value` returns for another expression


@contextmanager
def hide_syntax_warnings() -> Iterator[None]:
    r"""Hide warnings inside: models write `"\d+"` often, and a SyntaxWarning would mark a good cell as failed."""
    with _warnings_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def parse(code: str, filename: str = "<cell>") -> ast.Module:
    """The syntax tree of `code`. Raises SyntaxError for every error of the parser."""
    try:
        with hide_syntax_warnings():
            return ast.parse(code, filename)
    except (ValueError, RecursionError, MemoryError) as exc:  # a NUL character; brackets nested too deeply
        raise SyntaxError(f"this code cannot be parsed: {exc or type(exc).__name__}") from None


def statements_of(code: str) -> list[ast.stmt] | None:
    """The statements of `code`, [] for comments only; None if it is not complete, well-formed source."""
    try:
        return parse(code).body
    except SyntaxError:
        return None


def compiles(code: str) -> bool:
    """Whether `code` is complete, well-formed source."""
    return statements_of(code) is not None


def does_something(code: str) -> bool:
    """Whether code compiles and does more than give an answer at its end. False for a bare name and for prose."""
    body = statements_of(code) or []
    if len(body) > 1:
        while body and _is_final(body[-1]):
            body.pop()
        if any(map(_is_final, body)):
            return False
    for node in ast.walk(ast.Module(body, [])):
        match node:
            case ast.Assign() | ast.AugAssign() | ast.NamedExpr() | ast.For() | ast.With() | ast.FunctionDef():
                return True
            case ast.Import() | ast.ImportFrom() | ast.Call(func=ast.Attribute()):
                return True
            case ast.Call(func=ast.Name(id=name)) if name in _KNOWN or _is_written_as_code(code, node):
                return True
            case ast.Subscript(value=ast.Name(id="context")) | ast.Subscript(slice=ast.Slice()) | ast.JoinedStr():
                return True  # reads a part of the context or a slice, or is an f-string
            case ast.BinOp(left=ast.Constant(value=str())):  # such as "%d" % x
                return True
    return False


def gives_answer(code: str) -> bool:
    """Whether code may end the run: it compiles, and names one of `ANSWERS` or `answer`."""
    nodes = ast.walk(ast.Module(statements_of(code) or [], []))
    return any(isinstance(node, ast.Name) and node.id in ANSWERS | {"answer"} for node in nodes)


def is_code(code: str) -> bool:
    """Whether text is code to run: it does something, or may end the run."""
    return does_something(code) or gives_answer(code)


def has_code_line(text: str) -> bool:
    """Whether the text has a line of code that calls, reads, imports or loops."""
    for line in (re.sub(r"^[ \t]*>>> ?", "", line).strip() for line in text.split("\n")):
        # Saves parsing most prose: not "Paris.", but "print(x)", "for x in y:", "import os" and "context[0]".
        may_be_code = re.match(r"[A-Za-z_(\[]", line) and re.search(r"[(:]|context|import", line)
        if may_be_code and (does_something(line) or (line.endswith(":") and does_something(f"{line} pass"))):
            return True
    return False


def assigned_names(texts: Iterable[str]) -> set[str]:
    """The names that lines of these texts assign, whether or not the lines ran."""
    targets = [match[match.lastindex or 0] for text in texts for match in _ASSIGNED.finditer(text)]
    return {name.strip() for target in targets for name in target.split(",")}


def call_of(inside: str) -> ast.Call | None:
    """The call with the arguments `inside`; None if they are not valid Python."""
    match statements_of(f"f({inside})"):
        case [ast.Expr(value=ast.Call(func=ast.Name(id="f")) as call)]:
            return call
    return None


def loaded_names(call: ast.Call) -> set[str]:
    """The names that the arguments of a call read, without those that the arguments bind."""
    names = [node for value in (*call.args, *call.keywords) for node in ast.walk(value) if isinstance(node, ast.Name)]
    return {node.id for node in names} - {node.id for node in names if isinstance(node.ctx, ast.Store)}


def literal_value(node: ast.expr) -> Any:
    """The value of a literal, or `NOT_LITERAL`."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return NOT_LITERAL


def _is_written_as_code(code: str, call: ast.Call) -> bool:
    """Whether a call of an unknown name is written as code is: `look_up(x)`, but not `Paris (France)`."""
    return re.match(r"[a-z]\w*_\w+\(", ast.get_source_segment(code, call) or "") is not None


def _is_final(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id=name))):
            return name in ANSWERS
    return False
