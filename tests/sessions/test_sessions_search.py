"""A search over sessions costs a `grep` and the rest of the turns found, and finds what a scan of all text finds."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from monocontext import Monocontext, publish
from monocontext.errors import AccessDenied, StoreFailure
from monocontext.sessions import Sessions, upload_session
from monocontext.sessions.archive import Project
from monocontext.sessions.readers import recognize_session
from monocontext.stores import open_store
from monocontext.stores.protocol import Store
from monocontext.testing import CountingStore
from monocontext.testing.stores import WrappedStore
from sessions.agents import Claude, session_id

NEEDLE = "Zq7_handleRefund42"
HOLDING = (3, 17, 31)


def fill(store: Store, folder: Path, count: int = 40, characters: int = 60_000) -> None:
    words = [f"{random.Random(n).getrandbits(40):x}" for n in range(3000)]
    chance = random.Random(7)
    for number in range(count):
        session = Claude(number, day=f"2026-02-{number % 28 + 1:02d}")
        for turn in range(6):
            text = " ".join(chance.choices(words, k=characters // 66))
            session.says(f"{text} see {NEEDLE} there" if number in HOLDING and turn == 3 else text)
        upload_session(store, recognize_session(session.write(folder)))


def scan(project: Project, word: str) -> list[tuple[object, ...]]:
    """What a plain scan of all text finds."""
    return [
        (turn.session_id, turn.number)
        for session in project.list_sessions()
        for turn in project.turns(session)
        if word.lower() in turn.text.lower()
    ]


def found(project: Project, word: str) -> list[tuple[object, ...]]:
    return [(hit["session_id"], hit["turn_number"]) for hit in project.search_transcripts(word)]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = open_store(tmp_path_factory.mktemp("a"))
    fill(store, tmp_path_factory.mktemp("transcripts"))
    Sessions(store).project("proj").context().close()
    return store


def _gets(archive: Store, plain: Store, needle: str) -> tuple[int, int]:
    """The requests of a search over sessions, and of a grep over a plain text of the same characters."""
    ours, theirs = CountingStore(archive), CountingStore(plain)
    Sessions(ours).project("proj").search_transcripts(needle)
    with Monocontext.open(theirs) as text:
        list(text.grep(needle, fixed=True, ignore_case=True))
    return ours.gets, theirs.gets


@pytest.mark.parametrize("size", ["12 MB", pytest.param("200 MB", marks=pytest.mark.fuzz)])
def test_it_costs_what_a_grep_costs(size: str, archive: Store, tmp_path: Path) -> None:
    if size == "200 MB":
        archive = open_store(tmp_path / "large")
        (tmp_path / "t").mkdir()
        fill(archive, tmp_path / "t", 500, 400_000)
    with Sessions(archive).project("proj").context() as text:
        publish((text[at : at + (8 << 20)] for at in range(0, len(text), 8 << 20)), tmp_path / "plain")
    for needle, turns in ((NEEDLE, len(HOLDING)), ("nowhere_to_be_found", 0)):
        ours, theirs = _gets(archive, open_store(tmp_path / "plain"), needle)
        assert theirs <= ours <= theirs + 2 * turns  # a turn may begin and end in other frames than its hit


@pytest.mark.parametrize(
    "word", [NEEDLE, "zq7", "a", "see zq7_HANDLErefund42", "nowhere_to_be_found", "ünï", "SESSION: 84ede0c3", "Turn 2"]
)
def test_it_equals_a_scan(archive: Store, word: str) -> None:
    project = Sessions(archive).project("proj")
    assert found(project, word)[:200] == scan(project, word)[:200]


def test_sessions_by_words_best_first(archive: Store) -> None:
    project = Sessions(archive).project("proj")
    result = project.search(f"{NEEDLE} seeing")
    assert not result.note
    assert {one.document for one in result} == {session_id(n) for n in HOLDING}
    assert all(NEEDLE in one.text for one in result)
    assert [row["session_id"] for row in project.search_sessions(NEEDLE)] == [one.document for one in result]


@pytest.mark.parametrize(
    "title", ["A title_in_the_head", "[Turn on the lamp", "=== SESSION: of today ===", "[Turn 1 - USER] - text -"]
)
def test_lines_like_heads_and_several_lines(title: str, tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    for number in (1, 2):
        session = Claude(number)
        session.bare(type="summary", summary=title, leafUuid="x")
        session.user(f"{title.removeprefix('A title_')} please")
        session.says("before\n[Turn 9 - USER] is a QUOTED_HEAD\n  [Turn of events\nlast line of it")
        session.says("=== SESSION: x ===\nquoted too")
        upload_session(store, recognize_session(session.write(tmp_path)))
    project = Sessions(store).project("proj")
    for word in ("[Turn 9 - USER] is a quoted_head", "quoted_head\n  [turn of", "İ", "events\nlast line", "session: x",
                 "quoted", "title_in_the_head", "before\n[turn 9", "please", "turn", "session"):  # fmt: skip
        assert found(project, word) == scan(project, word), word
    assert found(project, "title_in_the_head") == []


def test_the_text_follows_the_sessions(tmp_path: Path) -> None:
    """New, grown and gone ones; four readers at once add each of them once."""
    store = open_store(tmp_path / "a")
    fill(store, tmp_path, 5, 3000)
    project = Sessions(store).project("proj")
    assert found(project, NEEDLE) == scan(project, NEEDLE) != []
    grown, new = Claude(0), Claude(9)
    for session in (grown, new):
        session.says(f"and {NEEDLE} once more")
        upload_session(store, recognize_session(session.write(tmp_path / "more")))
    store.delete(f"sessions/proj/{session_id(1)}.jsonl.zst")
    with ThreadPoolExecutor(4) as threads:
        (text,) = set(threads.map(lambda _: str(Sessions(store).project("proj").context()), range(4)))
    names = [line.split()[2] for line in text.splitlines() if line.startswith("=== SESSION: ")]
    assert sorted(names) == sorted(project.list_sessions())
    assert {session_id(n) for n in (0, 2, 3, 4, 9)} == {name.removesuffix(".2") for name in names}
    assert found(project, NEEDLE) == scan(project, NEEDLE)


def test_an_empty_text_is_filled_again(tmp_path: Path) -> None:
    """All sessions are gone or damaged, and a new one comes."""
    store = open_store(tmp_path / "a")
    fill(store, tmp_path, 1, 3000)
    project = Sessions(store).project("proj")
    assert len(project.context())
    key = f"sessions/proj/{session_id(0)}.jsonl.zst"
    whole = store.get(key).data
    store.put(f"sessions/proj/{session_id(7)}.jsonl.zst", b"damaged")
    store.delete(key)
    with pytest.warns(UserWarning, match="left out"):
        empty = project.context()
    store.put(key, whole)
    with pytest.warns(UserWarning, match="left out"):
        filled = project.context()
    assert (len(empty), len(filled) > 0) == (0, True)


def test_a_session_that_is_gone_is_not_kept_in_silence(tmp_path: Path) -> None:
    """A store that fails while the text of a removed session is taken out: the caller is told."""

    class Failing(WrappedStore):
        fails = False

        def put(self, key: str, data: bytes, **options: Any) -> str:
            if self.fails and "/generations/" in key:
                raise StoreFailure(f"{key}: no answer")
            return super().put(key, data, **options)

    store = Failing(open_store(tmp_path / "a"))
    fill(store, tmp_path, 3, 3000)
    project = Sessions(store).project("proj")
    assert session_id(1) in str(project.context())
    store.delete(f"sessions/proj/{session_id(1)}.jsonl.zst")
    store.fails = True
    with pytest.raises(StoreFailure, match="no answer"):
        project.context()
    store.fails = False
    assert session_id(1) not in str(project.context())


def test_who_may_only_read_searches_all_the_same(tmp_path: Path) -> None:
    class ReadOnly(WrappedStore):
        def put(self, key: str, data: bytes, **_: object) -> str:  # type: ignore[override]
            raise AccessDenied(f"{key}: not allowed")

    store = open_store(tmp_path / "a")
    fill(store, tmp_path, 5, 3000)
    project = Sessions(ReadOnly(store)).project("proj")
    assert found(project, NEEDLE) == scan(project, NEEDLE) != []
    assert not list(store.list("texts/"))
