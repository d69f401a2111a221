"""One way of reading one slice, measured in a process of its own: `python transport_slices_client.py WAY ENDPOINT ...`.

Run by path, so that it works in an environment without this project. Prints JSON: seconds and CPU of each round, of all
threads. Connections are warm and nothing of the text is kept from one round to the next.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

BUCKET, OBJECTS = "bucket", 50
ACCESS, SECRET, REGION = "access", "secret", "us-east-1"
Read = Callable[[], Callable[[], str]]
"""Not timed: what gives the read, which is."""


def ours(endpoint: str, prefix: str) -> Read:
    """A context that holds nothing yet; store and threads are those of the rounds before."""
    store: Any = import_module("monocontext.stores").open_store(f"s3://{BUCKET}/{prefix}", endpoint=endpoint)
    workers: Any = import_module("monocontext.workers").ThreadWorkers()
    return lambda: _slice(import_module("monocontext").Monocontext.open(store, workers=workers))


def ours_cold(endpoint: str, prefix: str) -> Read:
    """The same with a store and threads of its own: opening has made one connection, the slice makes the others."""
    url = f"s3://{BUCKET}/{prefix}"
    return lambda: _slice(import_module("monocontext").Monocontext.open(url, endpoint=endpoint))


def _slice(context: Any) -> Callable[[], str]:
    length = len(context)
    return lambda: str(context[0:length])


def boto3(endpoint: str, prefix: str) -> Read:
    """Thread pool over `get_object`, joined and decoded: what one writes with boto3."""
    config = import_module("botocore.config").Config(s3={"addressing_style": "path"}, max_pool_connections=64)
    client = import_module("boto3").client("s3", endpoint_url=endpoint, region_name=REGION, config=config)
    pool = ThreadPoolExecutor(OBJECTS)

    def get(i: int) -> bytes:
        return bytes(client.get_object(Bucket=BUCKET, Key=f"{prefix}-plain/{i:02d}")["Body"].read())

    return lambda: lambda: b"".join(pool.map(get, range(OBJECTS))).decode()


def one_by_one(endpoint: str, prefix: str) -> Read:
    """The original way: one blocking GET a segment, by boto3."""
    config = import_module("botocore.config").Config(s3={"addressing_style": "path"})
    client = import_module("boto3").client("s3", endpoint_url=endpoint, region_name=REGION, config=config)

    def get(i: int) -> str:
        return str(client.get_object(Bucket=BUCKET, Key=f"{prefix}-plain/{i:02d}")["Body"].read().decode())

    return lambda: lambda: "".join(map(get, range(OBJECTS)))


def obstore(endpoint: str, prefix: str) -> Read:
    """50 threads over `get`, joined and decoded."""
    get, pool = _obstore(endpoint, prefix), ThreadPoolExecutor(OBJECTS)
    return lambda: lambda: b"".join(pool.map(get, range(OBJECTS))).decode()


def obstore_in_place(endpoint: str, prefix: str) -> Read:
    """The same, each body copied into its place in one buffer, which is then decoded."""
    get, pool = _obstore(endpoint, prefix), ThreadPoolExecutor(OBJECTS)
    size = len(get(0))

    def read() -> str:
        buffer = bytearray(OBJECTS * size)
        view = memoryview(buffer)

        def place(i: int) -> None:
            view[i * size : (i + 1) * size] = get(i)

        list(pool.map(place, range(OBJECTS)))
        return str(buffer, "utf-8")

    return lambda: read


def _obstore(endpoint: str, prefix: str) -> Callable[[int], memoryview]:
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
    return lambda i: memoryview(module.get(store, f"{prefix}-plain/{i:02d}").bytes())


WAYS: dict[str, Callable[[str, str], Read]] = {
    "ours": ours,
    "ours, cold": ours_cold,
    "boto3": boto3,
    "boto3, one by one": one_by_one,
    "obstore, joined": obstore,
    "obstore, in place": obstore_in_place,
}


def keep_memory() -> None:
    """What `monocontext.keep_memory()` does, for an environment without it."""
    libc = ctypes.CDLL(None)
    if not all([libc.mallopt(-3, 1 << 30), libc.mallopt(-1, 2**31 - 1), libc.mallopt(-8, 1)]):
        raise AssertionError("mallopt refused")


def main() -> None:
    way, endpoint, prefix, characters, rounds, keeps = sys.argv[1:]
    if keeps == "mallopt":
        keep_memory()
    read_anew = WAYS[way](endpoint, prefix)
    for _ in range(2):
        read_anew()()  # connections, imports
    taken = []
    for _ in range(int(rounds)):
        read = read_anew()
        gc.collect()
        cpu, wall = time.process_time(), time.perf_counter()
        text = read()
        taken.append((time.perf_counter() - wall, time.process_time() - cpu))
        if len(text) != int(characters):
            raise AssertionError(f"{way}: expected {characters} characters, found {len(text):,}")
        del text, read
    print(json.dumps(taken))


if __name__ == "__main__":
    main()
