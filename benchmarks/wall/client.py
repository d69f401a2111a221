"""Measure one way of reading in a process of its own: `python client.py NAME ENDPOINT SESSION BUDGET`.

Run by path, so that it works in an environment without this project. SESSION is a file (`session.py`); BUDGET is how
many seconds one look may take before it is given up, and the session with it. Prints JSON: seconds of each look, what
it gave, and the memory that the process took.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zlib import crc32

BUCKET, TEXT, SEGMENTS = "bucket", "text", "legacy"
REGION = "us-east-1"
PART_BYTES = 8 << 20
SEGMENT_BYTES = 100_000
THREADS = 50
TOKEN_CHARACTERS, TOKENS_PER_SECOND = 4, 120.0


class OutOfBudget(Exception):
    """A look at the text took too long."""


class Way(ABC):
    """A text behind ranged reads; a way that has something better overrides it."""

    package = "boto3"

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.deadline = float("inf")

    @abstractmethod
    def range(self, start: int, stop: int) -> bytes:
        """Bytes [start, stop) of the object."""

    def slice(self, start: int, stop: int) -> bytes:
        return self.range(start, stop)

    def find(self, needle: str) -> int:
        """By parts of 8 MiB, from the beginning to the first occurrence."""
        sought, carried, at = needle.encode(), b"", 0
        for piece in self.parts():
            whole = carried + piece
            found = whole.find(sought)
            if found >= 0:
                return at - len(carried) + found
            at += len(piece)
            carried = whole[-len(sought) + 1 :]
        return -1

    def parts(self) -> Iterator[bytes]:
        for start in range(0, self.size_bytes, PART_BYTES):
            self.check()
            yield self.range(start, min(start + PART_BYTES, self.size_bytes))

    def think(self, seconds: float, code: str) -> None:
        time.sleep(seconds)

    def check(self) -> None:
        if time.perf_counter() > self.deadline:
            raise OutOfBudget


def _client() -> Any:
    config = import_module("botocore.config").Config(
        s3={"addressing_style": "path"},
        max_pool_connections=64,
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    return import_module("boto3").client("s3", region_name=REGION, config=config)


class Sequential(Way):
    """DeepRecurse's way: a manifest of segments, one blocking GET for each that a slice touches, no cache."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self._client = _client()

    def range(self, start: int, stop: int) -> bytes:
        first = start // SEGMENT_BYTES
        numbers = range(first, -(-stop // SEGMENT_BYTES))
        whole = b"".join(map(self._segment, numbers))
        return whole[start - first * SEGMENT_BYTES : stop - first * SEGMENT_BYTES]

    def parts(self) -> Iterator[bytes]:
        return map(self._segment, range(-(-self.size_bytes // SEGMENT_BYTES)))

    def _segment(self, number: int) -> bytes:
        self.check()
        answer = self._client.get_object(Bucket=BUCKET, Key=f"{SEGMENTS}/segment_{number:06d}.log")
        return bytes(answer["Body"].read())


class Threads(Way):
    """boto3, ranges of 100 KB to 8 MiB over 50 threads."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self._client = _client()
        self._pool = ThreadPoolExecutor(THREADS)

    def range(self, start: int, stop: int) -> bytes:
        answer = self._client.get_object(Bucket=BUCKET, Key=TEXT, Range=f"bytes={start}-{stop - 1}")
        return bytes(answer["Body"].read())

    def slice(self, start: int, stop: int) -> bytes:
        step = max(SEGMENT_BYTES, -(-(stop - start) // THREADS))
        starts = range(start, stop, step)
        return b"".join(self._pool.map(lambda at: self.range(at, min(at + step, stop)), starts))

    def parts(self) -> Iterator[bytes]:
        waves = range(0, self.size_bytes, 4 * PART_BYTES)
        for first in waves:
            self.check()
            yield self.slice(first, min(first + 4 * PART_BYTES, self.size_bytes))


class Download(Way):
    """The whole text first, as boto3 downloads files; then a `bytes` in memory."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self._data: bytes | None = None

    def range(self, start: int, stop: int) -> bytes:
        return self._whole()[start:stop]

    def find(self, needle: str) -> int:
        return self._whole().find(needle.encode())

    def _whole(self) -> bytes:
        if self._data is None:
            buffer = import_module("io").BytesIO()
            _client().download_fileobj(BUCKET, TEXT, buffer)
            self._data = buffer.getvalue()
        return self._data


class Memory(Way):
    """The text as it lies in a file beside this machine: what nothing can beat."""

    package = ""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self._data = Path(sys.argv[3]).with_name(TEXT).read_bytes()

    def range(self, start: int, stop: int) -> bytes:
        return self._data[start:stop]

    def find(self, needle: str) -> int:
        return self._data.find(needle.encode())


class S3fs(Way):
    """A file of s3fs, read ahead by 5 MiB, as it does by default."""

    package = "s3fs"

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        system = import_module("s3fs").S3FileSystem(endpoint_url=sys.argv[2], client_kwargs={"region_name": REGION})
        self._file = system.open(f"{BUCKET}/{TEXT}", "rb", block_size=5 << 20, cache_type="readahead")

    def range(self, start: int, stop: int) -> bytes:
        self._file.seek(start)
        return bytes(self._file.read(stop - start))


class SmartOpen(Way):
    """A seekable stream of smart_open."""

    package = "smart_open"

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        opener = import_module("smart_open").open
        self._file = opener(f"s3://{BUCKET}/{TEXT}", "rb", transport_params={"client": _client()})

    def range(self, start: int, stop: int) -> bytes:
        self._file.seek(start)
        return bytes(self._file.read(stop - start))


class Obstore(Way):
    """obstore: one range for a slice, sixteen at once for a pass."""

    package = "obstore"

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self._module = import_module("obstore")
        self._store = import_module("obstore.store").S3Store(
            BUCKET,
            endpoint=sys.argv[2],
            region=REGION,
            access_key_id=os.environ["AWS_ACCESS_KEY_ID"],
            secret_access_key=os.environ["AWS_SECRET_ACCESS_KEY"],
            virtual_hosted_style_request=False,
            client_options={"allow_http": True},
        )

    def range(self, start: int, stop: int) -> bytes:
        return bytes(self._module.get_range(self._store, TEXT, start=start, end=stop))

    def parts(self) -> Iterator[bytes]:
        starts = range(0, self.size_bytes, PART_BYTES)
        for first in range(0, len(starts), 16):
            self.check()
            some = list(starts[first : first + 16])
            ends = [min(start + PART_BYTES, self.size_bytes) for start in some]
            yield from map(bytes, self._module.get_ranges(self._store, TEXT, starts=some, ends=ends))


class Mountpoint(Way):
    """The CRT client of Mountpoint for Amazon S3, which parts large ranges by itself."""

    package = "s3torchconnectorclient"

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        client = import_module("s3torchconnectorclient._mountpoint_s3_client").MountpointS3Client
        self._client = client(REGION, endpoint=sys.argv[2], force_path_style=True)

    def range(self, start: int, stop: int) -> bytes:
        return b"".join(self._client.get_object(BUCKET, TEXT, start, stop))

    def parts(self) -> Iterator[bytes]:
        for piece in self._client.get_object(BUCKET, TEXT):
            self.check()
            yield piece


class Ours(Way):
    """monocontext, told of thinking and of code as it streams."""

    package = "monocontext"

    def __init__(self, size_bytes: int, prefix: str, policy: str) -> None:
        super().__init__(size_bytes)
        opener = import_module("monocontext").Monocontext.open
        self._context = opener(f"s3://{BUCKET}/{prefix}", endpoint=sys.argv[2], prefetch=policy)

    def range(self, start: int, stop: int) -> bytes:
        return bytes(self._context[start:stop], "ascii")

    def find(self, needle: str) -> int:
        return int(self._context.find(needle))

    def think(self, seconds: float, code: str) -> None:
        tokens = [code[at : at + TOKEN_CHARACTERS] for at in range(0, len(code), TOKEN_CHARACTERS)]
        writing = min(len(tokens) / TOKENS_PER_SECOND, 0.8 * seconds)
        with self._context.thinking():
            time.sleep(seconds - writing)
            for token in [*tokens, "```\n"]:
                self._context.hint(token)
                time.sleep(writing / (len(tokens) + 1))


WAYS: dict[str, Callable[[int], Way]] = {
    "str in memory": Memory,
    "download, then slice": Download,
    "one GET after another": Sequential,
    "boto3, 50 threads": Threads,
    "s3fs": S3fs,
    "smart_open": SmartOpen,
    "obstore": Obstore,
    "mountpoint CRT client": Mountpoint,
    "monocontext, prefetch off": lambda size: Ours(size, "packed", "off"),
    "monocontext, prefetch all": lambda size: Ours(size, "packed", "all"),
    "monocontext, all, not compressed": lambda size: Ours(size, "raw", "all"),
}

PACKAGES = {
    "str in memory": (),
    "download": ("boto3",),
    "one GET after another": ("boto3",),
    "boto3": ("boto3",),
    "s3fs": ("s3fs",),
    "smart_open": ("smart_open", "boto3"),
    "obstore": ("obstore",),
    "mountpoint CRT client": ("s3torchconnectorclient",),
    "monocontext": ("monocontext", "boto3"),
}
"""What each way imports, which is no part of opening; by its name up to a comma."""


def peak_bytes() -> int:
    """The most memory that this process took; `ru_maxrss` alone would count what its parent took when it forked."""
    status = Path("/proc/self/status")
    if status.exists():
        kib = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        if kib:
            return int(kib[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def play(name: str, size_bytes: int, turns: list[dict[str, Any]], budget_seconds: float) -> dict[str, Any]:
    """Go through a session; what was waited for and what was found."""
    began = time.perf_counter()
    for package in PACKAGES[name.split(",")[0]]:
        import_module(package)
    imported = time.perf_counter() - began
    began = time.perf_counter()
    way = WAYS[name](size_bytes)
    opened = time.perf_counter() - began
    looks: list[dict[str, Any]] = []
    gave_up = False
    for number, turn in enumerate(turns):
        way.think(turn["think"], ("```repl\n" if number == 0 else "\n```repl\n") + turn["code"])
        for kind, *what in turn["steps"]:
            if kind == "pause":
                time.sleep(what[0])
                continue
            began = time.perf_counter()
            way.deadline = began + budget_seconds
            try:
                found = crc32(way.slice(*what)) if kind == "slice" else way.find(*what)
            except OutOfBudget:
                found, gave_up = None, True
            size = what[1] - what[0] if kind == "slice" else size_bytes
            looks.append({"kind": kind, "bytes": size, "seconds": time.perf_counter() - began, "found": found})
    return {
        "import_seconds": imported,
        "open_seconds": opened,
        "looks": looks,
        "gave_up": gave_up,
        "peak_rss_bytes": peak_bytes(),
        "cpu_seconds": time.process_time(),
        "version": version(way.package) if way.package else "",
    }


def main() -> None:
    name, _, path, budget = sys.argv[1:]
    session = json.loads(Path(path).read_text())
    print(json.dumps(play(name, session["size_bytes"], session["turns"], float(budget))))


if __name__ == "__main__":
    main()
