"""Parse a query of words, phrases and exclusions into terms: how to find each in a text, and in search filters.

An English word is found in its other forms (`rotate`: rotates, rotated, rotating), a word with diacritics also without
them (`résumé`: resume), and all in any case. Text of scripts without spaces is found by pairs of characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from unicodedata import normalize

from monocontext.format.filters.grams import LEAST_WORD_BYTES, fold, stem_of
from monocontext.format.filters.query import Literal

_STOP_WORDS = """
a an and are as at be been but by can did do does for from had has have how i if in into is it its me my
no not of on or our she so that the their them then there these they this to up us was we were what when where which who
why will with would you your about"""
STOP_WORDS = frozenset(_STOP_WORDS.split())  # words that are looked for only if a query has no other
_PARTS = re.compile(r'(?P<minus>-)?(?:"(?P<phrase>[^"]*)"|doc:(?P<glob>\S*)|(?P<word>[^\s"]+))')
"""Matches a part of a query: `"a phrase"`, `doc:src/*.py` or `word`, perhaps with a minus before it. A quotation mark
without its partner is skipped."""
_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""The letters of scripts without spaces: Thai, Lao, Burmese, Khmer, Japanese and Chinese."""
_LETTER = r"(?=\w)[\0-\u0dff\u1e00-\u1fff]"
"""The pattern of a letter, digit or underscore that continues a word. Those of Asian scripts do not: Chinese follows a
Latin word without a space, and a Korean particle its word."""
_ENDING = "(?:es|ed|er|or|ing|ion)?s?"
"""The pattern of the endings of an English word that search filters leave out, except a single e."""
_MOST_SPACES = 100  # with more spaces, search filters may miss a phrase that crosses the end of a frame


