"""Answer greps over files in a bucket in one way, in a new process: `python agents_grep_client.py WAY GREPS.json`.

It is run by path, so it also works in an environment without this project. It prints JSON: the figures of each grep, as
in `agents_grep.Row`, and the version of the library. A way that reads every file does so once, which counts for each
grep of the tree.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Literal
from zlib import crc32

BUCKET, TREE, TEXT = "bucket", "tree/", "text"  # the bucket, the prefix of files in it, and the key of their context
CONNECTIONS = 64  # requests at once, for every way
HEAD_LINES, TAIL_LINES = 50, 20
REGION = "us-east-1"
GAVE_UP = "gave up"  # the output of a command that reached a time limit of its way

Match = tuple[str, int, str]  # a file, the number of a line in it, and the line
Kind = Literal["lines", "files", "count", "head", "sum", "find", "tail"]
"""What is printed, as in `answer`; `find`: the files of a name; `tail`: the end of one file."""


@dataclass(frozen=True, slots=True)
class Grep:
    """A command line, and its parts for the ways that do not run it."""

    command: str
    kind: Kind
    pattern: str = ""
    ignore_case: bool = False
    path: str = ""


def answer(kind: Kind, matches: Iterable[Match]) -> list[str]:
    """The lines that a command of this kind prints for matches in the order of the files."""
    match kind:
        case "files":
            return [str(len({path for path, *_ in matches}))]
        case "sum":
            return [str(sum(1 for _ in matches))]
        case "count":
            return [f"{path}:{count}" for path, count in Counter(path for path, *_ in matches).items()][-TAIL_LINES:]
        case "lines" | "head":
            lines = (f"{path}:{number}:{line}" for path, number, line in matches)
            return list(islice(lines, HEAD_LINES if kind == "head" else None))
    raise ValueError(f"unknown kind of grep {kind!r}: choose from files, sum, count, lines and head")


def search(files: Iterable[tuple[str, bytes]], grep: Grep) -> Iterator[Match]:
    """The lines of files that match, as `grep` finds them; the pattern must match no newline."""
    compiled = re.compile(grep.pattern.encode(), re.IGNORECASE if grep.ignore_case else 0)
    for path, data in files:
        number, counted, end = 1, 0, -1
        for match in compiled.finditer(data):
            if match.start() < end:
                continue  # another match in the same line
            start = data.rfind(b"\n", 0, match.start()) + 1
            end = data.find(b"\n", start)
            end = len(data) if end < 0 else end
            number += data.count(b"\n", counted, start)
            counted = start
            yield path, number, data[start:end].decode()


class Way(ABC):
    """One way to answer greps.

    Its constructor loads what its library loads on first use, without a request: an agent's process is already running.
    """

    packages: tuple[str, ...]  # the library, whose version is printed, then what it imports

    @abstractmethod
    def open(self) -> None:
        """Open the text, or read all files: whatever every grep needs."""

    @abstractmethod
    def run(self, grep: Grep) -> list[str]:
        """The lines that the command prints."""


class Ours(Way):
    """The tool `bash`, which runs the command as an agent writes it."""

    packages = ("monocontext", "bashkit", "boto3", "numpy")

    def __init__(self) -> None:
        library = import_module("monocontext")
        import_module("monocontext.stores").open_store(f"s3://{BUCKET}", endpoint=os.environ["AWS_ENDPOINT_URL_S3"])
        library.publish(library.documents({"a": "a\n"}), "memory://warm")
        self._open = library.Monocontext.open
        self._text = self._open("memory://warm")
        self._tool = import_module("monocontext.text_tools.shell").Shell({"/tree": lambda: self._text})
        self._tool.bash("grep -rn a .")

    def open(self) -> None:
        self._text = self._open(f"s3://{BUCKET}/{TEXT}", endpoint=os.environ["AWS_ENDPOINT_URL_S3"])

    def run(self, grep: Grep) -> list[str]:
        reply = self._tool.bash(grep.command).data
        if "timeout" in reply.stderr or "grep: stopped" in reply.stderr:
            return [GAVE_UP]
        if reply.stderr or reply.note:
            raise AssertionError(f"`{grep.command}` failed: {reply.stderr} {reply.note}")
        return [line.removeprefix("./") for line in reply.stdout.split("\n")[:-1]]


class Files(Way):
    """Reads every file of the tree into memory, then searches them with `re`."""

    _files: dict[str, bytes]  # set by `open`

    @abstractmethod
    def names(self) -> list[str]:
        """The keys of all files."""

    @abstractmethod
    def get(self, key: str) -> bytes: ...

    def get_all(self, keys: list[str]) -> dict[str, bytes]:
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            return dict(zip(keys, pool.map(self.get, keys), strict=True))

    def open(self) -> None:
        files = self.get_all(sorted(self.names()))
        self._files = {key.removeprefix(TREE): data for key, data in files.items()}

    def run(self, grep: Grep) -> list[str]:
        match grep.kind:
            case "find":
                keys = [key for key in sorted(self.names()) if key.endswith(f"/{grep.path}")]
                return b"".join(map(self.get, keys)).decode().split("\n")[:-1]
            case "tail":
                return self.get(TREE + grep.path).decode().split("\n")[:-1][-TAIL_LINES:]
        return self.run_on_tree(grep)

    def run_on_tree(self, grep: Grep) -> list[str]:
        return answer(grep.kind, search(self._files.items(), grep))


class S3fs(Files):
    """Reads with s3fs; all files in one call."""

    packages = ("s3fs",)

    def __init__(self) -> None:
        self._system = import_module("s3fs").S3FileSystem(config_kwargs={"max_pool_connections": CONNECTIONS})
        self._system.connect()

    def names(self) -> list[str]:
        return [path.partition("/")[2] for path in self._system.find(f"{BUCKET}/{TREE}")]

    def get(self, key: str) -> bytes:
        return bytes(self._system.cat_file(f"{BUCKET}/{key}"))

    def get_all(self, keys: list[str]) -> dict[str, bytes]:
        read = self._system.cat([f"{BUCKET}/{key}" for key in keys], batch_size=CONNECTIONS)
        return {path.partition("/")[2]: data for path, data in read.items()}


class Mountpoint(Files):
    """The client of mountpoint-s3 on AWS's common runtime, which Amazon ships for PyTorch."""

    packages = ("s3torchconnectorclient",)

    def __init__(self) -> None:
        self._client = import_module("s3torchconnectorclient._mountpoint_s3_client").MountpointS3Client(
            REGION, endpoint=os.environ["AWS_ENDPOINT_URL_S3"], force_path_style=True
        )

    def names(self) -> list[str]:
        return [item.key for page in self._client.list_objects(BUCKET, TREE) for item in page.object_info]

    def get(self, key: str) -> bytes:
        return b"".join(self._client.get_object(BUCKET, key))


