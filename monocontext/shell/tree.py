"""The documents of a text as files. Names and sizes are in the pages of documents; no text is read for them.

A document `src/a.py` is the file `/src/a.py`; a text without documents is `/text`, unless it is empty. Empty parts, `.`
and `..` of a name are left out, and `~` replaces a character that may control a terminal. If no name is left, a part is
too long, or another file has the path, the path is `NAME~NUMBER`, with the beginning of the name and `~` for slashes.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from functools import cached_property
from posixpath import basename, dirname, join

from monocontext.format.documents import Document
from monocontext.text.documents.by_name import Documents
from monocontext.text.monocontext import Monocontext

MOST_READ_BYTES = 24 << 20  # the largest file for bashkit's own commands: bashkit keeps at most 32 MB of text in memory
DISK_BLOCK_BYTES = 4096  # the size of a folder; the total of `ls -l` counts in blocks of this size
_UNSAFE = re.compile(
    "[\0-\x1f\x7f-\x9f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Characters that terminals do not show, or that control them."""
_MOST_NAME_BYTES = 255  # of a part of a path


class TextFiles:
    """The files of a text. A path begins with a slash and, except for the folder `/`, does not end with one. Errors are
    `OSError` with an `errno`, or those of the store. The first use of the text calls `open_text`."""

    def __init__(self, open_text: Callable[[], Monocontext]) -> None:
        self._open_text = open_text

    @cached_property
    def text(self) -> Monocontext:
        return self._open_text()

    @cached_property
    def _documents(self) -> Documents[Monocontext] | None:
        return self.text._own_documents

    def stat(self, path: str) -> Document | None:
        """The document of a file; None for a folder. Raises `FileNotFoundError` for any other path."""
        record = self.find(path)
        if record is None and path != "/" and path not in self._folders:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        return record

    def entries(self, path: str) -> dict[str, Document | None]:
        """The entries of a folder, by name; None stands for a folder. Raises `FileNotFoundError` for any other path."""
        if path not in self._folders:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        return self._folders[path]

    def read(self, path: str) -> bytes:
        record = self.stat(path)
        if record is None:
            raise IsADirectoryError(errno.EISDIR, "Is a directory")
        if record.bytes > MOST_READ_BYTES:
            why = f"{record.bytes:,} bytes are too many for this command: use grep, or head, tail or sed -n for a part"
            raise OSError(errno.EFBIG, why)
        return "".join(self.view(record).chunks()).encode()

    def find(self, path: str) -> Document | None:
        """The document of a file; None for any other path (at most 2 GETs if names are paths)."""
        if path == "/":
            return None
        documents = self._documents
        if documents is not None and "_folders" not in self.__dict__ and documents.numbers is None:
            number = documents.number_of(path[1:]) if _path_of(path[1:]) == path else None
            if number is not None:
                return documents.table.document(number)
        return self._folders.get(dirname(path), {}).get(basename(path))

    def below(self, path: str) -> list[tuple[str, Document]]:
        """The path and the document of each file below a folder, in the order of the text."""
        prefix = path.rstrip("/") + "/"
        return [item for item in self._paths.values() if item[0].startswith(prefix)]

    def path_at(self, character: int) -> tuple[str, Document] | None:
        """The path and document of the file that holds a character, or None (at most 1 GET if names are paths)."""
        if self._documents is None:
            return self._paths.get(0)
        record = self._documents.at(character) or self._documents.ending_at(character)
        if record is None:
            return None
        is_path = self._documents.numbers is None and _path_of(record.name) == f"/{record.name}"
        return (f"/{record.name}", record) if is_path else self._paths.get(record.number)

    def view(self, record: Document) -> Monocontext:
        """The text of a document."""
        return self.text.view(record.start, record.stop)

    @cached_property
    def _paths(self) -> dict[int, tuple[str, Document]]:
        """The path and the document of each file by the document's number, in the order of the text."""
        entries = ((join(above, name), item) for above, below in self._folders.items() for name, item in below.items())
        return dict(sorted((item.number, (path, item)) for path, item in entries if item is not None))

    @cached_property
    def _folders(self) -> dict[str, dict[str, Document | None]]:
        """The entries of each folder by its path; None stands for a folder (1 GET for 4,096 documents)."""
        folders: dict[str, dict[str, Document | None]] = {"/": {}}
        text, documents = self.text, self._documents
        if documents is None and len(text):
            folders["/"]["text"] = Document(0, "text", 0, len(text), 0, text.span.newlines, _bytes_of(text))
        numbers = documents.numbers if documents is not None else None
        for record in documents.records() if documents is not None else ():
            if numbers is not None and numbers[record.name] != record.number:
                continue  # a later document has the name
            path = _path_of(record.name)
            if path == "/" or not _make_folders(folders, dirname(path)) or basename(path) in folders[dirname(path)]:
                path = f"/{_UNSAFE.sub('~', record.name.replace('/', '~'))[:60]}~{record.number}"
            folders[dirname(path)][basename(path)] = record
        return folders


def _bytes_of(text: Monocontext) -> int:
    """The length of a text in UTF-8 bytes. Reads the text, unless it is the whole of a stored text."""
    reader = text._reader
    if reader is not None and len(text) == reader.characters:
        return reader.text_bytes
    return sum(len(chunk.encode()) for chunk in text.chunks())


def _path_of(name: str) -> str:
    """The path that a name gives, even if another document has it; `/` if the name gives none."""
    parts = [part for part in _UNSAFE.sub("~", name).split("/") if part not in ("", ".", "..")]
    return "/" if any(len(part.encode()) > _MOST_NAME_BYTES for part in parts) else "/" + "/".join(parts)


def _make_folders(folders: dict[str, dict[str, Document | None]], path: str) -> bool:
    """Make a folder and the folders above it. Returns False if one of these paths is a file."""
    above, name = dirname(path), basename(path)
    if path not in folders and _make_folders(folders, above) and name not in folders[above]:
        folders[above][name], folders[path] = None, {}
    return path in folders
