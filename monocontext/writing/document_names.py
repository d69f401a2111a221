"""Name the documents that are read from files and folders, each by a path, and all differently."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from monocontext.errors import InvalidText, NotFound
from monocontext.writing.folder import Folder
from monocontext.writing.input_options import InputOptions


def prefixes_of(paths: Sequence[os.PathLike[str]], reading: InputOptions) -> dict[Path, str]:
    """The prefixes of document names that keep those of several paths apart, by path.

    A path whose names differ from those of all others has none. The prefix of another path is the name of its folder.
    Raises `InvalidText` if names are equal even then.
    """
    given = list(dict.fromkeys(map(Path, paths)))
    if len(given) < 2:
        return {}
    named = {path: _names(path, reading) for path in given}
    counts = Counter(name for names in named.values() for name in names)
    clashing = [path for path in given if any(counts[name] > 1 for name in named[path])]
    prefixes = {path: f"{(path if path.is_dir() else path.parent).resolve().name}/" for path in clashing}
    owners: dict[str, Path] = {}
    for path in given:
        prefix = prefixes.get(path, "")
        names = [path.name] if prefix and not path.is_dir() else named[path]
        for name in (prefix + name for name in names):
            if name in owners:
                raise InvalidText(
                    f"{owners[name]} and {path} both give a document named {name!r}: rename one, or upload them to "
                    f"different URLs"
                )
            owners[name] = path
    return prefixes


def _names(path: Path, reading: InputOptions) -> set[str]:
    """The names of the documents of a file or folder, without a prefix."""
    if not path.is_dir():
        return {_file_name(path)}
    return {name for name in Folder(path, follow_links=reading.follow_links).files() if reading.selects(name)}


def _file_name(path: Path) -> str:
    """The name of a single file's document: the path as given, without `..`; of an absolute path the last part."""
    return path.name if path.is_absolute() else "/".join(part for part in path.parts if part != "..")


def document_name(path: Path, prefix: str) -> str:
    """The name of a single file's document, with a prefix of `prefixes_of`."""
    return displayable(prefix + path.name if prefix else _file_name(path))


def file_names(paths: Sequence[Path], reading: InputOptions) -> Iterator[tuple[Path, str]]:
    """Yield each file with the name of its document, and each folder with the prefix of its documents' names.

    Raises `NotFound`, and `InvalidText` for two paths with the same name.
    """
    for path in paths:
        if not path.exists():
            raise NotFound(f"{path}: no such file or folder")
    prefixes = prefixes_of(paths, reading)
    for path in paths:
        prefix = prefixes.get(path, "")
        yield path, prefix if path.is_dir() else document_name(path, prefix)


def displayable(name: str) -> str:
    """A file name as text; bytes in it that are not UTF-8 become U+FFFD."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
