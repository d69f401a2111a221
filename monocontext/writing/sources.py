"""Find the files and objects to store, name their documents, and read each as text, decompressing it if necessary.

A source that the caller names must be text. In a folder or a store, files that are not text are left out, with a note.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from io import BytesIO
from itertools import chain, groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import IO, Any

from monocontext.errors import InvalidText, InvalidUrl, NotFound
from monocontext.records import NamedTuple, dataclass, replace
from monocontext.stores import split_object
from monocontext.stores.protocol import ObjectInfo, Store, describe_left_out, list_usable
from monocontext.stores.regular_file import SPECIAL_FILES, open_file
from monocontext.writing.decoding import InputOptions, NotText, Utf8, decode_file
from monocontext.writing.folder import Folder, first_of
from monocontext.writing.folder import describe_left_out as describe_files

_BUFFERED_PIECES = 8  # pieces (MiB) of a file that are kept in memory; a longer file of a folder is read twice
_MOST_READS = 3  # the most reads of a file that is shortened or overwritten while it is read
_GIT = ["git", "-c", "core.fsmonitor=false"]
"""The configuration of a repository may name a program as its file monitor, which git must not run."""
_GIT_ENVIRONMENT = {"GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}
_REMEDY = "ignored=True (--no-ignore) reads all files without asking git"


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file or an object that may become a document."""

    name: str  # the name of the document
    label: str  # its path or URL in messages
    open: Callable[[], IO[bytes]]
    """Opens the file or object at its beginning. Raises `OSError`, or errors of the store."""
    facts: dict[str, Any]  # values that change when it changes, such as size and time; empty if they are not known
    container: str = ""  # the folder, or the URL of the store, that was listed to find it; empty if the caller named it
    is_selected: bool = True  # whether to read it, according to the globs of the options and to git


def find_files(
    paths: Sequence[Path], reading: InputOptions, prefixes: dict[Path, str] | None = None
) -> Iterator[InputFile]:
    """Yield the files at these paths and all files of the folders among them, selected or not. `prefixes`: the result
    of `prefixes_of` for these paths and others. Raises `NotFound` for a missing path, and for a folder in which
    `include` selects no file."""
    prefixes = prefixes_of(paths, reading) if prefixes is None else prefixes
    for path in paths:
        prefix = prefixes.get(path, "")
        if path.is_dir():
            yield from _files_in(path, prefix, reading)
        else:
            yield named_file(path, prefix)


def _files_in(path: Path, prefix: str, reading: InputOptions) -> Iterator[InputFile]:
    """Yield the files of a folder, then the links and contexts in it, which are never selected."""
    folder = Folder(path, follow_links=reading.follow_links)
    not_ignored = None if reading.ignored else _not_ignored(path)
    selects_none = True
    for name in folder.files():
        is_ignored = ".git" in name.split("/") or (not_ignored is not None and name not in not_ignored)
        is_selected = not is_ignored and reading.selects(name)
        selects_none = selects_none and not is_selected
        file = os.path.join(folder.path, name)
        opener, label = partial(folder.open, name), str(path / name)
        try:
            facts = _file_facts(file, file)
        except NotFound:  # it or its disk was removed since the folder was listed: the next sync looks again
            facts, is_selected = {}, False
        yield InputFile(displayable(prefix + name), label, opener, facts, str(path), is_selected=is_selected)
    if selects_none and reading.include:
        remedy = "" if not_ignored is None else f", without those that git ignores; {_REMEDY}"
        raise NotFound(f"{path}: no file in it matches {' '.join(reading.include)}{remedy}")
    if left_out := {name: reason for name, reason in folder.left_out.items() if reading.selects(name)}:
        reading.note(f"{path}: {describe_files(left_out)}")
    for name, reason in folder.left_out.items():
        if reason not in SPECIAL_FILES.values():
            yield InputFile(displayable(prefix + name), str(path / name), BytesIO, {}, str(path), is_selected=False)


def named_file(path: Path, prefix: str = "") -> InputFile:
    """A file that the caller names. Raises `NotFound`."""
    opener = partial(open_file, os.path.abspath(path))
    return InputFile(displayable(prefix + path.name), str(path), opener, _file_facts(path, str(path)))


