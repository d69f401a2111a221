"""Explain to a model why its code or its answer did not count.

The hint names the fault in the model's own text and asks for the same again: a model copies example code and drops its
own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rlm.prompts.code import OPENING, PYTHON_TAGS, FencedBlock
from rlm.runners.syntax import parse

_CODE_LINE = re.compile(
    r"\s*(?:(?:import|from|for|while|if|elif|else|try|except|with|def|return|print)\b.*[:(\w]"
    r"|[A-Za-z_][\w.\[\]'\", ]*\s*[-+*/|]?=[^=]|[A-Za-z_][\w.]*\()"
)
_IN_LINE = re.compile(r"\b(?:FINAL|FINAL_VAR|SUBMIT)\(.+\)")
_BARE = re.compile(rf"\s*[`'\"*<\[]{{0,2}}({PYTHON_TAGS})[`'\"*>\]:]{{0,2}}\s*", re.IGNORECASE)

_TOOL_CALL = re.compile(
    r"<tool_call>|<function[=_ ]\S*|<\|python_(?:tag|start)\|>|\[TOOL_CALLS\]|<execute(?:_\w+)?>|<invoke \S*"
    r"|<\|tool_calls?[\w|>]*|<｜tool▁calls?[\w▁｜>]*|<use_mcp_tool>"
)
"""Tool calls in text, in the forms of several models."""
_INSIDE_LINE = re.compile(
    rf"^[^`\n]*[^`\s][^`\n]*`{{3,}}[ \t]*{PYTHON_TAGS}[ \t]*$|`{{3,}}[ \t]*{PYTHON_TAGS}[ \t]+[^`\n]+`{{3,}}",
    re.MULTILINE | re.IGNORECASE,
)


def explain(reply: str, fences: Sequence[FencedBlock]) -> str:
    """The reason why the code or the answer in a reply did not count; empty if the reply has neither."""
    lines = reply.strip().split("\n")
    code = "\n".join(line for line in lines if not OPENING.match(line))
    if bare := _BARE.fullmatch(lines[0]):
        shown, rest = lines[0].strip()[:30], code.partition("\n")[2]
        return _nothing(f"the first line of your reply was `{shown}`; it must be ```{bare[1].lower()}. {_ask(rest)}")
    for fence in fences:
        if re.search(r"^[ \t]*(?:FINAL|SUBMIT)", fence.block.code, re.MULTILINE):
            return _nothing("your FINAL(...) stands in a block. Send it without the fence, at the start of a line.")
        if fence.tag:
            tag = fence.tag[:30]
            return _nothing(f"your block is fenced as ```{tag}; only Python in ```repl is run. Say it in Python.")
        if fence.block.code.strip():
            mistake = _mistake(fence.block.code) or "nothing in it calls or assigns anything"
            return _nothing(f"your block has no tag, and is no code ({mistake}). Mend that, and send it as ```repl.")
    if call := _TOOL_CALL.search(reply):
        return _nothing(
            f"`{call[0][:30]}` calls a tool, and there are no tools. Write the code itself into a ```repl block."
        )
    if _INSIDE_LINE.search(reply):
        return _nothing("```repl must begin a line, and the code must stand on the lines below. Send the same code so.")
    looks = [line for line in lines if _CODE_LINE.match(line)]
    if looks and 2 * len(looks) > sum(1 for line in lines if line.strip()):
        return _nothing(f"your code has no line ```repl before it and no ``` after it. {_ask(code)}")
    if _IN_LINE.search(reply):
        return _nothing("FINAL(...) counts at the start of a line only. Send it again there, and nothing else.")
    return ""


def _nothing(fault: str) -> str:
    return f"Nothing was run: {fault}"


def _ask(code: str) -> str:
    mistake = _mistake(code)
    return f"Its code has a mistake ({mistake}): mend it and send it so." if mistake else "Send the same code again."


def _mistake(code: str) -> str:
    """The first syntax error, with its line; empty if there is none."""
    try:
        parse(code)
    except SyntaxError as exc:
        return f"line {exc.lineno}: {exc.msg}" if exc.lineno else str(exc.msg)
    return ""
