"""Bring the documents of a context in step with files: read and store only what is new or has changed.

A file counts as unchanged where its size and time are those that the document's metadata record (`file`), as rsync
does; else it is read, and stored if its text differs.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Unpack

from monocontext.engine.open import ContextHandle
from monocontext.errors import NotFound
from monocontext.format.documents import DocumentPage, encode_metadata
from monocontext.format.folding import opened
from monocontext.format.generations import read_newest
from monocontext.format.manifest import Manifest
from monocontext.options import StoreOptions, validate_options
from monocontext.records import dataclass
from monocontext.stores.protocol import Store
from monocontext.stores.regular_file import open_file
from monocontext.writing.documents import documents
from monocontext.writing.folder import Folder
from monocontext.writing.inputs import InputOptions, ReadingOptions, displayable, file_names, is_text, read_stream
from monocontext.writing.publish import Place, append, open_store_at, publish
from monocontext.writing.upkeep.edit import edit
from monocontext.writing.upkeep.edited_documents import load_documents
from monocontext.writing.upkeep.edited_text import Change


@dataclass(frozen=True, slots=True)
class Synced:
    """The names of documents by their change, in the order of the sources."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    deleted: tuple[str, ...]
    unchanged: int
    """Documents whose text stays; `touched` of them have a new time."""
    touched: int
    root: Manifest | None
    """The newest root afterwards; None with `dry_run` where no context was."""


@validate_options(ReadingOptions)
def sync(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    url: Place,
    *,
    delete: bool = False,
    dry_run: bool = False,
    ignored: bool = False,
    store_options: StoreOptions | None = None,
    **reading: Unpack[ReadingOptions],
) -> Synced:
    """Make the context at `url` hold the files of `sources`, paths of files and folders; each file is a document.

    Documents have the names that `publish` gives to files, and no header lines; where no context is one is made.
    `delete`: documents without a file go. `dry_run`: change nothing, and tell what would. In a folder with a git
    repository files that git ignores are left out, unless `ignored`. `reading`: as for `publish`.

    Reads each file that is new, or whose size or time differ from those recorded, and for the latter the text of its
    document. Changed texts are held in memory. Replaced and deleted documents are one generation, new ones behind them
    another. Costs as for `replace` and `append`. Raises `NotFound` for a missing path, `InvalidText` for what is not
    text.
    """
    options = InputOptions(**reading)
    paths = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    files = {file.name: file for file in _files([Path(path) for path in paths], options, ignored)}
    with open_store_at(url, store_options) as store:
        base = read_newest(store)
        if base is None:
            root = None
            if not dry_run:
                root = publish(documents([(f.name, f.text(options), f.facts) for f in files.values()]), store)
            return Synced(tuple(files), (), (), 0, 0, root)
        there = _Stored(store, opened(base, lambda ref: store.get(ref.key).data), store_options)
        changes: dict[bytes, Change] = {}
        found: dict[str, list[str]] = {"added": [], "changed": [], "deleted": []}
        added: list[tuple[str, str, dict[str, Any]]] = []
        touched = 0
        try:
            for name, file in files.items():
                recorded = there.facts(name)
                if recorded is None:
                    found["added"].append(name)
                    if not dry_run:
                        added.append((name, file.text(options), file.facts))
                elif recorded.get("file") != file.facts["file"]:
                    text, facts = file.text(options), encode_metadata({**recorded, **file.facts}, 0)
                    is_same = there.text(name) == text
                    touched += is_same
                    changes[name.encode()] = Change(None, facts, True) if is_same else Change(text, facts)
                    if not is_same:
                        found["changed"].append(name)
            if delete:
                found["deleted"] = [name for name in there.numbers if name not in files]
                changes |= {name.encode(): Change(None) for name in found["deleted"]}
        finally:
            there.close()
        root = base
        if changes and not dry_run:
            root = edit(store, lambda names: _numbered(changes, names), (), store_options)
        if added:
            root = append(documents(added), store)
        return Synced(
            tuple(found["added"]),
            tuple(found["changed"]),
            tuple(found["deleted"]),
            len(files) - len(found["added"]) - len(found["changed"]),
            touched,
            root,
        )


def _numbered(changes: dict[bytes, Change], names: Iterable[bytes]) -> dict[int, Change]:
    """The changes by number: a deletion of all documents with the name, else of the last one."""
    found: dict[int, Change] = {}
    last: dict[bytes, int] = {}
    for number, name in enumerate(names):
        change = changes.get(name)
        if change is None:
            continue
        if not change.deletes:
            found.pop(last.get(name, -1), None)
            last[name] = number
        found[number] = change
    return found


class _File:
    """One file of the sources."""

    def __init__(self, name: str, path: str, folder: Folder | None, relative: str) -> None:
        self.name = name
        self._path, self._folder, self._relative = path, folder, relative
        found = os.stat(path)
        self.facts = {"file": {"bytes": found.st_size, "modified_ns": found.st_mtime_ns}}

    def text(self, options: InputOptions) -> str:
        with self._folder.open(self._relative) if self._folder else open_file(self._path) as file:
            return b"".join(data for data, _ in read_stream(file, self._path, options)).decode()


def _files(paths: list[Path], options: InputOptions, ignored: bool) -> Iterator[_File]:
    for path, prefix in file_names(paths, options):
        if not path.is_dir():
            yield _File(prefix, str(path), None, "")
            continue
        folder = Folder(path, follow_links=options.follow_links)
        wanted = None if ignored else _not_ignored(path)
        for name in folder.files():
            if (wanted is None or name in wanted) and is_text(folder, name, options):
                yield _File(displayable(prefix + name), os.path.join(folder.path, name), folder, name)


def _not_ignored(path: Path) -> set[str] | None:
    """The files of a git repository that git does not ignore; None for another folder."""
    if not (path / ".git").exists():
        return None
    # A repository's own configuration may name a program as its file monitor; nothing of it is run here.
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(path), "ls-files", "-z"]
    command += ["--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotFound(f"{path}: git cannot list its files ({error}); `ignored` takes all files") from error
    return {os.fsdecode(name) for name in listed.split(b"\0") if name}


class _Stored:
    """The documents of a context: their metadata, and their texts to compare."""

    def __init__(self, store: Store, base: Manifest, options: StoreOptions | None) -> None:
        self._pages = load_documents(store, base.documents)
        self.numbers: dict[str, tuple[DocumentPage, int]] = {}
        for page in self._pages:
            for i, name in enumerate(page.names()):
                self.numbers[name] = (page, i)
        self._context = ContextHandle(store, cache_bytes=64 << 20, allow=(), store_options=options, owns_store=False)
        self._text = self._context.read(base)

    def facts(self, name: str) -> dict[str, Any] | None:
        """The metadata of a document; None where there is none of that name."""
        found = self.numbers.get(name)
        return None if found is None else found[0].metadata(found[1])

    def text(self, name: str) -> str:
        page, i = self.numbers[name]
        return self._text.read(page.starts[i], page.stops[i])

    def close(self) -> None:
        self._text.close()
        self._context.close()
