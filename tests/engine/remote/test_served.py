"""A text over a served reader equals the text over the reader itself; what no `ServedReader` asks is refused."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import Mock

import pytest

import monocontext.regex as mre
from monocontext import Monocontext, publish
from monocontext.engine.remote import ReaderServer, ServedReader, wire
from monocontext.engine.remote.frame_cache import FrameCache
from monocontext.errors import ContextClosed, DamagedData
from monocontext.format.filters.query import AnyOf, Literal
from monocontext.text import served_text

TEXT = "".join(f"Line {i}: é needle{i % 997} 🎉 words\r\n" if i % 50 else f"line {i} \x85 ΑΣ\n" for i in range(9000))


class Wire:
    """Carries requests to a server in this process, and counts them."""

    def __init__(self, server: ReaderServer) -> None:
        self.server = server
        self.requests: list[dict[str, Any]] = []

    def __call__(self, request: bytes) -> bytes:
        self.requests.append(json.loads(request))
        return self.server.answer(request)


@pytest.fixture(scope="module", params=[True, False], ids=["filters", "no-filters"])
def stored(request: pytest.FixtureRequest) -> Iterator[Monocontext]:
    place = f"memory://served-{request.param}"
    publish([TEXT], place, frame_bytes=8192, filters=request.param)
    with Monocontext.open(place, materialize_limit=4000) as context:
        yield context


@pytest.fixture
def served(stored: Monocontext) -> Monocontext:
    return served_text(ServedReader(Wire(stored.serve())))


OPERATIONS: dict[str, Callable[[Any], object]] = {
    "len": len, "item": lambda t: (t[0], t[-1], t[12345]), "stepped": lambda t: t[10:9000:7],
    "backwards": lambda t: t[-1:-900:-1],
    "find": lambda t: [t.find(n) for n in ("needle996", "absent", "\r\n", "🎉", "")],
    "find from": lambda t: t.find("needle5", 100_000, 200_000),
    "rfind": lambda t: [t.rfind(n) for n in ("needle996", "absent", "Line 1:", "🎉 w")],
    "count": lambda t: [t.count(n) for n in ("needle77", "e", "absent", "s\r\nL")],
    "in": lambda t: ("needle5 " in t, "absent" in t),
    "lower": lambda t: (t.lower().count("line 7"), t.lower()[400:420], t.upper().find("NEEDLE990")),
    "split": lambda t: (len(t.split("\n")), t.split("\n")[77], list(t.split("needle996"))[3]),
    "splitlines": lambda t: (len(t.splitlines()), t.splitlines()[40]), "words": lambda t: sum(map(len, t.split())),
    "partition": lambda t: [len(p) for p in t.partition("needle500")],
    "replace": lambda t: t.replace("needle", "x").count("x9"), "strip": lambda t: len(t.strip()),
    "starts": lambda t: (t.startswith("line"), t.endswith("words\r\n")),
    "iterate": lambda t: sum(1 for _ in zip(t, range(20_000), strict=False)),
    "equal": lambda t: (t == TEXT, t != TEXT[:-1]),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_gives_what_it_gives_on_a_str(name: str, served: Monocontext) -> None:
    assert OPERATIONS[name](served) == OPERATIONS[name](TEXT)
    assert OPERATIONS[name](served) == OPERATIONS[name](TEXT)  # from what is at hand


def test_slices_anywhere(served: Monocontext) -> None:
    rng = random.Random(3)
    for _ in range(400):
        start = rng.randrange(len(TEXT))
        stop = start + rng.choice([0, 1, 50, 1000, 3999])
        assert served[start:stop] == TEXT[start:stop]


def test_lines_grep_chunks_and_patterns(stored: Monocontext, served: Monocontext) -> None:
    assert [served.lines[i] for i in (0, 7, -1)] == [stored.lines[i] for i in (0, 7, -1)]
    assert served.lines[100:140] == stored.lines[100:140]
    assert list(served.grep("needle99[0-5] ")) == list(stored.grep("needle99[0-5] "))
    assert "".join(served.chunks(5000)) == TEXT
    for pattern in (r"needle99\d", r"(?i)LINE 8\d:", r"ΑΣ\n", r"absent"):
        assert [m.span() for m in mre.finditer(pattern, served)] == [m.span() for m in mre.finditer(pattern, stored)]


def test_a_view_is_its_part_of_the_text(stored: Monocontext) -> None:
    view = stored.view(20_001, 60_003)
    text = served_text(ServedReader(Wire(view.serve())))
    mine = TEXT[20_001:60_003]
    assert len(text) == len(mine)
    assert "".join(text.chunks(1000)) == mine
    assert text.count("needle77") == mine.count("needle77")
    assert text.rfind("Line") == mine.rfind("Line")
    assert text.lines[3] == view.lines[3]


def test_a_derived_text_is_derived_there(stored: Monocontext) -> None:
    for derived, expected in (
        (stored.lower(), TEXT.lower()),
        (stored.upper().view(5, 9_000), TEXT.upper()[5:9_000]),
        (stored.lower().replace("needle", "x"), TEXT.lower().replace("needle", "x")),
    ):
        text = served_text(ServedReader(Wire(derived.serve())))  # type: ignore[attr-defined]
        assert len(text) == len(expected)
        assert "".join(text.chunks(3000)) == expected


def test_what_is_at_hand_costs_no_request(served: Monocontext, stored: Monocontext) -> None:
    asked = Wire(stored.serve())
    text = served_text(ServedReader(asked))
    assert len(asked.requests) == 1
    for _ in range(4):
        text[1000:1100]
    asked_for = [(request["verb"], request.get("what")) for request in asked.requests]
    assert asked_for == [("open", None), ("read", "text"), ("read", "frame")]
    passed = len(asked.requests)
    text.count("absent needle")
    assert len(asked.requests) - passed <= 12
    passed = len(asked.requests)
    assert "".join(text.chunks(9000)) == TEXT
    text.find("needle5", 5000)
    assert not [request for request in asked.requests[passed:] if request["verb"] == "read"]


def test_statistics_are_the_hosts(stored: Monocontext, served: Monocontext) -> None:
    assert served.stats.gets == stored.stats.gets
    assert (served.url, served.generation, repr(served)) == (stored.url, stored.generation, repr(stored))
    served.find("needle996 🎉")
    assert served.stats.search.looked_at == stored.stats.search.looked_at


def test_texts_made_real_in_the_worker_count_at_the_host(stored: Monocontext, served: Monocontext) -> None:
    before = stored.stats.real.texts
    assert str(served.view(0, 100)) == TEXT[:100]
    assert served.stats.real.texts == stored.stats.real.texts == before + 1
    assert stored.stats.real.bytes == len(TEXT[:100].encode())


NOTHING = {"read": [], "handed": [], "looked_at": 0, "hits": 0}


@pytest.mark.parametrize("sizes", [5, [-1], ["a"], [1 << 70], [True]])
def test_sizes_that_are_none_are_refused(sizes: object, stored: Monocontext) -> None:
    with pytest.raises(wire.BadRequest, match="real must be"):
        stored.serve().answer(wire.encode_request("report", **NOTHING | {"real": sizes}))


@pytest.mark.parametrize("stored", [True], indirect=True)
def test_threads_look_up_more_records_than_are_kept(stored: Monocontext, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread is interrupted every microsecond: at each place at which another might change what is kept."""
    monkeypatch.setattr("monocontext.engine.remote.reader._MOST_RECORDS", 2)
    reader, numbers = ServedReader(stored.serve().answer), [number * 7 % 4 for number in range(12_000)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert [frame.number for frame in pool.map(reader.frame, numbers)] == numbers
    finally:
        sys.setswitchinterval(interval)


def test_what_is_too_large_to_ask_is_not_asked(served: Monocontext) -> None:
    query = AnyOf(tuple(Literal(f"{number:0800}") for number in range(1400)))
    assert served.span.all_candidates(query) is None


def test_errors_are_the_same_errors() -> None:
    publish([TEXT], "memory://served-closed", frame_bytes=8192)
    context = Monocontext.open("memory://served-closed")
    text = served_text(ServedReader(Wire(context.serve())))
    context.close()
    with pytest.raises(ContextClosed, match="memory://served-closed is closed"):
        text[100_000:100_010]


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b'{"verb": 5}',
        b'{"verb": "__init__"}',
        b'{"verb": "read"}',
        b'{"verb": "read", "what": "text"}',
        b'{"verb": "read", "what": "text", "start": -1, "stop": 5}',
        b'{"verb": "read", "what": "text", "start": 0, "stop": 999999999999}',
        b'{"verb": "read", "what": "text", "start": true, "stop": 5}',
        b'{"verb": "read", "what": "text", "start": 9, "stop": 5}',
        b'{"verb": "read", "what": "text", "start": ' + b"9" * 5000 + b"}",
        b'{"verb": "read", "what": "frame", "start": %d, "stop": %d}' % (len(TEXT), len(TEXT)),
        b'{"verb": "read", "what": "pass", "start": 0, "stop": 5, "bytes": 999999999}',
        b'{"verb": "read", "what": "pass", "start": 0, "stop": 5, "bytes": 5, "runs": [[3, 1]]}',
        b'{"verb": "read", "what": "pass", "start": 0, "stop": 5, "bytes": 5, "runs": [[0, 99999]]}',
        b'{"verb": "read", "what": "pass", "start": 0, "stop": 5, "bytes": 5, "runs": [[2, 3], [0, 1]]}',
        b'{"verb": "read", "what": "pass", "start": 0, "stop": 5, "bytes": 5, "runs": "x"}',
        b'{"verb": "candidates", "what": "candidates", "start": 0, "stop": 5, "query": ["literal", 5]}',
        b'{"verb": "candidates", "what": "candidates", "start": 0, "stop": 5, "query": ["all", []]}',
        b'{"verb": "candidates", "what": "holding", "start": 0, "stop": 5, "query": null}',
        b'{"verb": "candidates", "what": "lacking", "start": 0, "stop": 5, "flag": 0}',
        b'{"verb": "candidates", "start": 0, "stop": 5, "query": ["literal", "x", 0, 0, 0]}',
        b'{"verb": "locate", "what": "frame", "number": -1}',
        b'{"verb": "locate", "number": 1}',
        b'{"verb": "report", "read": [], "handed": [], "looked_at": -5, "hits": 0}',
        b'{"verb": "report", "read": [[5, 1]], "handed": [], "looked_at": 0, "hits": 0}',
        b'{"verb": "report", "read": [], "handed": [[0, 99999999]], "looked_at": 0, "hits": 0}',
        b"[" * 100_000,
        b'{"verb": "report", "x": "' + b"y" * (1 << 20) + b'"}',
    ],
    ids=range(31),
)
def test_what_no_reader_asks_is_refused(stored: Monocontext, request_bytes: bytes) -> None:
    with pytest.raises(wire.BadRequest):
        stored.serve().answer(request_bytes)


