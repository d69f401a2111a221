"""Find the objects that a root names, itself or through its directories and index pages. All others are garbage."""

from __future__ import annotations

import json
import re

from monocontext.format.directories import Directory, expand, rows_text
from monocontext.format.index import Page
from monocontext.format.manifest import Manifest
from monocontext.format.refs import MOST_PAGE_BYTES, PageRef
from monocontext.stores.protocol import Store, get_bounded

FOLDERS = ("segments/", "index/", "filters/", "documents/")
_ID = re.compile(r"[0-9a-f]{32}")
OBJECT = re.compile(
    r"segments/[0-9a-f]{32}\.seg|index/[0-9a-f]{32}\.(?:idx|dir)|filters/[0-9a-f]{32}\.flt|documents/[0-9a-f]{32}\.doc"
)
"""The keys of all objects that roots name."""


def id_in(key: str) -> str:
    """The id in the key of an object."""
    return key.partition("/")[2][:32]


NamedPage = tuple[PageRef, PageRef | None, bytes | None]
"""An index page that a root names, the entry before it, and its copy in the root if there is one."""


def ids_in_root(store: Store, root: Manifest, data: bytes) -> tuple[set[str], list[NamedPage]]:
    """The ids that the JSON of a root and its directories name (1 GET each), and its index pages.

    Ids are found by their form, since a root of a later version may name objects in other fields.
    """
    fields = json.loads(data)
    fields.get("history", {}).pop("replaced", None)  # a root of version 0.2 names objects there that it does not use
    named = set(_ID.findall(json.dumps(fields)))

    def get(directory: Directory) -> bytes:
        stored = get_bounded(store, directory.key, MOST_PAGE_BYTES).data
        named.update(_ID.findall(rows_text(stored, directory.key).decode()))
        return stored

    pages = expand(root, get).pages
    copies: list[bytes | None] = [*[None] * (len(pages) - 1), root.last_page]
    return named, list(zip(pages, (None, *pages), copies, strict=False))


def ids_in_page(store: Store, page: NamedPage) -> set[str]:
    """The ids of the segments that an index page names (1 GET without a copy)."""
    ref, before, copy = page
    data = copy or get_bounded(store, ref.key, MOST_PAGE_BYTES).data
    return {name for run in Page(data, ref, before).runs for name in _ID.findall(run.object)}


def named_objects(store: Store, root: Manifest) -> set[str]:
    """The ids of all objects that one root names (1 GET for each directory and index page)."""
    named, pages = ids_in_root(store, root, root.to_bytes())
    return named.union(*(ids_in_page(store, page) for page in pages))
