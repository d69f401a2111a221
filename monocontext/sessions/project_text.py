"""Sessions as one lazy text: what is known of each holds the frame records of its pieces, so no piece is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from monocontext import assembled as texts
from monocontext.namespace import Kit
from monocontext.sessions.session_info import Piece
from monocontext.store import Blob, Store
from monocontext.text import Monocontext


class ProjectText(Monocontext):
    """A text over sessions, that brings names for a REPL along: `list_sessions`, `read_turn` and the rest."""

    __slots__ = ("_helpers",)

    _helpers: Mapping[str, Callable[..., object]]

    def repl_tools(self) -> Mapping[str, Callable[..., object]]:
        """The functions over its sessions, by name, for a REPL whose cells run elsewhere (no GET)."""
        return getattr(self, "_helpers", {})

    def repl_namespace(self) -> Kit:
        """As any text's, with the functions over its sessions (no GET)."""
        kit = super().repl_namespace()
        kit.names.update(getattr(self, "_helpers", {}))
        return kit


class _Pieces:
    """Pieces never change and their frames are checked, so they are known by their content and not by an ETag, which
    a copy of the archive at another place would not have."""

    def __init__(self, archive: Store) -> None:
        self._archive = archive

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        blob = self._archive.get_range(key, start, length)
        return replace(blob, etag=etag) if etag is not None else blob


def text_of(
    store: Store, items: Iterable[str | tuple[str, Piece]], helpers: Mapping[str, Callable[..., object]], **options: Any
) -> ProjectText:
    """Text at hand and pieces by their key, one after another (no request). `options` as of `Monocontext.open`."""
    places = (
        item if isinstance(item, str) else texts.Piece(item[0], 0, item[1].frames, item[1].sha256) for item in items
    )
    text = texts.assembled(store.url, _Pieces(store), places, kind=ProjectText, **options)
    assert isinstance(text, ProjectText)
    text._helpers = helpers
    return text
