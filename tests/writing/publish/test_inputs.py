"""What can be published: strings, bytes, files, directories, generators, in any encoding; and what is refused."""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Any

import pytest

from monocontext import Monocontext
from monocontext.errors import AccessDenied, InvalidText, InvalidUrl
from monocontext.format.manifest import ROOT_KEY
from monocontext.stores.memory import MemoryStore
from monocontext.testing import CountingStore
from monocontext.writing.folder import Folder
from monocontext.writing.publish import append, publish
from monocontext.writing.upkeep.verify import verify
from tests.writing.upkeep.upkept import memory

TEXT = "plain\r\ncafé, 漢字, 😀 and U+2028:\u2028\n" * 7


def read_back(sources: Any, **options: Any) -> str:
    """What a context of the sources reads as."""
    store = memory()
    publish(sources, store, **options)
    assert verify(store).problems == []
    return str(Monocontext.open(store))


def must_refuse(sources: Any, **options: Any) -> str:
    """The message. Nothing was committed."""
    store = memory()
    with pytest.raises(InvalidText) as raised:
        publish(sources, store, **options)
    assert not any(info.key.startswith(("generations/", ROOT_KEY)) for info in store.list())
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_a_string_is_text_and_no_path(tmp_path: Path) -> None:
    file = tmp_path / "file.txt"
    file.write_text("its content")
    assert read_back(str(file)) == str(file)
    assert read_back(file) == "its content"
    assert read_back([str(file), file]) == str(file) + "its content"


