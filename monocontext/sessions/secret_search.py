"""Find the secrets in a text: tokens of known form, private keys, and values with the name of a secret. Does no I/O.

A pattern is tried only where one of its words is, for a bounded number of steps, so the cost is linear. A text is also
searched with escapes decoded, wrapped lines joined and base64 decoded. To look random is not enough: ids do, too.
"""

from __future__ import annotations

import base64
import functools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from monocontext.sessions.secret_fields import find_named
from monocontext.sessions.secret_keys import KEY_BEGINNINGS, find_bare_key, find_private_keys
from monocontext.sessions.secret_phrases import PHRASES, Phrase, expand
from monocontext.sessions.secret_tokens import PIECES, SHAPELESS, STRUCTURES, TOKENS
from monocontext.sessions.secret_values import NAME_WORDS, Secret, is_dummy, is_random_token
from monocontext.sessions.secret_views import decode_escapes, join_wraps

_MOST_LEVELS = 4  # of escapes that are decoded: a tool's result that quotes a transcript is JSON in JSON in JSON
_MOST_AFTER = 512  # characters after the beginning of a word, within which a match that begins before the word must end
_BASE64 = re.compile(r"""(?x) (?<![A-Za-z0-9+/_-])
    (?: (?:[A-Za-z0-9+/_-]{60,76}\r?\n[ \t]{0,20}){1,2000} [A-Za-z0-9+/_-]{0,76}  # in lines, as by `base64` and in mail
        | [A-Za-z0-9+/_-]{16,} ) ={0,2}  # in one run of at least 12 bytes: nothing shorter has a name and a value""")
_TO_STANDARD = str.maketrans("-_", "+/", " \t\r\n=")  # base64 of URLs as usual base64, without blanks and padding
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_compile = functools.cache(re.compile)  # when it is needed: most kinds never occur
Rule = Callable[[str, int, int], Iterable[Secret]]
"""Finds the secrets of one kind in a text around a word, from a start to a stop: `rule(text, start, stop)`."""


def find_secrets(text: str, extra: Sequence[re.Pattern[str]] = ()) -> list[Secret]:
    """The spans of the secrets in a text, in order, without overlaps. `extra`: the user's own patterns."""
    merged: list[Secret] = []
    for span in sorted(_find_spans(text, extra, _MOST_LEVELS), key=lambda span: (span.start, -span.stop)):
        if merged and span.start < merged[-1].stop:
            merged[-1] = merged[-1]._replace(stop=max(span.stop, merged[-1].stop))
        elif span.start < span.stop:
            merged.append(span)
    return merged


def _find_spans(text: str, extra: Sequence[re.Pattern[str]], levels: int) -> Iterator[Secret]:
    """Yield the secrets of a text and of its views, with up to `levels` levels of escapes decoded."""
    yield from _find_plain(text, extra)
    for view in join_wraps(text):
        for start, stop, kind in _find_plain(view.text, extra):
            yield Secret(view.offset(start), view.offset(stop - 1) + 1, kind)
    if levels:
        for view in decode_escapes(text):
            for start, stop, kind in _find_spans(view.text, extra, levels - 1):
                yield Secret(view.offset(start), view.offset(stop), kind)


def _find_plain(text: str, extra: Sequence[re.Pattern[str]]) -> Iterator[Secret]:
    """Yield the secrets of a text as it stands."""
    for pattern in extra:
        yield from (Secret(*match.span(), "custom") for match in pattern.finditer(text))
    yield from _PREFIXES.spans(text, text)
    yield from _PIECES.spans(text, text)
    for kind, pattern in _SHAPELESS:
        group = "secret" if pattern.groups else 0
        yield from (Secret(*match.span(group), kind) for match in pattern.finditer(text))
    if "-----" in text:
        yield from find_private_keys(text)
    lower = text.replace("\u0130", "I").lower()  # the one letter that is longer in lower case
    yield from (_ASCII_WORDS if text.isascii() else _WORDS).spans(text, lower)
    yield from _find_encoded(text)


def _find_encoded(text: str) -> Iterator[Secret]:
    """Yield whole runs of base64 that decode to a text with a secret."""
    for match in _BASE64.finditer(text):
        run = match[0]
        if run.islower() or run.isupper():  # text in base64 has both
            continue
        if run[0] in "+-" and text[match.start() - 1 : match.start()] in ("", "\n"):  # lines of a diff
            run = run[1:].replace("\n" + run[0], "\n")
        letters = run.translate(_TO_STANDARD)
        if len(letters) % 4 == 1:  # the first letter of a group that was cut
            letters = letters[:-1]
        data = base64.b64decode(letters + "=" * (-len(letters) % 4))
        is_utf16 = len(data) > 8 and not any(data[1:16:2])
        plain = data.decode("utf-16-le" if is_utf16 else "utf-8", "replace")
        surely_data = len(plain) * 9 // 10  # the word after a wrapped text may look like its last line
        valid_characters = surely_data if "\n" in run else len(plain)
        if _CONTROL.search(plain, 0, surely_data) or "\ufffd" in plain[:valid_characters]:
            continue  # not a text, but a picture or a hash
        if secret := next(_find_spans(plain, (), 1), None):
            yield Secret(*match.span(), secret.kind)


