"""Find the files and objects to read, name their documents, and read each of them as text.

A source that is named by itself must be text, perhaps compressed; in a folder or place, other files are left out.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from io import BytesIO
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from monocontext.errors import InvalidText, NotFound
from monocontext.records import dataclass, replace
from monocontext.stores.protocol import ObjectInfo, Store, describe_left_out, list_usable
from monocontext.stores.regular_file import SPECIAL_FILES, open_file
from monocontext.writing.decoding import (
    HEAD_BYTES,
    PIECE_BYTES,
    Decoder,
    InputOptions,
    NotText,
    Unpacked,
    Utf8,
    is_binary,
    kind_of_file,
    packed_by,
    unexpected_wide,
)
from monocontext.writing.folder import Folder, first_of
from monocontext.writing.folder import describe_left_out as describe_files

_KEPT_PIECES = 8  # MiB of a file that are kept in memory; a longer file is read twice if it may be left out
_READS = 3  # the most times that a file is read, if others cut it meanwhile
_GIT = ["git", "-c", "core.fsmonitor=false"]
"""The configuration of a repository may name a program to run as file monitor: without it git runs no foreign code."""
_GIT_ENVIRONMENT = {"GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}
_REMEDY = "ignored=True (--no-ignore) takes all files without asking git"


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file or an object that may become a document."""

    name: str  # the name of the document
    label: str  # its path or URL in messages
    open: Callable[[], IO[bytes]]
    """Open it, to read from the beginning. Raises `OSError`, or errors of the store."""
    facts: dict[str, Any]  # values that change when it changes, such as size and time
    where: str = ""  # the folder or place in which it was found; empty if it was named by itself
    is_selected: bool = True  # whether the globs of the options and git select it


def find_files(
    paths: Sequence[Path], reading: InputOptions, prefixes: dict[Path, str] | None = None
) -> Iterator[InputFile]:
    """Yield the files that are named, and those of folders, also if not selected. `prefixes`: of `prefixes_of` for
    these paths and others. Raises `NotFound`, also if `include` selects no file."""
    prefixes = prefixes_of(paths, reading) if prefixes is None else prefixes
    for path in paths:
        prefix = prefixes.get(path, "")
        if path.is_dir():
            yield from _files_in(path, prefix, reading)
        else:
            yield named_file(path, prefix)


def _files_in(path: Path, prefix: str, reading: InputOptions) -> Iterator[InputFile]:
    """Yield the files of a folder, then its links and contexts, which are never selected."""
    folder = Folder(path, follow_links=reading.follow_links)
    not_ignored = None if reading.ignored else _not_ignored(path)
    selects_none = True
    for name in folder.files():
        is_ignored = ".git" in name.split("/") or (not_ignored is not None and name not in not_ignored)
        is_selected = not is_ignored and reading.selects(name)
        selects_none = selects_none and not is_selected
        file = os.path.join(folder.path, name)
        opened, label = partial(folder.open, name), str(path / name)
        try:
            facts = _facts(file, file)
        except NotFound:  # removed since the folder was listed, or its disk is: the next sync looks again
            facts, is_selected = {}, False
        yield InputFile(displayable(prefix + name), label, opened, facts, str(path), is_selected)
    if selects_none and reading.include:
        candidate, remedy = ("file", "") if not_ignored is None else ("file that git does not ignore", f"; {_REMEDY}")
        raise NotFound(f"{path}: no {candidate} in it matches {' '.join(reading.include)}{remedy}")
    if left_out := {name: reason for name, reason in folder.left_out.items() if reading.selects(name)}:
        reading.note(f"{path}: {describe_files(left_out)}")
    for name, reason in folder.left_out.items():
        if reason not in SPECIAL_FILES.values():
            yield InputFile(displayable(prefix + name), str(path / name), BytesIO, {}, str(path), False)


def named_file(path: Path, prefix: str = "") -> InputFile:
    """A file that is named by itself. Raises `NotFound`."""
    opened = partial(open_file, os.path.abspath(path))
    return InputFile(displayable(prefix + path.name), str(path), opened, _facts(path, str(path)))


