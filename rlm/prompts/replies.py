"""Parse a reply of the model into code to run, or an answer in words. Pure; each step takes linear time.

`docs/decisions/012-rlm-loop.md` lists the makes of code: fences, code between marks (one row of `_MARKS` each), calls
written as text, and a reply that is only code. An answer in words is `FINAL(...)` at the start of a line without code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from textwrap import dedent

from rlm.prompts import faults
from rlm.runners.syntax import acts, assigned_names, call_of, compiles, is_code
from rlm.runners.text_final import TextFinal, read_written

_TAG = r"(?:repl|i?py|i?python|tool_code)\d?(?:\.\d+)?"
_PYTHON = re.compile(_TAG, re.IGNORECASE)
_FENCE = re.compile(
    r"(?P<margin>[ \t]*(?:(?:[-*+]|\d+[.)])[ \t]+)?)(?P<mark>`{3,}(?!.*`)|~{3,})[{\s]*\.?(?P<tag>[^\s:{},;]*)"
)
_ATTRIBUTE = re.compile(r"""([\w-]+)=(?:"[^"]*"|'[^']*'|\{[^{}]*\}|[\w./:-]*)(?:\s|$)""")  # of a fence: `title=a.py`
_NAMES = r"(?:code|python|repl|py|execute|tool_code|run)"
_MARKS = [
    (re.compile(opening, re.IGNORECASE), re.compile(closing, re.IGNORECASE))
    for opening, closing in (
        (rf"[ \t]*<{_NAMES}(?:_\w+)?\b(?![^<>]*lang\w*-(?!py))[^<>]*>", rf"</{_NAMES}\w*>?|<end_\w+>?"),
        (r"[ \t]*\[(?:python|code|tool_code)\]", r"\[/\w+\]"),
        (r"[ \t]*<\|(?:python_tag|python_start|code)\|>", r"<\|\w+\|>"),
        (r"(?:'''|\"\"\")(?:repl|python)$", r"^(?:'''|\"\"\")"),
        (rf"[`'\"*<\[ \t]{{0,3}}{_TAG}[`'\"*>\]: \t]{{0,3}}$", r"(?:`{3,}|~{3,})[ \t]*$"),
    )
]
"""The marks before and behind code, one row for each make but fences; the last is a tag that lacks its fence."""
_END = re.compile(r"(?:(?:</?\w{1,20}>?|<\|\w{1,30}\|>|\[/\w{1,20}\])[ \t]*){1,3}$")
"""Marks behind the fence that ends a block, or in place of it."""
_CUT_END = re.compile(r"\n[ \t]*(?:</?\w{0,20}|`{1,2}|`{3,}[^\n`]{0,30})\s*\Z")
_CALL = re.compile(  # where a call begins that is written as text
    r"(?<!`)(?:<(?:\w{1,20}:|｜DSML｜)?(?:function_calls?|invoke|tool_calls?|tool_use|use_mcp_tool|function)\b"
    r"|\[TOOL_CALLS?\]|<[|｜]tool[▁_]\w*|<\|START_ACTION\|>|<\|python_tag\|>(?=\s*\{))"
)
_PARAMETER = re.compile(r"</?(?:\w{1,20}:|｜DSML｜)?(?:parameter|arg_value|arguments?|code)\b[^<>\n]*>", re.IGNORECASE)
_ARGUMENTS = ("arguments", "parameters", "args", "input", "kwargs", "function")
_NO_ARGUMENTS = {"name", "tool", "type", "id", "function", "tool_name"}
_DRAFT = re.compile(r"[ \t]*<(analysis|plan\w*|draft|scratchpad|reflection|thought|internal\w*|details)\b[^<>]*>", re.I)
_TURN = re.compile(
    r"[ \t#*_]*(?:Turn \d+/\d+[.:]|Turn \d+:|REPL output(?: \(block \d+\))?:|REPL variables:)"
    r"|<\|(?:im_start|im_end|start_header_id|eot_id|end_of_turn)\|>|<start_of_turn>|<end_of_turn>"
)
_TURN_AFTER_CODE = re.compile(
    r"[ \t#*_>\[]*(?:(?:(?:repl|execution|code|console|expected|program|python) )?output(?: \(block \d+\))?[*_\]]*:"
    r"|(?:output|stdout)[*_#]*[ \t]*$|results?[*_]*:[*_]*[ \t]*$|stdout:|observation:|Out\[\d+\]:|<output>"
    r"|<(?:function_results?|tool_response|observation)|(?:`{3,}|~{3,})[ \t]*(?:output|stdout)\b"
    r"|(?:user|human|assistant|system)[*_]*:)",
    re.IGNORECASE,
)
"""How the REPL and the user begin what they alone write: such a reply invents the next turn."""
_FINAL = re.compile(r"^[ \t]*(?P<mark>\*{1,3}|_{1,2}|`)?(?P<name>FINAL_VAR|FINAL|SUBMIT)[ \t]*[(（]", re.MULTILINE)
_LITERAL = re.compile(r"\s*(?:[rRbBuUfF]{0,2}[\"']|[\[{(]|\w+=)")
_SMILEY = re.compile(r"(?<=[\s(])[:;=]['\u2019-]?[()](?=[\s).,!?*]|\Z)")
_LINE_END = re.compile(r"[*_`. \t]*(?=\n|\Z)")
_TRIES = 50  # the ends to try for the blocks and answers of a reply: each costs a parse of the text before it


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """The code of one block of a reply."""

    code: str  # source, dedented, without its marks
    cut: bool = False  # the reply ended before the end of this block: it may run only if it is complete source


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """The requests in one reply: code, or an answer, or neither."""

    blocks: tuple[CodeBlock, ...] = ()  # code to run, in order
    final: TextFinal | None = None  # an answer in words; beside a block: that block, if it was meant as words
    words: str = ""  # the text of the reply outside its code; for a reply that is one fence, its content
    own_text: str = ""  # the reply, up to a turn that it invents
    fault: str = ""  # why its code or answer does not count, in a sentence for the model; empty if it does


