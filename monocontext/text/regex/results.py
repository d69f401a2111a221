"""Make the results of `findall`, `split` and `sub` from a scan: lists and strings, up to the limit of a text."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

from monocontext.errors import ContextTooLarge
from monocontext.text.regex.stream import Scan
from monocontext.text.str_methods import StrLike


def materialize(value: Any) -> Any:
    """A lazy text as `str`, up to its limit; any other value unchanged."""
    return str(value) if isinstance(value, StrLike) else value


def replacement(repl: Any) -> Any:
    """The replacement in a form that the real `re` takes: it may be a lazy text, or a function that returns one."""
    return (lambda match: materialize(repl(match))) if callable(repl) else materialize(repl)


def template(repl: Any, pattern: re.Pattern[str]) -> list[str | int]:
    """A replacement as literals and group numbers in order. Raises the errors of `re`, before any text is read.

    `re` expands it for a match whose groups are single characters that are not in `repl`, so the result shows where
    each group was put.
    """
    pattern.sub(repl, "")
    if not isinstance(repl, str) or "\\" not in repl:
        return [repl]
    free = (chr(code) for code in range(0xF0000, 0x110000) if chr(code) not in repl)
    names = {number: f"?P<{name}>" for name, number in pattern.groupindex.items()}
    whole, *groups = (next(free) for _ in range(pattern.groups + 1))
    probe = whole + "".join(f"({names.get(number, '')}{group})" for number, group in enumerate(groups, 1))
    match = re.match(probe, whole + "".join(groups))
    assert match is not None
    numbers = {match[number]: number for number in range(pattern.groups + 1)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `sub` has warned already
        expanded = match.expand(repl)
    parts = re.split(f"({re.escape(match[0])}|[{whole}{''.join(groups)}])", expanded)
    return [numbers.get(part, part) for part in parts if part]


class Tally:
    """Counts the characters and items of a result. Raises `ContextTooLarge` above the limit of the text."""

    def __init__(self, what: str, text: StrLike, instead: str):
        self.what = what
        self._limit: int = text._limit
        self._instead = instead
        self._characters = 0
        self._items = 0

    def add(self, characters: int, at: int, items: int = 0) -> None:
        """Count a part of the result, made from the text before character `at`."""
        self._characters += characters
        self._items += items
        if self._characters > self._limit or self._items > self._limit:
            unit = "characters" if self._characters > self._limit else "items"
            raise ContextTooLarge(
                f"re.{self.what}: the result up to character {at:,} of the text exceeds {self._limit:,} {unit} "
                f"(materialize_limit): {self._instead}"
            )


def collect(scan: Scan, groups: int, tally: Tally) -> list[Any]:
    """The result of `findall`. `groups`: the number of groups of the pattern."""
    result: list[Any] = []
    append = result.append
    counted = characters = 0  # items that the tally counts already, and characters that it does not count yet
    log = scan.span.log_received if scan.span.logs_received else None
    for found in scan.hits():
        if found is None:
            tally.add(characters, scan.at, len(result) - counted)
            characters, counted = 0, len(result)
            continue
        if log:
            log(scan.base + found.start(), scan.base + found.end())
        if groups < 2:
            item = found[groups] or ""
            characters += len(item)
            append(item)
        else:
            items = found.groups("")[:groups]  # without the marker group of a rewritten pattern
            characters += sum(map(len, items))
            append(items)
    tally.add(characters, scan.at, len(result) - counted)
    return result


def split_matches(scan: Scan, end: int, groups: int, maxsplit: int, tally: Tally) -> list[Any]:
    """The result of `split` for a text that ends at `end`."""
    result: list[Any] = []
    pieces = _TextCollector(scan, tally)
    if maxsplit >= 0:
        cuts = 0
        for found in scan.hits():
            if found is None:
                pieces.take(scan.at)
                continue
            pieces.take(scan.base + found.start())
            result.append(pieces.text())
            result.extend(found.groups()[:groups])
            tally.add(0, pieces.done, 1 + groups)
            pieces.done = scan.base + found.end()
            cuts += 1
            if cuts == maxsplit:
                break
    pieces.take_rest(end)
    result.append(pieces.text())
    return result


def substitute(
    scan: Scan, end: int, replacement: Callable[[re.Match[str], int], Any], count: int, tally: Tally
) -> tuple[str, int]:
    """The result of `subn` for a text that ends at `end`."""
    pieces = _TextCollector(scan, tally)
    done = 0
    if count >= 0:
        for found in scan.hits():
            if found is None:
                pieces.take(scan.at)
                pieces.merge()
                continue
            pieces.take(scan.base + found.start())
            pieces.put(replacement(found, scan.base))
            pieces.done = scan.base + found.end()
            done += 1
            if done == count:
                break
    pieces.take_rest(end)
    return pieces.text(), done


class _TextCollector:
    """Collects parts of a text from the windows of a scan. All before character `done` is collected or left out."""

    def __init__(self, scan: Scan, tally: Tally):
        self._scan = scan
        self._tally = tally
        self._parts: list[str] = []
        self.done = scan.at

    def take(self, stop: int) -> None:
        """Add the characters up to `stop`, which is in the window."""
        if stop > self.done:
            scan = self._scan
            self._tally.add(stop - self.done, self.done)
            self._parts.append(scan.window[self.done - scan.base : stop - scan.base])
            self.done = stop

    def take_rest(self, end: int) -> None:
        """Add the characters up to the end of the text, also those beyond the window."""
        if end > self.done:
            self._tally.add(end - self.done, self.done)
            self._parts.append(self._scan.read(self.done))
            self.done = end

    def put(self, item: Any) -> None:
        """Add a replacement; None adds nothing, as in `re`."""
        if item is None:
            return
        if not isinstance(item, str):
            raise TypeError(f"sequence item {len(self._parts)}: expected str instance, {type(item).__name__} found")
        self._tally.add(len(item), self.done)
        self._parts.append(item)

    def merge(self) -> None:
        """Join the parts, so that they take less memory."""
        self._parts = ["".join(self._parts)]

    def text(self) -> str:
        """Return the parts as one string, and forget them."""
        text = "".join(self._parts)
        self._parts = []
        return text
