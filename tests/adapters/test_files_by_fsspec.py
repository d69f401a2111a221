"""fsspec's own suite of `get` over documents as files; what its other four suites write is refused."""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monocontext import append, publish

pytest.importorskip("fsspec", reason="no fsspec here: pip install -e '.[fsspec]'")

from fsspec.tests.abstract import AbstractFixtures, AbstractGetTests

from monocontext.adapters.fsspec import MonocontextFileSystem


class _Published(MonocontextFileSystem):  # type: ignore[misc]
    """Lets the suite lay out its files: they are appended to the context as documents before the first is got."""

    cachable = False

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self._written: dict[str, str] = {}

    def get(self, *paths: Any, **options: Any) -> None:
        if self._written:
            append(self._written, self._text.url)
            self.invalidate_cache()
            self._written = {}
        super().get(*paths, **options)

    def pipe(self, path: str, value: bytes) -> None:
        self._written[path] = value.decode()

    def touch(self, path: str) -> None:
        self.pipe(path, b"")

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None: ...

    def makedirs(self, path: str, exist_ok: bool = False) -> None: ...

    def rm(self, path: str, recursive: bool = False, maxdepth: int | None = None) -> None: ...


class TestGet(AbstractGetTests, AbstractFixtures):  # type: ignore[misc]
    @pytest.fixture
    def fs(self) -> MonocontextFileSystem:
        place = f"memory://{uuid.uuid4().hex}"
        publish({"a document": "that is there before"}, place)
        return _Published(place)

    @pytest.fixture
    def fs_join(self) -> Callable[..., str]:
        return lambda *parts: "/".join(parts)

    @pytest.fixture
    def fs_path(self) -> str:
        return "folder"

    @pytest.fixture
    def supports_empty_directories(self) -> bool:
        return False


@pytest.mark.parametrize(
    "write",
    [
        lambda fs, local: fs.pipe("a", b"x"),
        lambda fs, local: fs.put(str(local), "a"),
        lambda fs, local: fs.touch("a"),
        lambda fs, local: fs.copy("one", "a"),
        lambda fs, local: fs.mv("one", "a"),
        lambda fs, local: fs.rm("one"),
        lambda fs, local: fs.rm_file("one"),
        lambda fs, local: fs.mkdir("a"),
        lambda fs, local: fs.makedirs("a/b", exist_ok=True),
        lambda fs, local: fs.rmdir("a"),
        lambda fs, local: fs.open("a", "xb"),
        lambda fs, local: fs.open("one", "r+b"),
    ],
)
def test_what_writes_is_refused(write: Callable[[Any, Path], object], tmp_path: Path) -> None:
    place, local = f"memory://{uuid.uuid4().hex}", tmp_path / "local"
    local.write_text("x")
    publish({"one": "1"}, place)
    fs = MonocontextFileSystem(fo=place, skip_instance_cache=True)
    with pytest.raises(OSError, match="write texts with") as caught:
        write(fs, local)
    assert caught.value.errno == errno.EROFS
    assert fs.ls("", detail=False) == ["one", "text"]
    assert os.listdir(tmp_path) == ["local"]