@dataclass(slots=True)
class _Part:
    """Lines of a reply, and what they are: `prose`, `python`, `loose` (a fence without a tag), `other`, `draft`."""

    kind: str
    lines: list[str]
    code: str = ""
    cut: bool = False


def parse_reply(text: str) -> ParsedReply:
    """The code blocks of a reply and, where it has none, its answer in words."""
    text = text.replace("\r\n", "\n").lstrip("\ufeff\u200b\u00a0")  # they hide a fence at the start
    text = re.sub(r"\A(\s*)Final(?=\([^\n]*\)\s*\Z)", r"\1FINAL", text)  # small models write so, as their whole reply
    parsed = _parse(text, drafts=True)
    if parsed.blocks or parsed.final:
        return parsed
    result = _parse(text, drafts=False)
    return replace(result, fault=faults.TO_COME) if result.final and parsed.words and not result.fault else result


def _parse(text: str, *, drafts: bool) -> ParsedReply:
    parts = list(_read_parts(lines := text.split("\n"), drafts))
    own_text = "\n".join(lines[: sum(len(part.lines) for part in parts)])
    texts = [part for part in parts if part.kind not in ("python", "draft") and any(map(str.strip, part.lines))]
    words = "\n".join(line for part in texts for line in part.lines).strip()
    words = texts[0].code if len(texts) == 1 and texts[0].kind != "prose" else words
    if blocks := tuple(CodeBlock(part.code, part.cut) for part in parts if part.kind == "python"):
        fault = faults.explain_date(block.code for block in blocks) if re.search(r"FINAL\(\s*\d", own_text) else ""
        return ParsedReply(() if fault else blocks, None, words, own_text, fault)
    hidden = "\n".join(line if part.kind == "prose" else " " * len(line) for part in parts for line in part.lines)
    finals = list(_find_finals(own_text, hidden))
    first = next((i for i, part in enumerate(parts) if part.kind != "prose"), len(parts))
    before = dedent("\n".join(line for part in parts[:first] for line in part.lines)).strip("\n")
    if acts(before) and all(part.kind == "loose" and not is_code(part.code) for part in parts[first : first + 1]):
        return ParsedReply((CodeBlock(before),), None if "\n" in before or not finals else finals[0], "", own_text)
    results: list[CodeBlock] = []
    for part in [part for part in parts if part.kind in ("loose", "other")] or [_Part("other", [], own_text.strip())]:
        is_final = any(part.code in final.text for final in finals)  # a fence within an answer
        if part.kind == "loose" and not is_final and (acts(part.code) if finals else is_code(part.code)):
            results.append(CodeBlock(part.code))
        elif re.search(r'"(?:arguments|parameters|args|code)"[ \t]*:', part.code):
            results += map(CodeBlock, codes_of_json(part.code))
    if results:  # a fence that does not run stays in the words: a name beside it is not looked up
        words = hidden.strip() if len(results) == sum(part.kind in ("loose", "other") for part in parts) else words
        return ParsedReply(tuple(results), None, words, own_text)
    return ParsedReply((), finals[-1] if finals else None, words, own_text, faults.explain(own_text, hidden, finals))


