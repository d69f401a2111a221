"""Find the answers that a reply gives in words: what stands between the parentheses, and whether it stands alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from rlm.runners.claims import Claim, read_claims
from rlm.runners.syntax import NOT_LITERAL, call_of, literal_value

_FINAL = re.compile(r"^[ \t]*(?P<mark>\*{1,3}|_{1,2}|`)?(?P<name>FINAL_VAR|FINAL|SUBMIT)[ \t]*[(（]", re.MULTILINE)
"""The beginning of an answer in words: "FINAL(Paris" and "**FINAL(Paris"; not "I write FINAL(x", within a line."""
_LITERAL = re.compile(r"\s*(?:[rRbBuUfF]{0,2}[\"']|[\[{(]|\w+=)")  # the beginning of Python, which may hold parentheses
_SMILEY = re.compile(r"(?<=[\s(])[:;=]['\u2019-]?[()](?=[\s).,!?*]|\Z)")  # " :)" and " ;-("; not "f(x=)"
_LINE_END = re.compile(r"[*_`. \t]*(?=\n|\Z)")  # marks up to the end of a line, such as "**."
_QUOTED = re.compile("“([^“”]*)”")  # “Paris”, which is not a str of Python
_PARENTHESIS, _CLOSING = re.compile("[()（）]"), re.compile(r"\)")
_MOST_FINALS = 25  # the answers of a reply that are read
_MOST_ENDS = 50  # the parentheses that are tried as the end of one: each costs a parse of the text before it
_CHANGE = re.compile(
    r"(?<![=!<>])[=＝](?!=)|<-|\.\w+\(|\w\[|^[ \t]*(?:for|with|import|from|def|del|class)\b", re.MULTILINE
)
"""Code that may change a variable, such as "n = 2", "hits.clear()" and "for x in hits"; not "n == 2"."""
_ANNOUNCING = re.compile(
    r"(?:\b(?:a|above|all|and|answers?|as|based|below|best|but|complete|computed|did|done|final|follows|for|found|from"
    r"|have|here|i|is|it|my|now|of|ok|okay|on|output|overall|question|results?|s|see|so|stored|the|therefore|this|thus"
    r"|to|value|variable|ve|we|what|you|your"
    r"|(?:can|could|did) ?n[o'’]t (?:fully )?(?:check|confirm|verify)"
    r"|not (?:entirely |fully )?(?:certain|checked|sure|verified))\b|[\s*_`.:,;!#>'’-])*"
)
"""Sentences that only announce an answer: "Here is the final answer:", "I could not verify it"; not "The sum is 4"."""


@dataclass(frozen=True, slots=True)
class TextFinal:
    """An answer in the words of a reply: `FINAL(...)` outside of its code."""

    text: str  # the answer, or the name of the variable that holds it
    is_name: bool  # whether `text` is the name of a variable: true for `FINAL_VAR`
    claims: tuple[Claim, ...] = ()  # its citations, as the model wrote them
    call: ast.Call | None = field(default=None, compare=False)  # the answer as a Python call; None for words
    span: tuple[int, int] = field(default=(0, 0), compare=False)  # the characters of the reply that it takes
    is_sure: bool = field(default=True, compare=False)  # whether its closing parenthesis is certain
    ends_line: bool = field(default=True, compare=False)  # whether only marks follow it on its line

    @property
    def variable(self) -> str:
        """The name of a variable, if the whole answer is one; else empty."""
        is_bare = self.is_name or (self.call and self.call.args and isinstance(self.call.args[0], ast.Name))
        return self.text if is_bare and self.text.isidentifier() and not self.text.startswith("__") else ""

    def stands_alone(self, reply: str, thinking: str) -> bool:
        """Whether the rest of `reply` only announces the answer, and nothing in `thinking` may change a variable."""
        rest = reply.replace(reply[slice(*self.span)], "").lower()
        return _ANNOUNCING.fullmatch(rest) is not None and not _CHANGE.search(thinking)


class _End(NamedTuple):
    offset: int  # of the parenthesis that closes an answer
    is_sure: bool  # whether this is certain


def find_finals(reply: str, words: str) -> Iterator[TextFinal]:
    """Yield the answers in the words of a reply. `words`: the reply with spaces in place of its code blocks."""
    without_smileys = _SMILEY.sub(lambda match: match[0][:-1] + "_", words)
    for match in islice(_FINAL.finditer(words), _MOST_FINALS):
        end = _end_of_python(reply, match.end()) or _end_of_words(words, without_smileys, match.end())
        if end is None or not (inside := reply[match.end() : end.offset].strip()):
            continue
        span = match.start(), end.offset + 1
        ends_line = _LINE_END.match(words, span[1] + len(match["mark"] or "")) is not None
        if match["mark"] and end.is_sure and not ends_line:
            continue
        call = call_of(inside)
        answer, claims = _read_answer(inside, call)
        is_name = match["name"] == "FINAL_VAR"
        answer = answer.strip("\"'`") if is_name else answer
        yield TextFinal(answer, is_name, claims, call, span, is_sure=end.is_sure, ends_line=ends_line)


def _end_of_python(text: str, start: int) -> _End | None:
    """The first `)` up to which the text from `start` is the arguments of a Python call; None if there is none."""
    if not _LITERAL.match(text, start):
        return None
    ends = (match.start() for match in islice(_CLOSING.finditer(text, start), _MOST_ENDS))
    return next((_End(end, is_sure=True) for end in ends if call_of(text[start:end])), None)


def _end_of_words(words: str, without_smileys: str, start: int) -> _End | None:
    """The parenthesis that closes an answer in words; None if none does. It is not sure if the rest of the paragraph
    has more closing than opening parentheses. `without_smileys`: `words` with the parenthesis of each smiley masked."""
    end = _closing_parenthesis(without_smileys, start)
    if end is None:
        return None
    ends_line = _LINE_END.match(words, end + 1) is not None
    if ends_line and "\n" not in words[start:end]:
        return _End(end, is_sure=True)
    stop = next((match.start() for match in _FINAL.finditer(words, end)), len(words))  # the next answer
    if ends_line and (paragraph_end := words.find("\n\n", end, stop)) > 0:
        stop = paragraph_end
    if _closing_parenthesis(without_smileys[:stop], end + 1) is None:
        return _End(end, is_sure=True)
    return _End(max(end, words.rfind(")", 0, stop)), is_sure=False)  # the last one, so that nothing is cut off


def _closing_parenthesis(text: str, start: int) -> int | None:
    """The offset of the parenthesis that closes the parenthesis before `start`; None if it stays open."""
    depth = 1
    for match in _PARENTHESIS.finditer(text, start):
        depth += 1 if match[0] in "(（" else -1
        if depth == 0:
            return match.start()
    return None


def _read_answer(inside: str, call: ast.Call | None) -> tuple[str, tuple[Claim, ...]]:
    """The text and the claims of an answer between parentheses: `'a'` gives a, `x=1` gives 1, `x=1, y=2` a dict, and
    `two words` the words. `call`: `inside` as a Python call; None for words."""
    if quoted := _QUOTED.fullmatch(inside):
        return quoted[1], ()
    match call:
        case ast.Call(args=[value], keywords=[ast.keyword(arg="sources", value=sources)]):
            written, claims = ast.get_source_segment(f"f({inside})", value) or "", read_claims(literal_value(sources))
        case ast.Call(args=[value], keywords=[]):
            written, claims = inside, ()
        case ast.Call(args=[], keywords=[_, *_] as keywords):
            fields = {str(key.arg): literal_value(key.value) for key in keywords if key.arg}
            if len(fields) == len(keywords) and not any(value is NOT_LITERAL for value in fields.values()):
                inside = str(next(iter(fields.values())) if len(fields) == 1 else fields)
            return inside, ()
        case _:
            return inside, ()
    text = literal_value(value)
    return text if isinstance(text, str) else written, claims
