"""Drive one S3 reader, line by line, against a server that errs: `python faults_client.py NAME DATA`.

Run by path, so that it works in an environment without this project. DATA is a file with what is right. Each line of
stdin is JSON, `{"endpoint": ..., "operation": ...}`, and so is each answer: `{"kind": ..., "seconds": ...}`, where kind
is `right`, `WRONG TEXT`, `hang` (of a forked child), or the name of the error.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

BUCKET, KEY, CONTEXT = "bucket", "object", "ctx"
ACCESS, SECRET, REGION = "access", "secret", "us-east-1"
SLICE = (1_000_003, 7_000_003)
"""Bytes of the slice, half-open."""
_PIECE_BYTES = 1 << 20
_PARTS = 4
_CHILD_SECONDS = 10


class Reader(NamedTuple):
    """The two ways of reading; the second takes the whole."""

    slice: Callable[[int, int], bytes]
    scan: Callable[[], bytes]


def ours(endpoint: str) -> Reader:
    context = import_module("monocontext").Monocontext.open(f"s3://{BUCKET}/{CONTEXT}", endpoint=endpoint)
    return Reader(
        lambda start, stop: str(context[start:stop]).encode(),
        lambda: "".join(context.chunks(_PIECE_BYTES)).encode(),
    )


def _boto3_client(endpoint: str) -> Any:
    config = import_module("botocore.config").Config(s3={"addressing_style": "path"})
    return import_module("boto3").client("s3", endpoint_url=endpoint, region_name=REGION, config=config)


def boto3(endpoint: str) -> Reader:
    client = _boto3_client(endpoint)

    def read(**wanted: str) -> bytes:
        return bytes(client.get_object(Bucket=BUCKET, Key=KEY, **wanted)["Body"].read())

    return Reader(lambda start, stop: read(Range=f"bytes={start}-{stop - 1}"), read)


def s3fs(endpoint: str) -> Reader:
    options = {"endpoint_url": endpoint, "region_name": REGION}
    system = import_module("s3fs").S3FileSystem(
        key=ACCESS,
        secret=SECRET,
        client_kwargs=options,
        skip_instance_cache=True,
        default_block_size=_PIECE_BYTES,  # 50 MB by default: 8 MiB are then as many parts as 400 MB would be
    )
    path = f"{BUCKET}/{KEY}"
    return Reader(
        lambda start, stop: bytes(system.cat_file(path, start=start, end=stop)),
        lambda: bytes(system.cat_file(path)),
    )


def smart_open(endpoint: str) -> Reader:
    client = _boto3_client(endpoint)

    def open_object() -> Any:
        # Without `defer_seek` a first GET is sent before the seek, and its body thrown away.
        parameters = {"client": client, "defer_seek": True}
        return import_module("smart_open").open(f"s3://{BUCKET}/{KEY}", "rb", transport_params=parameters)

    def piece(start: int, stop: int) -> bytes:
        with open_object() as file:
            file.seek(start)
            return bytes(file.read(stop - start))

    def scan() -> bytes:
        with open_object() as file:
            return b"".join(iter(lambda: file.read(_PIECE_BYTES), b""))

    return Reader(piece, scan)


def obstore(endpoint: str) -> Reader:
    module = import_module("obstore")
    store = import_module("obstore.store").S3Store(
        BUCKET,
        endpoint=endpoint,
        region=REGION,
        access_key_id=ACCESS,
        secret_access_key=SECRET,
        virtual_hosted_style_request=False,
        client_options={"allow_http": True},
    )

    def parts(start: int, stop: int) -> bytes:
        edges = [start + (stop - start) * i // _PARTS for i in range(_PARTS + 1)]
        with ThreadPoolExecutor(_PARTS) as pool:  # `get_ranges` makes one GET of ranges that touch
            found = pool.map(lambda a, b: module.get_range(store, KEY, start=a, end=b), edges[:-1], edges[1:])
            return b"".join(map(bytes, found))

    return Reader(parts, lambda: bytes(module.get(store, KEY).bytes()))


READERS: dict[str, Callable[[str], Reader]] = {
    "ours": ours,
    "boto3": boto3,
    "s3fs": s3fs,
    "smart_open": smart_open,
    "obstore": obstore,
}


def attempt(name: str, endpoint: str, operation: str, data: bytes) -> dict[str, str | float]:
    """Carry one operation out, and judge what came of it."""
    began = time.monotonic()
    try:
        reader = READERS[name](endpoint)
        if operation == "fork":
            kind = _fork(reader, data)
        elif operation == "scan":
            kind = _judge(reader.scan(), data)
        else:
            kind = _judge(reader.slice(*SLICE), data[slice(*SLICE)])
    except Exception as error:
        kind = type(error).__name__
    return {"kind": kind, "seconds": time.monotonic() - began}


def _judge(found: bytes, expected: bytes) -> str:
    return "right" if found == expected else "WRONG TEXT"


def _fork(reader: Reader, data: bytes) -> str:
    """Both processes read after a fork; what the child came to counts first."""
    kinds = ["right", "WRONG TEXT", "error"]
    _some(reader, data, 3)
    child = os.fork()
    if child == 0:
        signal.alarm(_CHILD_SECONDS)
        code = 2
        try:
            code = kinds.index(_some(reader, data, 0))
        finally:
            os._exit(code)
    parent = _some(reader, data, 1)
    _, status = os.waitpid(child, 0)
    in_child = "hang" if os.WIFSIGNALED(status) else kinds[os.WEXITSTATUS(status)]
    return parent if in_child == "right" else in_child


def _some(reader: Reader, data: bytes, seed: int) -> str:
    for i in range(40):
        start = (seed * 1_000_003 + i * 611_953) % (len(data) - 50_000)
        if reader.slice(start, start + 50_000) != data[start : start + 50_000]:
            return "WRONG TEXT"
    return "right"


def main(name: str, path: str) -> None:
    data = Path(path).read_bytes()
    package = "monocontext" if name == "ours" else name
    import_module(package)
    print(json.dumps({"version": version(package)}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(attempt(name, asked["endpoint"], asked["operation"], data)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
