"""Find the secrets in a text: tokens of known form, keys, cookies, and values with the name of a secret. Pure.

Two passes search for pieces of known secrets and for words in the names of secrets; patterns run only where one is
found. Each pattern costs a bounded number of steps, so the cost is linear in the length. Text is also searched with
escapes resolved, line wraps joined and base64 decoded.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Sequence

from monocontext.sessions.escapes import DecodedView, decode_escapes, drop_invisible, join_wraps, long_words, swap_bytes
from monocontext.sessions.secret_columns import find_in_columns
from monocontext.sessions.secret_cookies import find_cookies
from monocontext.sessions.secret_named import find_named
from monocontext.sessions.secret_names import FOREIGN, PROVIDERS, looks_random
from monocontext.sessions.secret_patterns import BEGINNINGS, PIECES, SHAPELESS, WORDS, Shape
from monocontext.sessions.secret_pem import KEY_BEGINNINGS, find_private_keys, match_bare_key
from monocontext.sessions.secret_pieces import WordFinder
from monocontext.sessions.secret_rules import NAMED, NAMED_GAP, SHAPED

Span = tuple[int, int, str]
"""Start, stop, kind."""
Patterns = Sequence[tuple[str, re.Pattern[str]]]
"""The user's own kinds of secrets, each with its pattern."""

_MOST_LEVELS = 4
"""Levels of escapes that are resolved. A tool's result that quotes a transcript is JSON in JSON in JSON."""
# Wrapped as `base64` and mail do, or in one run. 16 characters are 12 bytes: nothing shorter has a name and a value.
_ENCODED = re.compile(
    r"(?<![A-Za-z0-9+/_-])(?:(?:[A-Za-z0-9+/_-]{60,76}\r?\n[ \t]{0,20}){1,2000}[A-Za-z0-9+/_-]{0,76}|[A-Za-z0-9+/_-]{16,})={0,2}"
)
_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16}")
_STANDARD = str.maketrans("-_", "+/", " \t\r\n=")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")

_NAME_WORDS = ["pass", "kennwort", "contrase", "clave", "mdp", "senha", "haslo", "heslo", "jelszo", "wachtwoord", "losenord", "adgangskode", "salasana", "geslo", "parol", "sifre", "lozinka", "zaporka", "mnemonic", "palavra", "pw", "psw", "psk", "token", "secret", "cred", "key", "geheim", "hmac", "_pat", "phrase", "sumo", "bindpw", "auth", "accountkey", "sharedaccesskey"]  # fmt: skip
"""A name that contains one of these, or a word of `FOREIGN` or `PROVIDERS`, may belong to a secret."""


def find_secrets(text: str, extra: Patterns = ()) -> list[Span]:
    """The spans of secrets in order, without overlaps. `extra` are further kinds and their patterns."""
    return merge_spans(_find_spans(text, extra, _MOST_LEVELS))


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """The spans in order, overlapping ones merged into one with the kind of the first."""
    merged: list[Span] = []
    for start, stop, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if merged and start < merged[-1][1]:
            if stop > merged[-1][1]:
                merged[-1] = (merged[-1][0], stop, merged[-1][2])
        elif start < stop:
            merged.append((start, stop, kind))
    return merged


def _find_spans(text: str, extra: Patterns, levels: int) -> Iterator[Span]:
    """The secrets of a text and of its views, with up to `levels` levels of escapes resolved."""
    yield from _find_plain(text, extra)
    for view in join_wraps(text):
        yield from ((view.place(a), view.place(b - 1) + 1, kind) for a, b, kind in _find_plain(view.text, extra))
    for view in drop_invisible(text):
        for a, b, kind in _find_spans(view.text, extra, levels):
            yield view.place(a), view.place(b - 1) + 1, kind
    if swapped := swap_bytes(text):
        yield from _find_plain(swapped, extra)
    if levels:
        for view in decode_escapes(text):
            for start, stop, kind in _find_spans(view.text, extra, levels - 1):
                yield view.place(start), view.place(stop), kind


