"""Parse a reply of the model into code to run, or an answer in words. Does no I/O; each step takes linear time.

A reply is read into parts, from its first line on: prose, code, and text that is neither. Models write code in four
ways: in fences, between other marks (a row of `MARK_PAIRS` each), as calls of tools (`written_calls`), and as a reply
that is nothing but code; `docs/decisions/012-rlm-loop.md` lists them. In a reply without code, `FINAL(...)` at the
start of a line is an answer in words (`text_final`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from textwrap import dedent
from typing import Literal, NamedTuple

from rlm.prompts import faults, marks
from rlm.prompts.written_calls import CALL_MARK, codes_of_calls, codes_of_json
from rlm.runners.syntax import assigned_names, compiles, does_something, is_code, statements_of
from rlm.runners.text_final import TextFinal, find_finals

_INVISIBLE = "\ufeff\u200b\u00a0"  # characters that hide a fence at the start of a reply
_SMALL_FINAL = re.compile(r"\A(\s*)Final(?=\([^\n]*\)\s*\Z)")  # small models spell `FINAL` so, as their whole reply
_DATE = re.compile(r"FINAL\(\s*\d")  # perhaps a date without quotes, which `faults.explain_date` looks for
_JSON_CALL = re.compile(r'"(?:arguments|parameters|args|code)"[ \t]*:')

_FENCE_LINE = re.compile(r"^[ \t]*`{3}.*", re.MULTILINE)
_MOST_TRIES = 50  # the most places at which blocks of a reply are tried to end: each try parses the text before
_SEARCH_TRIES = 10  # the tries that a search up to the end of the reply costs


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """The code of one block of a reply."""

    code: str  # source, dedented, without its marks
    cut: bool = False  # the reply ended before the end of this block: it may run only if it is complete source


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """What one reply asks for: code to run, an answer, or neither."""

    blocks: tuple[CodeBlock, ...] = ()  # code to run, in order
    final: TextFinal | None = None  # an answer in words; beside a block, that block read as words
    words: str = ""  # the text of the reply outside its code; for a reply that is one fence, its content
    own_text: str = ""  # the reply, up to a turn that it invents
    fault: str = ""  # why its code or answer does not count, in a sentence for the model; empty if it does


@dataclass(slots=True)
class _Part:
    """Consecutive lines of a reply of one kind. `loose`: a fence without a tag; `other`: a fence of another language,
    or the text of tool calls."""

    kind: Literal["prose", "python", "loose", "other", "draft"]
    lines: list[str]
    code: str = ""
    cut: bool = False


class _BlockEnd(NamedTuple):
    """A line at which a block of Python may end."""

    number: int  # of the line
    code: str  # the text on it before the mark
    opens_next: bool  # whether it opens the next block, and so does not belong to this one


def parse_reply(text: str) -> ParsedReply:
    """The code blocks of a reply; if it has none, its answer in words."""
    text = _SMALL_FINAL.sub(r"\1FINAL", text.replace("\r\n", "\n").lstrip(_INVISIBLE))
    parsed = _parse(text, skips_drafts=True)
    if parsed.blocks or parsed.final:
        return parsed
    all_parsed = _parse(text, skips_drafts=False)
    if all_parsed.final and parsed.words and not all_parsed.fault:
        # An answer that stands only in a draft is still to come.
        return replace(all_parsed, fault=faults.TO_COME)
    return all_parsed


def _parse(text: str, *, skips_drafts: bool) -> ParsedReply:
    """What a reply asks for. `skips_drafts`: whether code and answers between marks such as <plan> are left out."""
    lines = text.split("\n")
    parts = list(_Reader(lines, skips_drafts).read_parts())
    own_text = "\n".join(lines[: sum(len(part.lines) for part in parts)])
    words = _words_of(parts)
    blocks = tuple(CodeBlock(part.code, part.cut) for part in parts if part.kind == "python")
    if not blocks:
        return _parse_without_blocks(parts, own_text, words)
    fault = faults.explain_date(block.code for block in blocks) if _DATE.search(own_text) else ""
    return ParsedReply(() if fault else blocks, None, words, own_text, fault)


def _words_of(parts: Sequence[_Part]) -> str:
    """The text of a reply outside its code and drafts; if that is one fence, its content."""
    texts = [part for part in parts if part.kind not in ("python", "draft") and any(map(str.strip, part.lines))]
    if len(texts) == 1 and texts[0].kind != "prose":
        return texts[0].code
    return "\n".join(line for part in texts for line in part.lines).strip()


def _parse_without_blocks(parts: Sequence[_Part], own_text: str, words: str) -> ParsedReply:
    """What a reply without a Python block holds: code that lacks its marks, else an answer in words, else a fault."""
    hidden = "\n".join(line if part.kind == "prose" else " " * len(line) for part in parts for line in part.lines)
    finals = list(find_finals(own_text, hidden))
    if code := _leading_code(parts):
        final = finals[0] if finals and "\n" not in code else None
        return ParsedReply((CodeBlock(code),), final, "", own_text)
    fences = [part for part in parts if part.kind in ("loose", "other")]
    codes = list(_codes_of_fences(fences or [_Part("other", [], own_text.strip())], finals))
    if codes:  # a fence that does not run stays in the words: a name beside it is not looked up
        words = hidden.strip() if len(codes) == len(fences) else words
        return ParsedReply(tuple(map(CodeBlock, codes)), None, words, own_text)
    if not finals:
        return ParsedReply((), None, words, own_text, faults.explain_code(own_text, hidden))
    return ParsedReply((), finals[-1], words, own_text, faults.explain_answers(own_text, hidden, finals))


def _leading_code(parts: Sequence[_Part]) -> str:
    """The code of a reply that is nothing but code, up to a fence of text that may follow; empty for others."""
    prose = list(takewhile(lambda part: part.kind == "prose", parts))
    code = dedent("\n".join(line for part in prose for line in part.lines)).strip("\n")
    following = parts[len(prose) :]
    if not does_something(code) or (following and (following[0].kind != "loose" or is_code(following[0].code))):
        return ""
    return code


def _codes_of_fences(fences: Sequence[_Part], finals: Sequence[TextFinal]) -> Iterator[str]:
    """Yield the code in fences without a tag, and in the JSON of calls. Beside answers, a fence must do something."""
    counts_as_code = does_something if finals else is_code
    for part in fences:
        is_in_answer = any(part.code in final.text for final in finals)
        if part.kind == "loose" and not is_in_answer and counts_as_code(part.code):
            yield part.code
        elif _JSON_CALL.search(part.code):
            yield from codes_of_json(part.code)


@dataclass(slots=True)
class _Reader:
    """Reads the lines of a reply into parts."""

    lines: list[str]
    skips_drafts: bool
    tries: int = _MOST_TRIES  # the number of tries that are left

    def read_parts(self) -> Iterator[_Part]:
        """Yield the parts of a reply, up to a turn that it invents: a model does not write outputs and questions."""
        offset, has_text, after_code = 0, False, False
        while offset < len(self.lines):
            line = self.lines[offset]
            if has_text and (marks.INVENTED_TURN.match(line) or (after_code and marks.INVENTED_OUTPUT.match(line))):
                return
            has_text = has_text or line.strip() != ""
            for part in self._read_block(offset):
                yield part
                offset += len(part.lines)
                after_code = not part.cut and (part.kind in ("python", "loose") or (after_code and not line.strip()))

    def _read_block(self, start: int) -> list[_Part]:
        """The block that begins with line `start`, else that line; for calls, a part each and one for their text."""
        line = self.lines[start]
        opening = marks.OPENING_FENCE.match(line) or _fence_behind_words(line)
        if opening and marks.PYTHON_TAG.fullmatch(opening["tag"]):
            part = self._read_python(start, opening)
            first = opening.string[opening.end() :].strip()
            if first and _is_code_on_fence(first, part.code):
                part.code = f"{first}\n{part.code}"
            return [part]
        if opening:
            return [self._read_other_fence(start, opening)]
        if call := CALL_MARK.search(line):
            text = "\n".join([line[call.start() :], *self.lines[start + 1 :]])
            return [*(_Part("python", [], code) for code in codes_of_calls(text)), _Part("other", self.lines[start:])]
        return [self._read_draft(start) or self._read_marked(start) or _Part("prose", [line])]

    def _read_python(self, start: int, opening: re.Match[str]) -> _Part:
        """A fenced block of Python. It ends at the first fence before which its code is complete, since strings and
        comments may hold fences; without such a fence, at the first one, or with the reply."""
        lines, margin, mark = self.lines, len(opening["margin"]), opening["mark"]
        up_to_comment: _Part | None = None  # the first complete code whose closing fence may be part of a comment
        up_to_first_fence: _Part | None = None  # if the code before it is not complete
        for end in self._possible_ends(start, mark):
            code = _dedent([*lines[start + 1 : end.number], *filter(None, [end.code])], margin)
            part = _Part("python", lines[start : end.number if end.opens_next else end.number + 1], code)
            if self.tries <= 0 or (end.opens_next and up_to_comment):
                return up_to_comment or up_to_first_fence or part
            if statements_of(code) is not None:
                if "#" not in end.code:
                    return part
                up_to_comment = up_to_comment or part
                continue
            if up_to_comment and not end.code:
                return up_to_comment
            if not end.opens_next:
                up_to_first_fence = up_to_first_fence or part
            self.tries -= 1
        # Without half of a fence, at which the reply was cut.
        code = re.sub(rf"\n[ \t]*{mark[0]}{{1,2}}\Z", "", _dedent(lines[start + 1 :], margin))
        rest = _Part("python", lines[start:], code, cut=True)
        return rest if compiles(code) else up_to_comment or up_to_first_fence or rest

    def _possible_ends(self, start: int, mark: str) -> Iterator[_BlockEnd]:
        """Yield the lines at which a block with this mark may end: another fence, or a closing mark, which may stand
        behind a fence or in place of it."""
        for number in range(start + 1, len(self.lines)):
            line = self.lines[number].rstrip()
            closing = None if line.endswith(mark) else marks.CLOSING_MARKS.search(line)
            rest = line[: closing.start()].rstrip() if closing else line
            code = "" if closing and not rest else _before_fence(rest, mark)
            opening = marks.OPENING_FENCE.match(self.lines[number]) if code is None else None
            if code is not None or (opening and opening["mark"] == mark):
                yield _BlockEnd(number, code or "", opens_next=opening is not None)

    def _read_other_fence(self, start: int, opening: re.Match[str]) -> _Part:
        """A fenced block of another language, or without a tag. It ends at the first fence."""
        ends = ((i, _before_fence(self.lines[i], opening["mark"])) for i in range(start + 1, len(self.lines)))
        end, last = next((item for item in ends if item[1] is not None), (len(self.lines), ""))
        body = self.lines[start + 1 : end]
        code = _dedent([*body, last] if last else body, len(opening["margin"]))
        first, _, rest = code.partition("\n")
        kind: Literal["loose", "other"] = "other" if opening["tag"] else "loose"
        code = rest if marks.BARE_TAG.fullmatch(first) else code
        return _Part(kind, self.lines[start : end + 1], code, cut=end == len(self.lines))

    def _read_draft(self, start: int) -> _Part | None:
        """The draft that begins with line `start`; None if none does, or if it does not end."""
        draft = marks.DRAFT_MARK.match(self.lines[start]) if self.skips_drafts and self.tries > 0 else None
        if draft is None:
            return None
        for end in range(start, len(self.lines)):
            if f"</{draft[1]}>" in self.lines[end]:
                return _Part("draft", self.lines[start : end + 1])
        self.tries -= _SEARCH_TRIES
        return None

    def _read_marked(self, start: int) -> _Part | None:
        """The block of code between other marks that begins with line `start`; None if none does."""
        for opens, closes in marks.MARK_PAIRS:
            match = opens.match(self.lines[start]) if self.tries > 0 else None
            if match is None:
                continue
            part = self._read_between(start, match.end(), closes)
            if part is not None:
                part.cut = part.cut and opens is not marks.BARE_TAG
                return part
            self.tries -= _SEARCH_TRIES
        return None

    def _read_between(self, start: int, column: int, closes: re.Pattern[str]) -> _Part | None:
        """The code from a column of line `start` to a closing mark, else a fence or the end; None if it is not code."""
        body = [self.lines[start][column:], *self.lines[start + 1 :]]
        end = next((i for i, line in enumerate(body) if closes.search(line)), None)  # the line that ends the block
        code = "\n".join(body if end is None else [*body[:end], closes.split(body[end], 1)[0]])
        if not compiles(dedent(code).strip()):
            if end is None and (fence := _FENCE_LINE.search(code)):  # it ends at a fence after all
                code, end = code[: fence.end()], code.count("\n", 0, fence.start())
            code = marks.HALF_MARK.sub("", code)  # the line of that fence, or the part of a mark at which it was cut
        code = dedent(code).strip("\n").rstrip()
        used = len(body) if end is None else end + 1
        return _Part("python", self.lines[start : start + used], code, cut=end is None) if is_code(code) else None


def _fence_behind_words(line: str) -> re.Match[str] | None:
    """The opening fence of Python at the end of a line of words, as in "I look: ```repl"."""
    begin = line.rfind("```")
    is_fence = begin > 0 and marks.PYTHON_TAG.fullmatch(line[begin + 3 :].strip())
    return marks.OPENING_FENCE.match(line[begin:].strip()) if is_fence else None


def _is_code_on_fence(first: str, code: str) -> bool:
    """Whether the text behind an opening fence is code. `x=1` is an attribute, unless `code` uses the name `x`:
    without the assignment, it would have the value of an earlier turn."""
    attribute = marks.FENCE_ATTRIBUTE.match(first)
    is_code_line = does_something(first) or assigned_names([first])
    return bool(is_code_line and (not attribute or re.search(rf"\b{attribute[1]}\b", code)))


def _before_fence(line: str, mark: str) -> str | None:
    """The code on a line before the fence that ends its block; None if the line does not end with one."""
    line = line.rstrip()
    before = line.rstrip(mark[0])
    return (before if before.strip() else "") if line.endswith(mark) else None


def _dedent(lines: Sequence[str], margin: int) -> str:
    """The code without the margin of its fence, or if only that compiles, without the margin that all lines share."""
    code = "\n".join(line[min(margin, len(line) - len(line.lstrip(" \t"))) :] for line in lines)
    even = dedent(code)
    return even if even != code and not compiles(code) and compiles(even) else code
