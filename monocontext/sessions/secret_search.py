"""Find the secrets in a text: tokens of known form, private keys, and values with the name of a secret. Does no I/O.

A pattern is tried only where one of its words is, for a bounded number of steps, so the cost is linear. A text is also
searched with escapes decoded, wrapped lines joined and base64 decoded. To look random is not enough: ids do, too.
"""

from __future__ import annotations

import base64
import functools
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from monocontext.sessions.secret_addresses import ADDRESSES
from monocontext.sessions.secret_fields import find_named
from monocontext.sessions.secret_keys import KEY_BEGINNINGS, find_private_keys, match_bare_key
from monocontext.sessions.secret_phrases import PHRASES, Phrase, expand
from monocontext.sessions.secret_tokens import PIECES, SHAPELESS, STRUCTURES, TOKENS, Piece
from monocontext.sessions.secret_values import NAME_WORDS, is_dummy, is_random_token

Span = tuple[int, int, str]  # start, stop, kind

_MOST_LEVELS = 4  # of escapes that are decoded: a tool's result that quotes a transcript is JSON in JSON in JSON
_AFTER = 512  # characters after the beginning of a word, within which a match that begins before the word must end
# Wrapped as `base64` and mail do, or in one run. 16 characters are 12 bytes: nothing shorter has a name and a value.
_ENCODED = re.compile(r"(?<![A-Za-z0-9+/_-])(?:(?:[A-Za-z0-9+/_-]{60,76}\r?\n[ \t]{0,20}){1,2000}[A-Za-z0-9+/_-]{0,76}|[A-Za-z0-9+/_-]{16,})={0,2}")  # fmt: skip
_TO_STANDARD = str.maketrans("-_", "+/", " \t\r\n=")  # base64 of URLs as usual base64, without blanks and padding
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_ESCAPE = re.compile(  # escapes of JSON and of programming languages, those that colour a terminal, and those of HTML
    r"\\(?:u(?P<unicode>[0-9a-fA-F]{4})|x(?P<byte>[0-9a-fA-F]{2})|(?P<letter>[\"'\\/bfnrt]|0(?!\d)))"
    r"|\x1b\[[0-9;?]{0,40}[A-Za-z]|&(?:quot|apos|lt|gt|amp|#34|#39);"
)
_PERCENT = re.compile("%(?P<byte>[0-9a-fA-F]{2})")
_ENTITIES = {"&quot;": '"', "&#34;": '"', "&apos;": "'", "&#39;": "'", "&lt;": "<", "&gt;": ">", "&amp;": "&"}
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "0": "\0"}
# A shell's `\` at the end of a line; or the end of a line that a terminal may have cut, with no `NAME=` after it.
# The characters before are checked second: a search for the marks alone is five times faster.
_BEFORE = "[A-Za-z0-9+/=_.:\"'-]"
_MARGIN = (
    r"(?:[+-]|(?:[>|#*\u2502]|//)[ ]|[ ]{0,7}\d{1,6}[\t\u2192])?"
    r"(?:[ \t]{1,40}(?=[A-Za-z0-9+/=_.-]{8,300}\\*[\"']?[ \t]*(?:$|[\r\n,])))?"
)
_CUT = r"(?=[A-Za-z0-9+/=_.-]{2})(?![A-Za-z_][\w.-]{0,60}[ \t]?[=:])"
_WRAP = re.compile(
    r"\\(?<=[ \t]\\)\r?\n[ \t]{0,40}(?=\S)"
    rf"|\\(?<={_BEFORE}\\)\r?\n(?:[+-]|[ ]{{0,7}}\d{{1,6}}[\t\u2192])?[ \t>]{{0,40}}{_CUT}"
    rf"|\n(?<={_BEFORE}\n){_MARGIN}{_CUT}"
    rf"|\r(?<={_BEFORE}\r)\n{_MARGIN}{_CUT}"
)
_WITH_DIGIT = re.compile(r"[A-Za-z0-9+/=_.-]*[0-9][A-Za-z0-9+/=_.-]*")
_WORD_LINE = re.compile(r"[A-Za-z0-9+/=_.-]{4,400}\\*[\"']?[ \t]*(?:$|[\r\n,])")  # one word, to the end of its line
_TERMINAL_CHARACTERS = 60  # no terminal is narrower
_AROUND = 400  # characters of a view on each side of an escape: more than a secret and its name have
_compile = functools.cache(re.compile)  # when it is needed: most kinds never occur