def find_objects(store: Store, reading: InputOptions, own: str) -> list[InputFile]:
    """The objects of a store, but not those of the context at `own`. Raises `NotFound` if there are none."""
    left_out: list[str] = []
    infos = list_usable(store, left_out)
    files = [_object(store, info, info.key, store.url, reading.selects(info.key)) for info in infos]
    files = [file for file in files if not file.label.startswith(own.rstrip("/") + "/")]
    if not files:
        raise NotFound(f"{store.url}: no object there to sync")
    if description := describe_left_out(left_out, markers=False):
        reading.note(f"{store.url}: {description}")
    return files


def named_object(store: Store, key: str) -> InputFile:
    """An object that is named by itself (1 HEAD). Raises `NotFound`."""
    return _object(store, store.head(key), key.rpartition("/")[2])


def _object(store: Store, info: ObjectInfo, name: str, where: str = "", is_selected: bool = True) -> InputFile:
    url, facts = f"{store.url.rstrip('/')}/{info.key}", {"bytes": info.size_bytes, "etag": info.etag}
    return InputFile(name, url, lambda: BytesIO(store.get(info.key).data), facts, where, is_selected)


def _facts(path: str | os.PathLike[str], label: str) -> dict[str, Any]:
    try:
        result = os.stat(path)
    except FileNotFoundError:
        raise NotFound(f"{label}: no such file or folder") from None
    return {"bytes": result.st_size, "modified_ns": result.st_mtime_ns}