def find_objects(url: str, reading: InputOptions, context_url: str, opened: Callable[[str], Store]) -> list[InputFile]:
    """The object at `url` (1 HEAD), or all objects below it, selected or not, without those of the context at
    `context_url` (1 LIST per 1,000). `opened` opens a store by its URL. Raises `NotFound` if there are none."""
    with suppress(NotFound, InvalidUrl):  # not an object: perhaps a folder or a bucket
        location, key = split_object(url)
        store = opened(location)
        return [_as_source(store, store.head(key), key.rpartition("/")[2])]
    store = opened(url)
    left_out: list[str] = []
    infos = list_usable(store, left_out)
    files = [_as_source(store, info, info.key, store.url, reading.selects(info.key)) for info in infos]
    files = [file for file in files if not file.label.startswith(context_url.rstrip("/") + "/")]
    if not files:
        raise NotFound(f"{store.url}: found no object to sync")
    if description := describe_left_out(left_out, markers=False):
        reading.note(f"{store.url}: {description}")
    return files


def _as_source(store: Store, info: ObjectInfo, name: str, container: str = "", is_selected: bool = True) -> InputFile:
    url, facts = f"{store.url.rstrip('/')}/{info.key}", {"bytes": info.size_bytes, "etag": info.etag}
    return InputFile(name, url, lambda: BytesIO(store.get(info.key).data), facts, container, is_selected)


def _file_facts(path: str | os.PathLike[str], label: str) -> dict[str, Any]:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        raise NotFound(f"{label}: no such file or folder") from None
    return {"bytes": status.st_size, "modified_ns": status.st_mtime_ns}


