"""Find the sources of a sync: files of folders, and objects of a store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from monocontext.errors import NotFound
from monocontext.options import StoreOptions
from monocontext.stores.protocol import ObjectInfo, Store
from monocontext.stores.regular_file import open_file
from monocontext.writing.decoding import HEAD_BYTES, is_binary, read_stream
from monocontext.writing.document_names import displayable, file_names
from monocontext.writing.folder import Folder
from monocontext.writing.git_files import not_ignored
from monocontext.writing.input_options import InputOptions
from monocontext.writing.inputs import is_text
from monocontext.writing.place import open_store_at
from monocontext.writing.upkeep.sync_source import SyncSource, decode_source


def find_sources(
    given: list[str | os.PathLike[str]],
    options: InputOptions,
    *,
    ignored: bool,
    own: str,
    store_options: StoreOptions | None,
    stack: ExitStack,
) -> Iterator[SyncSource]:
    """Yield the sources that `given` names: files and folders by path, places in stores by URL.

    `options` select by name. Objects of the context at `own` are left out, and files that git ignores unless `ignored`.
    `stack` closes stores that the sources use. Raises `NotFound` for a missing file or place.
    """
    places = [each for each in given if isinstance(each, str) and "://" in each]
    paths = [Path(each) for each in given if each not in places]
    for path, prefix in file_names(paths, options):
        if not path.is_dir():
            yield _File(prefix, str(path), None, "")
        else:
            folder = Folder(path, follow_links=options.follow_links)
            wanted = None if ignored else not_ignored(path)
            for name in folder.files():
                if (wanted is None or name in wanted) and options.selects(name):
                    yield _File(displayable(prefix + name), os.path.join(folder.path, name), folder, name)
    for place in places:
        store = stack.enter_context(open_store_at(place, store_options))
        found = [
            _Object(store, info)
            for info in store.list()
            if options.selects(info.key) and not f"{store.url.rstrip('/')}/{info.key}".startswith(own.rstrip("/") + "/")
        ]
        if not found:
            raise NotFound(f"{place}: no object there to sync")
        yield from found


class _File:
    """A file, in a folder or named by itself."""

    def __init__(self, name: str, path: str, folder: Folder | None, relative: str) -> None:
        self.name = name
        self._path, self._folder, self._relative = path, folder, relative
        found = os.stat(path)
        self.facts: dict[str, Any] = {"file": {"bytes": found.st_size, "modified_ns": found.st_mtime_ns}}

    def is_text(self, options: InputOptions) -> bool:
        return self._folder is None or is_text(self._folder, self._relative, options)

    def text(self, options: InputOptions) -> str | None:
        if not self.is_text(options):
            return None
        with self._folder.open(self._relative) if self._folder else open_file(self._path) as file:
            return b"".join(data for data, _ in read_stream(file, self._path, options)).decode()


class _Object:
    """An object of a store."""

    def __init__(self, store: Store, info: ObjectInfo) -> None:
        self.name = info.key
        self._store, self._size_bytes = store, info.size_bytes
        self.facts: dict[str, Any] = {"file": {"bytes": info.size_bytes, "etag": info.etag}}

    def is_text(self, options: InputOptions) -> bool:
        if options.errors == "skip":
            return self.text(options) is not None
        head = min(HEAD_BYTES, self._size_bytes)
        return not is_binary(self._store.get_range(self.name, 0, head).data if head else b"", options.encoding)

    def text(self, options: InputOptions) -> str | None:
        return decode_source(self._store.get(self.name).data, self.name, options)