def find_secrets(text: str, extra: Sequence[re.Pattern[str]] = ()) -> list[Span]:
    """The spans of the secrets in a text, in order, without overlaps. `extra`: the user's own patterns."""
    merged: list[Span] = []
    for start, stop, kind in sorted(_find_spans(text, extra, _MOST_LEVELS), key=lambda span: (span[0], -span[1])):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]), merged[-1][2])
        elif start < stop:
            merged.append((start, stop, kind))
    return merged


def _find_spans(text: str, extra: Sequence[re.Pattern[str]], levels: int) -> Iterator[Span]:
    """The secrets of a text and of its views, with up to `levels` levels of escapes decoded."""
    yield from _find_plain(text, extra)
    for view in join_wraps(text):
        yield from ((view.offset(a), view.offset(b - 1) + 1, kind) for a, b, kind in _find_plain(view.text, extra))
    if levels:
        for view in decode_escapes(text):
            for start, stop, kind in _find_spans(view.text, extra, levels - 1):
                yield view.offset(start), view.offset(stop), kind


def _find_plain(text: str, extra: Sequence[re.Pattern[str]]) -> Iterator[Span]:
    """The secrets of a text as it stands."""
    for pattern in extra:
        yield from ((*match.span(), "custom") for match in pattern.finditer(text))
    for finder in (_TOKENS, _PIECES):
        for start, _, shapes in finder.find(text):
            for shape in shapes:
                if shape is not None:
                    yield from ((*span, shape.kind) for span in shape.spans(text, start))
                elif key := match_bare_key(text, start):
                    yield *key, "private-key"
    for kind, pattern in _SHAPELESS:
        group = "secret" if pattern.groups else 0
        yield from ((*match.span(group), kind) for match in pattern.finditer(text))
    if "-----" in text:
        yield from ((*span, "private-key") for span in find_private_keys(text))
    lower = text.replace("\u0130", "I").lower()  # the one letter that is longer in lower case
    for start, stop, forms in (_ASCII_WORDS if text.isascii() else _WORDS).find(lower):
        for form in forms:
            if form is None:
                yield from ((*span, "named-secret") for span in find_named(text, start, stop))
            else:
                yield from ((*span, form.kind) for span in form.spans(text, start))
    yield from _find_encoded(text)


def _find_encoded(text: str) -> Iterator[Span]:
    """Whole runs of base64 that decode to a text with a secret. Pictures and hashes do not decode to text."""
    for match in _ENCODED.finditer(text):
        run = match[0]
        if run.islower() or run.isupper():  # text in base64 has both
            continue
        if run[0] in "+-" and text[match.start() - 1 : match.start()] in ("", "\n"):  # lines of a diff
            run = run[1:].replace("\n" + run[0], "\n")
        run = run.translate(_TO_STANDARD)
        if len(run) % 4 == 1:  # the first letter of a group that was cut
            run = run[:-1]
        data = base64.b64decode(run + "=" * (-len(run) % 4))
        is_utf16 = len(data) > 8 and not any(data[1:16:2])
        plain = data.decode("utf-16-le" if is_utf16 else "utf-8", "replace")
        surely_data = len(plain) * 9 // 10  # the word after a wrapped text may look like its last line
        if _CONTROL.search(plain, 0, surely_data) or "\ufffd" in plain[: surely_data if "\n" in match[0] else None]:
            continue  # not a text
        if secret := next(_find_spans(plain, (), 1), None):
            yield *match.span(), secret[2]


