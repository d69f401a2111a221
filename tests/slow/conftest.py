"""What the slow tests share: a text of a quarter of a GiB, and the commands run as processes of their own."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from monocontext import publish
from monocontext.testing import SeaweedServer
from slow.big_text import BigText
from slow.commands import Place

BIG_BYTES = 1 << 28


@pytest.fixture(scope="session")
def big_folder() -> Iterator[Path]:
    """A folder for what is too large to be kept, as pytest would, for three sessions."""
    folder = Path(tempfile.mkdtemp(prefix="monocontext-slow-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def big_text(big_folder: Path) -> BigText:
    """A quarter of a GiB of text in a file."""
    return BigText.write(big_folder / "big.txt", BIG_BYTES)


@pytest.fixture(scope="session")
def big_context(big_folder: Path, big_text: BigText) -> str:
    """The same as a context in a directory."""
    manifest = publish([big_text.path], big_folder / "context")
    assert manifest.characters == big_text.characters
    return str(big_folder / "context")


@pytest.fixture(params=["directory", "seaweedfs"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """An empty place of each kind that holds large texts, emptied afterwards."""
    if request.param == "directory":
        with tempfile.TemporaryDirectory(prefix="monocontext-slow-") as folder:
            yield Place(f"{folder}/context", {})
        return
    server: SeaweedServer = request.getfixturevalue("seaweed")
    name = hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:16]
    place = Place(server.url(f"slow-{name}"), {"endpoint": server.endpoint})
    yield place
    with place.store() as store:
        for info in list(store.list()):
            store.delete(info.key)
