"""Contexts out of text objects that already lie somewhere: uncopied, checked, and read only where it is allowed."""

from __future__ import annotations

import gzip
import json
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard

from monocontext import Monocontext
from monocontext.errors import AlreadyExists, ForeignObject, InvalidText, NotAContext, NotFound
from monocontext.format.manifest import ROOT_KEY
from monocontext.stores import open_store
from monocontext.stores.memory import forget
from monocontext.writing.index_in_place import index
from monocontext.writing.publish import append, publish
from monocontext.writing.upkeep.verify import verify

TEXTS = {
    "a.txt": "plain words\r\nand more\n" * 9,
    "b/é.txt": "café, 漢字かな, 😀 👍🏽 \u2028 " * 12,
    "b/empty.txt": "",
    "c d.txt": "no newline at the end",
    "e.txt": "\n\n\x0b\x85\r",
}
WHOLE = "".join(TEXTS[name] for name in sorted(TEXTS, key=str.encode))


class Place:
    """Somewhere that holds text objects, and room for contexts in the same bucket or folder and in another."""

    def __init__(self, url: Callable[[str], str]):
        self.url = url
        self.texts = open_store(url("texts"))
        for name, text in TEXTS.items():
            self.texts.put(name, text.encode())


@pytest.fixture(params=["memory", "directory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    name = uuid.uuid4().hex
    if request.param == "directory":
        yield Place(lambda path: str(tmp_path / path))
    else:
        yield Place(lambda path: f"memory://{name}/{path}")
        forget(name)


@pytest.fixture
def small_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monocontext.writing.index_in_place.READ_BYTES", 7)


def read(url: str, **options: object) -> str:
    with Monocontext.open(url, **options) as context:  # type: ignore[call-overload]
        return str(context)


@pytest.mark.usefixtures("small_reads")
@pytest.mark.parametrize("frame_bytes", [5, 64, 1 << 18])
def test_a_place_of_objects(place: Place, frame_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before, closed = {info.key: info.etag for info in place.texts.list()}, set[str]()
    monkeypatch.setattr("monocontext.stores.protocol.StoreBase.close", lambda store: closed.add(store.url))
    root = index(place.url("texts"), place.url("context"), frame_bytes=frame_bytes)
    assert read(place.url("context")) == WHOLE
    assert (root.characters, root.text_bytes, place.texts.url in closed) == (len(WHOLE), len(WHOLE.encode()), True)
    assert verify(place.url("context")).problems == []
    assert {info.key: info.etag for info in place.texts.list()} == before
    assert not list(open_store(place.url("context")).list("segments/"))  # nothing was copied
    with Monocontext.open(place.url("context"), cache_bytes=0) as opened:
        for a, b in [(0, 5), (20, 300), (len(WHOLE) - 30, len(WHOLE)), (190, 260)]:
            assert opened[a:b] == WHOLE[a:b]
        assert opened.find("😀", 300) == WHOLE.find("😀", 300)


@pytest.mark.parametrize("place", ["memory", "directory", "moto"], indirect=True)
def test_objects_by_name(place: Place) -> None:
    names = ["texts/e.txt", "texts/b/é.txt", "texts/e.txt"]
    index([place.url(name) for name in names], place.url("context"))
    assert read(place.url("context")) == TEXTS["e.txt"] + TEXTS["b/é.txt"] + TEXTS["e.txt"]
    assert verify(place.url("context")).problems == []


def test_a_source_with_and_without_a_slash(place: Place) -> None:
    for source, text in {"texts/": WHOLE, "texts/b": TEXTS["b/é.txt"]}.items():
        index(place.url(source), place.url("context"), replace=True)
        assert read(place.url("context")) == text


def test_a_context_below_its_source_does_not_index_itself(place: Place) -> None:
    index(place.url("texts"), place.url("texts/context"))
    assert read(place.url("texts/context")) == WHOLE
    index(place.url("texts"), place.url("texts/context"), replace=True)
    assert read(place.url("texts/context")) == WHOLE


@pytest.mark.parametrize("name", ["50%41.txt", "a b#c?d.txt", "100%.txt", "%2e%2e", "ü+ö.txt", "漢.txt"])
def test_names_that_look_like_escapes(name: str, tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / name).write_text(f"this is {name}\n")
    (tmp_path / "texts" / "50A.txt").write_text("this is another\n")
    index(tmp_path / "texts" / name, tmp_path / "one")
    assert read(str(tmp_path / "one")) == f"this is {name}\n"
    index(tmp_path / "texts", tmp_path / "all")
    assert f"this is {name}\n" in read(str(tmp_path / "all"))


COMPRESSED = {
    "gzip": gzip.compress(b"text" * 50),
    "zstd": zstandard.compress(b"text" * 50),
    "bzip2": b"BZh91AY&SY" + b"\0" * 20,
    "xz": b"\xfd7zXZ\x00\x00\x04",
    "zip": b"PK\x03\x04" + b"\0" * 30,
    "utf-16": "a needle\n".encode("utf-16-le"),
}


@pytest.mark.parametrize("kind", COMPRESSED)
def test_compressed_objects_name_sync(place: Place, kind: str) -> None:
    place.texts.put("b/zipped", COMPRESSED[kind])
    words = r"(compressed \(.*`monocontext sync|.*archive.*convert it|looks like UTF-16, not utf-8; `m)"
    with pytest.raises(InvalidText, match=rf"texts/b/zipped: {words}"):
        index(place.url("texts"), place.url("context"))
    with pytest.raises(NotFound):
        Monocontext.open(place.url("context"))


@pytest.mark.usefixtures("small_reads")
def test_a_byte_order_mark_is_skipped_with_a_note(place: Place) -> None:
    notes: list[str] = []
    place.texts.put("0.txt", b"\xef\xbb\xbf")
    place.texts.put("1.txt", b"\xef\xbb\xbfcaf\xc3\xa9\n")
    place.texts.put("2.txt", b"not at the \xef\xbb\xbfbeginning\n")
    index(place.url("texts"), place.url("context"), note=notes.append, frame_bytes=5)
    assert read(place.url("context")) == "café\nnot at the \ufeffbeginning\n" + WHOLE
    assert [note.rpartition("/")[2] for note in notes] == [f"{i}.txt: skipped a byte order mark" for i in (0, 1)]
    assert verify(place.url("context")).problems == []


def test_a_context_is_no_source(place: Place) -> None:
    publish("text", place.url("source"))
    with pytest.raises(NotAContext, match="contains manifest"):
        index(place.url("source"), place.url("context"))


def test_where_a_context_is_already(place: Place) -> None:
    publish("text", place.url("context"))
    with pytest.raises(AlreadyExists, match=r"append.*replace=True"):
        index(place.url("texts"), place.url("context"))
    index(place.url("texts"), place.url("context"), replace=True)
    assert read(place.url("context")) == WHOLE


def test_another_place_in_memory_needs_to_be_allowed() -> None:
    name = uuid.uuid4().hex
    open_store(f"memory://{name}").put("secret.txt", b"secret\n")
    index(f"memory://{name}/secret.txt", f"memory://{name}-ctx")
    for allow in ([], ["memory://other"], [f"memory://{name}-ctx"], ["s3://bucket"], ["/"], [""]):
        with pytest.raises(ForeignObject, match=rf"refers to memory://{name}/secret\.txt, which is outside.*allow="):
            read(f"memory://{name}-ctx", allow=allow)
    for allow in ([f"memory://{name}"], f"memory://{name}/secret.txt"):  # type: ignore[assignment]
        assert read(f"memory://{name}-ctx", allow=allow) == "secret\n"
    assert not verify(f"memory://{name}-ctx").ok
    assert verify(f"memory://{name}-ctx", allow=[f"memory://{name}"]).ok


def test_links_out_of_a_source(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("a\n")
    (tmp_path / "secret.txt").write_text("secret\n")
    index(tmp_path / "texts", tmp_path / "context")
    (tmp_path / "texts" / "a.txt").unlink()
    os.symlink(tmp_path / "secret.txt", tmp_path / "texts" / "a.txt")
    with pytest.raises((ForeignObject, NotFound)):
        read(str(tmp_path / "context"))


def test_a_deeprecurse_prefix(place: Place) -> None:
    rows = [
        {"segment": "e.txt", "start_line": 50, "line_count": 1},
        {"segment": "a.txt", "start_line": 0, "line_count": 2},  # of 18: in characters the whole object counts
        {"segment": "b/é.txt", "start_line": 18, "line_count": 1},
    ]
    place.texts.put(ROOT_KEY, json.dumps(rows).encode())
    index(place.url("texts"), place.url("context"))
    assert read(place.url("context")) == TEXTS["a.txt"] + TEXTS["b/é.txt"] + TEXTS["e.txt"]


def test_a_deeprecurse_manifest_is_never_written_over(place: Place) -> None:
    manifest = json.dumps([{"segment": "a.txt", "start_line": 0, "line_count": 2}]).encode()
    place.texts.put(ROOT_KEY, manifest)
    for write in (
        lambda url: index(url, url),
        lambda url: index(url, url, replace=True),
        lambda url: publish("x", url, replace=True),
        lambda url: append("x", url),
    ):
        with pytest.raises(NotAContext, match='unit="lines"'):
            write(place.url("texts"))
    assert {info.key for info in place.texts.list()} == {*TEXTS, ROOT_KEY}
    assert place.texts.get(ROOT_KEY).data == manifest


def test_what_a_directory_holds_besides_files_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.log").write_text("A\n")
    (tmp_path / "secret").write_text("SECRET\n")
    (folder / "notes").symlink_to("../secret")
    (folder / "again").symlink_to("deep")
    os.mkfifo(folder / "pipe")
    told: list[str] = []
    index(folder, tmp_path / "ctx", note=told.append)
    assert read(str(tmp_path / "ctx"), allow=[f"file://{folder}"]) == "A\n"
    (said,) = told
    assert "left out again (leads to the folder " in said
    assert "follow_links" not in said  # `index` has no such option
    assert "notes (leads out, to " in said
    assert "pipe (a named pipe)" in said
