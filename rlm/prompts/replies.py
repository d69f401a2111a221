"""Parse a reply of the model: code blocks to run, or a final answer in text. Pure.

Rules, each with a case in the tests:
- fences tagged `repl` or `python`, in any case, also indented or after a list marker; no other language ever runs;
- a block ends at the fence where its code is complete, so a fence inside a triple-quoted string does not end it;
- the closing fence may stand at the end of the last line of code;
- a reply that stops inside a block gives a block marked `cut`, which runs only if it is complete source;
- `FINAL(...)`, `FINAL_VAR(...)` and `SUBMIT(...)` count at the start of a line, outside fences, where there is no code;
- `Final(...)` counts where it is the whole reply, of one line: small models write it so;
- the text of a reply beside its code is its words: they count when an answer was demanded, or none came.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from rlm.runners.claims import Claim, split_claims
from rlm.runners.syntax import compiles, hide_syntax_warnings, parse

_OPENING = re.compile(r"([ \t]*(?:(?:[-*+]|\d+[.)])[ \t]+)?)(`{3,})[ \t]*([^`]*)$")
_FINAL = re.compile(r"^[ \t]*(FINAL_VAR|FINAL|SUBMIT)[ \t]*\(|\A\s*(Final)\((?=.*\)\s*\Z)", re.MULTILINE)
_LITERAL = re.compile(r"""\s*(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')\s*\)""", re.DOTALL)
_RUNS = ("repl", "python")
_CODE = re.compile(r"[=(\[]")
"""Characters that a sentence fenced as code by mistake hardly has."""
_WAYS = frozenset(("FINAL", "FINAL_VAR", "SUBMIT", "answer"))

# A string in a prompt holds a handful of fences; the bound keeps a reply of broken blocks from costing quadratic time.
_FENCES_TRIED = 50

# A model that repeats itself writes thousands of `FINAL(`; one that never closes costs a search to the end.
_FINALS_TRIED = 50
_ENDS_TRIED = 50


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """One code block, in the order of the reply."""

    code: str
    """Source, dedented, without its fences."""
    cut: bool = False
    """The reply ended before the closing fence."""

    @property
    def runs(self) -> bool:
        """False for a cut block that is not complete source: half a program must not run."""
        return not self.cut or compiles(self.code)


@dataclass(frozen=True, slots=True)
class TextFinal:
    """A final answer written as text."""

    text: str
    """The answer, or the name of the variable that holds it."""
    is_name: bool
    """True for `FINAL_VAR`."""
    claims: tuple[Claim, ...] = ()
    """What it says that it rests on."""


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """The requests in one reply: code, or an answer, or neither."""

    blocks: tuple[CodeBlock, ...]
    """Code to run, in order."""
    final: TextFinal | None
    """An answer in text; always None where there are blocks."""
    words: str = ""
    """The text of the reply beside its code; for a reply that is one fenced block of text, its content."""

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
    lines = text.replace("\r\n", "\n").split("\n")
    blocks: list[CodeBlock] = []
    prose: list[str] = []
    words: list[str] = []
    at = 0
    while at < len(lines):
        opening = _OPENING.match(lines[at])
        if opening is None:
            prose.append(lines[at])
            words.append(lines[at])
            at += 1
            continue
        margin, fence, info = opening.groups()
        body = lines[at + 1 :]
        if info.lower().split()[:1] in ([tag] for tag in _RUNS):
            block, used = _read_block(body, len(margin), fence)
            blocks.append(block)
        else:
            used = next((i + 1 for i, line in enumerate(body) if line.rstrip().endswith(fence)), len(body))
            words += lines[at : at + 1 + used]
        prose.append("")
        at += 1 + used
    rest = _strip_fence("\n".join(words).strip())
    return ParsedReply(tuple(blocks), None if blocks else find_final("\n".join(prose)), rest)


def gives_answer(code: str) -> bool:
    """Whether code of a cell may end the run: it uses one of the ways to answer."""
    try:
        names = {node.id for node in ast.walk(parse(code)) if isinstance(node, ast.Name)}
    except (SyntaxError, RecursionError):
        return False
    return not names.isdisjoint(_WAYS)


def _strip_fence(text: str) -> str:
    """The content of a text that is one fenced block; any other text as it is."""
    first, _, rest = text.partition("\n")
    opening = _OPENING.match(first)
    if opening is None:
        return text
    inside, _, last = rest.rpartition("\n")
    fence = opening[2]
    return inside.strip() if last.strip() == fence and fence not in inside else text


def _read_block(body: Sequence[str], margin: int, fence: str) -> tuple[CodeBlock, int]:
    """The block that starts at `body[0]`, and how many lines it takes with its closing fence.

    Code that is complete before a fence cannot go on behind it, because a bare fence is no Python. So the first fence
    that completes the code ends the longest prefix that compiles; only one behind a `#` may be followed by a later one.
    """
    first: tuple[CodeBlock, int] | None = None
    in_comment: tuple[CodeBlock, int] | None = None
    for used, code_lines, alone in _endings(body, fence):
        code = _dedent(code_lines, margin)
        first = first or (CodeBlock(code), used)
        if compiles(code):
            if alone or "#" not in code_lines[-1]:
                return CodeBlock(code), used
            in_comment = in_comment or (CodeBlock(code), used)
        elif alone and in_comment:
            return in_comment
    rest = re.sub(r"\n[ \t]*`{1,2}$", "", _dedent(body, margin))
    if in_comment and not compiles(rest):
        return in_comment
    if first is None or compiles(rest):
        return CodeBlock(rest, cut=True), len(body)
    return first


def _endings(body: Sequence[str], fence: str) -> Iterator[tuple[int, Sequence[str], bool]]:
    """Places where a block may end: lines used, its lines of code, whether the fence stands alone on its line."""
    found = 0
    for i, line in enumerate(body):
        stripped = line.strip()
        if not stripped.endswith(fence):
            continue
        code = stripped.rstrip("`")
        yield i + 1, (body[:i] if not code else [*body[:i], line.rstrip().rstrip("`")]), not code
        found += 1
        if found == _FENCES_TRIED:
            return


def _dedent(lines: Sequence[str], margin: int) -> str:
    """The code without the margin of its fence; without the margin that all lines share, if only that compiles."""
    stripped = [line[min(margin, len(line) - len(line.lstrip(" \t"))) :] for line in lines]
    code = "\n".join(stripped)
    from textwrap import dedent

    even = dedent(code)
    return even if even != code and not compiles(code) and compiles(even) else code


def find_final(prose: str) -> TextFinal | None:
    """The answer that a text gives at the start of a line, as in `FINAL(it is 42)`; None where it gives none."""
    for match in islice(_FINAL.finditer(prose), _FINALS_TRIED):
        inside = _argument(prose, match.end())
        if inside is None or not inside.strip():
            continue
        if match[1] == "SUBMIT":
            return TextFinal(_parse_submit(inside.strip()), False)
        is_name = match[1] == "FINAL_VAR"
        answer, claims = split_claims(inside.strip())
        return TextFinal(answer.strip("\"'`") if is_name else _unquote(answer), is_name, claims)
    return None


def _argument(text: str, start: int) -> str | None:
    """The text between the parenthesis before `start` and the one that closes it."""
    if literal := _LITERAL.match(text, start):
        return literal[0][:-1]
    if text[start : start + 1] in ("{", "[", "("):  # a dict or a list, whose strings may hold parentheses
        for closing in islice(re.finditer(r"\)", text[start:]), _ENDS_TRIED):
            if _is_literal(text[start : start + closing.start()]):
                return text[start : start + closing.start()]
    depth = 1
    for i in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return text[start:i]
    # Never closed, as in "FINAL(sad :( )": the first line that ends with a parenthesis ends the answer.
    end = re.search(r"\)[ \t]*$", text[start:], re.MULTILINE)
    return text[start : start + end.start()] if end else None


def _is_literal(text: str) -> bool:
    try:
        with hide_syntax_warnings():
            ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
    return True


def _parse_submit(inside: str) -> str:
    """The argument of SUBMIT: one field by its value, several as a dict, anything that is no Python as it is."""
    try:
        call = ast.parse(f"f({inside})", mode="eval").body
        fields = {key.arg: ast.literal_eval(key.value) for key in call.keywords} if isinstance(call, ast.Call) else {}
    except (ValueError, SyntaxError):
        return inside
    if not fields or call.args or None in fields:  # type: ignore[attr-defined]
        return _unquote(inside)
    return str(next(iter(fields.values())) if len(fields) == 1 else fields)


def _unquote(text: str) -> str:
    """The value of a string literal; other text as it is."""
    if text[0] in "\"'":
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            return text
        if isinstance(value, str):
            return value
    return text
