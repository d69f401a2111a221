"""The documents of a text as files. Names and sizes are in the pages of documents; no text is read for them.

A document `src/a.py` is the file `/src/a.py`; a text without documents is the file `/text`, if it is not empty. Empty
parts, `.` and `..` of a name are left out. Where that is no name, or the name of another file or folder, the path is
`NAME~NUMBER`, with `~` for slashes.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from functools import cached_property

from monocontext.engine.remote import ServedReader
from monocontext.format.documents import Document
from monocontext.shell.capsule import FileInfo
from monocontext.text.documents.by_name import Documents
from monocontext.text.monocontext import Monocontext, served_text

MOST_READ_BYTES = 8 << 20
"""The largest file that a command of the shell itself may read, since it keeps it in memory as a whole."""
_FOLDER = FileInfo(True, 0)


class TextFiles:
    """The files of a text. Paths begin with a slash and have no other at their ends, but for the folder `/`."""

    def __init__(self, open_reader: Callable[[], ServedReader]) -> None:
        """`open_reader` is called when the text is first used."""
        self._open_reader = open_reader

    @cached_property
    def _reader(self) -> ServedReader:
        return self._open_reader()

    @cached_property
    def text(self) -> Monocontext:
        return served_text(self._reader)

    @cached_property
    def _documents(self) -> Documents[Monocontext] | None:
        return self.text._own_documents

    # -- what bashkit calls ----------------------------------------------------------------------------------------

    def stat(self, path: str) -> FileInfo:
        if path == "/":
            return _FOLDER
        record = self.find(path)
        if record is not None:
            return FileInfo(False, record.bytes)
        if path not in self._folders:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        return _FOLDER

    def list(self, path: str) -> list[tuple[str, FileInfo]]:
        if path not in self._folders:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        entries = self._folders[path].items()
        return [(name, FileInfo(False, record.bytes) if record is not None else _FOLDER) for name, record in entries]

    def read(self, path: str) -> bytes:
        record = self.find(path)
        if record is None:
            self.stat(path)
            raise IsADirectoryError(errno.EISDIR, "Is a directory")
        if record.bytes > MOST_READ_BYTES:
            raise OSError(
                errno.EFBIG,
                f"too large for this command, {record.bytes:,} bytes: search it with grep, read parts with head -n, "
                "tail -n or sed -n A,Bp, or pipe cat into the command",
            )
        return "".join(self.view(record).chunks()).encode()

    # -- what our own commands call --------------------------------------------------------------------------------

    def find(self, path: str) -> Document | None:
        """The document of a file; None for any other path (at most 2 GETs if its name is the path)."""
        if path == "/":
            return None
        if self._documents is None:
            return self._whole if path == "/text" and len(self.text) else None
        if "_folders" not in self.__dict__ and self._documents.numbers is None and _path_of(path[1:]) == path:
            number = self._documents.number_of(path[1:])
            if number is not None:
                return self._documents.table.document(number)
        folder, _, name = path.rpartition("/")
        return self._folders.get(folder or "/", {}).get(name)

    def below(self, path: str) -> Iterator[tuple[str, Document]]:
        """The files of a folder and below it, in the order of the text, with their paths."""
        prefix = path.rstrip("/") + "/"
        paths = [
            (record, f"{folder.rstrip('/')}/{name}")
            for folder, entries in self._folders.items()
            if f"{folder.rstrip('/')}/".startswith(prefix)
            for name, record in entries.items()
            if record is not None
        ]
        return ((path, record) for record, path in sorted(paths, key=lambda pair: pair[0].number))

    def path_at(self, character: int) -> tuple[str, Document] | None:
        """The file that has a character of the text (at most 1 GET, if names are paths)."""
        if self._documents is None:
            return "/text", self._whole
        record = self._documents.at(character) or self._documents.ending_at(character)
        if record is None:
            return None
        path = _path_of(record.name)
        if path != f"/{record.name}" or self._documents.numbers is not None:
            return self._paths.get(record.number)
        return path, record

    def view(self, record: Document) -> Monocontext:
        """The text of a document."""
        return self.text.view(record.start, record.stop)

    @cached_property
    def _whole(self) -> Document:
        """A text without documents, as a document."""
        size: int = self._reader.described["bytes"]
        if len(self.text) != self._reader.characters:  # a part of what is stored
            size = sum(len(chunk.encode()) for chunk in self.text.chunks())
        return Document(0, "text", 0, len(self.text), 0, self.text.span.newlines, size)

    @cached_property
    def _folders(self) -> dict[str, dict[str, Document | None]]:
        """The entries of each folder; None stands for a folder (1 GET for 4,096 documents)."""
        folders: dict[str, dict[str, Document | None]] = {"/": {}}
        if self._documents is None:
            return {"/": {"text": self._whole} if len(self.text) else {}}
        numbers = self._documents.numbers
        for record in self._documents.records():
            if numbers is not None and numbers[record.name] != record.number:
                continue  # a later document has the name
            path = _path_of(record.name)
            if not _make_folders(folders, path) or path.rpartition("/")[2] in folders[_parent(path)]:
                path = f"/{record.name.replace('/', '~')}~{record.number}".replace("\0", "~")
            folders[_parent(path)][path.rpartition("/")[2]] = record
        return folders

    @cached_property
    def _paths(self) -> dict[int, tuple[str, Document]]:
        """The path of each document by its number."""
        return {record.number: (path, record) for path, record in self.below("/")}


def _path_of(name: str) -> str:
    """The path of a document, if no other has it."""
    return "/" + "/".join(part for part in name.replace("\0", "~").split("/") if part not in ("", ".", ".."))


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _make_folders(folders: dict[str, dict[str, Document | None]], path: str) -> bool:
    """Make the folders above a file; returns whether all names on the way are folders."""
    if path == "/":
        return False
    parent = path.rpartition("/")[0]
    if not parent or parent in folders:
        return True
    if not _make_folders(folders, parent) or folders[_parent(parent)].get(parent.rpartition("/")[2]) is not None:
        return False
    folders[_parent(parent)][parent.rpartition("/")[2]] = None
    folders[parent] = {}
    return True
