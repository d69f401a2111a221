"""DeepRecurse's manifests, read in lines: against an independent reading of what its docstring says."""

from __future__ import annotations

import json
import os
import signal
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from monocontext import Monocontext
from monocontext.errors import (
    AccessDenied,
    ContextChanged,
    ContextClosed,
    DamagedData,
    InvalidUrl,
    MonocontextError,
    NotAContext,
    NotFound,
)
from monocontext.format.manifest import ROOT_KEY
from monocontext.stores import open_store
from monocontext.stores.memory import MemoryStore, forget
from monocontext.stores.protocol import Blob, Store
from monocontext.testing import CountingStore, FaultyStore, WrappedStore, fail
from monocontext.text.deeprecurse import open_deeprecurse_lines
from monocontext.text.from_str import wrap_str
from monocontext.text.lines import LineView
from monocontext.writing.publish import publish
from tests.budget import examples

LINES = [
    "plain\n", "windows\r\n", "café\n", "漢字\n", "\n", "vt\x0b", "nel\x85", "U+2028\u2028", "fs\x1c", "cr\r", "😀\n",
]  # fmt: skip

Row = dict[str, Any]


def reference(rows: list[Row], texts: dict[str, str], start: int | None, stop: int | None) -> str:
    """DeepRecurse's slice: each segment in the order of `start_line` gives those of its lines that lie in the range."""
    rows = sorted(rows, key=lambda row: row["start_line"])
    total = rows[-1]["start_line"] + rows[-1]["line_count"] if rows else 0
    first, last, _ = slice(start, stop).indices(total)
    result = ""
    for row in rows:
        lines = texts[row["segment"]].splitlines(keepends=True)
        for number in range(min(row["line_count"], len(lines))):
            if first <= row["start_line"] + number < last:
                result += lines[number]
    return result


@st.composite
def contexts(draw: st.DrawFn) -> tuple[list[Row], dict[str, str]]:
    """Manifests as DeepRecurse wrote them, and as it might have: out of order, overlapping, miscounted."""
    rows: list[Row] = []
    texts: dict[str, str] = {}
    offset = 0
    for number in range(draw(st.integers(0, 6))):
        text = "".join(draw(st.lists(st.sampled_from(LINES), max_size=6)))
        if draw(st.booleans()):
            text += "rest"
        name = f"segment_{number:06d}.log"
        counted = draw(st.sampled_from([len(text.splitlines()), len(text.splitlines()), text.count("\n"), 3, 0, 9]))
        texts[name] = text
        start = draw(st.sampled_from([offset, offset, offset, offset + 2, max(offset - 3, 0), 0]))
        rows.append({"segment": name, "start_line": start, "line_count": counted, "sha": "of no interest"})
        offset = start + counted
    return draw(st.permutations(rows)), texts


def stored(rows: list[Row], texts: dict[str, str]) -> MemoryStore:
    store = MemoryStore(uuid.uuid4().hex, "prefix")
    for name, text in texts.items():
        store.put(name, text.encode())
    store.put(ROOT_KEY, json.dumps(rows).encode())
    return store


def open_lines(store: Store, **options: Any) -> LineView:
    return Monocontext.open(store, unit="lines", **options)


bounds = st.none() | st.integers(-25, 25) | st.sampled_from([10**30, -(10**30)])


@given(contexts(), st.lists(st.tuples(bounds, bounds), min_size=1, max_size=6), st.sampled_from([0, 200, 1 << 20]))
@settings(max_examples=examples(400))
@example(
    (
        [
            {"segment": "a", "start_line": 0, "line_count": 9},
            {"segment": "b", "start_line": 1, "line_count": 1},
            {"segment": "c", "start_line": 3, "line_count": 1},
        ],
        {"a": "".join(f"a{i}\n" for i in range(9)), "b": "b\n", "c": "c\n"},
    ),
    [(3, 4), (2, 3), (None, None)],
    0,
)
def test_slices_are_those_of_the_original(
    context: tuple[list[Row], dict[str, str]], ranges: list[tuple[int | None, int | None]], cache: int
) -> None:
    rows, texts = context
    lines = open_lines(stored(rows, texts), cache_bytes=cache)
    ordered = sorted(rows, key=lambda row: row["start_line"])
    assert len(lines) == (ordered[-1]["start_line"] + ordered[-1]["line_count"] if rows else 0)
    for start, stop in ranges:
        assert lines[start:stop] == reference(rows, texts, start, stop)
    lines.close()


