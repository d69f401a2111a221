"""Parse a query of words, phrases and exclusions into terms: how to find each in a folded text, and in search filters.

An English word is found in its other forms (`rotate`: rotates, rotated, rotating), a letter with its diacritics
(`resume`: résumé), and both in any case. Text of scripts without spaces is found by pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property, lru_cache

from monocontext.engine.scan import find
from monocontext.format.filters.grams import LEAST_BYTES, stem_of
from monocontext.format.filters.grams import fold as fold_in_filters
from monocontext.format.filters.query import All, AnyOf, Literal, Query

_STOP_WORDS = """
a an and are as at be been but by can did do does for from had has have how i if in into is it its me my
no not of on or our she so that the their them then there these they this to up us was we were what when where which who
why will with would you your about"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
_PARTS = re.compile(r'(?P<minus>-)?(?:"(?P<phrase>[^"]*)"|doc:(?P<glob>\S*)|(?P<word>[^\s"]+))')
"""The parts of a query: a phrase, the glob of `doc:`, or a word; each may have a minus before it. A quotation mark
without another one is left out."""
_SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
"""Text of scripts without spaces: Thai, Lao, Burmese, Khmer, Japanese and Chinese."""
_ENDINGS = "e s es ed er ers ing ings ion ions or ors y ies ied ier ying"
_OF_WORD = "s|es|ed|er|ers|ing|ings|ion|ions|or|ors"
"""The endings of a word: visit, visits, visited. A stem may have lost an e, too: rotat-e, rotat-ing."""
_OF_DOUBLED = "(?:ed|er|ers|ing|ings)"
"""The endings of a stem with a doubled consonant: runn-ing."""
_LEAST_STEM = 4
"""The fewest characters of a stem. A shorter word keeps its ending."""
_MOST_SPACES = 100
"""The most spaces in a phrase that search filters allow for, where the phrase crosses the end of a frame."""
_ACCENTED = re.compile("[\u00c0-\u024f\u1e00-\u1eff\u212a\u212b]")
_ACCENTED_UTF8 = (*(bytes([lead]) for lead in range(0xC3, 0xCA)), *(bytes([0xE1, n]) for n in range(0xB8, 0xBC)))
"""All but the last byte of these letters in UTF-8, and of some others; without the signs of Kelvin and Angstrom."""
_SIGNS_UTF8 = re.compile(b"\xe2\x84[\xaa\xab]")  # of Kelvin and Angstrom
_SIGMA, _FINAL_SIGMA = "\u03c3\u03c2"