@dataclass(frozen=True, slots=True)
class Shape:
    """A rule for secrets of one kind with one pattern. Its group `rest`, if it has one, must look random."""

    kind: str
    pattern: str  # its group `secret` is the secret, or all that it matches if it has none
    most_before: int = 0  # the most characters of a match before the word

    def __call__(self, text: str, start: int, _stop: int = 0) -> list[Secret]:
        """The secret in the match around the word that begins at `start`, as a list; empty if there is none."""
        match = self._match(text, start)
        if match is None:
            return []
        groups = match.groupdict()
        secret, rest = groups.get("secret"), groups.get("rest")
        if (rest and not is_random_token(rest)) or (secret is not None and is_dummy(secret)):
            return []
        return [Secret(*match.span("secret" if secret is not None else 0), self.kind)]

    def _match(self, text: str, offset: int) -> re.Match[str] | None:
        """The match that contains the character at `offset`."""
        pattern = _compile(self.pattern)
        if not self.most_before:
            return pattern.match(text, offset)
        # A search that fails goes on to the end, so it gets an end that is near. The line before may match as well.
        matches = pattern.finditer(text, max(0, offset - self.most_before), offset + _MOST_AFTER)
        match = next((item for item in matches if item.end() > offset), None)
        return match if match and match.start() <= offset else None


class WordFinder:
    """Finds many words in a text in one pass, and applies the rules of each."""

    def __init__(self, rows: list[tuple[str, Rule]], before: str = "") -> None:
        """`rows`: words, each with a rule. `before`: a zero-width pattern that must match where a word begins."""
        words = {word for word, _ in rows}
        self._rules = defaultdict[str, list[Rule]](list)
        for word, rule in rows:  # a word that begins with another one is found as that, which gets both rules
            shortest = next(word[:n] for n in range(1, len(word) + 1) if word[:n] in words)
            if rule not in self._rules[shortest]:
                self._rules[shortest].append(rule)
        self._pattern = re.compile(before + _any_of(sorted(self._rules)))

    def spans(self, text: str, searched: str) -> Iterator[Secret]:
        """Yield what the rules find in `text` around each word in `searched`, the same text or that in lower case."""
        offset = 0
        while word := self._pattern.search(searched, offset):
            offset = word.start() + 1  # words may overlap
            for rule in self._rules[word[0]]:
                yield from rule(text, *word.span())


def _any_of(words: list[str]) -> str:
    """A pattern for sorted words, letter by letter: `a(?:b|c)` for `ab` and `ac`. Ten times faster than `ab|ac`."""
    if len(words) == 1:
        return re.escape(words[0])
    groups = ((first, [word[1:] for word in group]) for first, group in groupby(words, lambda word: word[0]))
    return "(?:" + "|".join(re.escape(first) + _any_of(rest) for first, rest in groups) + ")"


def shape_of(phrase: Phrase) -> Shape:
    ahead = "" if phrase.before else f"(?={_any_word(phrase.words)})"  # a shorter word may have led here
    flags = "x" if phrase.is_cased else "ix"
    return Shape(phrase.kind, f"(?{flags}:{ahead}{expand(phrase.pattern)})", phrase.before)


def _token_rules() -> Iterator[tuple[str, Rule]]:
    """Yield the prefixes of tokens, each with its rule."""
    for table, group in ((TOKENS, "?P<rest>"), (STRUCTURES, "?:")):
        for row in table:
            for provider, prefixes in row.prefixes.items():
                shape = Shape(provider, f"(?:{_any_word(prefixes.split())})({group}{row.rest})")
                yield from ((prefix, shape) for prefix in prefixes.split())


def _phrase_rules(phrases: Iterable[Phrase]) -> list[tuple[str, Rule]]:
    return [(word, shape_of(phrase)) for phrase in phrases for word in phrase.words]


def _any_word(words: Iterable[str]) -> str:
    """A pattern for any of some words, of which it prefers the longest."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_KEY_RULES = [(beginning, find_bare_key) for beginning in KEY_BEGINNINGS]
_PREFIXES = WordFinder([*_token_rules(), *_KEY_RULES], r"(?<![A-Za-z0-9])")
_PIECES = WordFinder(_phrase_rules(PIECES))
_SHAPELESS = [(phrase.kind, re.compile(phrase.pattern)) for phrase in SHAPELESS]
_WORD_RULES: list[tuple[str, Rule]] = [*_phrase_rules(PHRASES), *((word, find_named) for word in NAME_WORDS)]
_WORDS = WordFinder(_WORD_RULES)
_ASCII_WORDS = WordFinder([(word, rule) for word, rule in _WORD_RULES if word.isascii()])
