"""Find answers in words, `FINAL(...)` at the start of a line, and decide whether one is words or code. Pure.

An answer in words is words. Where it can only be code over variables, as `FINAL(count)` and `FINAL(rows[:4])`, it is
run, but only in a reply that holds nothing else that looks like code: that code did not run, so the variables are those
of an earlier turn.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from rlm.runners.claims import Claim, read_claims
from rlm.runners.syntax import ANSWERS, HELPERS, acts, parse

_TRIES = 25  # the answers of a reply, and the ends of one that are tried: each costs a parse of the text before it
_FINAL = re.compile(r"^[ \t]*(?P<mark>\*{1,3}|_{1,2}|`)?(?P<name>FINAL_VAR|FINAL|SUBMIT)[ \t]*[(（]", re.MULTILINE)
_SMILEY = re.compile(r"(?<=[\s(])[:;=]['\u2019-]?[()](?=[\s).,!?*]|\Z)")
_LINE_END = re.compile(r"[*_`. \t]*(?=\n|\Z)")
_ASSIGNED = re.compile(
    r"^[ \t]*(?:>>> ?)?(?:([A-Za-z_]\w*(?:[ \t]*,[ \t]*[A-Za-z_]\w*)*)[ \t]*[-+*/|&%]?=(?!=)"
    r"|(?:async +)?def +([A-Za-z_]\w*)\(|for +([A-Za-z_]\w*) in\b|with\b[^\n]* as +([A-Za-z_]\w*):)",
    re.MULTILINE,
)
_BROKEN = re.compile(r"[\s`]*(?:\w+\s*=\s*)?(?:[A-Za-z_][\w.]*\()*([A-Za-z_]\w*)(?:\[|\(|\.[a-z_]+\()")
_STRING = re.compile(r"""'[^'\n]*'|"[^"\n]*"|\b(?:for|in|if|else|and|or|not|is|lambda)\b""")
_PROSE = re.compile(r"[A-Za-z]{2,},? [A-Za-z]{2,}")
_FIELD = re.compile(r"(?<![\w\\^_$}{])\{([A-Za-z_]\w*)[^{}\n]*\}(?!\})")


@dataclass(frozen=True, slots=True)
class TextFinal:
    """An answer written as text."""

    text: str  # the answer, or the name of the variable that holds it
    is_name: bool  # whether `text` is the name of a variable: true for `FINAL_VAR`
    claims: tuple[Claim, ...] = ()  # its citations, as the model wrote them
    call: str = field(default="", compare=False)  # the whole call, if it parses as Python; empty for words
    span: tuple[int, int] = field(default=(0, 0), compare=False)  # the characters of the reply that it takes
    is_sure: bool = field(default=True, compare=False)  # whether no other parenthesis may close it
    ends_line: bool = field(default=True, compare=False)
    beside_code: bool = field(default=False, compare=False)
    """Whether something that looks like code stands in its reply."""


def find_finals(text: str, hidden: str) -> Iterator[TextFinal]:
    """The answers in words of a text; in `hidden` its blocks are blank."""
    for match in islice(_FINAL.finditer(hidden), _TRIES):
        end, is_sure = _close(text, hidden, match.end())
        inside = text[match.end() : end].strip()
        is_last = _LINE_END.match(hidden, end + 1 + len(match["mark"] or "")) is not None
        if end < 0 or not inside or (match["mark"] and is_sure and not is_last):
            continue
        is_name = match["name"] == "FINAL_VAR"
        call = _call_of(inside)
        code = f"{'FINAL' if is_name else match['name']}({inside})" if call else ""
        answer, claims = _read_answer(inside, call)
        value = answer.strip("\"'`") if is_name else answer
        yield TextFinal(value, is_name, claims, code, (match.start(), end + 1), is_sure, is_last)


def _close(text: str, hidden: str, start: int) -> tuple[int, bool]:
    """The offset of the parenthesis that closes an answer, -1 if none does; and whether no other one may."""
    if re.match(r"\s*(?:[rRbBuUfF]{0,2}[\"']|[\[{(]|\w+=)", text[start : start + 100]):
        for closing in islice(re.compile(r"\)").finditer(text, start), 2 * _TRIES):
            if _call_of(text[start : closing.start()]):
                return closing.start(), True
    smiling = _SMILEY.sub(lambda match: match[0][:-1] + "_", hidden)
    end = next((end for display in (smiling, hidden) if (end := _balance(display, start)) >= 0), -1)
    if end < 0:
        return end, False
    ends_line = _LINE_END.match(hidden, end + 1) is not None
    if ends_line and "\n" not in hidden[start:end]:
        return end, True
    stop = following.start() if (following := _FINAL.search(hidden, end)) else len(hidden)
    if ends_line and (paragraph := hidden.find("\n\n", end, stop)) >= 0:
        stop = paragraph
    is_sure = _balance(smiling[:stop], end + 1) < 0
    return end if is_sure else hidden.rindex(")", 0, stop), is_sure


def _balance(text: str, start: int) -> int:
    """The offset of the parenthesis that closes one before `start`; -1 if none does."""
    depth = 1
    for match in re.compile("[()（）]").finditer(text, start):
        depth += 1 if match[0] in "(（" else -1
        if depth == 0:
            return match.start()
    return -1


def _call_of(inside: str) -> ast.Call | None:
    """The call with this text between its parentheses; None if it is not Python."""
    try:
        match parse(f"f({inside})").body:
            case [ast.Expr(value=ast.Call(func=ast.Name(id="f")) as call)]:
                return call
    except SyntaxError:
        pass
    return None


