"""A reader holds its cache and little more, whatever the text's size and however it is read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from monocontext import publish
from monocontext.testing import SeaweedServer
from slow.big_text import BigText
from slow.reading import CACHE_BYTES, WAYS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ALLOWED_BYTES = CACHE_BYTES + (120 << 20)
"""The cache, the interpreter with its modules, the requests in flight and what the caller holds."""


def read(url: str, text: BigText, way: str, options: dict[str, str], record: pytest.FixtureRequest) -> None:
    task = {"url": url, "text": str(text.path), "way": way, "options": options}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "reading.py"), json.dumps(task)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    took = json.loads(done.stdout)
    print(
        f"\n{way} of {text.bytes:,} bytes, cache {CACHE_BYTES >> 20} MiB: at most {took['peak_bytes'] >> 20} MiB "
        f"resident ({took['before_bytes'] >> 20} before), {took['seconds']:.1f} s, {took['gets']:,} GETs"
    )
    record.node.user_properties += took.items()
    assert took["peak_bytes"] < ALLOWED_BYTES


@pytest.mark.parametrize("way", WAYS)
def test_directory(way: str, big_context: str, big_text: BigText, request: pytest.FixtureRequest) -> None:
    read(big_context, big_text, way, {}, request)


def test_seaweedfs(seaweed: SeaweedServer, big_folder: Path, request: pytest.FixtureRequest) -> None:
    """Behind the S3 protocol."""
    text, options = BigText.write(big_folder / "other.txt", 200 << 20, seed=2), {"endpoint": seaweed.endpoint}
    url = seaweed.url("slow-memory")
    publish([text.path], url, store_options=options)
    read(url, text, "all", options, request)
