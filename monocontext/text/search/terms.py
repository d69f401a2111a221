"""Parse a query of words, phrases and exclusions into terms: how to find each in a text and in search filters.

An English word is found in its other forms (`rotate`: rotates, rotated, rotating), a letter with its diacritics
(`resume`: résumé), and both in any case. Text of scripts without spaces is found by pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from monocontext.format.filters import case_folding as filters_fold
from monocontext.format.filters.byte_facts import LEAST_BYTES
from monocontext.format.filters.query import All, Any, Literal, Query
from monocontext.format.filters.words import strip
from monocontext.text.windows import overlap

_STOP_WORDS = """
a an and are as at be been but by can did do does for from had has have how i if in into is it its me my
no not of on or our she so that the their them then there these they this to up us was we were what when where which who
why will with would you your about"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
_PIECES = re.compile(r'(?P<minus>-)?(?:"(?P<phrase>[^"]*)(?P<closed>"?)|doc:(?P<glob>\S*)|(?P<word>[^\s"]+))')
_SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_ENDINGS = "(?:s|es|ed|er|ers|ing|ings|ion|ions|or|ors)?"
_ENDINGS_OF_STEM = "(?:[eé]|s|es|ed|er|ers|ing|ings|ion|ions|or|ors)?"
_DOUBLED = "(?:ed|er|ers|ing|ings)"
_SPELLED = "e s es ed er ers ing ings ion ions or ors y ies ied ier ying"
_LEAST_STEM = 4
_MOST_BETWEEN = 100
"""The most spaces in a phrase across the end of a frame for which search filters allow."""


@dataclass(frozen=True, slots=True)
class Term:
    """One word or phrase of a query."""

    text: str
    plain: str
    """A regular expression that finds the term in ASCII, with `re.IGNORECASE`."""
    pattern: str
    """A regular expression that finds it in any text."""
    query: Query
    """The query of search filters for places with the term."""
    beginnings: tuple[str, ...] = ()
    """The lower-case beginnings that the term may have, without diacritics; empty if only the patterns find it."""

    words: tuple[str, ...] = ()
    """The folded words that may stand for the term in search filters."""

    @property
    def is_spaced(self) -> bool:
        """Whether it is a word of a script with spaces."""
        return self.plain.startswith(r"\b")

    def may_go_on(self, tail: str) -> bool:
        """Whether a term may begin in the folded end of a text and end after it, or prove there to be part of a longer
        word."""
        if not self.is_spaced:
            return overlap(tail, fold(self.text)) > 0
        beginning = fold(self.beginnings[0] if self.beginnings else self.text)
        found = re.match(r"\w+", tail[::-1])
        return found is not None and (beginning.startswith(found[0][::-1]) or found[0][::-1].startswith(beginning))


@dataclass(frozen=True, slots=True)
class Terms:
    """A query."""

    words: tuple[Term, ...]
    """Each of these adds to the score."""
    phrases: tuple[Term, ...]
    """A passage has all of these; each adds to the score."""
    without: tuple[Term, ...]
    """A passage has none of these."""
    documents: tuple[str, ...]
    """Patterns of document names; a document that matches any is searched."""

    @property
    def scoring(self) -> tuple[Term, ...]:
        return (*self.phrases, *self.words)

    @property
    def any_of(self) -> Query:
        """The query for places worth looking at: each phrase, and any of the words."""
        some = Any(tuple(term.query for term in self.scoring))
        return All((*(term.query for term in self.phrases), some)) if self.phrases else some


def parse(query: str) -> Terms:
    """Raises `ValueError`, in one line, for a query that can find nothing (empty, or only stop words), and for one that
    does not parse (an open quote, `doc:` without a name)."""
    words: dict[str, Term] = {}
    phrases, without, documents, ignored = list[Term](), list[Term](), list[str](), list[str]()
    for found in _PIECES.finditer(query):
        if found["glob"] is not None:
            if found["minus"] or not found["glob"]:
                raise ValueError(f"a query names documents as doc:src/*.py, not as {found[0]}")
            documents.append(found["glob"])
            continue
        if found["phrase"] is not None:
            if not found["closed"]:
                raise ValueError(f"a query needs a quote after each phrase, as before it: {found[0]}")
            if tokens := found["phrase"].split():
                (without if found["minus"] else phrases).append(_phrase(tokens))
            continue
        for token in re.findall(r"\w+", found["word"]):
            if found["minus"]:
                without.append(_word(token))
            elif token.lower() in STOP_WORDS:
                ignored.append(token)
            else:
                words |= {term.text.lower(): term for term in _terms_of(token)}
    if not words and not phrases:
        if ignored:
            raise ValueError(f"a query of common words alone finds everything: {' '.join(ignored)}; add a rarer word")
        raise ValueError("a query needs a word or a quoted phrase to look for")
    return Terms(tuple(words.values()), tuple(phrases), tuple(without), tuple(documents))


def _terms_of(token: str) -> list[Term]:
    """A token as a word; in a script without spaces, as pairs of characters."""
    found: list[Term] = []
    at = 0
    for run in _SPACELESS.finditer(token):
        if run.start() > at:
            found.append(_word(token[at : run.start()]))
        text = run[0]
        pairs = [text[i : i + 2] for i in range(len(text) - 1)] or [text]
        found += [Term(pair, pair, re.escape(pair), Literal(pair), (pair,), (pair,)) for pair in dict.fromkeys(pairs)]
        at = run.end()
    if at < len(token):
        found.append(_word(token[at:]))
    return found


