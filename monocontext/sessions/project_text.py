"""Join sessions into one lazy text. No text is read for that: `session.json` has the frame records of its objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Unpack

from monocontext.engine.open import TextOptions
from monocontext.format.filters.case_folding import fold
from monocontext.format.filters.query import All, FrequencyQuery, Literal, Query, literals
from monocontext.sessions.session_info import TurnPiece
from monocontext.stores.protocol import Blob, Store
from monocontext.text import assembled as texts
from monocontext.text.monocontext import Monocontext
from monocontext.text.namespace import NamespacePatch


class ProjectText(Monocontext):
    """A text over sessions, with functions for a REPL: `list_sessions`, `read_turn` and the rest."""

    __slots__ = ("_helpers",)

    _helpers: Mapping[str, Callable[..., object]]

    def repl_tools(self) -> Mapping[str, Callable[..., object]]:
        """The functions over its sessions, by name, for a REPL whose cells run elsewhere (no GET)."""
        return getattr(self, "_helpers", {})

    def repl_namespace(self) -> NamespacePatch:
        """The namespace of any text, with the functions over its sessions (no GET)."""
        namespace = super().repl_namespace()
        namespace.names.update(self.repl_tools())
        return namespace


class _UnchangingObjects:
    """Reads the archive without comparing ETags: texts of sessions never change, and each frame has a checksum. The
    text has the hash of the content in place of an ETag, so copies of an archive share a cache."""

    def __init__(self, archive: Store) -> None:
        self._archive = archive

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        blob = self._archive.get_range(key, start, length)
        return replace(blob, etag=etag) if etag is not None else blob


Item = str | tuple[str, TurnPiece] | texts.DocumentStart


def text_of(
    store: Store,
    items: Sequence[Item],
    helpers: Mapping[str, Callable[..., object]],
    ask: Callable[[Sequence[Literal]], Sequence[Callable[[str], bool]]],
    **options: Unpack[TextOptions],
) -> ProjectText:
    """A text of the items in this order, divided into documents (no request). Items are strings, and keys of objects.

    `ask` returns, for each of some literals, a function that says whether the object of a key may contain it. `options`
    are those of `Monocontext.open`.
    """

    def may_match(query: Query, within_line: bool) -> list[bool] | None:
        """Whether each item may contain a match; None if filters cannot tell."""
        # Each item ends with a newline. So a match within a line is in one item, and so is a literal at its beginning.
        wanted = literals(query)
        if not (within_line or all(not each.latest and "\n" not in each.text for each in wanted)):
            return None
        filters = dict(zip(wanted, ask(wanted), strict=True))

        def may_contain(item: Item, literal: Literal) -> bool:
            if isinstance(item, str):  # in any case, since filters ignore case
                return fold(literal.text) in fold(item)
            return isinstance(item, tuple) and filters[literal](item[0])

        return [_satisfies(query, partial(may_contain, item)) for item in items]

    places = (
        texts.FramePiece(item[0], 0, item[1].frames, item[1].sha256) if isinstance(item, tuple) else item
        for item in items
    )
    text = texts.assemble(store.url, _UnchangingObjects(store), places, kind=ProjectText, may_hold=may_match, **options)
    assert isinstance(text, ProjectText)
    text._helpers = helpers
    return text


def _satisfies(query: Query, contains: Callable[[Literal], bool]) -> bool:
    if isinstance(query, Literal):
        return contains(query)
    if isinstance(query, FrequencyQuery):
        return True  # it rules out nothing
    parts = (_satisfies(part, contains) for part in query.queries)
    return all(parts) if isinstance(query, All) else any(parts)
