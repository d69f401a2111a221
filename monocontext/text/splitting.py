r"""Split a text that comes in pieces, as `split`, `split(separator)` and `splitlines` of a `str` do.

Results come in blocks of about one piece. Lists are made, searched and counted by C code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

MAX_WAIT_CHARACTERS = 8 << 20
r"""After so many characters without `\n`, `split_lines` also cuts at other line ends, which takes thrice as long."""

Blocks = Iterator[tuple[list[str], int]]
"""For each block, its items and the number of characters that were split up to its end, where the next item begins."""


def split_text(texts: Iterable[str], separator: str) -> Blocks:
    """`"".join(texts).split(separator)` in blocks. Memory holds one item and one piece."""
    rest: list[str] = []  # the pieces of an item that may continue
    reach = len(separator) - 1
    seam = ""  # the end of these pieces, in which a separator may begin
    read_characters = 0
    for text in texts:
        read_characters += len(text)
        if separator not in (seam + text if seam else text):
            rest.append(text)
            if reach:
                seam = (seam + text)[-reach:]
            continue
        items = ("".join([*rest, text]) if rest else text).split(separator)
        last = items.pop()
        yield items, read_characters - len(last)
        rest, seam = [last], last[-reach:] if reach else ""
    yield ["".join(rest)], read_characters


def split_words(texts: Iterable[str]) -> Blocks:
    """`"".join(texts).split()` in blocks."""
    rest: list[str] = []  # the pieces of a word that may continue
    read_characters = 0
    for text in texts:
        read_characters += len(text)
        words = text.split()
        continues_word = bool(rest) and not text[0].isspace()
        ends_word = text[-1].isspace()
        if continues_word and not ends_word and len(words) == 1:
            rest.append(words[0])
            continue
        if continues_word:
            words[0] = "".join([*rest, words[0]])
        elif rest:
            words.insert(0, "".join(rest))
        rest = [] if ends_word or not words else [words.pop()]
        yield words, read_characters - sum(map(len, rest))
    if rest:
        yield ["".join(rest)], read_characters


def split_lines(texts: Iterable[str], keepends: bool) -> Blocks:
    """`"".join(texts).splitlines(keepends)` in blocks. CR LF is one line end, also across two pieces."""
    rest: list[str] = []  # text after the last newline, whose other line ends wait for the next newline
    rest_characters = read_characters = 0
    for text in texts:
        read_characters += len(text)
        newline = text.rfind("\n") + 1
        if newline:
            yield "".join([*rest, text[:newline]]).splitlines(keepends), read_characters - len(text) + newline
            rest, rest_characters = [], 0
        rest.append(text[newline:])
        rest_characters += len(text) - newline
        if rest_characters > MAX_WAIT_CHARACTERS:
            lines = "".join(rest).splitlines(keepends=True)
            last = lines.pop()  # may continue, or end in a CR whose LF follows
            yield lines if keepends else [line.splitlines()[0] for line in lines], read_characters - len(last)
            rest, rest_characters = [last], 0
    yield "".join(rest).splitlines(keepends), read_characters


def cut_pieces(texts: Iterable[str], characters: int) -> Iterator[str]:
    """The text in pieces of at most `characters`, each cut after a newline if one is in its last eighth."""
    pending = ""
    for text in texts:
        pending += text
        start = 0
        while len(pending) - start > characters:
            stop = start + characters
            newline = pending.rfind("\n", stop - characters // 8, stop)
            if newline >= 0:
                stop = newline + 1
            yield pending[start:stop]
            start = stop
        pending = pending[start:]
    if pending:
        yield pending