@dataclass(frozen=True, slots=True)
class Term:
    """One word or phrase of a query."""

    text: str
    pattern: re.Pattern[str]
    """Matches the term in any case, in a text whose ASCII letters are in lower case."""
    query: Literal
    """The literal by which search filters find the term."""
    words: tuple[str, ...] = ()
    """The folded words under which search filters may count the term; empty if they do not count it."""

    @property
    def needle(self) -> bytes:
        """Bytes in every match; empty if a letter outside ASCII has two cases, since only ASCII is in lower case."""
        has_cases = any(letter.lower() != letter.upper() for letter in self.query.text if not letter.isascii())
        return b"" if has_cases else lower_ascii(self.query.text)


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a query."""

    scoring: tuple[Term, ...]
    """The phrases, then the words. Each occurrence adds to the score of a passage."""
    phrases: int
    """The number of the phrases. A passage must have all of them."""
    without: tuple[Term, ...]
    """The excluded terms. A passage must have none of them."""
    documents: tuple[str, ...]
    """Globs of document names; empty for all documents."""


def parse(query: str) -> Terms:
    """Parse a query. Raises `ValueError` for one without a word or phrase to look for, or with `doc:` and no name."""
    tokens, excluded, documents = list[str](), list[str](), list[str]()
    phrases, without = list[Term](), list[Term]()
    for match in _PARTS.finditer(query):
        is_excluded = match["minus"] is not None
        if match["glob"] is not None:
            if is_excluded or not match["glob"]:
                raise ValueError(f"a query names documents as doc:GLOB, such as doc:src/*.py, not as {match[0]!r}")
            documents.append(match["glob"])
        elif match["phrase"] is not None:
            if words := match["phrase"].split():
                (without if is_excluded else phrases).append(_phrase(words))
        else:
            (excluded if is_excluded else tokens).extend(re.findall(r"\w+", normalize("NFC", match["word"])))
    for token in excluded:  # in a script without spaces, a token is excluded as a whole, not by its pairs
        without += [_phrase([token])] if re.search(f"[{_SPACELESS}]", token) else _terms_of(token)
    content_words = [token for token in tokens if token.lower() not in STOP_WORDS]
    words = content_words if content_words or phrases else tokens
    if not words and not phrases:
        raise ValueError(f"a query needs a word or a quoted phrase to look for: {query!r:.100} has none")
    terms = {term.pattern.pattern: term for token in words for term in _terms_of(token)}  # each once
    return Terms((*phrases, *terms.values()), len(phrases), tuple(without), tuple(documents))


def _terms_of(token: str) -> list[Term]:
    """The terms of a token: a word in its spellings, or pairs of characters where the script has no spaces."""
    terms: list[Term] = []
    for part in filter(None, re.split(f"([{_SPACELESS}]+)", token)):
        if re.match(f"[{_SPACELESS}]", part):
            pairs = [part[i : i + 2] for i in range(len(part) - 1)] or [part]
            terms += [Term(pair, re.compile(pair), Literal(pair), (pair,)) for pair in dict.fromkeys(pairs)]
        else:  # as it is, without diacritics, and with these as characters of their own
            terms += [_word(spelling) for spelling in dict.fromkeys((part, _bare(part), normalize("NFD", part)))]
    return terms


def _word(token: str) -> Term:
    """The term of a word. That of an English word also matches its other forms."""
    bare = _bare(token)
    lower = str(lower_ascii(token), "utf-8")
    is_english = bare.isascii() and bare.isalpha()
    stem, tails = _stem(lower) if is_english else (lower, ("",))
    ending = f"(?:{'|'.join(tails)}){_ENDING}" if is_english else ""
    beginning = _pattern(stem)
    # `re` is the fastest with a literal prefix, so the look-behind comes after it.
    pattern = re.compile(rf"{beginning}(?<!{_LETTER}{beginning}){ending}(?!{_LETTER})")
    return Term(token, pattern, Literal(stem, re.IGNORECASE), _counted([stem + tail for tail in tails]))


def _stem(word: str) -> tuple[str, tuple[str, ...]]:
    """The stem with which all forms of an English word begin, and the tails that may follow it before an ending:
    `cit` and (`y`, `i`, `ie`) for `city` and `cities`."""
    stem = str(stem_of(word.encode()), "utf-8")
    ending = word[len(stem) :]
    if word.endswith("ss"):  # the s of `class` is no ending
        return word, ("",)
    if len(stem) < 4 and ending not in ("", "s", "e", "es"):  # nor is the ing of `string`, the or of `error`
        stem, ending = word.removesuffix("s"), ""
    last = stem[-1]
    if (last == "y" or (last == "i" and ending)) and len(stem) > 3:  # city, cities
        return stem[:-1], ("y", "i", "ie")
    if stem[-2:] == 2 * last and last not in "aeioulsz":  # running, run
        return stem[:-1], ("", last)
    if ending not in ("", "s"):  # rotated, rotate
        return stem, ("", "e")
    doubles = re.fullmatch(r"[a-z]*[aeiou][b-df-hj-np-tvz]", stem)  # run, running
    return stem, ("", last) if doubles else ("",)


def _phrase(tokens: list[str]) -> Term:
    """The term of a phrase. Search filters are asked for its longest word."""
    longest = max(range(len(tokens)), key=lambda number: len(tokens[number].encode()))
    latest = len("".join(tokens[:longest])) + _MOST_SPACES if longest else 0
    literal = Literal(tokens[longest], re.IGNORECASE, latest=latest)
    pattern = r"\s+".join(map(_pattern, tokens))
    return Term(" ".join(tokens), re.compile(pattern), literal, _counted([tokens[longest]]))


def _counted(words: list[str]) -> tuple[str, ...]:
    """The folded words, without those that are too short for filters to count."""
    folded = [fold(word) for word in words]
    return tuple(word for word in folded if len(stem_of(word.encode("utf-8", "surrogatepass"))) >= LEAST_WORD_BYTES)


def _pattern(text: str) -> str:
    """The pattern of `text` in any case, for texts whose ASCII letters are in lower case."""
    pattern = ""
    for letter in text:
        sigmas = "\u03c3\u03c2" if letter.upper() == "\u03a3" else ""
        cases = {letter.lower()} if letter.isascii() else {letter, letter.lower(), letter.upper(), *sigmas}
        cases -= {case for case in cases if len(case) > 1}
        pattern += f"[{''.join(sorted(cases))}]" if len(cases) > 1 else re.escape(cases.pop())
    return pattern


def _bare(text: str) -> str:
    """The text with its Latin letters stripped of diacritics."""
    letters = ((letter, normalize("NFD", letter)[0]) for letter in text)
    return "".join(first if first.isascii() else letter for letter, first in letters).replace("\u0131", "i")


def lower_ascii(text: str | bytes) -> bytes:
    """The UTF-8 of a text, with ASCII letters in lower case. Offsets stay, which `str.lower` does not promise."""
    return (text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")).lower()
