"""What can be published: strings, bytes, files, directories, generators, in any encoding; and what is refused."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monocontext import Monocontext
from monocontext.errors import InvalidText, NotFound
from monocontext.generations import read_root
from monocontext.manifest import ROOT_KEY
from monocontext.segments import Progress
from monocontext.stores.memory import MemoryStore
from monocontext.testing import CountingStore
from monocontext.verify import verify
from monocontext.writer import append, publish

TEXT = "plain\r\ncafé, 漢字, 😀 and U+2028:\u2028\n" * 7


def memory() -> MemoryStore:
    return MemoryStore(uuid.uuid4().hex)


def published(sources: Any, **options: Any) -> str:
    """What a context of the sources reads as."""
    store = memory()
    publish(sources, store, **options)
    assert verify(store).problems == []
    return str(Monocontext.open(store))


def refused(sources: Any, **options: Any) -> str:
    """The message, after a look at whether anything was committed."""
    store = memory()
    with pytest.raises(InvalidText) as raised:
        publish(sources, store, **options)
    assert not any(info.key.startswith(("generations/", ROOT_KEY)) for info in store.list())
    assert "\n" not in str(raised.value)
    return str(raised.value)


# -- kinds of sources ----------------------------------------------------


def test_a_string_is_text_and_no_path(tmp_path: Path) -> None:
    file = tmp_path / "file.txt"
    file.write_text("its content")
    assert published(str(file)) == str(file)
    assert published(file) == "its content"
    assert published([str(file), file]) == str(file) + "its content"


def test_pieces_join_bare() -> None:
    assert published(["one", "", "two\n", "é"]) == "onetwo\né"
    assert published(iter(["one", "two"])) == "onetwo"
    assert published(piece for piece in ["a", "b"]) == "ab"
    assert published([]) == published("") == published(b"") == published(["", b""]) == ""


def test_an_empty_text_is_a_context() -> None:
    store = memory()
    root = publish("", store)
    assert (root.pages, root.characters, root.lines) == ((), 0, 0)
    context = Monocontext.open(store)
    assert (len(context), str(context), context[:], context[::-1], list(context), "" in context) == (
        0,
        "",
        "",
        "",
        [],
        True,
    )
    assert (list(context.lines), context.find("x"), context.split("\n"), context.count("\n")) == ([], -1, [""], 0)
    assert context == ""


@given(st.lists(st.integers(0, len(TEXT.encode())), max_size=8))
def test_bytes_may_be_cut_inside_characters(cuts: list[int]) -> None:
    data = TEXT.encode()
    bounds = [0, *sorted(cuts), len(data)]
    pieces = [data[start:stop] for start, stop in itertools.pairwise(bounds)]
    assert published(pieces) == TEXT


def test_kinds_of_bytes() -> None:
    data = TEXT.encode()
    assert published([bytearray(data[:9]), memoryview(data)[9:]]) == TEXT
    assert published(data) == TEXT


def test_bytes_around_other_sources_are_streams_of_their_own() -> None:
    message = refused([b"caf\xc3", "x", b"\xa9"])
    assert "bytes of source 0: not utf-8 at byte 3" in message


def test_what_is_no_source() -> None:
    for wrong in ([3], [None], ["a", 3.5], [["a"]]):
        with pytest.raises(TypeError, match=r"source \d is \w+: expected str, bytes or a path"):
            publish(wrong, memory())  # type: ignore[arg-type]


def test_a_generator_that_fails_commits_nothing() -> None:
    def failing() -> Iterator[str]:
        yield "x" * 1000
        raise RuntimeError("its own fault")

    store = memory()
    with pytest.raises(RuntimeError, match="its own fault"):
        publish(failing(), store, frame_bytes=10, segment_bytes=20)
    assert not any(info.key.startswith("generations/") for info in store.list())


def test_a_generator_is_read_once_and_lazily() -> None:
    read = []

    def pieces() -> Iterator[str]:
        for number in range(3):
            read.append(number)
            yield f"{number}\n"

    assert published(pieces()) == "0\n1\n2\n"
    assert read == [0, 1, 2]


# -- directories ----------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {
        "b.txt": "b without an end",
        "a.py": "a = 1\n",
        "empty.txt": "",
        "sub/c.txt": "c\r\n",
        "sub/deep/d.md": "d\n",
        "sub.txt": "beside the folder\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    return tmp_path


def header(name: str) -> str:
    return f"=== FILE: {name} ===\n"


def test_a_directory(folder: Path) -> None:
    text = published(folder)
    parts = {
        "a.py": "a = 1\n",
        "b.txt": "b without an end\n",
        "empty.txt": "",
        "sub.txt": "beside the folder\n",
        "sub/c.txt": "c\r\n",
        "sub/deep/d.md": "d\n",
    }
    for name, body in parts.items():
        assert header(name) + body in text
    assert len(text) == sum(len(header(name) + body) for name, body in parts.items())
    assert all(line.startswith("===") for line in text.splitlines() if "FILE" in line)


def test_the_order_does_not_depend_on_the_file_system(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    random.Random(3).shuffle(files)
    for file in files:
        copy = other / file.relative_to(folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    assert published(folder) == published(other)


def test_headers_can_be_changed_and_left_out(folder: Path) -> None:
    assert published(folder / "sub", header="<{path}>\n") == "<c.txt>\nc\r\n<deep/d.md>\nd\n"
    assert published(folder / "sub", header="") == "c\r\nd\n"
    assert published(folder / "sub", header="{'file': {path}}\n").startswith("{'file': c.txt}\nc\r\n")


def test_include_and_exclude(folder: Path) -> None:
    def names(**chosen: tuple[str, ...]) -> list[str]:
        text = published(folder, **chosen)
        return sorted(line.split()[2] for line in text.splitlines() if line.startswith("==="))

    assert names(include=("*.md",)) == ["sub/deep/d.md"]
    assert names(include=("sub/*",)) == ["sub/c.txt", "sub/deep/d.md"]
    assert names(include=("*.txt", "*.py"), exclude=("sub/*", "b.*")) == ["a.py", "empty.txt", "sub.txt"]
    assert names(exclude=("*",)) == []


def test_a_file_name_that_is_no_text(folder: Path) -> None:
    (folder / "sub" / os.fsdecode(b"caf\xe9.txt")).write_text("latin name\n")
    assert header("caf\ufffd.txt") + "latin name\n" in published(folder / "sub")


def test_file_names_with_braces(folder: Path) -> None:
    (folder / "sub" / "{x}{0}.txt").write_text("braces\n")
    assert header("{x}{0}.txt") + "braces\n" in published(folder / "sub")


def test_links_to_folders_are_not_followed(folder: Path) -> None:
    (folder / "sub" / "loop").symlink_to(folder)
    (folder / "sub" / "pipe").unlink(missing_ok=True)
    os.mkfifo(folder / "sub" / "pipe")
    (folder / "sub" / "broken").symlink_to(folder / "nowhere")
    assert published(folder / "sub", header="") == "c\r\nd\n"


def test_a_missing_file(tmp_path: Path) -> None:
    store = memory()
    with pytest.raises(NotFound, match=r"nowhere\.txt"):
        publish(tmp_path / "nowhere.txt", store)
    assert list(store.list()) == []


def test_a_header_begins_a_line_whatever_came_before(folder: Path) -> None:
    text = published(["no newline at the end", folder / "sub"])
    assert text == "no newline at the end\n" + header("c.txt") + "c\r\n" + header("deep/d.md") + "d\n"


# -- encodings ----------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "gb18030"])
def test_encodings(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(TEXT.encode(encoding))
    assert published(file, encoding=encoding) == TEXT
    data = TEXT.encode(encoding)
    assert published([data[i : i + 1] for i in range(len(data))], encoding=encoding) == TEXT


def test_latin_1(tmp_path: Path) -> None:
    every = bytes(range(256))
    (tmp_path / "file").write_bytes(every)
    assert published(tmp_path / "file", encoding="latin-1") == every.decode("latin-1")


def test_an_unknown_encoding() -> None:
    with pytest.raises(ValueError, match="unknown encoding 'klingon'"):
        publish("x", memory(), encoding="klingon")
    with pytest.raises(ValueError, match="errors is 'strict' or 'replace', not 'ignore'"):
        publish("x", memory(), errors="ignore")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_a_byte_order_mark_is_dropped_with_a_note(encoding: str, tmp_path: Path) -> None:
    notes: list[str] = []
    file = tmp_path / "file.txt"
    file.write_bytes(("\ufeff" + TEXT + "\ufeff").encode(encoding))
    assert published(file, encoding=encoding, note=notes.append) == TEXT + "\ufeff"  # only the first one is a mark
    assert notes == [f"{file}: dropped a byte order mark"]
    mark = "\ufeff".encode(encoding)
    assert published([mark[:1], mark[1:], "é".encode(encoding)], encoding=encoding) == "é"
    assert published(mark, encoding=encoding) == ""


def test_a_string_keeps_its_mark() -> None:
    assert published("\ufeffabc") == "\ufeffabc"


INVALID = {
    "a byte that never occurs": (b"abc\n\xff def", 4, "ff"),
    "a continuation without a beginning": (b"ab\x80", 2, "80"),
    "a character that is cut off": (b"abcd\xe6\xbc", 4, "e6"),
    "an overlong form": (b"\xc0\xafx", 0, "c0"),
    "a surrogate": (b"x" + "\ud800".encode("utf-8", "surrogatepass"), 1, "ed"),
    "beyond Unicode": (b"12\xf5\x80\x80\x80", 2, "f5"),
}


@pytest.mark.parametrize("before", [0, 1, 4094, (1 << 20) - 1, (1 << 20) - 3, (3 << 20) + 1])
@pytest.mark.parametrize("what", INVALID)
def test_what_is_not_utf_8_is_refused_with_its_place(what: str, before: int, tmp_path: Path) -> None:
    data, at, byte = INVALID[what]
    file = tmp_path / "bad.txt"
    file.write_bytes(b"x" * before + data)
    assert f"{file}: not utf-8 at byte {before + at} (0x{byte})" in refused(file)
    assert f"bytes of source 0: not utf-8 at byte {before + at} (0x{byte})" in refused(b"x" * before + data)


@settings(deadline=None)
@given(st.lists(st.integers(0, 12), max_size=5), st.sampled_from(sorted(INVALID)))
def test_the_place_does_not_depend_on_the_pieces(cuts: list[int], what: str) -> None:
    data, at, byte = INVALID[what]
    data = "é漢".encode() + data
    bounds = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[start:stop] for start, stop in itertools.pairwise(bounds)]
    assert f"at byte {5 + at} (0x{byte})" in refused(pieces)


def test_what_is_invalid_in_a_directory_is_named(folder: Path) -> None:
    (folder / "sub" / "deep" / "bad.bin").write_bytes(b"x\xff")
    assert f"{folder / 'sub' / 'deep' / 'bad.bin'}: not utf-8 at byte 1 (0xff)" in refused(folder)
    assert "bad.bin" not in published(folder, exclude=("*.bin",))


@pytest.mark.parametrize("what", INVALID)
def test_errors_replace(what: str) -> None:
    data = INVALID[what][0]
    assert published(data, errors="replace") == data.decode("utf-8", "replace")
    assert published([data[i : i + 1] for i in range(len(data))], errors="replace") == data.decode("utf-8", "replace")


def test_utf_16_that_is_cut_off() -> None:
    data = "ab😀".encode("utf-16-le")
    assert "not utf-16-le at byte 4" in refused(data[:-1], encoding="utf-16-le")
    assert "not utf-16-le at byte 4" in refused(data[:-2], encoding="utf-16-le")


@pytest.mark.parametrize("before", ["", "é", "x" * (1 << 20), "x" * ((1 << 20) - 1)], ids=len)
@pytest.mark.parametrize("surrogate", ["\ud800", "\ud83d\ude00"])
def test_lone_surrogates_are_refused(before: str, surrogate: str) -> None:
    message = refused(before + surrogate + "after")
    assert f"a lone surrogate U+{ord(surrogate[0]):04X} at character {len(before)};" in message
    assert published(before + surrogate, errors="replace") == before + "\ufffd" * len(surrogate)


def test_surrogates_in_pieces() -> None:
    assert "at character 3" in refused(["abc", "\ud83d", "\ude00"])


def test_an_encoding_that_gives_surrogates() -> None:
    assert "surrogate" in refused(rb"\ud800", encoding="unicode_escape")


# -- how it is stored ----------------------------------------------------


@pytest.mark.parametrize("codec", ["raw", "zstd"])
def test_the_same_text_gives_the_same_objects(codec: str, tmp_path: Path) -> None:
    def objects(sources: Any) -> dict[str, bytes]:
        store = memory()
        publish(sources, store, frame_bytes=50, segment_bytes=100, codec=codec)
        return {
            info.key: store.get(info.key).data for info in store.list() if info.key.startswith(("segments", "index"))
        }

    (tmp_path / "file").write_bytes(TEXT.encode())
    first = objects(TEXT)
    assert objects(TEXT) == first
    assert objects(list(TEXT)) == first
    assert objects([TEXT.encode()[:11], TEXT.encode()[11:]]) == first
    assert objects(tmp_path / "file") == first


def test_raw_segments_are_plain_text() -> None:
    store = memory()
    root = publish(TEXT, store, frame_bytes=50, segment_bytes=100, codec="raw")
    with Monocontext.open(store) as context:
        reader = context._reader
        assert reader is not None
        data = b"".join(store.get(run.object).data for run in reader._page(0).runs)
    assert data == TEXT.encode()
    assert (root.stored_bytes, root.text_bytes, root.characters) == (len(data), len(data), len(TEXT))


def test_segments_hold_their_size() -> None:
    store = memory()
    publish("x" * 10_000, store, frame_bytes=100, segment_bytes=450, codec="raw")
    # Frames are alike, so segments of four frames are one object.
    assert sorted(info.size_bytes for info in store.list("segments/")) == [400]
    store = memory()
    publish("".join(f"{i:09d}\n" for i in range(1000)), store, frame_bytes=100, segment_bytes=450, codec="raw")
    sizes = [info.size_bytes for info in store.list("segments/")]
    assert (len(sizes), max(sizes), sum(sizes)) == (25, 400, 10_000)


def test_a_frame_larger_than_a_segment_goes_alone() -> None:
    assert published("é" * 500, frame_bytes=100, segment_bytes=1) == "é" * 500


@pytest.mark.parametrize(
    "wrong",
    [{"frame_bytes": 0}, {"frame_bytes": 1 << 30}, {"segment_bytes": 0}, {"codec": "lzma"}, {"frame_bytes": -5}],
)
def test_layouts_that_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        publish("x", memory(), **wrong)


def test_an_append_keeps_the_layout_of_the_context() -> None:
    store = memory()
    publish("a" * 100, store, frame_bytes=10, codec="raw")
    root = append("b" * 100, store)
    assert (root.frame_bytes, root.codec, root.frames) == (10, "raw", 20)
    root = append("c" * 100, store, frame_bytes=50, codec="zstd")
    assert (root.frame_bytes, root.codec, root.frames) == (50, "zstd", 22)
    assert str(Monocontext.open(store)) == "a" * 100 + "b" * 100 + "c" * 100


@pytest.mark.parametrize("frame_bytes", [1, 2, 3, 5, 7, 64, 1000])
def test_what_the_root_says(frame_bytes: int) -> None:
    for text in (TEXT, TEXT + "rest", "\n", "x", "\r\n", "\n\n"):
        store = memory()
        root = publish(text, store, frame_bytes=frame_bytes)
        assert root == read_root(store)[0]
        sizes = (root.characters, root.text_bytes, root.newlines, root.final_newline)
        assert sizes == (len(text), len(text.encode()), text.count("\n"), text.endswith("\n"))
        assert root.lines == len(Monocontext.open(store).lines)


def test_progress() -> None:
    seen: list[Progress] = []
    store = memory()
    publish("".join(f"{i:09d}\n" for i in range(100)), store, frame_bytes=100, segment_bytes=250, progress=seen.append)
    assert [one.segments for one in seen] == list(range(1, len(seen) + 1))
    assert seen[-1].text_bytes == 1000
    assert seen[-1].stored_bytes == sum(info.size_bytes for info in store.list("segments/"))


def test_what_publish_costs() -> None:
    store = CountingStore(memory())
    publish("".join(f"{i:09d}\n" for i in range(100)), store, frame_bytes=100, segment_bytes=300, codec="raw")
    puts = [request for request in store.log if request.verb == "put"]
    assert len(puts) == 4 + 1 + 2  # segments, a page, the commit and its copy
    assert store.requests - len(puts) <= 6


@pytest.mark.slow
def test_memory_stays_bounded() -> None:
    """200 MB out of a generator, in a process of its own."""
    program = """
        import resource, sys
        from monocontext.writer import publish
        sys.path.insert(0, {here!r})

        def pieces():
            for i in range(2000):
                yield f"{{i:08d}} " * 11111 + "é\\n"

        publish("warm", {url!r} + "/warm")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        root = publish(pieces(), {url!r} + "/large", codec={codec!r})
        print(root.text_bytes, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
    """
    import tempfile

    for codec in ("raw", "zstd"):
        with tempfile.TemporaryDirectory() as url:
            code = textwrap.dedent(program).format(here=str(Path.cwd()), url=url, codec=codec)
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        size, megabytes = map(int, done.stdout.split())
        assert size > 200_000_000
        assert megabytes < 200, codec
