"""Measure one way to read in a process of its own: `python client.py NAME SESSION | BYTES GETS THREADS`.

It is run by path, so it also works in an environment without this project. It plays the session in the file SESSION,
JSON with `size_bytes` of the text and `turns`, or sends GETS requests of BYTES each. It prints JSON: the seconds
of waiting, the results of the reads, and the memory and CPU of the process.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any, TypedDict
from zlib import crc32

BUCKET, TEXT, CONTEXT = "bucket", "text", "context"
REGION = "us-east-1"
ENDPOINT = os.environ.get("AWS_ENDPOINT_URL_S3")
OBJECT_BYTES = 64 << 20  # the size of the object that GETs read
PART_BYTES = 8 << 20  # of one GET in a pass over the text
LEAST_PART_BYTES = 100_000  # of a slice that threads share
THREADS = 50
TOKEN_CHARACTERS, TOKENS_PER_SECOND = 4, 120.0

Step = list[Any]
"""["slice", start, stop], ["find", needle], or ["pause", seconds], which stands for a sub-call."""


class Turn(TypedDict):
    """One turn of a session: a model thinks and writes code, which then does the steps."""

    think_seconds: float  # the writing included
    code: str
    steps: list[Step]


class Way(ABC):
    """One way to read a text: by ranges, unless the library has a faster way for slices, searches or passes."""

    packages: tuple[str, ...] = ("boto3",)  # the library, whose version is printed, then what it imports
    pass_bytes = PART_BYTES  # how much a pass over the text reads at once

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes

    @abstractmethod
    def read(self, start: int, stop: int) -> bytes:
        """Bytes [start, stop) of the object."""

    def view(self, start: int, stop: int) -> bytes | memoryview:
        """Bytes [start, stop) of the object, without a copy if the library can do that."""
        return self.read(start, stop)

    def read_slice(self, start: int, stop: int) -> bytes:
        """Bytes [start, stop) of a large slice. A library that can fetch its parts concurrently overrides this."""
        return self.read(start, stop)

    def find(self, needle: str) -> int:
        """The first occurrence of a needle, read part by part from the beginning; -1 if there is none."""
        pattern, tail, offset = needle.encode(), b"", 0
        for piece in self.parts():
            piece = tail + piece  # a match may begin in the part before
            if (match := piece.find(pattern)) >= 0:
                return offset - len(tail) + match
            offset += len(piece) - len(tail)
            tail = piece[-len(pattern) + 1 :]
        return -1

    def parts(self) -> Iterator[bytes]:
        """Yield the whole text in parts."""
        for start in range(0, self.size_bytes, self.pass_bytes):
            yield self.read_slice(start, min(start + self.pass_bytes, self.size_bytes))

    def think(self, seconds: float, code: str) -> None:
        """Wait while the model thinks and writes `code`."""
        time.sleep(seconds)


def _client() -> Any:
    checksums = dict.fromkeys(("request_checksum_calculation", "response_checksum_validation"), "when_required")
    settings = {"s3": {"addressing_style": "path"}, "max_pool_connections": 64}
    config = import_module("botocore.config").Config(**settings, **checksums)
    return import_module("boto3").client("s3", config=config)


class Threads(Way):
    """boto3, with up to 50 ranges at once, each of at least 100 KB."""

    pass_bytes = 4 * PART_BYTES

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self._client = _client()
        self._pool = ThreadPoolExecutor(THREADS)

    def read(self, start: int, stop: int) -> bytes:
        answer = self._client.get_object(Bucket=BUCKET, Key=TEXT, Range=f"bytes={start}-{stop - 1}")
        return bytes(answer["Body"].read())

    def read_slice(self, start: int, stop: int) -> bytes:
        step = max(LEAST_PART_BYTES, -(-(stop - start) // THREADS))
        starts = range(start, stop, step)
        return b"".join(self._pool.map(lambda offset: self.read(offset, min(offset + step, stop)), starts))


class InMemory(Way):
    """The text in memory, from a local file: no reader can be faster."""

    packages: tuple[str, ...] = ()

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self._data = Path(sys.argv[2]).with_name(TEXT).read_bytes()  # beside the session

    def read(self, start: int, stop: int) -> bytes:
        return self._data[start:stop]

    def find(self, needle: str) -> int:
        return self._data.find(needle.encode())


class Download(InMemory):
    """The whole text, downloaded by boto3 into memory on the first read."""

    packages = ("boto3",)

    def __init__(self, size_bytes: int) -> None:
        Way.__init__(self, size_bytes)  # not `InMemory.__init__`, which reads the file
        self._data = b""

    def read(self, start: int, stop: int) -> bytes:
        if not self._data:
            buffer = BytesIO()
            _client().download_fileobj(BUCKET, TEXT, buffer)
            self._data = buffer.getvalue()
        return super().read(start, stop)


class Obstore(Way):
    """obstore, with one range for a slice and sixteen at once for a pass."""

    packages = ("obstore",)

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self._module = import_module("obstore")
        self._store = import_module("obstore.store").S3Store(
            BUCKET, endpoint=ENDPOINT, region=REGION, client_options={"allow_http": True}
        )

    def read(self, start: int, stop: int) -> bytes:
        return bytes(self.view(start, stop))

    def view(self, start: int, stop: int) -> memoryview:
        return memoryview(self._module.get_range(self._store, TEXT, start=start, end=stop))

    def parts(self) -> Iterator[bytes]:
        starts = range(0, self.size_bytes, PART_BYTES)
        for first in range(0, len(starts), 16):
            wave = list(starts[first : first + 16])
            ends = [min(start + PART_BYTES, self.size_bytes) for start in wave]
            yield from map(bytes, self._module.get_ranges(self._store, TEXT, starts=wave, ends=ends))


class Ours(Way):
    """monocontext with hints: it is told when the model thinks, gets the code as it streams, and reads ahead."""

    packages = ("monocontext", "boto3")
    policy = "all"

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        opener = import_module("monocontext").Monocontext.open
        self._context = opener(f"s3://{BUCKET}/{CONTEXT}", endpoint=ENDPOINT, prefetch=self.policy)

    def read(self, start: int, stop: int) -> bytes:
        return bytes(self._context[start:stop], "ascii")

    def find(self, needle: str) -> int:
        return int(self._context.find(needle))

    def think(self, seconds: float, code: str) -> None:
        tokens = [code[start : start + TOKEN_CHARACTERS] for start in range(0, len(code), TOKEN_CHARACTERS)]
        writing_seconds = min(len(tokens) / TOKENS_PER_SECOND, 0.8 * seconds)
        with self._context.thinking():
            time.sleep(seconds - writing_seconds)
            for token in [*tokens, "```\n"]:
                self._context.hint(token)
                time.sleep(writing_seconds / (len(tokens) + 1))


class OursOnDemand(Ours):
    """monocontext without reading ahead."""

    policy = "off"


class OurTransport(Way):
    """The S3 store of monocontext, which checks the version and the length of each response."""

    packages = ("monocontext",)

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self._store = import_module("monocontext.stores").open_store(f"s3://{BUCKET}", endpoint=ENDPOINT)

    def read(self, start: int, stop: int) -> bytes:
        return bytes(self._store.get_range(TEXT, start, stop - start).data)


WAYS: dict[str, type[Way]] = {
    "monocontext": Ours,
    "str in memory": InMemory,
    "download, then slice": Download,
    "monocontext without reading ahead": OursOnDemand,
    "obstore": Obstore,
    "boto3, 50 threads": Threads,
}
TRANSPORTS: dict[str, type[Way]] = {"monocontext": OurTransport, "boto3": Threads, "obstore": Obstore}


def peak_bytes() -> int:
    """The peak memory of this process; `ru_maxrss` would include the memory of the parent at the fork."""
    kib = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(kib[1]) * 1024 if kib else 0


def play(name: str, size_bytes: int, turns: list[Turn]) -> dict[str, Any]:
    """Play a session. Returns the figures of `peers.Row`, and the CRC-32 of each slice or the offset of each match."""
    packages = WAYS[name].packages
    for package in packages:
        import_module(package)  # importing does not count as opening
    began = time.perf_counter()
    way = WAYS[name](size_bytes)
    open_seconds = time.perf_counter() - began
    stall_seconds, answers = 0.0, []
    for number, turn in enumerate(turns):
        opening = "```repl\n" if number == 0 else "\n```repl\n"  # as the model writes code, in a fence
        way.think(turn["think_seconds"], opening + turn["code"])
        for kind, *values in turn["steps"]:
            if kind == "pause":
                time.sleep(*values)
                continue
            began = time.perf_counter()
            answers.append(crc32(way.read_slice(*values)) if kind == "slice" else way.find(*values))
            stall_seconds += time.perf_counter() - began
    return {
        "stall_seconds": stall_seconds,
        "open_seconds": open_seconds,
        "answers": answers,
        "peak_bytes": peak_bytes(),
        "cpu_seconds": time.process_time(),
        "version": version(packages[0]) if packages else "",
    }


def send_gets(name: str, length_bytes: int, count: int, threads: int) -> dict[str, Any]:
    """Send `count` GETs of `length_bytes` each. Returns the CPU seconds of one."""
    way = TRANSPORTS[name](OBJECT_BYTES)
    starts = [number * 65_537 % (OBJECT_BYTES - length_bytes) for number in range(count)]  # spread over the object
    with ThreadPoolExecutor(threads) as pool:

        def send(start: int) -> None:
            if len(way.view(start, start + length_bytes)) != length_bytes:
                raise AssertionError(f"{name}: a GET of {length_bytes:,} bytes returned a different number of bytes")

        list(pool.map(send, starts[: 4 * threads]))
        began = time.process_time()
        list(pool.map(send, starts))
        return {"cpu_seconds": (time.process_time() - began) / count, "version": version(way.packages[0])}


def main() -> None:
    name, *values = sys.argv[1:]
    if len(values) == 1:
        session = json.loads(Path(values[0]).read_text())
        print(json.dumps(play(name, session["size_bytes"], session["turns"])))
    else:
        print(json.dumps(send_gets(name, *map(int, values))))


if __name__ == "__main__":
    main()
