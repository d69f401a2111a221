"""What the page is told: places, pieces, searches, versions. No answer is large, whatever the text."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from monocontext import Monocontext, delete, publish
from monocontext.page.serving import InvalidRequest, Parameters
from monocontext.view.changes import document_changes
from monocontext.view.feed import MOST_HITS, ContextFeed, ContextServer
from monocontext.view.pieces import PIECE_CHARACTERS, PIECE_LINES
from monocontext.writing.upkeep.gc import gc


def ask(feed: ContextFeed, name: str, **given: object) -> Any:
    """An answer, as the page gets it."""
    answer = getattr(feed, name)(Parameters(urlencode(given)))
    body = json.dumps(answer)
    assert len(body) < 110_000
    return json.loads(body)


@pytest.fixture
def feed(context: Monocontext) -> ContextFeed:
    return ContextFeed(context)


def text_of(piece: Any) -> str:
    return "\n".join(row["text"] for row in piece["rows"])


def test_the_state_is_that_of_the_text(feed: ContextFeed, context: Monocontext) -> None:
    state = ask(feed, "state")
    assert (state["characters"], state["lines"]) == (len(context), len(context.lines))
    assert (state["documents"], state["version"], state["url"]) == (5, context.generation, context.url)
    assert context.stats.gets == 1


def test_documents_by_name(feed: ContextFeed) -> None:
    rows = ask(feed, "documents")["rows"]
    assert [row["name"] for row in rows] == ["alpha.txt", "beta.txt", "src/gamma.py", "src/delta.py", "new.md"]
    assert rows[0]["metadata"] == "author: Ada"
    assert [row["name"] for row in ask(feed, "documents", glob="src")["rows"]] == ["src/gamma.py", "src/delta.py"]
    assert [row["number"] for row in ask(feed, "documents", glob="*.md")["rows"]] == [4]
    assert ask(feed, "documents", glob="none") == {"rows": [], "next": None, "count": 5}


def test_brackets_of_a_name_are_found_as_they_are(tmp_path: Path) -> None:
    publish({"app/[slug]/page.tsx": "a\n", "d": "c\n"}, tmp_path)
    feed = ContextFeed(Monocontext.open(tmp_path))
    assert [row["name"] for row in ask(feed, "documents", glob="[slug]")["rows"]] == ["app/[slug]/page.tsx"]


def test_a_long_list_goes_on(tmp_path: Path) -> None:
    publish({f"{n:04}": f"text {n}\n" for n in range(250)}, tmp_path / "many")
    feed = ContextFeed(Monocontext.open(tmp_path / "many"))
    seen, following = [], 0
    while following is not None:
        answer = ask(feed, "documents", first=following)
        seen += [row["number"] for row in answer["rows"]]
        following = answer["next"]
    assert seen == list(range(250))


def test_pieces_follow_each_other_both_ways(feed: ContextFeed, context: Monocontext) -> None:
    whole, at, pieces = str(context), 0, []
    while at < len(whole):
        piece = ask(feed, "text", after=at)
        assert piece["start"] == at
        pieces.append(whole[at : piece["stop"]])
        assert text_of(piece) == pieces[-1].removesuffix("\n")
        at = piece["stop"]
    assert "".join(pieces) == whole
    back = len(whole)
    while back > 0:
        piece = ask(feed, "text", before=back)
        assert piece["stop"] == back
        assert text_of(piece) == whole[piece["start"] : back].removesuffix("\n")
        back = piece["start"]


@pytest.mark.parametrize(
    "text", ["x" * 30_000, "\n" * 2000, "\U0001f600" * 20_000, "a\r\nb\u2028c\n" * 1500, "", "end\n"]
)
def test_a_piece_is_small_whatever_the_lines(tmp_path: Path, text: str) -> None:
    publish(text, tmp_path, frame_bytes=3000)
    feed, at = ContextFeed(Monocontext.open(tmp_path)), 0
    while at < len(text):
        piece = ask(feed, "text", after=at)
        assert at < piece["stop"] <= at + PIECE_CHARACTERS
        assert len(piece["rows"]) <= PIECE_LINES
        assert text_of(piece) == text[at : piece["stop"]].removesuffix("\n")
        back = ask(feed, "text", before=piece["stop"])
        assert back["start"] < piece["stop"] == back["stop"]
        at = piece["stop"]
    assert ask(feed, "text", after=at)["rows"] == []


def test_places(feed: ContextFeed, context: Monocontext) -> None:
    gamma = context.documents.record("src/gamma.py")
    piece = ask(feed, "text", document="src/gamma.py")
    assert (piece["start"], piece["mark"]) == (gamma.start, gamma.start)
    assert piece["rows"][0]["text"] == "src/gamma.py line 1"
    assert ask(feed, "text", number=gamma.number) == piece
    for given in ({"document": "src/gamma.py", "line": 300}, {"line": gamma.first_line + 300}):
        piece = ask(feed, "text", **given)
        (row,) = [row for row in piece["rows"] if row["at"] == piece["mark"]]
        assert (row["line"], row["text"]) == (300, "src/gamma.py line 300")
    piece = ask(feed, "text", at=gamma.start + 5)
    assert piece["start"] < piece["mark"] == gamma.start + 5
    assert piece["rows"][0]["document"]["name"] == "beta.txt"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"document": "gamma.py"}, "did you mean src/gamma.py"),
        ({"document": "new.md", "line": 3}, "new.md has no line 3"),
        ({"line": 0}, "line must be at least 1, not 0"),
        ({"line": 10**9}, "the text has no line 1,000,000,000"),
        ({"at": 10**9}, "is after the end of the text"),
        ({"number": 5}, "no document 5: the text has 5, numbered from 0"),
        ({"at": "x"}, "at must be a whole number of at most 15 digits, not 'x'"),
    ],
)
def test_places_that_are_none(feed: ContextFeed, given: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidRequest, match=says):
        ask(feed, "text", **given)


@pytest.mark.parametrize(
    ("pattern", "options"),
    [("needle", {}), ("NEEDLE", {"ignore_case": 1}), ("line 1.0 ", {}), ("n(e+)dle", {}), ("line 7.", {"fixed": 1})],
)
def test_grep_finds_what_the_context_finds(
    feed: ContextFeed, context: Monocontext, pattern: str, options: dict[str, int]
) -> None:
    flags = dict.fromkeys(options, True)
    expected = [(hit.document, hit.document_line, hit.offset, hit.line) for hit in context.grep(pattern, **flags)]
    result = ask(feed, "grep", pattern=pattern, **options)
    assert [tuple(hit.values()) for hit in result["hits"]] == expected
    assert result["next"] is None


def test_grep_goes_on_where_it_ended(feed: ContextFeed, context: Monocontext) -> None:
    seen, following = [], 0
    while following is not None:
        answer = ask(feed, "grep", pattern="line", start=following)
        assert len(answer["hits"]) <= MOST_HITS
        seen += [hit["at"] for hit in answer["hits"]]
        following = answer["next"]
    assert seen == [hit.offset for hit in context.grep("line")]


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [("grep", {"pattern": "("}, "not a regular expression"), ("grep", {"pattern": "x" * 20_000}, "at most 10,000"),
     ("search", {"words": "-a"}, "word"), ("documents", {"glob": "!"}, "^invalid glob: '!'$")],
)  # fmt: skip
def test_searches_that_are_none(feed: ContextFeed, name: str, given: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidRequest, match=says):
        ask(feed, name, **given)


def test_search_finds_what_the_context_finds(feed: ContextFeed, context: Monocontext) -> None:
    result = ask(feed, "search", words="words of the new")
    found = [(hit["at"], hit["document"], hit["text"]) for hit in result["hits"]]
    assert found == [(item.start, item.document, item.text) for item in context.search("words of the new", k=20)]
    assert result["next"] is None


def test_history_and_what_changed(feed: ContextFeed, place: str) -> None:
    rows = ask(feed, "history")["rows"]
    assert [(row["version"], row["grown"][1]) for row in rows] == [(2, 1), (1, 4)]  # an update is one version
    change = ask(feed, "change", before=rows[0]["before"], version=rows[0]["version"])
    assert (change["added"]["names"], change["replaced"]["names"]) == (["new.md"], ["beta.txt"])
    assert change["removed"]["count"] == change["unknown"] == 0


def test_a_change_of_the_same_size_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {f"{n}": f"text {n}\n" * 50 for n in range(20)}
    publish(texts, tmp_path / "c", frame_bytes=2000)
    publish(texts | {"7": texts["7"].replace("x", "X")}, tmp_path / "c", frame_bytes=2000, replace=True)
    delete(tmp_path / "c", ["3"])
    publish({name: text.upper() for name, text in texts.items()}, tmp_path / "c", frame_bytes=2000, replace=True)
    one, two, three, four = (Monocontext.open(tmp_path / "c", generation=n) for n in (1, 2, 3, 4))
    result = document_changes(one, two)
    assert result["replaced"] == {"count": 1, "names": ["7"]}
    assert result["added"]["count"] == result["removed"]["count"] == result["unknown"] == 0
    assert document_changes(two, three)["removed"]["names"] == ["3"]
    assert document_changes(three, two)["added"]["names"] == ["3"]
    monkeypatch.setattr("monocontext.view.changes.MOST_COMPARED_CHARACTERS", sum(len(texts[name]) for name in "012"))
    result = document_changes(one, four)
    assert (result["replaced"]["names"], result["unknown"]) == (["0", "1", "2"], 17)
    monkeypatch.setattr("monocontext.view.feed.MOST_VERSIONS", 2)
    assert [(row["before"], row["grown"][1]) for row in ask(ContextFeed(four), "history")["rows"]] == [(3, 1), (2, -1)]
    gc(tmp_path / "c", older_than_seconds=0)
    assert ask(ContextFeed(four), "history")["rows"][-1]["grown"] is None  # the version before it is gone


def test_a_plain_file_opens_too(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("one\ntwo\n")
    feed = ContextFeed(Monocontext.open(tmp_path / "notes.txt"))
    assert text_of(ask(feed, "text")) == "one\ntwo"
    assert [row["version"] for row in ask(feed, "history")["rows"]] == [1]


def get(server: ContextServer, path: str) -> tuple[int, Any]:
    link = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    link.request("GET", path)
    reply = link.getresponse()
    body = reply.read()
    link.close()
    return reply.status, json.loads(body) if reply.headers["content-type"] == "application/json" else body.decode()


def test_the_server_knows_its_paths_alone(
    context: Monocontext, serving: Callable[[Monocontext], ContextServer]
) -> None:
    server = serving(context)
    for path in ("/state", "/documents", "/text", "/grep?pattern=x", "/search?words=x", "/history"):
        assert get(server, path)[0] == 200, path
    assert get(server, "/change?before=1&version=2")[0] == 200
    assert get(server, "/change?before=1&version=99")[0] == 500
    for path in ("/nothing", "/_piece", "/__init__", "/../etc/passwd"):
        assert get(server, path) == (404, {"error": "not found"})
    assert get(server, "/text?line=0") == (400, {"error": "line must be at least 1, not 0"})
    html = get(server, "/")[1]
    assert html == server.page.for_server()
    assert not re.search(r"https?://|\b(?:src|href)=\"(?!data:|#)|\son\w+=|style=\"", html)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function", html)