def _word(token: str) -> Term:
    bare = _strip_latin(token)
    if not (bare.isascii() and bare.isalpha()):
        query = _any([Literal(each, re.IGNORECASE) for each in dict.fromkeys((token, bare))])
        patterns = rf"\b{re.escape(bare)}\b", rf"\b{_with_marks(bare)}\b"
        return Term(token, *patterns, query, _beginning(bare), _folded(token, bare))
    forms = _forms(bare.lower())
    stem = min((beginning for beginning, _ in forms), key=len)
    literals = [Literal(stem, re.IGNORECASE)]
    if bare != token:
        literals.append(Literal(token, re.IGNORECASE))
    plain = "|".join(beginning + ending for beginning, ending in forms)
    marked = "|".join(_with_marks(beginning) + ending for beginning, ending in forms)
    return Term(token, rf"\b(?:{plain})\b", rf"\b(?:{marked})\b", _any(literals), (stem,), _folded(token, bare))


def _phrase(tokens: list[str]) -> Term:
    number = max(range(len(tokens)), key=lambda number: len(tokens[number].encode()))
    latest = 2 * len("".join(tokens[:number])) + _MOST_BETWEEN if number else 0  # twice: with a mark on each letter
    literal = Literal(tokens[number], re.IGNORECASE, latest=latest)
    plain = r"\s+".join(re.escape(_strip_latin(one)) for one in tokens)
    marked = r"\s+".join(_with_marks(_strip_latin(one)) for one in tokens)
    return Term(" ".join(tokens), plain, marked, literal, _beginning(_strip_latin(tokens[0])), _folded(tokens[number]))


def _beginning(bare: str) -> tuple[str, ...]:
    return (bare.lower(),) if bare.isascii() or bare.lower() == bare.upper() else ()


def _folded(*tokens: str) -> tuple[str, ...]:
    """The forms of a word that search filters may have counted; English endings count as one."""
    forms = [
        beginning + ending
        for token in tokens
        if token.isascii() and token.isalpha()
        for beginning, pattern in _forms(token.lower())
        for ending in ("", *_SPELLED.split())
        if re.fullmatch(pattern, ending)
    ]
    by_stem: dict[bytes, str] = {}
    for word in (*map(filters_fold.fold, tokens), *forms):
        by_stem.setdefault(strip(word.encode("utf-8", "surrogatepass")), word)
    return tuple(word for stem, word in by_stem.items() if len(stem) >= LEAST_BYTES)


def _forms(word: str) -> list[tuple[str, str]]:
    """The forms of an English word: what they begin with, and patterns of what follows."""
    if word.endswith(("ies", "y")) and len(word) > _LEAST_STEM:
        return [(word.removesuffix("ies").removesuffix("y"), "(?:y|ies|ied|ier|ying)")]
    for suffix in ("ings", "ions", "ing", "ion", "ers", "ors", "ed", "es", "er", "or", "s", "e"):
        stem = word.removesuffix(suffix)
        if stem != word and len(stem) >= _LEAST_STEM - (suffix in ("s", "e")) and not stem.endswith("s"):
            if stem[-1] == stem[-2] and stem[-1] not in "aeioulsz":
                return [(stem[:-1], "s?"), (stem, _DOUBLED)]  # running: run
            return [(stem, _ENDINGS_OF_STEM)]
    doubled = [(word + word[-1], _DOUBLED)] if re.fullmatch(r"[a-z]*[aeiou][b-df-hj-np-tvz]", word) else []
    return [(word, _ENDINGS), *doubled]  # run: running


def _any(literals: list[Literal]) -> Query:
    return literals[0] if len(literals) == 1 else Any(tuple(literals))


def fold(text: str) -> str:
    """The text without case and diacritics, with each run of spaces as one space."""
    spaced = " ".join(text.split()) + " " * text[-1:].isspace()
    return _strip_marks(spaced).casefold().replace("ı", "i")


def _strip_marks(text: str) -> str:
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


def _strip_latin(text: str) -> str:
    """ASCII letters without diacritics. Other letters keep theirs: without them, Cyrillic and Korean letters become
    other letters."""
    return "".join(bare if (bare := _strip_marks(one)).isascii() else one for one in text)


def _with_marks(text: str) -> str:
    """A pattern for a text without diacritics that finds it with any."""
    marked = _marked_letters()
    return "".join(
        f"(?:[{c}{marked[c.lower()]}][\u0300-\u036f]*)" if c.lower() in marked else re.escape(c) for c in text
    )


@lru_cache
def _marked_letters() -> dict[str, str]:
    """The letters that are a Latin letter with diacritics, by that letter."""
    found: dict[str, str] = {}
    for code in (*range(0xC0, 0x250), *range(0x1E00, 0x1F00)):
        letter = _strip_marks(chr(code))
        if letter.isascii() and letter.isalpha() and len(letter) == 1:
            found[letter.lower()] = found.get(letter.lower(), "") + chr(code)
    return found
