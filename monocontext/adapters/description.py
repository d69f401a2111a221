"""Describe a context for the model, where a host's prompt knows strings alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from monocontext.text.documents import DocumentDict, DocumentList
from monocontext.text.lazy_kinds import LazyText

if TYPE_CHECKING:
    from monocontext.text.monocontext import Monocontext

    Context = Monocontext | DocumentList | DocumentDict


def is_lazy(context: object) -> TypeGuard[Context]:
    """Whether this is a text in storage, or a list or dict of its documents (no GET)."""
    return isinstance(context, (LazyText, DocumentList, DocumentDict))


def describe(context: Context, name: str, regex: str) -> str:
    """A few sentences for the model: what `name` holds and how it is read. `regex` says what takes a text there.

    No GET for a text, 1 for the first names of documents.
    """
    if isinstance(context, LazyText):
        return (
            f"a text of {len(context):,} characters that is fetched where you look. It behaves as a str: {name}[a:b], "
            f"{name}.find(x), x in {name}, {name}.lines[i:j], {name}.grep(pattern) for hits with .offset, .line_number "
            f"and .line. {regex}"
        )
    told: dict[str, Any] = context.describe()
    return f"{told['sentence']}. {told['access']} {regex}"
