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
from monocontext.format.filters.words import stem_of
from monocontext.text.windows import overlap

_STOP_WORDS = """
a an and are as at be been but by can did do does for from had has have how i if in into is it its me my
no not of on or our she so that the their them then there these they this to up us was we were what when where which who
why will with would you your about"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
_PARTS = re.compile(r'(?P<minus>-)?(?:"(?P<phrase>[^"]*)(?P<closed>"?)|doc:(?P<glob>\S*)|(?P<word>[^\s"]+))')
"""The parts of a query: a phrase, the glob of `doc:`, or a word; each may have a minus before it."""
_SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
"""Text of scripts without spaces: Thai, Lao, Burmese, Khmer, Japanese and Chinese."""
_ENDINGS = "(?:s|es|ed|er|ers|ing|ings|ion|ions|or|ors)?"
"""The endings of a word: visit, visits, visited."""
_ENDINGS_OF_STEM = "(?:[eé]|s|es|ed|er|ers|ing|ings|ion|ions|or|ors)?"
"""The endings of a stem that may have lost an e: rotat-e, rotat-ing."""
_ENDINGS_OF_DOUBLED = "(?:ed|er|ers|ing|ings)"
"""The endings of a stem with a doubled consonant: runn-ing."""
_ALL_ENDINGS = "e s es ed er ers ing ings ion ions or ors y ies ied ier ying"
_LEAST_STEM = 4
"""The fewest characters of a stem. A shorter word keeps its ending."""
_MOST_SPACES = 100
"""The most spaces in a phrase that search filters allow for, where the phrase crosses the end of a frame."""


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
    """The beginning that each form of the term has in lower case and without diacritics; empty if only the patterns
    find the term."""
    words: tuple[str, ...] = ()
    """The folded words under which search filters may count the term."""

    @property
    def is_spaced(self) -> bool:
        """Whether it is a word of a script with spaces."""
        return self.plain.startswith(r"\b")

    def may_go_on(self, tail: str) -> bool:
        """Whether the text that follows can decide if a term begins in `tail`, the folded end of a text: the term may
        end there, or be part of a longer word."""
        if not self.is_spaced:
            return overlap(tail, fold(self.text)) > 0
        beginning = fold(self.beginnings[0] if self.beginnings else self.text)
        found = re.match(r"\w+", tail[::-1])  # backwards, or it would be tried at every character
        if found is None:
            return False
        last_word = found[0][::-1]
        return beginning.startswith(last_word) or last_word.startswith(beginning)


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
        any_term = Any(tuple(term.query for term in self.scoring))
        return All((*(term.query for term in self.phrases), any_term)) if self.phrases else any_term


def parse(query: str) -> Terms:
    """Parse a query. Raises `ValueError` for a query that is empty or has only stop words, and for one with an open
    quote, or with `doc:` but no name."""
    words: dict[str, Term] = {}
    phrases, without, documents, stop_words = list[Term](), list[Term](), list[str](), list[str]()
    for found in _PARTS.finditer(query):
        if found["glob"] is not None:
            if found["minus"] or not found["glob"]:
                raise ValueError(f"a query names documents as doc:src/*.py, not as {found[0]}")
            documents.append(found["glob"])
            continue
        if found["phrase"] is not None:
            if not found["closed"]:
                raise ValueError(f'a query needs a quote at both ends of a phrase, as in "a phrase", not {found[0]}')
            if tokens := found["phrase"].split():
                (without if found["minus"] else phrases).append(_phrase(tokens))
            continue
        for token in re.findall(r"\w+", found["word"]):
            if found["minus"]:
                without.append(_word(token))
            elif token.lower() in STOP_WORDS:
                stop_words.append(token)
            else:
                words |= {term.text.lower(): term for term in _terms_of(token)}
    if not words and not phrases:
        if stop_words:
            raise ValueError(
                f"a query of common words alone finds everything: {' '.join(stop_words)}; add a rarer word"
            )
        raise ValueError("a query needs a word or a quoted phrase to look for")
    return Terms(tuple(words.values()), tuple(phrases), tuple(without), tuple(documents))


def _terms_of(token: str) -> list[Term]:
    """The terms of a token: a word, or pairs of characters where the script has no spaces."""
    terms: list[Term] = []
    at = 0
    for run in _SPACELESS.finditer(token):
        if run.start() > at:
            terms.append(_word(token[at : run.start()]))
        text = run[0]
        pairs = [text[i : i + 2] for i in range(len(text) - 1)] or [text]
        terms += [Term(pair, pair, re.escape(pair), Literal(pair), (pair,), (pair,)) for pair in dict.fromkeys(pairs)]
        at = run.end()
    if at < len(token):
        terms.append(_word(token[at:]))
    return terms


def _word(token: str) -> Term:
    """The term of a word: an English one with its other forms."""
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
    accented = "|".join(_with_marks(beginning) + ending for beginning, ending in forms)
    return Term(token, rf"\b(?:{plain})\b", rf"\b(?:{accented})\b", _any(literals), (stem,), _folded(token, bare))


def _phrase(tokens: list[str]) -> Term:
    """The term of a phrase. Search filters are asked for its longest word."""
    longest = max(range(len(tokens)), key=lambda number: len(tokens[number].encode()))
    # Twice the length of the words before it, since each letter may have a combining mark.
    latest = 2 * len("".join(tokens[:longest])) + _MOST_SPACES if longest else 0
    literal = Literal(tokens[longest], re.IGNORECASE, latest=latest)
    plain = r"\s+".join(re.escape(_strip_latin(token)) for token in tokens)
    accented = r"\s+".join(_with_marks(_strip_latin(token)) for token in tokens)
    beginning = _beginning(_strip_latin(tokens[0]))
    return Term(" ".join(tokens), plain, accented, literal, beginning, _folded(tokens[longest]))


def _beginning(bare: str) -> tuple[str, ...]:
    """`Term.beginnings` of a word without other forms."""
    return (bare.lower(),) if bare.isascii() or bare.lower() == bare.upper() else ()


def _folded(*tokens: str) -> tuple[str, ...]:
    """The forms of a word under which search filters may count it. Forms that filters count as one are given once."""
    forms = [
        beginning + ending
        for token in tokens
        if token.isascii() and token.isalpha()
        for beginning, pattern in _forms(token.lower())
        for ending in ("", *_ALL_ENDINGS.split())
        if re.fullmatch(pattern, ending)
    ]
    by_stem: dict[bytes, str] = {}
    for word in (*map(filters_fold.fold, tokens), *forms):
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
                return [(stem[:-1], "s?"), (stem, _ENDINGS_OF_DOUBLED)]  # running: run
            return [(stem, _ENDINGS_OF_STEM)]
    doubled = [(word + word[-1], _ENDINGS_OF_DOUBLED)] if re.fullmatch(r"[a-z]*[aeiou][b-df-hj-np-tvz]", word) else []
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
    """The text with Latin letters without diacritics. Other letters keep these, since a Cyrillic or Korean letter
    without them is another letter."""
    return "".join(bare if (bare := _strip_marks(c)).isascii() else c for c in text)


def _with_marks(text: str) -> str:
    """A pattern that finds a text (without diacritics) with any diacritics."""
    accented = _accented_letters()
    return "".join(
        f"(?:[{c}{accented[c.lower()]}][\u0300-\u036f]*)" if c.lower() in accented else re.escape(c) for c in text
    )


@lru_cache
def _accented_letters() -> dict[str, str]:
    """For each Latin letter in lower case, its forms with diacritics in either case."""
    forms: dict[str, str] = {}
    for code in (*range(0xC0, 0x250), *range(0x1E00, 0x1F00)):
        letter = _strip_marks(chr(code))
        if letter.isascii() and letter.isalpha() and len(letter) == 1:
            forms[letter.lower()] = forms.get(letter.lower(), "") + chr(code)
    return forms