@dataclass(frozen=True)
class Term:
    """One word or phrase of a query."""

    text: str
    beginning: str
    """The first characters of each form of the term, in folded text."""
    pattern: re.Pattern[str]
    """Matches the term in folded text, at the place where it begins."""
    query: Query
    """The query of search filters for places with the term."""
    words: tuple[str, ...] = ()
    """The folded words under which search filters may count the term."""
    is_word: bool = False
    """Whether the term does not begin inside a word."""

    @cached_property
    def beginning_utf8(self) -> re.Pattern[bytes]:
        """Matches `beginning` in UTF-8, except after an ASCII letter, a digit or an underscore."""
        literal = re.escape(self.beginning.encode("utf-8", "surrogatepass"))
        return re.compile(literal + rb"(?<!\w" + literal + rb")")  # `re` finds a literal prefix the fastest


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a query."""

    words: tuple[Term, ...]
    """The words. Each occurrence adds to the score of a passage."""
    phrases: tuple[Term, ...]
    """The phrases. A passage must have all of them, and they add to its score."""
    without: tuple[Term, ...]
    """The excluded terms. A passage must have none of them."""
    documents: tuple[str, ...]
    """Globs of document names; empty for all documents. A document that matches any of them is searched."""

    @property
    def scoring(self) -> tuple[Term, ...]:
        """The terms that add to the score, phrases first. Their numbers are the places in this tuple."""
        return (*self.phrases, *self.words)

    @property
    def any_of(self) -> Query:
        """The query of search filters for places worth a look: those with all phrases, or else any of the words."""
        any_term = AnyOf(tuple(term.query for term in self.scoring))
        return All((*(term.query for term in self.phrases), any_term)) if self.phrases else any_term


def parse(query: str) -> Terms:
    """Parse a query. Raises `ValueError` for one that is empty or has only stop words, and for `doc:` without a
    name."""
    words: dict[str, Term] = {}
    phrases, without, documents, stop_words = list[Term](), list[Term](), list[str](), list[str]()
    for match in _PARTS.finditer(query):
        if match["glob"] is not None:
            if match["minus"] or not match["glob"]:
                raise ValueError(f"a query names documents as doc:src/*.py, not as {match[0]}")
            documents.append(match["glob"])
        elif match["phrase"] is not None:
            if tokens := match["phrase"].split():
                (without if match["minus"] else phrases).append(_phrase(tokens))
        else:
            for token in re.findall(r"\w+", match["word"]):
                if match["minus"]:
                    without.append(_word(token))
                elif token.lower() in STOP_WORDS:
                    stop_words.append(token)
                else:
                    words |= {term.text.lower(): term for term in _terms_of(token)}
    if not words and not phrases:
        if stop_words:
            common = " ".join(stop_words)
            raise ValueError(f"a query of common words alone finds everything: {common}; add a rarer word")
        raise ValueError("a query needs a word or a quoted phrase to look for")
    return Terms(tuple(words.values()), tuple(phrases), tuple(without), tuple(documents))


def _terms_of(token: str) -> list[Term]:
    """The terms of a token: a word, or pairs of characters where the script has no spaces."""
    terms: list[Term] = []
    for part in re.split(f"({_SPACELESS.pattern})", token):
        if part and _SPACELESS.match(part):
            pairs = [part[i : i + 2] for i in range(len(part) - 1)] or [part]
            terms += [_term(pair, pair, re.escape(pair), Literal(pair), (pair,)) for pair in dict.fromkeys(pairs)]
        elif part:
            terms.append(_word(part))
    return terms


def _word(token: str) -> Term:
    """The term of a word: an English one with its other forms."""
    bare = fold(token)
    literals = [Literal(token, re.IGNORECASE)]
    if not (bare.isascii() and bare.isalpha()):
        if bare != token.lower():
            literals.append(Literal(bare, re.IGNORECASE))
        return _term(token, bare, rf"{re.escape(bare)}(?!\w)", _any(literals), _folded(token, bare))
    forms = _forms(bare)
    stem = min((beginning for beginning, _ in forms), key=len)
    literals = [Literal(stem, re.IGNORECASE), *(literals if bare != token.lower() else [])]
    pattern = "|".join(beginning + ending for beginning, ending in forms)
    return _term(token, stem, rf"(?:{pattern})(?!\w)", _any(literals), _folded(token, bare))


def _phrase(tokens: list[str]) -> Term:
    """The term of a phrase. Search filters are asked for its longest word."""
    longest = max(range(len(tokens)), key=lambda number: len(tokens[number].encode()))
    latest = 2 * len("".join(tokens[:longest])) + _MOST_SPACES if longest else 0
    literal = Literal(tokens[longest], re.IGNORECASE, latest=latest)
    bare = [fold(token) for token in tokens]
    pattern = r"\s+".join(map(re.escape, bare))
    return Term(" ".join(tokens), bare[0], re.compile(pattern), literal, _folded(tokens[longest]))


def _term(text: str, beginning: str, pattern: str, query: Query, words: tuple[str, ...]) -> Term:
    is_word = _SPACELESS.match(text) is None
    return Term(text, beginning, re.compile(rf"(?<!\w){pattern}" if is_word else pattern), query, words, is_word)


def _folded(*tokens: str) -> tuple[str, ...]:
    """The forms of a word under which search filters may count it. Forms that filters count as one are given once."""
    forms = [
        beginning + ending
        for token in tokens
        if token.isascii() and token.isalpha()
        for beginning, pattern in _forms(token.lower())
        for ending in ("", *_ENDINGS.split())
        if re.fullmatch(pattern, ending)
    ]
    by_stem: dict[bytes, str] = {}
    for word in (*map(fold_in_filters, tokens), *forms):
        by_stem.setdefault(stem_of(word.encode("utf-8", "surrogatepass")), word)
    return tuple(word for stem, word in by_stem.items() if len(stem) >= LEAST_BYTES)


def _forms(word: str) -> list[tuple[str, str]]:
    """The forms of an English word: pairs of a beginning and the pattern of the endings that it may have."""
    if word.endswith(("ies", "y")) and len(word) > _LEAST_STEM:
        return [(word.removesuffix("ies").removesuffix("y"), "(?:y|ies|ied|ier|ying)")]
    for suffix in ("ings", "ions", "ing", "ion", "ers", "ors", "ed", "es", "er", "or", "s", "e"):
        stem = word.removesuffix(suffix)
        if stem != word and len(stem) >= _LEAST_STEM - (suffix in ("s", "e")) and not stem.endswith("s"):
            if stem[-1] == stem[-2] and stem[-1] not in "aeioulsz":
                return [(stem[:-1], "s?"), (stem, _OF_DOUBLED)]  # running: run
            return [(stem, f"(?:e|{_OF_WORD})?")]
    doubled = [(word + word[-1], _OF_DOUBLED)] if re.fullmatch(r"[a-z]*[aeiou][b-df-hj-np-tvz]", word) else []
    return [(word, f"(?:{_OF_WORD})?"), *doubled]  # run: running


def _any(literals: list[Literal]) -> Query:
    return literals[0] if len(literals) == 1 else AnyOf(tuple(literals))


def fold(text: str) -> str:
    """The text in lower case and with Latin letters without diacritics, character by character; a final sigma is a
    sigma."""
    if text.isascii():
        return text.lower()
    return _ACCENTED.sub(lambda match: _fold_letter(match[0]), text).lower().replace(_FINAL_SIGMA, _SIGMA)


def fold_utf8(data: bytes) -> bytes:
    """UTF-8 in which ASCII letters, and characters that become ASCII by `fold`, are folded."""
    data = data.lower()
    if data.isascii():
        return data
    for lead in _ACCENTED_UTF8:
        if find(data, lead) >= 0:
            first, *parts = data.split(lead)
            data = b"".join([first, *[_fold_letter_utf8(lead + part[:1]) + part[1:] for part in parts]])
    return _SIGNS_UTF8.sub(lambda match: _fold_letter_utf8(match[0]), data)


@lru_cache(maxsize=2048)
def _fold_letter_utf8(letter: bytes) -> bytes:
    """The UTF-8 of a character, folded."""
    return _fold_letter(letter.decode("utf-8")).encode("utf-8")


@lru_cache(maxsize=2048)
def _fold_letter(letter: str) -> str:
    """A character in lower case, without diacritics if that is ASCII."""
    if _ACCENTED.match(letter):
        first = unicodedata.normalize("NFD", letter)[0]
        letter = first if first.isascii() else "i" if letter in "\u0130\u0131" else letter
    return _SIGMA if letter == _FINAL_SIGMA else letter.lower()