def _read_answer(inside: str, call: ast.Call | None) -> tuple[str, tuple[Claim, ...]]:
    """The text of an answer, and its citations: the value of a str, or of fields by keyword; other text as it is."""
    if len(inside) > 1 and inside[0] == "“" and inside[-1] == "”" and not re.search("[“”]", inside[1:-1]):
        return inside[1:-1], ()
    claims: tuple[Claim, ...] = ()
    match call:
        case ast.Call(args=[value], keywords=keywords):
            match keywords:
                case [ast.keyword(arg="sources", value=sources)]:
                    inside = ast.get_source_segment(f"f({inside})", value) or ""
                    claims = read_claims(_literal(sources))
            text = _literal(value)
            return text if isinstance(text, str) else inside, claims
        case ast.Call(args=[], keywords=[_, *_] as keywords):
            fields = {str(key.arg): _literal(key.value) for key in keywords if key.arg}
            if len(fields) == len(keywords) and not any(value is _literal for value in fields.values()):
                return str(next(iter(fields.values())) if len(fields) == 1 else fields), ()
    return inside, claims


def _literal(node: ast.expr) -> Any:
    """The value of a literal; for anything else this function itself, which is no value of a literal."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _literal


def is_unrun(text: str) -> bool:
    """Whether a line of the text is code that calls, reads, imports or loops."""
    lines = (re.sub(r"^[ \t]*>>> ?", "", line).strip() for line in text.split("\n"))
    return any(
        acts(line) or (line.endswith(":") and acts(f"{line} pass"))
        for line in lines
        if re.match(r"[A-Za-z_(\[]", line) and re.search(r"[(:]|context|import", line)
    )


def assigned_names(texts: Iterable[str]) -> set[str]:
    """The names that lines of these texts assign, whether or not the lines ran."""
    result = (next(filter(None, match.groups())) for text in texts for match in _ASSIGNED.finditer(text))
    return {name.strip() for names in result for name in names.split(",")}


def stands_alone(final: TextFinal, rest: str) -> bool:
    """Whether an answer depends on no code in the rest of its reply, which did not run."""
    assigned = assigned_names([rest])
    if is_unrun(rest) or assigned & set(re.findall(r"\w+", final.text)):
        return False
    return not (assigned and (final.is_name or (final.call and _loaded(final.call))))


def holds_code(text: str, final: TextFinal) -> bool:
    """Whether text beside an answer changes something, or does something with a name in the answer."""
    names = "|".join(re.findall(r"[A-Za-z_]\w*", final.text)[:10]) or "=="
    code = rf"(?<![=!<>])[=＝](?!=)|<-|\bdel\b|\b(?:{names})\b\s*(?:\.\w+\(|\[|[-+*/%]\s*\d)"
    return re.search(code, text) is not None


def judge(final: TextFinal, variables: Collection[str]) -> bool | None:
    """Whether an answer in words is code to run; None for one that is neither code nor an answer, or that stands
    beside code that did not run.

    `variables`: names of the run, and those that its code assigns, in cells that failed, say: running it shows the
    model what lacks.
    """
    known = {*variables, "context", "answer"}
    if any(field[1] in known for field in _FIELD.finditer(final.text)) and "f" not in final.call[:8]:
        return None
    if not final.call:
        broken = _BROKEN.match(final.text)
        is_broken = broken and broken[1] in known | HELPERS and not _PROSE.search(_STRING.sub("", final.text))
        return None if is_broken else False
    is_code = False if final.text.lower() == "n/a" else _is_code(final.call, known)
    return None if is_code and final.beside_code else is_code


def _is_code(call: str, known: Collection[str]) -> bool | None:
    """Whether the arguments of a call can only be code, or are an expression over known names; None where words may
    be written so too, as `x or y`, or where a name of the sum is not known."""
    nodes = list(ast.walk(parse(call)))[4:]  # without the call itself and its function
    for node in nodes:
        match node:
            case ast.JoinedStr() | ast.Slice() | ast.Call(func=ast.Attribute(value=ast.Constant(value=str()))):
                return True
            case ast.BinOp(left=ast.Constant(value=str()), op=ast.Add() | ast.Mod() | ast.Mult()):
                return True
            case ast.Call(func=ast.Name(id=name)) if name in HELPERS | ANSWERS:
                return True
            case ast.Call(func=ast.Name(id=name), args=[ast.Constant(), *_]) if hasattr(builtins, name):
                return True
            case ast.Subscript() | ast.Call() | ast.Attribute() if set(known) & {
                item.id for item in ast.walk(node) if isinstance(item, ast.Name)
            }:
                return True
    loaded = _loaded(call)
    if not loaded & set(known):
        return False
    is_known = loaded <= {*known, *dir(builtins)}
    match nodes:
        case [ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=str() | int() | float())]), *_]:
            return False
        case [ast.BoolOp() | ast.Compare(ops=[ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()]), *_] if is_known:
            return None
        case [ast.UnaryOp(op=ast.Not()), *_] if is_known:
            return None
        case [ast.BinOp(op=ast.Add() | ast.Mult() | ast.Div() | ast.Mod()), *_] if not is_known:
            return None
    return is_known


def _loaded(call: str) -> set[str]:
    """Names that the arguments of a call use and do not bind themselves."""
    names = [node for node in ast.walk(parse(call)) if isinstance(node, ast.Name)]
    return {node.id for node in names} - ANSWERS - {node.id for node in names if isinstance(node.ctx, ast.Store)}
