"""Parse a reply of the model: code blocks to run, or a final answer in text. Pure.

Rules, each with a case in the tests:
- code is in fences, as `rlm.prompts.code` reads them; no other language ever runs;
- where there is no such block and no answer, blocks without a tag run if they act, and so does a reply that is code
  and nothing else, with a bare line `repl` before it or a lone fence after it;
- a reply that stops inside a block gives a block marked `cut`, which runs only if it is complete source;
- `FINAL(...)`, `FINAL_VAR(...)` and `SUBMIT(...)` count at the start of a line, outside fences, where there is no code;
  a fence inside their parentheses, with words around it, is part of the answer;
- `Final(...)` counts where it is the whole reply, of one line: small models write it so;
- text in closed tags that name a draft (`<plan>`, `<analysis>`) does not count where code or an answer follows;
- a date or a number with commas alone in a `FINAL(...)` of code is text: as Python it would be another number;
- a turn that the reply invents ends it: neither code nor answers count after that;
- the text of a reply outside its code is its words: they count when an answer was demanded, or none came.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rlm.prompts.code import OPENING, FencedBlock, acts, gives_answer, may_open, read_fence, whole_code
from rlm.prompts.code import CodeBlock as CodeBlock
from rlm.prompts.faults import explain
from rlm.prompts.finals import FINAL, FINALS_TRIED, read_finals
from rlm.prompts.finals import TextFinal as TextFinal
from rlm.prompts.finals import find_final as find_final
from rlm.runners.syntax import compiles

_CODE = re.compile(r"[=(\[]")
"""Characters that a sentence fenced as code by mistake hardly has."""

_DRAFT = re.compile(
    r"^[ \t]*(?:<|&lt;)(analysis|plan|planning|draft|deliberation|brainstorm|critique|internal\w*|reasoning_\w+"
    r"|think\w*|thought|details(?= type=\"reasoning\"))\b[^<>\n]*?(?:>|&gt;)",
    re.MULTILINE | re.IGNORECASE,
)
_NO_SUM = re.compile(
    r"^([ \t]*FINAL\([ \t]*)(\d{4}([-/])\d\d?\3\d\d?|\d\d?([-/])\d\d?\4\d{4}|\d{1,3}(?:,\d{3})+)"
    r"(?=[ \t]*(?:\)|,[ \t]*sources\b))",
    re.MULTILINE,
)
"""A date or a number with commas, without quotes, in a `FINAL(...)` of code."""

_UNSEEN = "\ufeff\u200b\u00a0"
"""Characters before a reply that hide a fence or an answer at the start of its first line."""

_OPENINGS_TRIED = 50
"""The most lines that may open code without a fence, and do not: each costs a parse of the lines after it."""

_TURN = re.compile(
    r"[ \t#*_]*(?:Turn \d+/\d+[.:]|Turn \d+:|REPL output(?: \(block \d+\))?:|REPL variables:)"
    r"|<\|(?:im_start|im_end|start_header_id|eot_id|end_of_turn)\|>|<start_of_turn>|<end_of_turn>"
)
_TURN_AFTER_CODE = re.compile(
    r"[ \t#*_>\[]*(?:(?:(?:repl|execution|code|console|expected|program|python) )?output(?: \(block \d+\))?[*_\]]*:"
    r"|(?:output|stdout)[*_#]*[ \t]*$|results?[*_]*:[*_]*[ \t]*$|stdout:|observation:|Out\[\d+\]:|<output>"
    r"|(?:`{3,}|~{3,})[ \t]*(?:output|stdout)\b"
    r"|(?:user|human|assistant|system)[*_]*:)",
    re.IGNORECASE,
)
"""How the REPL and the user begin what they alone write: a reply that goes on so has invented the next turn."""


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """The requests in one reply: code, or an answer, or neither."""

    blocks: tuple[CodeBlock, ...]
    """Code to run, in order."""
    final: TextFinal | None
    """An answer in text; always None where there are blocks."""
    words: str = ""
    """The text of the reply outside its code; for a reply that is one fenced block of text, its content."""
    own_text: str = ""
    """The reply, up to a turn that it invents."""
    fault: str = ""
    """The advice for code or an answer that did not count; empty if there is none."""

    @property
    def answering(self) -> tuple[CodeBlock, ...]:
        """The blocks, if one of them gives an answer; else none."""
        return self.blocks if any(gives_answer(block.code) for block in self.blocks) else ()

    @property
    def fenced_words(self) -> str:
        """Sentences that were fenced as code by mistake."""
        texts = [block.code for block in self.blocks if not (_CODE.search(block.code) or compiles(block.code))]
        return "\n".join(texts).strip()


def parse_reply(text: str) -> ParsedReply:
    """The code blocks of a reply and, where it has none, its textual final answer."""
    text = text.replace("\r\n", "\n")
    if end := _end_of_draft(text):
        rest = _parse(text[end:])
        if rest.blocks or rest.final:
            return replace(rest, own_text=text[:end] + rest.own_text)
    return _parse(text)


def _end_of_draft(text: str) -> int:
    """The end of sections that name themselves a draft; 0 where code or an answer comes before."""
    end = 0
    while opening := _DRAFT.search(text, end):
        before = text[end : opening.start()]
        closing = re.compile(rf"(?:<|&lt;)/{opening[1]}[ \t]*(?:>|&gt;)", re.IGNORECASE).search(text, opening.end())
        if closing is None or FINAL.search(before) or any(map(may_open, before.split("\n"))):
            break
        end = closing.end()
    return end


@dataclass(slots=True)
class _Sections:
    """The lines of a reply, sorted into blocks and the text around them."""

    blocks: list[CodeBlock] = field(default_factory=list)
    """Blocks of Python."""
    other_fences: list[FencedBlock] = field(default_factory=list)
    """Fenced blocks without a tag, or in another language."""
    prose: list[str] = field(default_factory=list)
    """Lines outside all fences, with an empty line in place of each fence."""
    words: list[str] = field(default_factory=list)
    """Lines outside the blocks of Python."""
    line_count: int = 0
    """The lines of the reply, up to a turn that it invents."""


def _parse(text: str) -> ParsedReply:
    lines = text.split("\n")
    lines[0] = lines[0].lstrip(_UNSEEN)
    sections = _read_sections(lines)
    own_text = "\n".join(lines[: sections.line_count])
    words = _strip_fence("\n".join(sections.words).strip())
    if sections.blocks:
        quoted = (replace(block, code=_NO_SUM.sub(r'\1"\2"', block.code)) for block in sections.blocks)
        return ParsedReply(tuple(quoted), None, words, own_text)
    others, prose = sections.other_fences, "\n".join(sections.prose)
    final = find_final(prose)
    if found := _code_without_fence(own_text, prose, others, final):
        return ParsedReply(found, None, prose.strip() if others else "", own_text)
    if final is None and not prose.strip() and len(others) == 1 and not others[0].tag:
        final = find_final(others[0].block.code)
    return ParsedReply((), final, words, own_text, "" if final else explain(own_text, others))


def _read_sections(lines: Sequence[str]) -> _Sections:
    """Sort the lines of a reply, up to the first line that opens an invented turn."""
    found = _Sections()
    at = finals = failed_openings = 0
    has_text = after_code = False
    while at < len(lines):
        line = lines[at]
        if has_text and _begins_turn(line, after_code=after_code):
            break
        has_text = has_text or line.strip() != ""
        fence = None
        if may_open(line) and (failed_openings < _OPENINGS_TRIED or OPENING.match(line)):
            fence = read_fence(lines, at)
            failed_openings += fence is None
        if fence is None:
            after_code = after_code and not line.strip()
            is_final = FINAL.match(line) is not None
            finals += is_final
            taken = _lines_of_final(lines, at) if is_final and finals <= FINALS_TRIED else 1
            found.prose += lines[at : at + taken]
            found.words += lines[at : at + taken]
            at += taken
            continue
        after_code = fence.is_closed and (fence.is_python or not fence.tag)
        if fence.is_python:
            found.blocks.append(fence.block)
        else:
            found.other_fences.append(fence)
            found.words += lines[at : at + fence.line_count]
        found.prose.append("")
        at += fence.line_count
    found.line_count = at
    return found


def _code_without_fence(
    own_text: str, prose: str, others: Sequence[FencedBlock], final: TextFinal | None
) -> tuple[CodeBlock, ...]:
    """Code that is not in a fence of Python: the whole reply, or its blocks without a tag. Empty if none acts."""
    if not any(fence.tag for fence in others) and (block := whole_code(own_text)):
        return (block,)
    if final is not None:
        match = FINAL.search(prose)
        before = prose[: match.start()] if match and not others else ""
        return (CodeBlock(before.strip("\n")),) if acts(before) else ()
    if len(others) == 1 and not (others[0].tag or others[0].is_closed):
        # The fence closes code that lacks an opening one.
        before = re.split(r"^[ \t]*(?:`{3,}|~{3,})[ \t]*$", own_text, maxsplit=1, flags=re.MULTILINE)[0]
        if block := whole_code(before):
            return (block,)
    return tuple(block for fence in others if not fence.tag and (block := whole_code(fence.block.code)))


def _lines_of_final(lines: Sequence[str], at: int) -> int:
    """The number of lines from `at` that an answer takes; 1 if a block is the whole answer, to be read as a block."""
    rest = "\n".join(lines[at:])
    match, found = FINAL.match(rest), next(read_finals(rest, 1), None)
    if match is None or found is None:
        return 1
    _, end = found
    if match.end() > end or FINAL.search(rest, match.end(), end):
        return 1
    inside = rest[match.end() : end - 1]
    if OPENING.match(next((line for line in inside.split("\n") if line.strip()), "")):
        return 1
    return rest.count("\n", 0, end) + 1


def _strip_fence(text: str) -> str:
    """The content of a text that is one fenced block; any other text as it is."""
    first, _, rest = text.partition("\n")
    opening = OPENING.match(first)
    if opening is None:
        return text
    inside, _, last = rest.rpartition("\n")
    mark = opening["mark"]
    return inside.strip() if last.strip() == mark and mark not in inside else text


def _begins_turn(line: str, *, after_code: bool) -> bool:
    """Whether a line opens an invented turn; `after_code`: it is the first one after a block that ended."""
    return _TURN.match(line) is not None or (after_code and _TURN_AFTER_CODE.match(line) is not None)