def simple(segments: int = 5, lines: int = 4) -> tuple[list[Row], dict[str, str]]:
    """A manifest without surprises."""
    rows = [{"segment": f"s{n}.txt", "start_line": n * lines, "line_count": lines} for n in range(segments)]
    texts = {f"s{n}.txt": "".join(f"segment {n} line {i}\n" for i in range(lines)) for n in range(segments)}
    return rows, texts


WHOLE = [line for text in simple()[1].values() for line in text.splitlines(keepends=True)]


class Gate(WrappedStore):
    """Lets segments through once it is opened, those named at once."""

    def __init__(self, store: Store, *free: str) -> None:
        super().__init__(store)
        self.open, self._free = threading.Event(), {ROOT_KEY, *free}

    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        assert key in self._free or self.open.wait(60)
        return super().get(key, most_bytes=most_bytes)


def test_what_is_new_lines_one_by_one() -> None:
    lines = open_lines(stored(*simple()))
    assert list(lines) == WHOLE
    assert list(reversed(lines)) == WHOLE[::-1]
    assert [lines[i] for i in range(-20, 20)] == WHOLE + WHOLE
    for key in (slice(None, None, 3), slice(17, 2, -4), slice(None, None, -1), slice(5, 5, 2)):
        assert lines[key] == "".join(WHOLE[key])
    for index in (20, -21, 10**18):
        with pytest.raises(IndexError, match="the text has 20 lines"):
            lines[index]
    for wrong in ("a", 1.5, None):
        with pytest.raises(TypeError):
            lines[wrong]  # type: ignore[call-overload]


def test_requests() -> None:
    store = CountingStore(stored(*simple()))
    lines = open_lines(store)
    opening = store.gets
    assert opening <= 2  # once to find that it is no context of ours, once to read it in lines
    assert len(lines) == 20
    assert store.gets == opening
    assert lines[5:7] == "".join(WHOLE[5:7])
    assert store.gets == opening + 1
    assert lines[4:8] == "".join(WHOLE[4:8])
    assert store.gets == opening + 1  # cached
    assert lines[3:9] == "".join(WHOLE[3:9])
    assert store.gets == opening + 3
    assert list(lines) == WHOLE
    assert store.gets == opening + 5
    assert lines[10:10] == lines[12:3] == lines[100:] == ""
    assert store.gets == opening + 5
    assert lines.stats.gets == 1 + 5


def test_segments_are_read_at_the_same_time() -> None:
    everybody = threading.Barrier(5, timeout=60)

    class Together(WrappedStore):
        def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
            if key != ROOT_KEY:
                everybody.wait()
            return super().get(key, most_bytes=most_bytes)

    assert open_lines(Together(stored(*simple())))[:] == "".join(WHOLE)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_pass_that_was_under_way_at_a_fork_goes_on_in_the_child() -> None:
    gate = Gate(stored(*simple()), "s0.txt")
    lines = iter(open_lines(gate))
    first = next(lines)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(10)
        gate.open.set()
        os._exit(0 if [first, *lines] == WHOLE else 1)
    status = os.waitpid(child, 0)[1]
    gate.open.set()
    assert status == 0
    assert [first, *lines] == WHOLE


def test_a_folder_to_keep_it_in_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="records no versions of its objects"):
        open_lines(stored(*simple()), cache_dir=tmp_path)


def test_one_request_for_many_readers() -> None:
    store = CountingStore(gate := Gate(stored(*simple())))
    lines = open_lines(store)
    before = store.gets
    with ThreadPoolExecutor(8) as threads:
        futures = [threads.submit(lambda: lines[0:3]) for _ in range(8)]
        gate.open.set()
        assert {future.result() for future in futures} == {"".join(WHOLE[0:3])}
    assert store.gets == before + 1


