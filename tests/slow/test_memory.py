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


def read(url: str, text: BigText, way: str, options: dict[str, str]) -> None:
    task = json.dumps({"url": url, "text": str(text.path), "way": way, "options": options})
    command = [sys.executable, str(Path(__file__).parent / "reading.py"), task]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < ALLOWED_BYTES


@pytest.mark.parametrize("way", WAYS)
def test_directory(way: str, big_context: str, big_text: BigText) -> None:
    read(big_context, big_text, way, {})


def test_seaweedfs(seaweed: SeaweedServer, big_folder: Path) -> None:
    text, options = BigText.write(big_folder / "other.txt", 200 << 20, seed=2), {"endpoint": seaweed.endpoint}
    url = seaweed.url("slow-memory")
    publish([text.path], url, store_options=options)
    read(url, text, "all", options)
