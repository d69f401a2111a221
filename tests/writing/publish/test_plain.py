"""Plain files, folders and objects where a text is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from monocontext import Monocontext, publish
from monocontext.errors import ContextChanged, InvalidText, MonocontextError, NotFound
from monocontext.testing import S3StandIn
from monocontext.writing import plain


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {"a.txt": b"one\n", "sub/b.py": "zwei é\n".encode(), ".git/config": b"hidden\n", "x.bin": b"\0\1"}
    for name, data in (files | {"l.txt": b"\xe9"}).items():
        (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / name).write_bytes(data)
    return tmp_path / "src"


TEXT = "=== FILE: a.txt ===\none\n=== FILE: sub/b.py ===\nzwei é\n"


def test_a_folder_is_its_text_files(folder: Path) -> None:
    with pytest.warns(UserWarning, match=r"left out 2 files that are not text: l.txt"):
        text = Monocontext.open(folder)
    with text:
        assert (str(text), text.url) == (TEXT, folder.as_uri())
        assert list(text.documents) == ["a.txt", "sub/b.py"]
        (hit,) = text.grep("zwei")
        assert (hit.document, hit.document_line) == ("sub/b.py", 1)
        (folder / "a.txt").write_text("changed\n")
        assert str(text) == TEXT


def test_a_large_file_is_indexed_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "SMALL_BYTES", 3)
    (tmp_path / "app.log").write_text("word\n" * 1000)
    with Monocontext.open(tmp_path / "app.log") as text:
        assert (len(text), text.lines[999]) == (5000, "word\n")
    (tmp_path / "app.log").write_text("other\n" * 1000)
    with Monocontext.open(tmp_path / "app.log", cache_bytes=0) as text:
        (tmp_path / "app.log").write_text("third\n" * 2000)
        with pytest.raises(ContextChanged):
            str(text)
    assert Monocontext.open(tmp_path / "app.log").lines[999] == "third\n"


def test_what_is_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for data, message in ((b"caf\xe9", "a: not utf-8 at byte 3; `.* stores"), (b"%PDF-", "a: a PDF; convert [^`]*$")):
        (tmp_path / "a").write_bytes(data)
        with pytest.raises(InvalidText, match=message):
            Monocontext.open(tmp_path / "a")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFound, match="no file to read"):
        Monocontext.open(tmp_path / "empty")
    with pytest.raises(NotFound, match="no text is stored there"):
        Monocontext.open(tmp_path / "none")
    monkeypatch.setattr(plain, "MOST_PLAIN_BYTES", 3)
    with pytest.raises(MonocontextError, match="monocontext upload"):
        Monocontext.open(tmp_path)


def test_a_folder_of_texts_is_none_itself(tmp_path: Path) -> None:
    publish("text", tmp_path / "place" / "ctx")
    with pytest.raises(NotFound, match=r"open one, such as .*ctx"):
        Monocontext.open(tmp_path / "place")
    (tmp_path / "place" / "ctx" / "manifest.json").unlink()
    assert str(Monocontext.open(tmp_path / "place" / "ctx")) == "text"  # its generations are still there


def test_an_object_is_read_in_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    with S3StandIn({"logs/app.log": b"first\nlast\n"}) as server:
        with Monocontext.open(server.url("logs/app.log"), endpoint=server.endpoint) as text:
            assert (str(text), text.find("last")) == ("first\nlast\n", 6)
        monkeypatch.setattr(plain, "MOST_PLAIN_BYTES", 3)
        with pytest.raises(MonocontextError, match="monocontext index"):
            Monocontext.open(server.url("logs/app.log"), endpoint=server.endpoint)
        with pytest.raises(NotFound):
            Monocontext.open(server.url("logs"), endpoint=server.endpoint)


@pytest.mark.parametrize("name", ["manifest.json", f"generations/{1:020d}.json"])
def test_the_root_of_a_text_is_no_text(name: str, tmp_path: Path) -> None:
    publish("text", tmp_path / "ctx")
    with pytest.raises(NotFound, match=r"is part of a stored text: open .*/ctx$"):
        Monocontext.open(tmp_path / "ctx" / name)
    with (
        S3StandIn({f"ctx/{name}": (tmp_path / "ctx" / name).read_bytes()}) as server,
        pytest.raises(NotFound, match=r"is part of a stored text: open s3://.*/ctx$"),
    ):
        Monocontext.open(server.url(f"ctx/{name}"), endpoint=server.endpoint)
    (tmp_path / "manifest.json").write_text('{"format": 1}')
    assert str(Monocontext.open(tmp_path / "manifest.json")) == '{"format": 1}'


def test_an_upload_that_begins_is_no_folder_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the folder is read, and before."""

    def publish_late(path: Path, *arguments: Any, **options: Any) -> object:
        (path / "segments").mkdir()
        (path / "segments" / "0.seg").write_text("half of an upload\n")
        return publish(path, *arguments, **options)

    (tmp_path / "note").write_text("what was there before\n")
    monkeypatch.setattr(plain, "publish", publish_late)
    for _ in range(2):
        with pytest.raises(NotFound):
            Monocontext.open(tmp_path)