@dataclass(frozen=True, slots=True)
class Shape:
    """The pattern of one kind of secret, tried where a word is. Its group `rest`, if it has one, must look random."""

    kind: str
    pattern: str  # its group `secret` is the secret, or all that it matches if it has none
    before: int = 0  # the most characters of a match before the word

    def spans(self, text: str, offset: int) -> list[tuple[int, int]]:
        """The span of the secret in a match around the word at `offset`, as a list; empty if there is none."""
        match = _compile(self.pattern).match(text, offset)
        if self.before:  # a search that fails goes on to the end, so it gets an end that is near
            matches = _compile(self.pattern).finditer(text, max(0, offset - self.before), offset + _AFTER)
            match = next((item for item in matches if item.end() > offset), None)  # the line before may match as well
        if match is None or match.start() > offset:
            return []
        groups = match.groupdict()
        secret, rest = groups.get("secret"), groups.get("rest")
        if (rest and not is_random_token(rest)) or (secret is not None and is_dummy(secret)):
            return []
        return [match.span("secret" if secret is not None else 0)]


class WordFinder:
    """Finds many words in a text in one pass, and yields the shapes of each; None stands for a search of another kind."""

    def __init__(self, rows: Iterable[tuple[str, Shape | None]], before: str = "") -> None:
        """`rows`: words, each with a shape; that of a word that begins with a shorter word goes to the shorter one.
        `before`: a zero-width pattern that must match where a word begins."""
        rows = list(rows)
        words = {word for word, _ in rows}
        self._rows = defaultdict[str, list[Shape | None]](list)
        for word, row in rows:
            short = next(word[:n] for n in range(1, len(word) + 1) if word[:n] in words)
            if row not in self._rows[short]:
                self._rows[short].append(row)
        self._pattern = re.compile(before + _any_of(sorted(self._rows)))

    def find(self, text: str) -> Iterator[tuple[int, int, list[Shape | None]]]:
        """Yield the start, the stop and the shapes of each word."""
        offset = 0
        while hit := self._pattern.search(text, offset):
            offset = hit.start() + 1  # words may overlap
            yield *hit.span(), self._rows[hit[0]]


def _any_of(words: list[str]) -> str:
    """A pattern for sorted words, letter by letter: some ten times faster than a list of them."""
    if len(words) == 1:
        return re.escape(words[0])
    groups = ((first, [word[1:] for word in group]) for first, group in groupby(words, lambda word: word[0]))
    return "(?:" + "|".join(re.escape(first) + _any_of(rest) for first, rest in groups) + ")"


class View(NamedTuple):
    """A part of a text in which escapes are decoded, or wraps removed."""

    text: str
    starts: list[int]  # the start in `text` of each run of copied or decoded characters
    sources: list[int]  # the start of the same run in the original

    def offset(self, offset: int) -> int:
        """The offset in the original of an offset in `text`."""
        run = bisect_right(self.starts, offset) - 1
        return self.sources[run] + offset - self.starts[run]


def decode_escapes(text: str) -> Iterator[View]:
    """Yield views with one level of escapes decoded: those of JSON and terminals, or if there are none, of URLs."""
    marks = list(_ESCAPE.finditer(text)) if any(sign in text for sign in "\\\x1b&") else []
    if not marks and "%" in text:
        marks = list(_PERCENT.finditer(text))
    yield from _make_views(text, marks, _decode)


def join_wraps(text: str) -> Iterator[View]:
    """Yield views in which words are joined again that a terminal, a mail program or a shell's `\\` cut in two."""
    if "\n" in text:
        yield from _make_views(text, [cut for cut in _WRAP.finditer(text) if _is_wrap(text, cut)], lambda _: "")