def test_a_segment_that_changes() -> None:
    store = stored(*simple())
    lines = open_lines(store, cache_bytes=0)
    assert lines[0] == WHOLE[0]
    store.put("s0.txt", b"other\n" * 4)
    with pytest.raises(ContextChanged, match=r"s0\.txt was replaced.*expected ETag \w+, found \w+"):
        lines[1]
    store.delete("s1.txt")
    with pytest.raises(NotFound, match=r"s1\.txt"):
        lines[4]
    store.put("s2.txt", b"caf\xe9\n")
    with pytest.raises(DamagedData, match=r"s2\.txt: not utf-8 at byte 3"):
        lines[8]
    assert lines[12] == WHOLE[12]


def test_an_error_is_not_kept() -> None:
    lines = open_lines(FaultyStore(stored(*simple()), [None, None, fail(), None]))
    with pytest.raises(OSError, match="fault on purpose"):
        lines[0:2]
    assert lines[0:2] == "".join(WHOLE[0:2])


def test_closing() -> None:
    lines = open_lines(stored(*simple()))
    assert lines[0]
    lines.close()
    lines.close()
    with pytest.raises(ContextClosed):
        lines[0]
    with pytest.raises(ValueError, match="open it again"):
        open_lines(stored(*simple())).refresh()


# -- manifests that are none ----------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"[1, 2]",
        b"[{}]",
        b'[{"segment": "a", "start_line": 0}]',
        b'[{"segment": "a", "start_line": "x", "line_count": 1}]',
        b'[{"segment": "a", "start_line": Infinity, "line_count": 1}]',
        b'[{"segment": "a", "start_line": -1, "line_count": 1}]',
        b'[{"segment": "a", "start_line": 0, "line_count": -1}]',
        *(
            b'[{"segment": "a", "start_line": 0, "line_count": %s}]' % told
            for told in (b"1" + b"0" * 20, b"1.5", b"1e3", b"true", b'"7"', b"9" * 5000)
        ),
        b'[{"segment": "a", "start_line": 1%s, "line_count": 1}]' % (b"0" * 20),
        b'{"format": 3}',
        b'{"other": "json"}',
        b"garbage",
        b"[" * 100_000,
        b"[" * 900 + b"]" * 900,
    ],
    ids=range(19),
)
def test_what_is_no_manifest(data: bytes) -> None:
    store = MemoryStore(uuid.uuid4().hex)
    store.put(ROOT_KEY, data)
    with pytest.raises((NotAContext, DamagedData), match=ROOT_KEY):
        Monocontext.open(store, unit="lines")
    with pytest.raises((NotAContext, DamagedData), match=ROOT_KEY):
        open_deeprecurse_lines(store)


def test_names_that_lead_outwards() -> None:
    name = uuid.uuid4().hex
    open_store(f"memory://{name}/secret").put("s.txt", b"secret\n")
    store = open_store(f"memory://{name}/context")
    for wrong in ("../secret/s.txt", "/etc/passwd", "a/../../secret/s.txt", "", "\0", "\ud800"):
        store.put(ROOT_KEY, json.dumps([{"segment": wrong, "start_line": 0, "line_count": 1}]).encode())
        with pytest.raises(MonocontextError):
            Monocontext.open(store, unit="lines")[0]
    forget(name)


def test_a_context_of_ours_in_lines() -> None:
    store = MemoryStore(uuid.uuid4().hex)
    publish("".join(WHOLE), store, frame_bytes=20)
    lines = Monocontext.open(store, unit="lines")
    assert (len(lines), lines[3:7], list(lines)) == (20, "".join(WHOLE[3:7]), WHOLE)


# -- the original constructor ----------------------------------------------------


@pytest.fixture
def put(moto_s3: str) -> Callable[[str, bytes], None]:
    import boto3

    client = boto3.session.Session().client("s3", region_name="us-east-1")
    return lambda key, data: client.put_object(Bucket=moto_s3, Key=key, Body=data)


def put_context(put: Callable[[str, bytes], None], prefix: str, names: str = "{}", manifest: str = ROOT_KEY) -> None:
    rows, texts = simple()
    for row in rows:
        put(prefix + row["segment"], texts[row["segment"]].encode())
        row["segment"] = names.format(row["segment"])
    put(prefix + manifest, json.dumps(rows).encode())


