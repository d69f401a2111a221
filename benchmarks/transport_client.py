"""Measure one S3 client in a process of its own: `python transport_client.py NAME ENDPOINT BYTES COUNT THREADS`.

Run by path, so that it works in an environment without this project. Prints JSON; CPU is of all threads of the process.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.metadata import version
from typing import Any

BUCKET, KEY = "bucket", "object"
OBJECT_BYTES = 64 << 20
REGION = "us-east-1"
Read = Callable[[int, int], bytes]


def ours(endpoint: str) -> Read:
    store = import_module("monocontext.stores").open_store(f"s3://{BUCKET}", endpoint=endpoint)
    return lambda start, length: bytes(store.get_range(KEY, start, length).data)


def boto3(endpoint: str) -> Read:
    config = import_module("botocore.config").Config(s3={"addressing_style": "path"}, max_pool_connections=64)
    client = import_module("boto3").client("s3", endpoint_url=endpoint, region_name=REGION, config=config)

    def read(start: int, length: int) -> bytes:
        answer = client.get_object(Bucket=BUCKET, Key=KEY, Range=f"bytes={start}-{start + length - 1}")
        return bytes(answer["Body"].read())

    return read


def obstore(endpoint: str) -> Read:
    module = import_module("obstore")
    options: dict[str, Any] = {"allow_http": True}
    if endpoint.startswith("https"):
        options["allow_invalid_certificates"] = True  # it reads no authority from a file
    store = import_module("obstore.store").S3Store(
        BUCKET,
        endpoint=endpoint,
        region=REGION,
        access_key_id=os.environ["AWS_ACCESS_KEY_ID"],
        secret_access_key=os.environ["AWS_SECRET_ACCESS_KEY"],
        virtual_hosted_style_request=False,
        client_options=options,
    )
    # A view without a copy, as it is meant to be used.
    return lambda start, length: memoryview(module.get_range(store, KEY, start=start, length=length))  # type: ignore[return-value]


CLIENTS: dict[str, Callable[[str], Read]] = {"ours": ours, "boto3": boto3, "obstore": obstore}


def measure(name: str, endpoint: str, length: int, count: int, threads: int) -> float:
    """Seconds of CPU for each GET."""
    starts = [i * 65_537 % (OBJECT_BYTES - length) for i in range(count)]
    read = CLIENTS[name](endpoint)
    with ThreadPoolExecutor(threads) as pool:

        def each(start: int) -> None:
            if len(read(start, length)) != length:
                raise AssertionError(f"{name}: expected {length} bytes")

        list(pool.map(each, starts[: 4 * threads]))
        began = time.process_time()
        list(pool.map(each, starts))
        return (time.process_time() - began) / count


def main() -> None:
    name, endpoint, length, count, threads = sys.argv[1:]
    cpu_seconds = measure(name, endpoint, int(length), int(count), int(threads))
    package = "monocontext" if name == "ours" else name
    print(json.dumps({"cpu_seconds": cpu_seconds, "version": version(package)}))


if __name__ == "__main__":
    main()
