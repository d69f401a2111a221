"""Decide whether an answer in words counts, and say in one sentence why code or an answer does not. Pure.

An answer in words is words. Where it can only be code over variables, as `FINAL(count)` and `FINAL(rows[:4])`, it is
run, but only in a reply that holds nothing else that looks like code: that code did not run, so the variables are those
of an earlier turn. A sentence names the fault in the model's own text: a model copies example code and drops its own.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from rlm.runners.claims import Claim, read_claims
from rlm.runners.syntax import ANSWERS, HELPERS, acts, parse

NOT_RUN = (
    'FINAL(...) outside a block is words and is not run. Put code, or f"..." with the names of variables in it, into '
    "a ```repl block; or write the answer itself."
)
UNRUN = (
    "Nothing was run: your code has no line ```repl before it and no ``` after it, so the answer below it was not "
    "taken. Send the same code so, with FINAL(...) in it."
)
NO_NAME = (
    "FINAL_VAR({0}) names no variable. Put FINAL(...) with the value into a ```repl block; or write the answer itself."
)
TWO = "Not taken: your reply holds several answers. Give one, and nothing after it."
TAKEN_BACK = "Not taken: your reply takes its answer back. Go on, and answer when you are sure."
TO_COME = (
    "Not taken: your reply speaks of an answer to come, to be checked, or of an example. Go on, and answer with "
    "FINAL(...) alone when you are sure."
)
UNPAIRED = (
    'Not taken: the parentheses of your FINAL(...) do not pair. Put FINAL("...") with quotes into a ```repl block.'
)
DATE = 'Nothing was run: FINAL({0}) is a sum in Python; a date needs quotes: FINAL("{0}"). Send the same code so.'

_DATE = re.compile(r"^[ \t]*FINAL\([ \t]*(\d{4}([-/])\d\d?\2\d\d?|\d\d?([-/])\d\d?\3\d{4})[ \t]*[,)]", re.MULTILINE)
_ASSIGNED = re.compile(
    r"^[ \t]*(?:>>> ?)?(?:([A-Za-z_]\w*(?:[ \t]*,[ \t]*[A-Za-z_]\w*)*)[ \t]*[-+*/|&%]?=(?!=)"
    r"|(?:async +)?def +([A-Za-z_]\w*)\(|for +([A-Za-z_]\w*) in\b|with\b[^\n]* as +([A-Za-z_]\w*):)",
    re.MULTILINE,
)
_BROKEN = re.compile(r"[\s`]*(?:\w+\s*=\s*)?(?:[A-Za-z_][\w.]*\()*([A-Za-z_]\w*)(?:\[|\(|\.[a-z_]+\()")
_STRING = re.compile(r"""'[^'\n]*'|"[^"\n]*"|\b(?:for|in|if|else|and|or|not|is|lambda)\b""")
_PROSE = re.compile(r"[A-Za-z]{2,},? [A-Za-z]{2,}")
_FIELD = re.compile(r"(?<![\w\\^_$}{])\{([A-Za-z_]\w*)[^{}\n]*\}(?!\})")
_TAKEN_BACK = re.compile(
    r"[\s*_`.,;:-]*(?:(?:would|could|might|may|is|was) (?:be )?(?:wrong|incorrect|a mistake|not\b|only a guess)"
    r"|(?:but |oh,? |no,? )?(?:wait|hold on|hmm+|oops|sorry|correction|scratch that|on (?:second thought|reflection))"
    r"\b[,.: -]|no[,.:]|actually\b|(?:that|this)(?:'s| is| was| seems| looks) (?:wrong|incorrect|not)\b"
    r"|i (?:made a mistake|was wrong|miscounted|misread)\b|(?:(?:or|and)\b\W*)?(?:FINAL|FINAL_VAR|SUBMIT) ?\()",
    re.IGNORECASE,
)
"""The beginning of text after an answer that takes the answer back, or gives another one."""
_UNSURE = re.compile(
    r"[\s*_`.,;:?-]*(?:but first\b|not sure yet\b"
    r"|(?:but |now |next,? )?(?:let me|let's|(?:i|we)(?:'ll| will| should| must| need to| have to| want to))"
    r" (?:now |first |still |also |just )?(?:double|check|verify|confirm|validate|make sure|fix"
    r"|re-?(?:check|count|read|comput|calculat|run|do|examin|consider|visit|verif|think)))",
    re.IGNORECASE,
)
"""The beginning of text after an answer that is still to be checked."""
_TO_COME = re.compile(
    r"\b(?:for|as an) example\b|^[ #*_]*(?:examples?|drafts?|plan)[:*_ ]*$|\be\.g\.|\bformat (?:is|would be)\b"
    r"|\b(?:i|we|you) (?:could|might)\b"
    r"|\b(?:once|as soon as|until|when (?:done|ready|(?:i|we) (?:know|have|am|are|find)))\b.*\b(?:i|we)(?:'ll| will)\b"
    r"|\bif\b.*\bthen\W*$",
    re.IGNORECASE,
)
"""What a line says before an answer that is not given yet."""
_LINE_CHARACTERS = 300
"""The end of a line that is looked at."""
_TOOL = re.compile(r"<(?:\w{1,20}:)?(?:tool_\w*|function\w*|invoke|execute\w*|use_mcp_tool)\b|\[TOOL_CALLS\]|<[|｜]\w+")
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[ \t]*([^\s`]*)[^`\n]*\n(?=.*\S)", re.MULTILINE)
_IN_LINE = re.compile(r"\b(?:FINAL|FINAL_VAR|SUBMIT)\(")


@dataclass(frozen=True, slots=True)
class TextFinal:
    """An answer written as text."""

    text: str
    """The answer, or the name of the variable that holds it."""
    is_name: bool
    """Whether `text` is the name of a variable: true for `FINAL_VAR`."""
    claims: tuple[Claim, ...] = ()
    """Its citations, as the model wrote them."""
    call: str = field(default="", compare=False)
    """The whole call, if it parses as Python; empty for words."""
    span: tuple[int, int] = field(default=(0, 0), compare=False)
    """The characters of the reply that it takes."""
    is_sure: bool = field(default=True, compare=False)
    """Whether no other parenthesis may close it."""
    ends_line: bool = field(default=True, compare=False)
    """Whether nothing stands behind it on its line."""
    beside_code: bool = field(default=False, compare=False)
    """Whether something that looks like code stands in its reply."""


def call_of(inside: str) -> ast.Call | None:
    """The call with this text between its parentheses; None if it is not Python."""
    try:
        match parse(f"f({inside})").body:
            case [ast.Expr(value=ast.Call(func=ast.Name(id="f")) as call)]:
                return call
    except SyntaxError:
        pass
    return None


def read_answer(inside: str) -> tuple[str, tuple[Claim, ...]]:
    """The text of an answer, and its citations: the value of a str, or of fields by keyword; other text as it is."""
    if len(inside) > 1 and inside[0] == "“" and inside[-1] == "”" and not re.search("[“”]", inside[1:-1]):
        return inside[1:-1], ()
    call, claims = call_of(inside), tuple[Claim, ...]()
    errors = ValueError, TypeError, SyntaxError, MemoryError, RecursionError
    match call:
        case ast.Call(args=[value], keywords=[ast.keyword(arg="sources", value=sources)]):
            inside, call = ast.get_source_segment(f"f({inside})", value) or "", ast.Call(call.func, [value], [])
            try:
                claims = read_claims(ast.literal_eval(sources))
            except errors:
                claims = (None,)
    try:
        fields = {key.arg: ast.literal_eval(key.value) for key in call.keywords} if call and not call.args else {}
        if fields and None not in fields:
            return str(next(iter(fields.values())) if len(fields) == 1 else fields), claims
        text = ast.literal_eval(call.args[0]) if call and len(call.args) == 1 else None
    except errors:
        return inside, claims
    return text if isinstance(text, str) else inside, claims


def of_code(code: str) -> str:
    """Why a block must not run: it would give a sum for a date. Empty if it may."""
    date = _DATE.search(code)
    return DATE.format(date[1]) if date else ""


def explain(reply: str, hidden: str, finals: list[TextFinal]) -> str:
    """Why the answers of a reply without code do not count, or that it has none; empty if there is nothing to say.

    `hidden`: the reply with spaces in place of its fences.
    """
    if finals:
        last = finals[-1]
        if any((final.text, final.is_name) != (last.text, last.is_name) for final in finals):
            return TWO
        if _TAKEN_BACK.match(reply, last.span[1]):
            return TAKEN_BACK
        line_before = hidden[: last.span[0]].rstrip()[-_LINE_CHARACTERS:].rpartition("\n")[2]
        if _UNSURE.match(reply, last.span[1]) or _TO_COME.search(line_before):
            return TO_COME
        rest = hidden[: last.span[0]] + hidden[last.span[1] :]
        return "" if last.is_sure and stands_alone(last, rest) else UNRUN if last.is_sure else UNPAIRED
    if re.search(r"^[ \t]*(?:FINAL|FINAL_VAR|SUBMIT)\(", hidden, re.MULTILINE):
        return UNPAIRED
    if fence := _FENCE.search(reply):
        if re.search(r"^[ \t]*(?:FINAL|SUBMIT)", reply, re.MULTILINE):
            return _nothing("your FINAL(...) stands in a block of text. Send it in a ```repl block.")
        if fence[1]:
            return _nothing(f"your block is fenced as ```{fence[1][:30]}; only Python in ```repl is run.")
        return _nothing(f"your block is no code{_mistake(reply[fence.end() :])}. Mend it, and send it as ```repl.")
    if call := _TOOL.search(reply):
        return _nothing(f"`{call[0][:30]}` calls a tool, and there are no tools. Write its code into a ```repl block.")
    if re.search(r"```[ \t]*(?:repl|py)", reply):
        return _nothing("```repl must begin a line, and the code must stand on the lines below. Send the same code so.")
    if is_unrun(reply) or _ASSIGNED.search(reply) or re.match(r"\W{0,3}(?:repl|python)\W{0,3}\n", reply):
        return _nothing(f"your code has no line ```repl before it and no ``` after it{_mistake(reply)}. Send it so.")
    if _IN_LINE.search(reply):
        return _nothing("FINAL(...) counts at the start of a line only. Send it in a ```repl block, and nothing else.")
    return ""


def is_unrun(text: str) -> bool:
    """Whether a line of the text is code that calls, reads, imports or loops."""
    for line in text.split("\n"):
        line = re.sub(r"^[ \t]*>>> ?", "", line).strip()
        may_call = re.match(r"[A-Za-z_(\[]", line) and re.search(r"[(:]|context|import", line)
        if may_call and (acts(line) or (line.endswith(":") and acts(f"{line} pass"))):
            return True
    return False


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


def may_name_variable(name: str) -> bool:
    """Whether a name may be that of a variable of the model: `__name__` is not."""
    return name.isidentifier() and not name.startswith("__")


def may_be_code(final: TextFinal) -> bool:
    """Whether `judge` needs the names of variables."""
    return bool(final.call) or _BROKEN.match(final.text) is not None or _FIELD.search(final.text) is not None


def holds_code(text: str, final: TextFinal) -> bool:
    """Whether text beside an answer changes something, or does something with a name in the answer."""
    names = "|".join(re.findall(r"[A-Za-z_]\w*", final.text)[:10]) or "=="
    return (
        re.search(rf"(?<![=!<>])[=＝](?!=)|<-|\bdel\b|\b(?:{names})\b\s*(?:\.\w+\(|\[|[-+*/%]\s*\d)", text) is not None
    )


def judge(final: TextFinal, variables: Collection[str], assigned: Collection[str]) -> bool | None:
    """Whether an answer in words is code to run; None for one that is neither code nor an answer, or that stands
    beside code that did not run.

    `assigned`: names that code of the run assigns, in cells that failed, say. Running it shows the model what lacks.
    """
    known = {*variables, *assigned, "context", "answer"}
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


def _mistake(code: str) -> str:
    """The first syntax error, with its line, in brackets; empty if there is none."""
    try:
        parse(code.strip("\n`~ "))
    except SyntaxError as exc:
        return f" (line {exc.lineno}: {exc.msg})" if exc.lineno else f" ({exc.msg})"
    return ""


def _nothing(fault: str) -> str:
    return f"Nothing was run: {fault}"