def _find_plain(text: str, extra: Patterns) -> Iterator[Span]:
    """The secrets of a text as it is, and those in base64."""
    for kind, pattern in extra:
        yield from (
            (*found.span("secret" if "secret" in pattern.groupindex else 0), kind) for found in pattern.finditer(text)
        )
    long = long_words(text)
    done = 0
    for start, _, shapes in _TOKENS.find(long.text):
        if start < done:
            continue
        at = long.place(start)
        for shape in shapes:
            for begin, end in shape.spans(text, at):
                done = max(done, start + end - at)
                yield begin, end, shape.kind
    for kind, pattern in _SHAPELESS:
        for found in pattern.finditer(long.text):
            group = "secret" if "secret" in pattern.groupindex else 0
            if looks_random(found[group], 32):
                begin = long.place(found.start(group))
                yield begin, begin + len(found[group]), kind
    for piece, shape in _PIECES:
        at = text.find(piece) if piece in long.text else -1
        while at >= 0:
            yield from ((*span, shape.kind) for span in shape.spans(text, at))
            at = text.find(piece, at + len(piece))
    if "-----" in text:
        yield from ((*span, "private-key") for span in find_private_keys(text))
    lower = text.replace("\u0130", "I").lower()  # the one letter that is longer in lower case
    for start, stop, forms in (_ASCII_WORDS if text.isascii() else _WORDS).find(lower):
        for form in forms:
            if form is None:
                spans = (*find_named(text, start, stop), *find_in_columns(text, start))
                yield from ((*span, "named-secret") for span in spans)
            else:
                yield from ((*span, form.kind) for span in form.spans(text, start))
    yield from ((*span, "cookie") for span in find_cookies(text, lower))
    yield from _find_encoded(text, long)


def _find_encoded(text: str, long: DecodedView) -> Iterator[Span]:
    """Whole runs of base64 that decode to a text with a secret. Pictures and hashes do not decode to text."""
    done = 0
    for start in _RUN.finditer(long.text):
        match = _ENCODED.match(text, long.place(start.start()))
        if match is None or match.start() < done:
            continue
        done, run = match.end(), match[0]
        if run.islower() or run.isupper():  # text in base64 has both
            continue
        if run[0] in "+-" and text[match.start() - 1 : match.start()] in ("", "\n"):  # lines of a diff
            run = run[1:].replace("\n" + run[0], "\n")
        run = run.translate(_STANDARD)
        if len(run) % 4 == 1:  # the first letter of a group that was cut
            run = run[:-1]
        data = base64.b64decode(run + "=" * (-len(run) % 4))
        is_utf16 = len(data) > 8 and not any(data[1:16:2])
        plain = data.decode("utf-16-le" if is_utf16 else "utf-8", "replace")
        most = len(plain) * 9 // 10  # the word after a wrapped text may look like its last line
        if _CONTROL.search(plain, 0, most) or "\ufffd" in plain[: most if "\n" in match[0] else len(plain)]:
            continue
        if found := next(_find_spans(plain, (), 1), None):
            yield *match.span(), found[2]


# --- what to look for -------------------------------------------------------------------------------------------------


class _BareKey(Shape):
    """A private key in DER, which `match_bare_key` matches in place of a pattern."""

    def spans(self, text: str, at: int) -> list[tuple[int, int]]:
        return [found] if (found := match_bare_key(text, at)) else []


def _token_shapes() -> Iterator[tuple[str, Shape]]:
    """The shapes of tokens by the texts that they begin with."""
    for kind, pieces, rest in BEGINNINGS:
        shape = Shape(kind, f"(?:{'|'.join(map(re.escape, pieces.split()))})(?:{rest})")
        yield from ((piece, shape) for piece in pieces.split())
    for kind, entropy, pieces, pattern in SHAPED:
        yield from ((piece, Shape(kind, pattern, entropy=entropy)) for piece in pieces.split())
    yield from ((piece, _BareKey("private-key", "")) for piece in KEY_BEGINNINGS)


def _word_shapes() -> Iterator[tuple[str, Shape | None]]:
    """Shapes by the words in them, in lower case; None for a word in the name of a secret."""
    for kind, pieces, lead, pattern in WORDS:
        shape = Shape(kind, f"(?i:{pattern})", lead)
        yield from ((piece.replace("~", " "), shape) for piece in pieces.split())
    for kind, entropy, words, value in NAMED:
        name = "|".join(map(re.escape, words.split()))
        shape = Shape(kind, f"(?i:(?:{name}){NAMED_GAP}(?P<secret>{value})(?![a-z0-9]))", entropy=entropy)
        yield from ((word, shape) for word in words.split())
    yield from ((word, None) for word in (*_NAME_WORDS, *PROVIDERS, *FOREIGN))


_TOKENS = WordFinder(_token_shapes(), r"(?<![A-Za-z0-9])")
_SHAPELESS = [(kind, re.compile(pattern)) for kind, pattern in SHAPELESS]
_PIECES = [(piece, Shape(kind, each, lead)) for kind, pieces, lead, each in PIECES for piece in pieces.split()]
_WORDS = WordFinder(_word_shapes())
_ASCII_WORDS = WordFinder(row for row in _word_shapes() if row[0].isascii())