class Ripgrep(Files):
    """Downloads the tree with obstore, the fastest client here, and runs ripgrep over the copy."""

    packages = ("obstore",)

    def __init__(self) -> None:
        self._store = import_module("obstore.store").S3Store(
            BUCKET, endpoint=os.environ["AWS_ENDPOINT_URL_S3"], region=REGION, client_options={"allow_http": True}
        )
        self._copy = tempfile.TemporaryDirectory()

    def names(self) -> list[str]:
        return [item["path"] for page in self._store.list(TREE) for item in page]

    def get(self, key: str) -> bytes:
        return bytes(self._store.get(key).bytes())

    def open(self) -> None:
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(self._download, self.names()))

    def _download(self, key: str) -> None:
        path = Path(self._copy.name, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.get(key))

    def run_on_tree(self, grep: Grep) -> list[str]:
        options = ["--ignore-case"] if grep.ignore_case else []
        command = [os.environ["RG"], "-uuun", "--no-heading", *options, "-e", grep.pattern, "."]
        done = subprocess.run(command, cwd=Path(self._copy.name, TREE), capture_output=True)
        if done.returncode not in (0, 1):  # 1: no line matches
            raise AssertionError(f"ripgrep failed: {done.stderr.decode().strip()}")
        lines = (line.removeprefix("./").split(":", 2) for line in done.stdout.decode().split("\n")[:-1])
        return answer(grep.kind, sorted((path, int(number), line) for path, number, line in lines))


RIPGREP = "download, then ripgrep"
WAYS: dict[str, type[Way]] = {
    "monocontext": Ours,
    "s3fs, every file": S3fs,
    "mountpoint's client, every file": Mountpoint,
    RIPGREP: Ripgrep,
}


def main() -> None:
    name, path = sys.argv[1:]
    way_type = WAYS[name]
    for package in way_type.packages:
        import_module(package)
    greps = [Grep(**fields) for fields in json.loads(Path(path).read_text())]
    way = way_type()
    began = time.perf_counter()
    if isinstance(way, Ours) or any(grep.pattern for grep in greps):
        way.open()
    open_seconds, rows = time.perf_counter() - began, []
    for grep in greps:
        began = time.perf_counter()
        lines = way.run(grep)
        search_seconds = time.perf_counter() - began
        output = {"gave_up": lines == [GAVE_UP], "crc": crc32("\n".join(lines).encode())}
        rows.append({"seconds": open_seconds + search_seconds, "search_seconds": search_seconds, **output})
    print(json.dumps({"rows": rows, "version": version(way_type.packages[0])}))


if __name__ == "__main__":
    main()