def _read_parts(lines: list[str], drafts: bool) -> Iterator[_Part]:
    """The parts of a reply, up to a turn that it invents."""
    offset, tries, has_text, after_code = 0, [_TRIES], False, False
    while offset < len(lines):
        line = lines[offset]
        if has_text and (_TURN.match(line) or (after_code and _TURN_AFTER_CODE.match(line))):
            return
        has_text = has_text or line.strip() != ""
        for part in _read_block(lines, offset, tries, drafts):
            yield part
            offset += len(part.lines)
            after_code = not part.cut and (part.kind in ("python", "loose") or (after_code and not line.strip()))


def _read_block(lines: list[str], start: int, tries: list[int], drafts: bool) -> list[_Part]:
    """The block that begins with line `start`, else that line; for calls, a part for each and one for their text."""
    line = lines[start]
    opening = _FENCE.match(line)
    if opening is None and (begin := line.rfind("```")) > 0 and _PYTHON.fullmatch(line[begin + 3 :].strip()):
        opening = _FENCE.match(line[begin:].strip())  # behind words
    if opening is not None:
        part, first = _read_fence(lines, start, opening, tries), opening.string[opening.end() :].strip()
        if first and part.kind == "python" and (acts(first) or assigned_names([first])):
            attribute = _ATTRIBUTE.match(first)  # `x=1` is none where the block has the name: it would read an older x
            if not attribute or re.search(rf"\b{attribute[1]}\b", part.code):
                part.code = f"{first}\n{part.code}"
        return [part]
    if call := _CALL.search(line):
        text = "\n".join([line[call.start() :], *lines[start + 1 :]])
        return [*(_Part("python", [], code) for code in _codes_of_calls(text)), _Part("other", lines[start:])]
    if drafts and tries[0] > 0 and (draft := _DRAFT.match(line)):
        ends = (i for i in range(start, len(lines)) if f"</{draft[1]}>" in lines[i])
        if (end := next(ends, None)) is not None:
            return [_Part("draft", lines[start : end + 1])]
        tries[0] -= 10
    for opens, closes in _MARKS:
        if tries[0] > 0 and (match := opens.match(line)):
            body = [line[match.end() :], *lines[start + 1 :]]
            end = next((i for i, item in enumerate(body) if closes.search(item)), None)
            code = "\n".join(body if end is None else [*body[:end], closes.split(body[end], 1)[0]])
            if not compiles(dedent(code).strip()):
                fence = re.search(r"^[ \t]*`{3}.*", code, re.MULTILINE) if end is None else None
                code = _CUT_END.sub("", code[: fence.end()] if fence else code)
                end = code.count("\n") + 1 if fence else end
            if is_code(code := dedent(code).strip("\n").rstrip()):
                used = len(body) if end is None else end + 1
                is_cut = end is None and opens is not _MARKS[-1][0]
                return [_Part("python", lines[start : start + used], code, cut=is_cut)]
            tries[0] -= 10
    return [_Part("prose", [line])]


def _read_fence(lines: list[str], row: int, opening: re.Match[str], tries: list[int]) -> _Part:
    """A fenced block. One of Python ends at the first fence before which its code is complete."""
    margin, mark, row = len(opening["margin"]), opening["mark"], row + 1
    is_python = _PYTHON.fullmatch(opening["tag"]) is not None
    if not is_python:
        ends = ((i, last) for i in range(row, len(lines)) if (last := _before_fence(lines[i], mark, False)) is not None)
        end, last = next(ends, (len(lines), ""))
        code = _dedent([*lines[row:end], last] if last else lines[row:end], margin)
        code = code.partition("\n")[2] if _MARKS[-1][0].fullmatch(code.partition("\n")[0]) else code
        return _Part("other" if opening["tag"] else "loose", lines[row - 1 : end + 1], code, end == len(lines))
    in_comment = broken = None
    for end in range(row, len(lines)):
        last = _before_fence(lines[end], mark, True)
        opens = last is None and (following := _FENCE.match(lines[end])) is not None and following["mark"] == mark
        if last is None and not opens:  # one that opens the next block closes this one
            continue
        code = _dedent([*lines[row:end], last] if last else lines[row:end], margin)
        part = _Part("python", lines[row - 1 : end if opens else end + 1], code)
        if tries[0] <= 0 or (opens and in_comment):
            return in_comment or broken or part
        if is_complete := compiles(code):
            if "#" not in (last or ""):
                return part
            in_comment = in_comment or part  # the fence may be part of the comment
        elif not last and not opens and in_comment:
            return in_comment
        elif not opens:
            broken = broken or part
        tries[0] -= not is_complete
    code = re.sub(rf"\n[ \t]*{mark[0]}{{1,2}}\Z", "", _dedent(lines[row:], margin))
    rest = _Part("python", lines[row - 1 :], code, cut=True)
    return rest if compiles(code) else in_comment or broken or rest