@pytest.mark.parametrize(
    ("sources", "text"),
    [
        (["one", "", "two\n", "é"], "onetwo\né"),
        (iter(["one", "two"]), "onetwo"),
        ([], ""),
        (bytearray("é\n".encode()), "é\n"),
        (memoryview("é\n".encode()), "é\n"),
        ([bytearray(b"caf\xc3"), memoryview(b"\xa9")], "café"),
        ("\ufeffabc", "\ufeffabc"),
    ],
)
def test_kinds_of_sources(sources: Any, text: str) -> None:
    assert read_back(sources) == text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"encoding": "klingon"}, "unknown encoding 'klingon'"),
        ({"encoding": "rot13"}, "unknown encoding 'rot13'"),
        ({"errors": "ignore"}, "errors must be 'strict' or 'replace', not 'ignore'"),
        ({"include": "*.py"}, r"include must be a list of globs, not a str: write include=\['\*\.py'\]"),
        ({"frame_bytes": 0}, "frame_bytes"),
        ({"frame_bytes": 1 << 30}, "frame_bytes"),
        ({"segment_bytes": 0}, "segment_bytes"),
        ({"codec": "lzma"}, "codec"),
        ({"sources": None}, "sources must be a str, bytes, a path, documents, or an iterable of these, not NoneType"),
        ({"sources": [3]}, "source 0 must be str, bytes, a path or documents, not int"),
    ],
)
def test_bad_arguments(options: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        publish(**({"sources": "x", "url": memory()} | options))


@pytest.mark.parametrize(
    ("sources", "options", "words"),
    [
        ([b"caf\xc3", "x", b"\xa9"], {}, "bytes of source 0: not utf-8 at byte 3"),
        (b"hello\nworld\n", {"encoding": "utf-16"}, "not utf-16"),
        (b"hello\nworld\n", {"encoding": "utf-16", "errors": "replace"}, "not utf-16"),
        ("ab😀".encode("utf-16-le")[:-2], {"encoding": "utf-16-le"}, "not utf-16-le at byte 4"),
        (["abc", "\ud83d", "\ude00"], {}, "at character 3"),
        (rb"\ud800", {"encoding": "unicode_escape"}, "surrogate"),
    ],
)
def test_what_is_no_text(sources: Any, options: dict[str, Any], words: str) -> None:
    assert words in must_refuse(sources, **options)


FOLDER = {
    "b.txt": "b without an end",
    "a.py": "a = 1\n",
    "empty.txt": "",
    "sub/c.txt": "c\r\n",
    "sub/deep/d.md": "d\n",
    "sub.txt": "beside the folder\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FOLDER.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    return tmp_path


def header(name: str) -> str:
    return f"=== FILE: {name} ===\n"


def test_a_directory(folder: Path) -> None:
    before = "no newline at the end"
    text = read_back([before, folder]).removeprefix(before + "\n")
    (folder / "sub" / "deep" / os.fsdecode(b"caf\xe9{0}.txt")).write_text("latin name\n")
    assert read_back(folder / "sub" / "deep", header="<{path}>\n") == "<caf\ufffd{0}.txt>\nlatin name\n<d.md>\nd\n"
    parts = FOLDER | {"b.txt": "b without an end\n"}
    for name, body in parts.items():
        assert header(name) + body in text
    assert len(text) == sum(len(header(name) + body) for name, body in parts.items())


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A tree with every kind of link, beside a secret."""
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "key").write_text("SECRET IN A FOLDER\n")
    (tmp_path / "secret").write_text("SECRET\n")
    (tree / "a.txt").write_text("a\n")
    (tree / "sub" / "b.txt").write_text("b\n")
    links = {"inside": "sub/b.txt", "sub/up": "../a.txt", "notes.txt": "../secret", "sub/far": tmp_path / "secret"}
    links |= {"by-two-steps": "sub/far", "folder": tmp_path / "elsewhere", "same": "sub", "sub/loop": tree}
    links |= {"self": "self", "broken": "nowhere", "null": "/dev/null"}
    for name, target in links.items():
        (tree / name).symlink_to(target)
    os.link(tree / "a.txt", tree / "sub" / "hard")
    os.mkfifo(tree / "pipe")
    return tree


def parts_of(text: str) -> dict[str, str]:
    return dict(piece.split(" ===\n", 1) for piece in text.split("=== FILE: ")[1:])


def test_links_that_leave_a_directory_are_left_out_and_named(linked: Path) -> None:
    notes: list[str] = []
    found = parts_of(read_back(linked, note=notes.append))
    assert found == {"a.txt": "a\n", "inside": "b\n", "sub/b.txt": "b\n", "sub/hard": "a\n", "sub/up": "a\n"}
    (note,) = notes
    assert "left out 10 entries: " in note
    assert all(name in note for name in ("sub/far", "by-two-steps", "folder", "same", "sub/loop", "null"))
    assert "notes.txt (leads out, to " in note
    assert "self (a circle of links)" in note
    assert "broken (leads nowhere)" in note
    with pytest.warns(UserWarning, match="left out 10 entries"):
        read_back(linked)
    notes.clear()
    read_back(linked, exclude=("[!a-mo-z]*",), include=("sub/*",), note=notes.append)
    assert "notes.txt" not in notes[0]  # what was not asked for is not named


def test_links_are_followed_when_asked_for(linked: Path) -> None:
    notes: list[str] = []
    found = parts_of(read_back(linked, follow_links=True, note=notes.append))
    assert found["notes.txt"] == found["sub/far"] == found["by-two-steps"] == found["same/far"] == "SECRET\n"
    assert found["folder/key"] == "SECRET IN A FOLDER\n"
    assert len(found) == 13
    (note,) = notes
    for name in ("broken (leads nowhere)", "self (a circle", "sub/loop (leads back", "same/loop (leads back"):
        assert name in note


@pytest.mark.parametrize("swapped", ["a.txt", "sub"])
def test_a_link_swapped_in_behind_the_check(
    linked: Path, tmp_path: Path, swapped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The race that a check of the path alone loses: the swap comes between the check and the opening."""
    folder = Folder(linked)
    name = next(name for name in folder.files() if name.startswith(swapped))
    (tmp_path / "elsewhere" / "b.txt").write_text("SECRET\n")
    real = os.path.realpath

    def swap_behind(path: str, **options: Any) -> str:
        found = real(path, **options)
        (linked / swapped).rename(tmp_path / "aside")
        (linked / swapped).symlink_to(tmp_path / ("secret" if swapped == "a.txt" else "elsewhere"))
        return found

    monkeypatch.setattr(os.path, "realpath", swap_behind)
    with pytest.raises(AccessDenied, match="was replaced since it was listed"):
        folder.open(name)


def test_a_file_that_becomes_a_link_or_a_pipe_is_not_read(linked: Path) -> None:
    folder = Folder(linked)
    (linked / "a.txt").unlink()
    (linked / "a.txt").symlink_to("/etc/passwd")
    with pytest.raises(AccessDenied, match="leads out of its directory"):
        folder.open("a.txt")
    (linked / "a.txt").unlink()
    os.mkfifo(linked / "a.txt")
    with pytest.raises(FileNotFoundError, match="no longer a regular file"):
        folder.open("a.txt")


BINARY = {
    "bytecode": b"\xa7\r\r\n\0\0\0\0" + bytes(range(256)),
    "a NUL in text": b"text, then\0more",
    "compressed": zlib.compress(b"blob 11\x00hello world, and more of the same: hello world"),
    "utf-16": "\ufefftext".encode("utf-16-le"),
}


@pytest.mark.parametrize("errors", ["strict", "replace"])
def test_binary_files_of_a_directory_are_left_out_and_counted(folder: Path, errors: str) -> None:
    before = read_back(folder)
    for number, data in enumerate(BINARY.values()):
        (folder / "sub" / f"{number}.bin").write_bytes(data)
    notes: list[str] = []
    assert read_back(folder, errors=errors, note=notes.append) == before
    assert "left out 4 files that are not text: sub/0.bin (a binary file), sub/1.bin (a binary file), " in notes[0]
    for number in range(4, 28):
        (folder / "sub" / f"{number}.bin").write_bytes(b"\0")
    read_back(folder, note=notes.append)
    assert "left out 28 files that are not text: " in notes[1]
    assert notes[1].endswith(" and 8 more")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "gb18030"])