def _not_ignored(path: Path) -> set[str] | None:
    """The paths of files in a folder that git does not ignore, also in repositories below it, such as submodules. None
    for a folder in no repository, and for one that is ignored itself: whoever names it wants its files."""
    real = path.resolve()
    for folder in (path, *real.parents):
        if (folder / ".git").is_file() or (folder / ".git" / "HEAD").exists():
            break
    else:
        return None
    if folder is not path and not _git(real.parent, "check-ignore", "-q", f"./{real.name}").returncode:
        return None
    listed = _git(path, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listed.returncode:
        reason = os.fsdecode(listed.stderr).strip().partition("\n")[0]
        raise NotFound(f"{path}: {reason or 'git failed'}; {_REMEDY}")
    names = {os.fsdecode(name) for name in listed.stdout.split(b"\0") if name}
    for name in [name for name in names if os.path.lexists(f"{path}/{name}/.git") and not (path / name).is_symlink()]:
        names.update(os.path.join(name, below) for below in _not_ignored(path / name) or ())
    return names


def _git(path: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        command = [*_GIT, "-C", str(path), *arguments]
        return subprocess.run(command, capture_output=True, env={**os.environ, **_GIT_ENVIRONMENT})
    except OSError as error:
        raise NotFound(f"{path}: git cannot be run: {error}; {_REMEDY}") from None


def prefixes_of(paths: Iterable[os.PathLike[str]], reading: InputOptions) -> dict[Path, str]:
    """The prefixes of document names that keep those of several paths apart, by path.

    A file in a folder is named by its path below it, another by its last part. Where names clash, that of the folder,
    or the folders of the path as given, come before. Raises `InvalidText` if names are equal even then.
    """
    distinct = list(dict.fromkeys(map(Path, paths)))
    named = {path: _names(path, reading) for path in distinct} if len(distinct) > 1 else {}
    counts = Counter(chain.from_iterable(named.values()))
    prefixes = {path: _prefix(path) for path, names in named.items() if any(counts[name] > 1 for name in names)}
    owners: dict[str, Path] = {}
    for path, names in named.items():
        for name in (prefixes.get(path, "") + name for name in names):
            if owners.setdefault(name, path) != path:
                raise InvalidText(
                    f"{owners[name]} and {path} both give a document named {name!r}: rename one, or upload them to "
                    f"different URLs"
                )
    return prefixes


def _names(path: Path, reading: InputOptions) -> set[str]:
    if not path.is_dir():
        return {path.name}
    return {name for name in Folder(path, follow_links=reading.follow_links).files() if reading.selects(name)}


def _prefix(path: Path) -> str:
    if path.is_dir() or path.is_absolute():
        return f"{(path if path.is_dir() else path.parent).resolve().name}/"
    return "".join(f"{part}/" for part in path.parent.parts if part != "..")


def displayable(name: str) -> str:
    """A file name as text; bytes in it that are not UTF-8 become U+FFFD."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def read_source(source: InputFile, reading: InputOptions) -> Iterator[Utf8]:
    """Yield the text of a source. A file that is cut while it is read is read again, or named. Raises `NotText`; for a
    source that was found in a folder or a place, before the first piece."""
    for attempt in range(_READS):
        notes: list[str] = []
        try:
            opened = source.open()
        except FileNotFoundError:
            if not source.where:
                raise
            raise NotText(source.label, "removed meanwhile") from None
        with opened as file:
            before = None if isinstance(file, BytesIO) else os.fstat(file.fileno())
            pieces = _decode(file, source, replace(reading, note=notes.append))
            head = list(islice(pieces, _KEPT_PIECES))
            is_whole = len(head) < _KEPT_PIECES
            was_cut = is_whole and _was_cut(file, before)
            if was_cut and attempt < _READS - 1:
                continue
            if not is_whole and source.where:
                for _ in pieces:  # to the end: `NotText` must be raised while the source can still be left out
                    pass
                file.seek(0)
                head, pieces = [], _decode(file, source, replace(reading, note=lambda text: None))
            for note in notes:
                reading.note(note)
            yield from head
            yield from pieces
            if was_cut or _was_cut(file, before):
                reading.note(
                    f"{source.label}: cut or written over while it was read: not all of its text is stored; the "
                    f"next sync reads it again"
                )
            return


def read_found(
    sources: Iterable[InputFile], reading: InputOptions, left_out: dict[str, list[str]]
) -> Iterator[tuple[InputFile, Iterator[Utf8]]]:
    """Yield the selected sources that are text, each with its text. `left_out` gets the others, for `note_left_out`."""
    for source in sources:
        if not source.is_selected:
            continue
        pieces = read_source(source, reading)
        try:
            first = list(islice(pieces, 1))
        except NotText as error:
            if not source.where:
                raise
            left_out.setdefault(source.where, []).append(f"{source.name} ({error.reason})")
            continue
        yield source, chain(first, pieces)


def note_left_out(left_out: dict[str, list[str]], reading: InputOptions) -> None:
    """Name the first sources that were left out of each folder and place, and count the others."""
    for folder, names in left_out.items():
        count = f"{len(names):,} files that are" if len(names) > 1 else "1 file that is"
        reading.note(f"{folder}: left out {count} not text: {first_of(names)}")


def _decode(file: IO[bytes], source: InputFile, reading: InputOptions) -> Iterator[Utf8]:
    data = file.read(PIECE_BYTES)
    stream: IO[bytes] | Unpacked = file
    if packing := packed_by(data):
        file.seek(0)
        stream = Unpacked(file, packing, source.label)
        data = stream.read(PIECE_BYTES)
    if kind := kind_of_file(data[:HEAD_BYTES]):
        raise NotText(source.label, kind, "convert it to text first")
    may_be_binary = (source.where or packing) and not unexpected_wide(data, reading.encoding)
    if may_be_binary and is_binary(data[:HEAD_BYTES], reading.encoding):
        raise NotText(source.label, "binary", "convert it to text first")
    decoder = Decoder(source.label, reading)
    while data:
        yield decoder.feed(data)
        data = stream.read(PIECE_BYTES)
    yield decoder.feed(b"", final=True)


def _was_cut(file: IO[bytes], before: os.stat_result | None) -> bool:
    """Whether a file that was read to its end became shorter, or was written over. An object (None) cannot change."""
    if before is None:
        return False
    now, size = os.fstat(file.fileno()), before.st_size
    return min(now.st_size, file.tell()) < size or (now.st_size == size and now.st_mtime_ns != before.st_mtime_ns)