def _before_fence(line: str, mark: str, is_python: bool) -> str | None:
    """The code before the fence that ends a block on this line; None where none does."""
    line = line.rstrip()
    end = _END.search(line) if is_python and not line.endswith(mark) else None
    before = line[: end.start()].rstrip() if end else line
    if line.endswith(mark) or (end and (not before or before.endswith(mark))):
        return before.rstrip(mark[0]).rstrip() and before.rstrip(mark[0])
    return None


def _codes_of_calls(text: str) -> Iterator[str]:
    """The code of each call written as text: its only parameter, the only argument of its JSON, or all that it has."""
    for call in _CALL.split(text):
        parameters = [part for part in _PARAMETER.split(call)[1::2] if part.strip()]
        if "{" in call and not parameters:
            results = list(codes_of_json(call[call.index("{") :]))
        elif parameters:
            results = [dedent(part).strip("\n") for part in parameters if len(parameters) == 1]
        else:
            results = [re.split(r"</|<[|｜]", call.partition(">")[2], maxsplit=1)[0].strip()]
        yield from (code for code in results if is_code(code))


def codes_of_json(text: str) -> Iterator[str]:
    """The code that is the only argument of each call, in a text of JSON objects."""
    decoder = json.JSONDecoder(strict=False)
    offset = text.find("{") if text.lstrip()[:1] in ("{", "[") else -1
    while offset >= 0:
        try:
            value, offset = decoder.raw_decode(text, offset)
        except (ValueError, RecursionError):
            return
        while isinstance(value, dict):
            inner = next((value[name] for name in _ARGUMENTS if isinstance(value.get(name), (dict, str))), None)
            own = [item for name, item in value.items() if name not in _NO_ARGUMENTS]
            value = own[0] if inner is None and len(own) == 1 else inner
        if isinstance(value, str):
            yield from codes_of_json(value) if value.lstrip().startswith("{") else filter(is_code, [value])
        offset = text.find("{", offset)


def _find_finals(text: str, hidden: str) -> Iterator[TextFinal]:
    """The answers in words of a text; in `hidden` its blocks are blank."""
    masked = _SMILEY.sub(lambda match: match[0][:-1] + "_", hidden)
    for match in islice(_FINAL.finditer(hidden), _TRIES // 2):
        start, is_sure = match.end(), True
        literals = islice(re.compile(r"\)").finditer(text, start), _TRIES if _LITERAL.match(text, start) else 0)
        end = next((item.start() for item in literals if call_of(text[start : item.start()])), -1)
        if end < 0 and (end := _balance(masked, start)) >= 0:
            stop = next((item.start() for item in _FINAL.finditer(hidden, end)), len(hidden))
            if _LINE_END.match(hidden, end + 1):
                stop = end if "\n" not in hidden[start:end] else max(hidden.find("\n\n", end, stop), 0) or stop
            is_sure = _balance(masked[:stop], end + 1) < 0
            end = end if is_sure else max(end, hidden.rfind(")", 0, stop))  # all of it, for a forced answer
        inside = text[start:end].strip()
        ends_line = _LINE_END.match(hidden, end + 1 + len(match["mark"] or "")) is not None
        if end < 0 or not inside or (match["mark"] and is_sure and not ends_line):
            continue
        answer, claims = read_written(inside, call := call_of(inside))
        value = answer.strip("\"'`") if (is_name := match["name"] == "FINAL_VAR") else answer
        yield TextFinal(value, is_name, claims, call, (match.start(), end + 1), is_sure, ends_line)


def _balance(text: str, start: int) -> int:
    """The offset of the parenthesis that closes one before `start`; -1 if none does."""
    depth = 1
    for match in re.compile("[()（）]").finditer(text, start):
        depth += 1 if match[0] in "(（" else -1
        if depth == 0:
            return match.start()
    return -1


def _dedent(lines: Sequence[str], margin: int) -> str:
    """The code without the margin of its fence; without the margin that all lines share, if only that compiles."""
    code = "\n".join(line[min(margin, len(line) - len(line.lstrip(" \t"))) :] for line in lines)
    even = dedent(code)
    return even if even != code and not compiles(code) and compiles(even) else code
