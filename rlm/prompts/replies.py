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
from dataclasses import dataclass, replace

from rlm.prompts.code import OPENING as _OPENING
from rlm.prompts.code import CodeBlock as CodeBlock
from rlm.prompts.code import Fence, acts, gives_answer, may_open, read_fence, whole_code
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
"""A date or a number with commas that an answer in code holds without quotes."""

_UNSEEN = "\ufeff\u200b\u00a0"
"""Characters before a reply that hide a fence or an answer at the start of its first line."""

_OPENINGS_TRIED = 50
"""The most lines that may open code without a fence, and do not: each costs a parse of the lines after it."""

_TURN = re.compile(
    r"[ \t#*_]*(?:Turn \d+/\d+[.:]|Turn \d+:|REPL output(?: \(block \d+\))?:|REPL variables:)"
    r"|<\|(?:im_start|im_end|start_header_id|eot_id|end_of_turn)\|>|<start_of_turn>|<end_of_turn>"
)
_TURN_BEHIND_CODE = re.compile(
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
    said: str = ""
    """The reply up to a turn that it invents."""
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
        behind = _parse(text[end:])
        if behind.blocks or behind.final:
            return replace(behind, said=text[:end] + behind.said)
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


def _parse(text: str) -> ParsedReply:
    lines = text.split("\n")
    lines[0] = lines[0].lstrip(_UNSEEN)
    blocks: list[CodeBlock] = []
    others: list[Fence] = []
    prose: list[str] = []
    words: list[str] = []
    at = 0
    finals = failed = 0
    begun = behind_code = False
    while at < len(lines):
        line = lines[at]
        if begun and _begins_turn(line, behind_code=behind_code):
            break
        begun = begun or line.strip() != ""
        fence = None
        if may_open(line) and (failed < _OPENINGS_TRIED or _OPENING.match(line)):
            fence = read_fence(lines, at)
            failed += fence is None
        if fence is None:
            behind_code = behind_code and not line.strip()
            finals += (is_final := FINAL.match(line) is not None)
            taken = _lines_of_final(lines, at) if is_final and finals <= FINALS_TRIED else 1
            prose += lines[at : at + taken]
            words += lines[at : at + taken]
            at += taken
            continue
        behind_code = fence.closed and (fence.is_python or not fence.tag)
        if fence.is_python:
            blocks.append(fence.block)
        else:
            others.append(fence)
            words += lines[at : at + fence.line_count]
        prose.append("")
        at += fence.line_count
    said = "\n".join(lines[:at])
    rest = _strip_fence("\n".join(words).strip())
    if blocks:
        quoted = (replace(block, code=_NO_SUM.sub(r'\1"\2"', block.code)) for block in blocks)
        return ParsedReply(tuple(quoted), None, rest, said)
    final = find_final("\n".join(prose))
    found = _code_without_fence(said, prose, others, final)
    if found:
        return ParsedReply(found, None, "\n".join(prose).strip() if others else "", said)
    if final is None and not "".join(prose).strip() and len(others) == 1 and not others[0].tag:
        final = find_final(others[0].block.code)
    return ParsedReply((), final, rest, said, "" if final else explain(said, others))


def _code_without_fence(
    said: str, prose: Sequence[str], others: Sequence[Fence], final: TextFinal | None
) -> tuple[CodeBlock, ...]:
    """Blocks without a tag, or a reply that is code all through, as far as they act and there is no answer."""
    if not any(fence.tag for fence in others) and (block := whole_code(said)):
        return (block,)
    text = "\n".join(prose)
    if final is None and len(others) == 1 and not (others[0].tag or others[0].closed):  # closes an unopened fence
        before = re.split(r"^[ \t]*(?:`{3,}|~{3,})[ \t]*$", said, maxsplit=1, flags=re.MULTILINE)[0]
        if block := whole_code(before):
            return (block,)
    if final is not None:
        match = FINAL.search(text)
        before = text[: match.start()] if match and not others else ""
        return (CodeBlock(before.strip("\n")),) if acts(before) else ()
    return tuple(block for fence in others if not fence.tag and (block := whole_code(fence.block.code)))


def _lines_of_final(lines: Sequence[str], at: int) -> int:
    """How many lines from `at` an answer takes; a block that is all of it is read as a block."""
    rest = "\n".join(lines[at:])
    match, found = FINAL.match(rest), next(read_finals(rest, 1), None)
    if match is None or found is None or match.end() > found[1] or FINAL.search(rest, match.end(), found[1]):
        return 1
    inside = rest[match.end() : found[1] - 1]
    if (fence := next((i for i, line in enumerate(inside.split("\n")) if _OPENING.match(line)), None)) is not None:
        around = [line for line in inside.split("\n")[:fence] if line.strip()]
        if not around and not inside.strip().startswith(("'", '"')):
            return 1
    return rest.count("\n", 0, found[1]) + 1


def _strip_fence(text: str) -> str:
    """The content of a text that is one fenced block; any other text as it is."""
    first, _, rest = text.partition("\n")
    opening = _OPENING.match(first)
    if opening is None:
        return text
    inside, _, last = rest.rpartition("\n")
    mark = opening["mark"]
    return inside.strip() if last.strip() == mark and mark not in inside else text


def _begins_turn(line: str, *, behind_code: bool) -> bool:
    """Whether a line opens an invented turn; `behind_code`: it is the first one after a block that ended."""
    return _TURN.match(line) is not None or (behind_code and _TURN_BEHIND_CODE.match(line) is not None)
