"""Find the index page of a character, a frame, a byte or a newline in the tree of a large text's directories.

Fetches nothing itself: it returns the directory that has to be fetched first. Open directories stay in memory: some 0.6
KB for each GB of text that was looked at.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

from monocontext.engine.fetch.requests import FetchItem
from monocontext.format.directories import entries_in
from monocontext.format.refs import PageDirectory, PageRef

Column = Literal["characters", "frames", "bytes", "newlines", "pages"]
"""The unit in which a place in the text is counted."""


class Unopened:
    """A directory that has to be fetched before an index page is known."""

    def __init__(self, parent: _Node, at: int, entry: PageDirectory):
        self._parent, self._at, self._entry = parent, at, entry

    def item(self) -> FetchItem:
        """The item to fetch for the directory; decoding it opens the directory."""
        size = self._entry.size_bytes
        return FetchItem(("directory", self._entry.id), self._entry.key, 0, size, 20 * size, self._open)

    def _open(self, body: memoryview) -> _Node:
        parent, offset = self._parent, self._at
        before = parent.entries[offset - 1] if offset else parent.before

        node = _Node(entries_in(self._entry, bytes(body), before), before, parent.firsts[offset])
        parent.children[offset] = node
        return node


class _Node:
    """The entries of a root or of a directory."""

    size_bytes = 1000  # little for the cache: the tree keeps it anyway

    def __init__(self, entries: Sequence[PageRef], before: PageRef | None, first: int):
        self.entries, self.before = entries, before
        pages = (entry.pages if isinstance(entry, PageDirectory) else 1 for entry in entries)
        self.firsts = list(accumulate(pages, initial=first))
        """The number of the first page of each entry."""
        self.columns: dict[Column, list[int]] = {
            "characters": [entry.characters for entry in entries],
            "frames": [entry.frames for entry in entries],
            "bytes": [entry.bytes for entry in entries],
            "newlines": [entry.newlines for entry in entries],
            "pages": self.firsts[1:],
        }
        self.children: dict[int, _Node] = {}


class PageTree:
    """The index pages of one text, by number. Safe for use by many threads."""

    def __init__(self, pages: Sequence[PageRef]):
        self._top = _Node(pages, None, 0)
        self.ends = self._top.columns["characters"]
        """The characters up to the end of each entry of the root."""
        self.directories = sum(isinstance(page, PageDirectory) for page in pages)
        """The number of directories, which are the first entries of the root."""
        self.count = self._top.firsts[-1]
        self.more = self.count - len(pages)
        """The difference between the number of a page that the root names and its place in the root."""

    def number(self, column: Column, value: int) -> int | Unopened:
        """The number of the page that holds the character, frame, byte or newline with this number."""
        result = self._find(column, value)
        return result if isinstance(result, Unopened) else result[0].firsts[result[1]]

    def page(self, number: int) -> tuple[PageRef, PageRef | None] | Unopened:
        """A page, and the entry before it."""
        result = self._find("pages", number)
        if isinstance(result, Unopened):
            return result
        node, offset = result
        return node.entries[offset], node.entries[offset - 1] if offset else node.before

    def _find(self, column: Column, value: int) -> tuple[_Node, int] | Unopened:
        node = self._top
        while True:
            index = bisect_right(node.columns[column], value)
            entry = node.entries[index] if index < len(node.entries) else None
            if not isinstance(entry, PageDirectory):
                return node, index
            child = node.children.get(index)
            if child is None:
                return Unopened(node, index, entry)
            node = child