@pytest.mark.slow
def test_the_constructor_hands_its_options_on(moto_s3: str, put: Callable[[str, bytes], None]) -> None:
    put_context(put, "old/options/")
    lines = Monocontext(moto_s3, "old/options/", cache_bytes=1 << 20)
    assert lines[0:2]
    assert (lines.bucket, lines.prefix, lines.manifest_name) == (moto_s3, "old/options/", "manifest.json")
    assert isinstance(lines, Monocontext)
    assert not isinstance(wrap_str("a").lines, Monocontext)
    with pytest.raises(ValueError, match="cache_dir"):
        Monocontext(moto_s3, "old/options/", cache_dir="unused")


@pytest.mark.parametrize(
    ("prefix", "names", "given"),
    [
        ("logs/", "{}", ("logs/",)),
        ("logs/", "logs/{}", ("logs/", "index.json")),
        ("logs-", "{}", ("logs-",)),  # run together with the names
        ("", "{}", ()),
        ("", "{}", ("", "manifest.json", "us-east-1")),
    ],
)
def test_prefixes_and_names(
    moto_s3: str, put: Callable[[str, bytes], None], prefix: str, names: str, given: tuple[str, ...]
) -> None:
    put_context(put, prefix, names, given[1] if given[1:] else ROOT_KEY)
    options = {"enable_logging": True, "cache_bytes": 0} if given[2:] else {}
    lines = Monocontext(moto_s3, *given, **options)
    assert (len(lines), lines[2:7], lines[:]) == (20, "".join(WHOLE[2:7]), "".join(WHOLE))


@pytest.mark.slow
def test_encodings(moto_s3: str, put: Callable[[str, bytes], None]) -> None:
    put("l/a", "café\nü\n".encode("latin-1"))
    put("l/manifest.json", json.dumps([{"segment": "a", "start_line": 0, "line_count": 2}]).encode())
    assert Monocontext(moto_s3, "l/", encoding="latin-1")[:] == "café\nü\n"
    assert Monocontext(moto_s3, "l/", errors="replace")[:] == "caf\ufffd\n\ufffd\n"
    with pytest.raises(DamagedData, match="l/a: not utf-8 at byte 3"):
        Monocontext(moto_s3, "l/")[:]


def test_a_client_that_was_made_before(moto_s3: str, put: Callable[[str, bytes], None]) -> None:
    import boto3

    put_context(put, "logs/")
    client = boto3.session.Session().client("s3", region_name="us-east-1")
    assert Monocontext(moto_s3, "logs/", client=client)[0:1] == WHOLE[0]


@pytest.mark.slow
def test_the_constructor_on_a_context_of_ours(moto_s3: str) -> None:
    publish("characters\n", f"s3://{moto_s3}/ours")
    for prefix in ("ours", "ours/"):
        context = Monocontext(moto_s3, prefix)
        assert (len(context), context[0:4]) == (11, "char")


@pytest.mark.slow
def test_nothing_there(moto_s3: str) -> None:
    for prefix in ("nowhere/", "nowhere", ""):
        with pytest.raises(NotFound, match=r"nothing at|no context at"):
            Monocontext(moto_s3, prefix)
    with pytest.raises((NotFound, AccessDenied)):
        Monocontext("no-such-bucket-at-all", "x/")


def test_a_url_names_the_call_that_takes_one() -> None:
    with pytest.raises(InvalidUrl, match=r"for a URL: Monocontext.open\('s3://bucket/text'\)$"):
        Monocontext("s3://bucket/text")


@pytest.mark.slow
def test_open_by_url_in_lines(moto_s3: str, put: Callable[[str, bytes], None]) -> None:
    put_context(put, "deep/logs/")
    put_context(put, "full/logs/", names="full/logs/{}")
    for prefix in ("deep/logs", "deep/logs/", "full/logs"):
        lines = Monocontext.open(f"s3://{moto_s3}/{prefix}", unit="lines")
        assert (len(lines), lines[2:7]) == (20, "".join(WHOLE[2:7]))
        with pytest.raises(NotAContext, match='unit="lines"'):
            Monocontext.open(f"s3://{moto_s3}/{prefix}")
