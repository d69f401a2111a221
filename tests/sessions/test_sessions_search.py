"""A search over sessions reads what search filters leave, and finds what a scan of all text finds."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from monocontext import regex
from monocontext.sessions import Sessions, search_index, upload_session
from monocontext.sessions.archive import Project
from monocontext.sessions.readers import recognize_session
from monocontext.stores import open_store
from monocontext.stores.protocol import Blob, Store
from monocontext.testing import CountingStore, SlowStore
from monocontext.testing.stores import WrappedStore
from monocontext.text.search import ranked
from sessions.agents import Claude

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
        (turn.session_id, turn.n)
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
    return store


@pytest.mark.slow
def test_a_rare_word_costs_a_few_texts(archive: Store) -> None:
    Sessions(archive).project("proj").index()
    sizes = {info.key: info.size_bytes for info in archive.list()}
    holding = sum(size for key, size in sizes.items() if "/turns-" in key) * len(HOLDING) / 40
    store = CountingStore(archive)
    assert len(found(Sessions(store).project("proj"), NEEDLE.lower())) == 3
    beside = store.bytes_read - holding  # the texts that hold it are read, whatever filters say
    assert beside < 0.02 * sum(sizes.values()), store
    read = [request.key for request in store.log if request.verb.startswith("get") and "/turns-" in request.key]
    assert len(read) == 3
    # Index, then rows; descriptions of three sessions, then their texts: four rounds, with listings beside the first.
    assert [sum("/session.json" in request.key for request in store.log), len(read)] == [3, 3]


class Rounds(WrappedStore):
    """Counts requests in a row: one that begins after another has ended may have waited for it."""

    def __init__(self, store: Store) -> None:
        super().__init__(SlowStore(store, 0.3))  # so that those of one round begin before the first of them ends
        self.rounds = 0

    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        return self._in_a_round(lambda: super(Rounds, self).get(key, most_bytes=most_bytes))

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        return self._in_a_round(lambda: super(Rounds, self).get_range(key, start, length, etag=etag))

    def _in_a_round(self, get: Callable[[], Blob]) -> Blob:
        own = self.rounds + 1
        blob = get()
        self.rounds = max(self.rounds, own)
        return blob


@pytest.mark.slow
def test_500_sessions_of_200_mb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = open_store(tmp_path / "a")
    (tmp_path / "t").mkdir()
    fill(archive, tmp_path / "t", 500, 400_000)
    Sessions(archive).project("proj").index()
    stored = sum(info.size_bytes for info in archive.list())
    store = CountingStore(archive)
    counted = Rounds(store)
    assert len(found(Sessions(counted).project("proj"), NEEDLE)) == 3
    with capsys.disabled():
        print(f"\n{stored:,} bytes stored, {store.bytes_read:,} read by {store.gets} GETs in {counted.rounds} rounds")
    assert store.bytes_read <= 0.02 * stored
    assert counted.rounds <= 6


@pytest.mark.parametrize("word", [NEEDLE, "zq7", "a", "see zq7_HANDLErefund42", "nowhere_to_be_found", "ünï"])
def test_it_equals_a_scan(archive: Store, word: str) -> None:
    project = Sessions(archive).project("proj")
    assert found(project, word)[:200] == scan(project, word)[:200]


def test_sessions_by_words_best_first(archive: Store) -> None:
    Sessions(archive).project("proj").index()
    store = CountingStore(archive)
    project = Sessions(store).project("proj")
    result = project.search(f"{NEEDLE} seeing")
    assert not result.note
    with project.context() as text:
        all_read = ranked.scan(text.span, [f"{NEEDLE} seeing"], 1000)[0]
        documents = [text.documents.at(one.start).name for one in all_read]
    holding = {hit["session_id"] for hit in project.search_transcripts(NEEDLE)}
    assert len(result) == 3
    assert {one.document for one in result} == holding == set(documents)
    assert all(NEEDLE in one.text for one in result)
    counted = CountingStore(archive)
    Sessions(counted).project("proj").search(f"{NEEDLE} seeing")
    read = {request.key for request in counted.log if request.verb.startswith("get") and "/turns-" in request.key}
    assert len(read) <= 4, "the three that hold it, and one that filters say may hold the other word"
    assert [row["session_id"] for row in project.search_sessions(NEEDLE)] == [one.document for one in result]


def test_a_cell_is_told_that_the_budget_ended(archive: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranked, "MOST_BYTES", 0)
    [row] = Sessions(archive).project("proj").search_sessions(NEEDLE)
    assert "the budget ended" in row["note"]


def test_uploads_make_filters_once_a_megabyte_waits(archive: Store) -> None:
    assert [info.key for info in archive.list("search/proj/filters/")]


def test_text_that_waits_or_is_unknown_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path / "a")
    fill(store, tmp_path, 5, 3000)  # holds the needle once, in a text that waits
    project = Sessions(store).project("proj")
    assert [info.key for info in store.list("search/")] == ["search/proj/index.json"]
    assert len(found(project, NEEDLE)) == 1
    store.delete("search/proj/index.json")  # as of an upload of before
    assert len(found(project, NEEDLE)) == 1
    assert project.index() == 5
    assert project.index() == 0
    assert found(Sessions(store).project("proj"), NEEDLE) == scan(project, NEEDLE)
    assert project.index(rebuild=True) == 5
    assert len(found(project, NEEDLE)) == 1


def test_the_list_of_texts_is_stored_in_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_index, "PIECES_PER_PAGE", 2)
    monkeypatch.setattr(search_index, "WAITING_BYTES", 1)
    store = open_store(tmp_path / "a")
    fill(store, tmp_path, 5, 3000)
    assert sum("/pieces-" in info.key for info in store.list("search/")) == 2
    assert sum(info.key.endswith(".flt") for info in store.list("search/")) == 1  # merged, and the old ones removed
    project = Sessions(store).project("proj")
    assert found(project, NEEDLE) == scan(project, NEEDLE) != []
    counted = CountingStore(store)
    assert found(Sessions(counted).project("proj"), "nowhere_to_be_found") == []
    assert not any("/turns-" in request.key for request in counted.log if request.verb == "get")


def test_a_search_whose_filters_are_replaced_meanwhile_asks_anew(tmp_path: Path) -> None:
    class Replacing(WrappedStore):
        """Lets another upload replace the filters as soon as a search has read which there are."""

        is_replaced = False

        def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
            blob = super().get(key, most_bytes=most_bytes)
            if key.endswith("/index.json") and not self.is_replaced:
                self.is_replaced = True
                session = Claude(9)
                session.says("another one " * 100)
                upload_session(plain, recognize_session(session.write(tmp_path)))
                assert Sessions(plain).project("proj").index() == 0  # what waited got its filters
            return blob

    plain = open_store(tmp_path / "a")
    fill(plain, tmp_path, 5, 3000)
    Sessions(plain).project("proj").index()
    before = [info.key for info in plain.list("search/proj/filters/")]
    assert len(found(Sessions(Replacing(plain)).project("proj"), NEEDLE)) == 1
    assert before != [info.key for info in plain.list("search/proj/filters/")]


def test_a_text_with_several_lines_and_lines_like_heads(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    session = Claude(1)
    session.says("before\n[Turn 9 - USER] is a QUOTED_HEAD\n  [Turn of events\nlast line of it")
    upload_session(store, recognize_session(session.write(tmp_path)))
    project = Sessions(store).project("proj")
    project.index()
    for word in ("[Turn 9 - USER] is a quoted_head", "quoted_head\n  [turn of", "İ", "events\nlast line"):
        assert found(project, word) == scan(project, word)
    assert len(found(project, "before\n[turn 9")) == 1


# -- grep over the text of a project -----------------------------------------------------------------------------------


def test_grep_over_a_project_asks_the_filters(archive: Store) -> None:
    Sessions(archive).project("proj").index()
    texts = {info.key: info.size_bytes for info in archive.list("transcripts/") if "/turns-" in info.key}
    store = CountingStore(archive)
    with Sessions(store).project("proj").context(cache_bytes=8 << 20) as context:
        store.reset()
        hits = [hit.line for hit in context.grep(NEEDLE)]
        assert (len(hits), all(NEEDLE in line for line in hits)) == (3, True)
        pieces = [request for request in store.log if "/turns-" in request.key]
        assert len({request.key for request in pieces}) == 3, store
        assert store.bytes_read < 1.2 * sum(texts.values()) * len(HOLDING) / len(texts) + 100_000
        store.reset()
        assert NEEDLE in context
        assert context.count("nowhere_to_be_found") == 0
        assert not any("/turns-" in request.key for request in store.log), store


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern",
    [NEEDLE, NEEDLE.lower(), f"(?i){NEEDLE.upper()}", f"see {NEEDLE}|SESSION: \\S+-00000000000[12]", "bug|refund",
     f"(?s){NEEDLE}.*?Turn", "(?m)^agent claude-code .* 2026-02-0[45]", "there\n\n=== SESSION", "zzzzzz_nowhere"],
)  # fmt: skip
def test_grep_over_a_project_equals_grep_over_its_text(archive: Store, pattern: str) -> None:
    Sessions(archive).project("proj").index()
    with Sessions(archive).project("proj").context(cache_bytes=8 << 20) as context:
        whole = "".join(context[at : at + 1_000_000] for at in range(0, len(context), 1_000_000))
    with Sessions(archive).project("proj").context(cache_bytes=8 << 20) as context:
        assert [m.span() for m in regex.finditer(pattern, context)] == [m.span() for m in re.finditer(pattern, whole)]


def test_grep_sees_what_no_filter_knows(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    fill(store, tmp_path, 12, 20_000)
    project = Sessions(store).project("proj")
    project.index()
    late = Claude(50, day="2026-03-01")
    late.says(f"and {NEEDLE} once more")
    upload_session(store, recognize_session(late.write(tmp_path)))
    with project.context(cache_bytes=1 << 20) as context:
        assert len(list(context.grep(NEEDLE))) == 2
    store.delete("search/proj/index.json")
    with project.context(cache_bytes=1 << 20) as context:
        assert len(list(context.grep(NEEDLE))) == 2
