"""Join sessions into one lazy text. `session.json` holds the frame records of its pieces: no piece is read."""

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
        """As any text's, with the functions over its sessions (no GET)."""
        kit = super().repl_namespace()
        kit.names.update(getattr(self, "_helpers", {}))
        return kit


class _PieceCache:
    """Pieces never change and their frames are checked, so they are known by their content and not by an ETag, which
    a copy of the archive at another place would not have."""

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
    """A text of strings and of pieces by their keys, in this order, divided into documents (no request).

    `ask` gives, for each of some literals, a function that says whether the piece of a key may hold it; `options` are
    those of `Monocontext.open`.
    """

    def may_hold(query: Query, within_line: bool) -> list[bool] | None:
        # A match within a line lies in one item, since each ends with a newline; so do literals
        # that begin where it does.
        wanted = literals(query)
        if not (within_line or all(not each.latest and "\n" not in each.text for each in wanted)):
            return None
        told = dict(zip(wanted, ask(wanted), strict=True))

        def holds(item: Item, literal: Literal) -> bool:
            if isinstance(item, str):  # in any case, as the filters have it
                return fold(literal.text) in fold(item)
            return isinstance(item, tuple) and told[literal](item[0])

        return [_satisfies(query, partial(holds, item)) for item in items]

    places = (
        texts.FramePiece(item[0], 0, item[1].frames, item[1].sha256) if isinstance(item, tuple) else item
        for item in items
    )
    text = texts.assemble(store.url, _PieceCache(store), places, kind=ProjectText, may_hold=may_hold, **options)
    assert isinstance(text, ProjectText)
    text._helpers = helpers
    return text


def _satisfies(query: Query, holds: Callable[[Literal], bool]) -> bool:
    if isinstance(query, Literal):
        return holds(query)
    if isinstance(query, FrequencyQuery):
        return True  # it rules out nothing
    parts = (_satisfies(part, holds) for part in query.queries)
    return all(parts) if isinstance(query, All) else any(parts)
