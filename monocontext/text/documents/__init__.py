"""The documents of a text: by name, and as a lazy `list` or `dict` of texts."""

from __future__ import annotations

from monocontext.format.documents import Document
from monocontext.text.documents.by_name import Documents
from monocontext.text.documents.shapes import DocumentDict, DocumentList

__all__ = ["Document", "DocumentDict", "DocumentList", "Documents"]