def test_encodings(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(TEXT.encode(encoding))
    assert read_back(file, encoding=encoding) == TEXT
    data = TEXT.encode(encoding)
    assert read_back([data[i : i + 1] for i in range(len(data))], encoding=encoding) == TEXT


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_its_mark_is_no_text_with_nuls(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "wide.txt").write_bytes("a needle\nb\n".encode(encoding))
    (tmp_path / "nul.txt").write_bytes(b"a needle\0b\nc\0d\n")
    for source in (tmp_path / "wide.txt", "a needle\nb\n".encode(encoding)):
        assert f"looks like UTF-16, not utf-8; give encoding='{encoding}'" in must_refuse(source)
    assert read_back(tmp_path / "nul.txt") == "a needle\0b\nc\0d\n"
    assert read_back(tmp_path / "wide.txt", encoding=encoding) == "a needle\nb\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_a_byte_order_mark_is_dropped_with_a_note(encoding: str, tmp_path: Path) -> None:
    notes: list[str] = []
    file = tmp_path / "file.txt"
    file.write_bytes(("\ufeff" + TEXT + "\ufeff").encode(encoding))
    assert read_back(file, encoding=encoding, note=notes.append) == TEXT + "\ufeff"  # only the first one is a mark
    assert notes == [f"{file}: dropped a byte order mark"]
    mark = "\ufeff".encode(encoding)
    assert read_back([mark[:1], mark[1:], "é".encode(encoding)], encoding=encoding) == "é"
    assert read_back(mark, encoding=encoding) == ""


INVALID = {
    "a byte that never occurs": (b"abc\n\xff def", 4, "ff"),
    "a continuation without a beginning": (b"ab\x80", 2, "80"),
    "a character that is cut off": (b"abcd\xe6\xbc", 4, "e6"),
    "a surrogate": (b"x" + "\ud800".encode("utf-8", "surrogatepass"), 1, "ed"),
}


@pytest.mark.parametrize("before", [0, 1, 4094, (1 << 20) - 1, (1 << 20) - 3, (3 << 20) + 1])
@pytest.mark.parametrize("what", INVALID)
def test_what_is_not_utf_8_is_refused_with_its_place(what: str, before: int, tmp_path: Path) -> None:
    data, at, byte = INVALID[what]
    file = tmp_path / "bad.txt"
    file.write_bytes(b"x" * before + data)
    assert f"{file}: not utf-8 at byte {before + at} (0x{byte})" in must_refuse(file)
    assert f"bytes of source 0: not utf-8 at byte {before + at} (0x{byte})" in must_refuse(b"x" * before + data)


@pytest.mark.parametrize("what", INVALID)
def test_errors_replace(what: str) -> None:
    data = INVALID[what][0]
    assert read_back(data, errors="replace") == data.decode("utf-8", "replace")
    assert read_back([data[i : i + 1] for i in range(len(data))], errors="replace") == data.decode("utf-8", "replace")


@pytest.mark.parametrize("before", ["", "é", "x" * (1 << 20), "x" * ((1 << 20) - 1)], ids=len)
@pytest.mark.parametrize("surrogate", ["\ud800", "\ud83d\ude00"])
def test_lone_surrogates_are_refused(before: str, surrogate: str) -> None:
    message = must_refuse(before + surrogate + "after")
    assert f"a lone surrogate U+{ord(surrogate[0]):04X} at character {len(before)};" in message
    assert message.endswith("errors='replace' stores U+FFFD in its place")
    assert read_back(before + surrogate, errors="replace") == before + "\ufffd" * len(surrogate)


def test_an_append_keeps_the_layout_of_the_context(store: MemoryStore) -> None:
    publish("a" * 100, store, frame_bytes=10, codec="raw")
    root = append("b" * 100, store)
    assert (root.frame_bytes, root.codec, root.frames) == (10, "raw", 20)
    root = append("c" * 100, store, frame_bytes=50, codec="zstd")
    assert (root.frame_bytes, root.codec, root.frames) == (50, "zstd", 22)
    assert str(Monocontext.open(store)) == "a" * 100 + "b" * 100 + "c" * 100


def test_progress() -> None:
    seen: list[int] = []
    publish("".join(f"{i:09d}\n" for i in range(100)), memory(), frame_bytes=100, progress=seen.append)
    assert seen == [*range(100, 1100, 100)]  # after each frame


def test_what_publish_costs() -> None:
    store = CountingStore(memory())
    publish("".join(f"{i:09d}\n" for i in range(100)), store, frame_bytes=100, segment_bytes=300, codec="raw")
    puts = [request for request in store.log if request.verb == "put"]
    assert len(puts) == 4 + 1 + 2  # segments, a page, the commit and its copy
    assert store.requests - len(puts) <= 6


def test_a_place_where_the_text_belongs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidUrl, match=r"only a URL \('s3://bucket/key'\): the order is \(text, url\)"):
        publish("s3://bucket/key", tmp_path / "text")
    with pytest.raises(InvalidUrl, match=r"must be one line, .*the order is \(text, url\)"):
        publish(str(tmp_path), "a text\nof two lines\n")
    assert not list(tmp_path.iterdir())