def _not_ignored(path: Path) -> set[str] | None:
    """The relative paths of the files in a folder that git does not ignore, also in repositories below it. None for a
    folder outside all repositories, and for an ignored folder: a caller that names it wants its files."""
    real = path.resolve()
    for folder in (path, *real.parents):
        if (folder / ".git").is_file() or (folder / ".git" / "HEAD").exists():
            break
    else:
        return None
    is_ignored = folder is not path and _run_git(real.parent, "check-ignore", "-q", f"./{real.name}").returncode == 0
    if is_ignored:
        return None
    listed = _run_git(path, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listed.returncode:
        reason = os.fsdecode(listed.stderr).strip().partition("\n")[0]
        raise NotFound(f"{path}: {reason or 'git failed'}; {_REMEDY}")
    names = {os.fsdecode(name) for name in listed.stdout.split(b"\0") if name}
    inner = [name for name in names if os.path.lexists(f"{path}/{name}/.git") and not (path / name).is_symlink()]
    for repository in inner:  # such as a submodule, which git lists as one entry
        names.update(os.path.join(repository, name) for name in _not_ignored(path / repository) or ())
    return names


def _run_git(path: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        command = [*_GIT, "-C", str(path), *arguments]
        return subprocess.run(command, capture_output=True, env={**os.environ, **_GIT_ENVIRONMENT})
    except OSError as error:
        raise NotFound(f"{path}: cannot run git: {error}; {_REMEDY}") from None


def prefixes_of(paths: Iterable[os.PathLike[str]], reading: InputOptions) -> dict[Path, str]:
    """By path, the prefix that keeps the names of its documents apart from those of other paths.

    A file of a folder is named by its path below that folder, any other file by its last part. Where two paths give
    the same name, the prefix is the name of the folder, or the folders in the path of the file. Raises `InvalidText` if
    two names are equal even with their prefixes.
    """
    distinct = list(dict.fromkeys(map(Path, paths)))
    named = {path: _names_at(path, reading) for path in distinct} if len(distinct) > 1 else {}
    counts = Counter(chain.from_iterable(named.values()))
    prefixes = {path: _prefix_of(path) for path, names in named.items() if any(counts[name] > 1 for name in names)}
    owners: dict[str, Path] = {}
    for path, names in named.items():
        for name in (prefixes.get(path, "") + name for name in names):
            if owners.setdefault(name, path) != path:
                raise InvalidText(
                    f"{owners[name]} and {path} both give a document named {name!r}: rename one, or upload them to "
                    f"different URLs"
                )
    return prefixes


def _names_at(path: Path, reading: InputOptions) -> set[str]:
    if not path.is_dir():
        return {path.name}
    return {name for name in Folder(path, follow_links=reading.follow_links).files() if reading.selects(name)}


def _prefix_of(path: Path) -> str:
    if path.is_dir() or path.is_absolute():
        return f"{(path if path.is_dir() else path.parent).resolve().name}/"
    return "".join(f"{part}/" for part in path.parent.parts if part != "..")


def displayable(name: str) -> str:
    """A file name as text; bytes in it that are not UTF-8 become U+FFFD."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def read_source(source: InputFile, reading: InputOptions) -> Iterator[Utf8]:
    """Yield the text of a source. A file that is shortened or overwritten meanwhile is read again, at most twice; then
    a note says so. Raises `NotText`, for a source in a folder or store before the first piece, so that it can be
    left out."""
    for attempt in range(_MOST_READS):
        notes: list[str] = []
        try:
            opened = source.open()
        except FileNotFoundError:
            if not source.container:
                raise
            raise NotText(source.label, "removed before it was read") from None
        with opened as file:
            before = None if isinstance(file, BytesIO) else os.fstat(file.fileno())
            decoded = partial(decode_file, file, source.label, may_be_binary=not source.container)
            pieces = decoded(replace(reading, note=notes.append))
            buffered = list(islice(pieces, _BUFFERED_PIECES))
            is_complete = len(buffered) < _BUFFERED_PIECES
            was_changed = is_complete and _was_changed(file, before)
            if was_changed and attempt < _MOST_READS - 1:
                continue
            if not is_complete and source.container:
                for _ in pieces:  # raises `NotText` while the source can still be left out
                    pass
                file.seek(0)
                buffered, pieces = [], decoded(replace(reading, note=lambda text: None))
            for note in notes:
                reading.note(note)
            yield from buffered
            yield from pieces
            if was_changed or _was_changed(file, before):
                reading.note(
                    f"{source.label}: shortened or overwritten while it was read, so only part of its text is stored; "
                    f"the next sync reads it again"
                )
            return


class SourceText(NamedTuple):
    """A source, and its text."""

    source: InputFile
    pieces: Iterator[Utf8]  # none if the source is not text
    not_text: str = ""  # why the source is not text, in a few words; empty if it is


def read_texts(sources: Iterable[InputFile], reading: InputOptions) -> Iterator[SourceText]:
    """Yield the selected sources with their texts. Raises `NotText` for one that the caller names; one in a folder or
    store is yielded without pieces, to be left out."""
    for source in sources:
        if not source.is_selected:
            continue
        pieces = read_source(source, reading)
        try:
            first_piece = list(islice(pieces, 1))
        except NotText as error:
            if not source.container:
                raise
            yield SourceText(source, iter(()), error.reason)
        else:
            yield SourceText(source, chain(first_piece, pieces))


def note_left_out(left_out: Iterable[SourceText], reading: InputOptions) -> None:
    """Note, for each folder or store, the first sources that are not text and the number of the others."""
    container_of = attrgetter("source.container")
    for container, items in groupby(sorted(left_out, key=container_of), container_of):
        entries = [f"{item.source.name} ({item.not_text})" for item in items]
        count = f"{len(entries):,} files that are" if len(entries) > 1 else "1 file that is"
        reading.note(f"{container}: left out {count} not text: {first_of(entries)}")


def _was_changed(file: IO[bytes], before: os.stat_result | None) -> bool:
    """Whether a file that was read to its end was shortened or overwritten since `before`, which is None for an object.
    A file that grew is not changed: what was read is its earlier text."""
    if before is None:
        return False
    now, size = os.fstat(file.fileno()), before.st_size
    was_shortened = min(now.st_size, file.tell()) < size
    return was_shortened or (now.st_size == size and now.st_mtime_ns != before.st_mtime_ns)