def test_a_need_that_nests_without_end_is_refused(stored: Monocontext) -> None:
    need: Any = ["literal", "x", 0, 0, 0]
    for _ in range(100):
        need = ["all", [need]]
    with pytest.raises(wire.BadRequest):
        stored.serve().answer(wire.encode_request("candidates", what="candidates", query=need, start=0, stop=5))
    deepest: Any = []
    for _ in range(sys.getrecursionlimit()):
        deepest = [deepest]
    with pytest.raises(wire.BadRequest):
        wire.query_of(["all", [deepest]])


def test_ready_means_that_no_request_goes_to_storage(tmp_path: Any) -> None:
    publish([TEXT], str(tmp_path / "c"), frame_bytes=8192)
    context = Monocontext.open(str(tmp_path / "c"))
    server = context.serve()
    ask = wire.encode_request("read", what="text", start=1000, stop=1100)
    assert not server.is_ready(ask)
    server.answer(ask)
    gets = context.stats.gets
    assert server.is_ready(ask)
    server.answer(ask)
    assert context.stats.gets == gets


def test_an_error_of_the_ends_is_an_answer(stored: Monocontext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monocontext.engine.reader.TextEnds", Mock(side_effect=DamagedData("the head is damaged")))
    server, request = Monocontext.open(stored.url).serve(), wire.encode_request("read", what="text", start=5, stop=9)
    assert not server.is_ready(request)
    assert b"the head is damaged" in server.answer(request)


def test_the_cache_keeps_within_its_bytes(stored: Monocontext) -> None:
    texts = list(ServedReader(Wire(stored.serve())).frames(0, len(TEXT)))
    cache = FrameCache(3 * texts[0].size_bytes + 2000)
    for text in texts:
        cache.put([text])
        assert sum(kept.size_bytes for kept in cache._sorted) <= cache.capacity_bytes
    assert cache.at(0) is None
    assert cache.by_number([0, texts[-1].frame.number]) is None
    assert cache.at(texts[-3].frame.start) is texts[-3]  # now it is the last used
    cache.put([texts[0]])
    assert cache.at(texts[-3].frame.start) is texts[-3]
    assert cache.at(texts[-2].frame.start) is None