def _make_views(text: str, marks: list[re.Match[str]], decode: Callable[[re.Match[str]], str]) -> Iterator[View]:
    """Yield a view around each group of marks that are near each other, with the text of `decode` for each mark."""
    first = 0
    while first < len(marks):
        last = first
        while last + 1 < len(marks) and marks[last + 1].start() - marks[last].end() < 2 * _AROUND:
            last += 1
        begin = max(marks[first].start() - _AROUND, marks[first - 1].end() if first else 0)
        end = min(marks[last].end() + _AROUND, marks[last + 1].start() if last + 1 < len(marks) else len(text))
        parts, starts, sources, length, done = list[str](), [0], [begin], 0, begin
        for mark in marks[first : last + 1]:
            plain = decode(mark)
            parts += (text[done : mark.start()], plain)
            length += mark.start() - done
            starts += (length, length + len(plain))
            sources += (mark.start(), mark.end())
            length += len(plain)
            done = mark.end()
        parts.append(text[done:end])
        yield View("".join(parts), starts, sources)
        first = last + 1


def _decode(mark: re.Match[str]) -> str:
    groups = mark.groupdict()
    code, letter = groups.get("unicode") or groups["byte"], groups.get("letter") or _ENTITIES.get(mark[0], "")
    return chr(int(code, 16)) if code else _LETTERS.get(letter, letter)


def _is_wrap(text: str, cut: re.Match[str]) -> bool:
    """Whether a word goes on after a line end: the line is full, or has a long word before and one word after it."""
    begin = text.rfind("\n", 0, cut.start()) + 1
    if cut[0].startswith("\\") or cut.start() - begin >= _TERMINAL_CHARACTERS:
        return True
    words = text[max(begin, cut.start() - _TERMINAL_CHARACTERS) : cut.start()].split()
    rest = _WORD_LINE.match(text, cut.end())
    if not words or len(words[-1]) < 12 or not rest:
        return False
    return _WITH_DIGIT.search(words[-1]) is not None or _WITH_DIGIT.match(rest[0]) is not None


def shape_of(row: Phrase | Piece) -> Shape:
    """The shape of a phrase, in any case, or of a token with a piece."""
    if isinstance(row, Piece):
        return Shape(row.provider, row.pattern, row.before)
    ahead = "" if row.before else f"(?={_any_word(row.words)})"  # a shorter word may have led here
    return Shape(row.kind, f"(?ix:{ahead}{expand(row.pattern)})", row.before)


def _token_shapes() -> Iterator[tuple[str, Shape | None]]:
    """The shapes of tokens by their prefixes; None for a private key in DER."""
    for table, group in ((TOKENS, "?P<rest>"), (STRUCTURES, "?:")):
        for row in table:
            for provider, prefixes in row.prefixes.items():
                shape = Shape(provider, f"(?:{_any_word(prefixes.split())})({group}{row.rest})")
                yield from ((prefix, shape) for prefix in prefixes.split())
    yield from ((beginning, None) for beginning in KEY_BEGINNINGS)


def _word_shapes() -> Iterator[tuple[str, Shape | None]]:
    """Shapes by the words in them, in lower case; None for a word in the name of a secret."""
    yield from ((word, shape_of(phrase)) for phrase in ADDRESSES + PHRASES for word in phrase.words)
    yield from ((word, None) for word in NAME_WORDS)


def _any_word(words: Iterable[str]) -> str:
    """A pattern for any of some words, of which it prefers the longest."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_TOKENS = WordFinder(_token_shapes(), r"(?<![A-Za-z0-9])")
_PIECES = WordFinder((piece, shape_of(row)) for row in PIECES for piece in row.pieces)
_SHAPELESS = [(row.provider, re.compile(row.pattern)) for row in SHAPELESS]
_WORDS = WordFinder(_word_shapes())
_ASCII_WORDS = WordFinder(row for row in _word_shapes() if row[0].isascii())
