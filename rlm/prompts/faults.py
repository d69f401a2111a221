"""Explain to the model why the code of its reply, or its answer in words, does not count. Does no I/O.

An explanation says what is wrong with the reply, without example code, which a model would copy. An answer in words is
not run. A variable that it names counts only if no code beside it may change the variable.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Sequence

from rlm.runners.syntax import ANSWERS, HELPERS, assigned_names, does_something, has_code_line, loaded_names, parse
from rlm.runners.text_final import TextFinal

_FINAL_NOT_RUN = (
    'FINAL(...) outside a block is words and is not run. Put code, or f"..." with the names of variables in it, into '
    "a ```repl block; or write the answer itself."
)
_CODE_NOT_RUN = (
    "Nothing was run: your code has no line ```repl before it and no ``` after it, so the answer below it was not "
    "taken. Send the same code so, with FINAL(...) in it."
)
_NO_NAME = (
    "FINAL_VAR({0}) names no variable. Put FINAL(...) with the value into a ```repl block; or write the answer itself."
)
_SEVERAL = "Not taken: your reply holds several answers. Give one, and nothing after it."
TAKEN_BACK = "Not taken: your reply takes its answer back. Go on, and answer when you are sure."
TO_COME = (
    "Not taken: your reply speaks of an answer to come, to be checked, or of an example. Go on, and answer with "
    "FINAL(...) alone when you are sure."
)
_UNPAIRED = (
    'Not taken: the parentheses of your FINAL(...) do not pair. Put FINAL("...") with quotes into a ```repl block.'
)
_UNQUOTED = 'Nothing was run: FINAL({0}) is a sum in Python; a date needs quotes: FINAL("{0}"). Send the same code so.'

_RETRACTION = re.compile(
    r"[\s*_`.,;:-]*(?:(?:would|could|might|may|is|was) (?:be )?(?:wrong|incorrect|a mistake|not\b|only a guess)"
    r"|(?:but |oh,? |no,? )?(?:wait|hold on|hmm+|oops|sorry|correction|scratch that|on (?:second thought|reflection))"
    r"\b[,.: -]|no[,.:]|actually\b|(?:that|this)(?:'s| is| was| seems| looks) (?:wrong|incorrect|not)\b"
    r"|i (?:made a mistake|was wrong|miscounted|misread)\b|(?:(?:or|and)\b\W*)?(?:FINAL|FINAL_VAR|SUBMIT) ?\()",
    re.IGNORECASE,
)
"""The beginning of text after an answer that takes it back, "wait, no", or gives another, "or FINAL("; not "thanks"."""
_CHECK_TO_COME = re.compile(
    r"[\s*_`.,;:?-]*(?:but first\b|not sure yet\b"
    r"|(?:but |now |next,? )?(?:let me|let's|(?:i|we)(?:'ll| will| should| must| need to| have to| want to))"
    r" (?:now |first |still |also |just )?(?:double|check|verify|confirm|validate|make sure|fix"
    r"|re-?(?:check|count|read|comput|calculat|run|do|examin|consider|visit|verif|think)))",
    re.IGNORECASE,
)
"""The beginning of text after an answer that is still to be checked: "now let me verify"; not "let me know"."""
_ANSWER_TO_COME = re.compile(
    r"\b(?:for|as an) example\b|^[ #*_]*(?:examples?|drafts?|plan)[:*_ ]*$|\be\.g\.|\bformat (?:is|would be)\b"
    r"|\b(?:i|we|you) (?:could|might)\b(?! not)"
    r"|\b(?:once|as soon as|until|when (?:done|ready|(?:i|we) (?:know|have|am|are|find)))\b.*\b(?:i|we)(?:'ll| will)\b"
    r"|\bif\b.*\bthen\W*$",
    re.IGNORECASE,
)
"""Words before an answer that is not given yet: "for example", "once I know, I will"; not "I could not find more"."""
_TOOL_CALL = re.compile(
    r"<(?:\w{1,20}:)?(?:tool_\w*|function\w*|invoke|execute\w*|use_mcp_tool)\b|\[TOOL_CALLS\]|<[|｜]\w+"
)
"""The beginning of a call of a tool: "<tool_call>", "<｜tool"; not "<table>"."""
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[ \t]*([^\s`]*)[^`\n]*\n(?=.*\S)", re.MULTILINE)
"""The line that opens a block, with its language, if the next line has text: "```sql"."""
_FINAL_IN_LINE = re.compile(r"\b(?:FINAL|FINAL_VAR|SUBMIT)\(")  # an answer that does not begin its line
_BROKEN_CODE = re.compile(r"[\s`]*(?:\w+\s*=\s*)?(?:[A-Za-z_][\w.]*\()*([A-Za-z_]\w*)(?:\[|\(|\.[a-z_]+\()")
"""The beginning of code, complete or not, with the name that it uses: `hits` in "len(hits[" and "n = hits.count("."""
_PROSE = re.compile(r"[A-Za-z]{2,},? [A-Za-z]{2,}")  # two words in a row, which code does not have
FIELD = re.compile(r"(?<![\w\\^_$}{])\{([A-Za-z_]\w*)[^{}\n]*\}(?!\})")
"""A name in braces, as in an f-string: "{count}" and "{count:,}"; not "{{count}}", "${count}" or "x_{count}"."""
_DATE = re.compile(r"^[ \t]*FINAL\([ \t]*(\d{4}([-/])\d\d?\2\d\d?|\d\d?([-/])\d\d?\3\d{4})[ \t]*[,)]", re.MULTILINE)
"""A date without quotes as the answer: "FINAL(2024-05-01)" and "FINAL(1/5/2024)"; not "FINAL(2024-5)"."""


def explain_date(codes: Iterable[str]) -> str:
    """Why `FINAL(2024-05-01)` was not run: Python computes a date without quotes. Empty if no code answers so."""
    date = next(filter(None, map(_DATE.search, codes)), None)
    return _UNQUOTED.format(date[1]) if date else ""


def explain_answers(reply: str, hidden: str, finals: Sequence[TextFinal]) -> str:
    """Why the answers in words of a reply do not count; empty if they do. `hidden`: `reply` with spaces for code."""
    last = finals[-1]
    if any((final.text, final.is_name) != (last.text, last.is_name) for final in finals):
        return _SEVERAL
    start, stop = last.span
    if _RETRACTION.match(reply, stop):
        return TAKEN_BACK
    line_before = hidden[:start].rstrip()[-300:].rpartition("\n")[2]
    if _CHECK_TO_COME.match(reply, stop) or _ANSWER_TO_COME.search(line_before):
        return TO_COME
    if not last.is_sure:
        return _UNPAIRED
    words = hidden[:start] + hidden[stop:]
    assigned = assigned_names([words])
    names = (loaded_names(last.call) if last.call else set[str]()) | (assigned & set(re.findall(r"\w+", last.text)))
    needs_code = bool(assigned and (last.is_name or names))
    return _CODE_NOT_RUN if needs_code or has_code_line(words) else ""


def explain_code(reply: str, hidden: str) -> str:
    """Why the code of a reply without an answer was not run; empty if it has none. `hidden`: see `explain_answers`."""
    if re.search(r"^[ \t]*(?:FINAL|FINAL_VAR|SUBMIT)\(", hidden, re.MULTILINE):
        return _UNPAIRED
    if fence := _FENCE.search(reply):
        if re.search(r"^[ \t]*(?:FINAL|SUBMIT)", reply, re.MULTILINE):
            return _not_run("your FINAL(...) stands in a block of text. Send it in a ```repl block.")
        if fence[1]:
            return _not_run(f"your block is fenced as ```{fence[1][:30]}; only Python in ```repl is run.")
        return _not_run(f"your block is not code{_syntax_error(reply[fence.end() :])}. Fix it, and send it as ```repl.")
    if call := _TOOL_CALL.search(reply):
        return _not_run(f"`{call[0][:30]}` calls a tool, and there are no tools. Write its code into a ```repl block.")
    if re.search(r"```[ \t]*(?:repl|py)", reply):
        return _not_run("```repl must begin a line, and the code must stand on the lines below. Send the same code so.")
    if has_code_line(reply) or assigned_names([reply]) or re.match(r"\W{0,3}(?:repl|python)\W{0,3}\n", reply):
        return _not_run(
            f"your code has no line ```repl before it and no ``` after it{_syntax_error(reply)}. Send it so."
        )
    if _FINAL_IN_LINE.search(reply):
        return _not_run("FINAL(...) counts at the start of a line only. Send it in a ```repl block, and nothing else.")
    return ""


def explain_final(final: TextFinal, known: Collection[str], *, is_alone: bool, seen: str) -> str:
    """Why an answer in words, or the variable that it names, does not count; empty if it does. `known`: the variables
    of the run, and of code that failed. `is_alone`: whether no code stands beside it. `seen`: output that the model has
    seen, from which an answer may quote code."""
    if final.is_name or final.variable in known:
        if not final.variable:
            return _NO_NAME.format(final.text[:80])
        return "" if is_alone else _FINAL_NOT_RUN
    has_field = any(field[1] in known for field in FIELD.finditer(final.text))
    return _FINAL_NOT_RUN if has_field or _is_code(final, known, seen) else ""


def _is_code(final: TextFinal, known: Collection[str], seen: str) -> bool:
    """Whether an answer is code that should be run: it calls or computes, and is neither a quote nor plain words."""
    if final.call is None:
        broken = _BROKEN_CODE.match(final.text)
        return broken is not None and broken[1] in {*known, *HELPERS} and not _PROSE.search(final.text)
    names = loaded_names(final.call)
    is_words = re.fullmatch(r"[\w\s,/-]+", final.text) and (not names <= set(known) or " is " in final.text)
    uses_known = not is_words and not names.isdisjoint({*known, *HELPERS, *ANSWERS})
    return uses_known or (does_something(ast.unparse(final.call)) and final.text not in seen)


def _syntax_error(code: str) -> str:
    """The first syntax error, with its line, in brackets; empty if there is none."""
    try:
        parse(code.strip("\n`~ "))
    except SyntaxError as exc:
        return f" (line {exc.lineno}: {exc.msg})" if exc.lineno else f" ({exc.msg})"
    return ""


def _not_run(fault: str) -> str:
    return f"Nothing was run: {fault}"
