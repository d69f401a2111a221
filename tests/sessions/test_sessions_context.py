"""All sessions as one text, and what it costs to open them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from monocontext import Monocontext
from monocontext.errors import InvalidUrl, MonocontextError, NotFound
from monocontext.sessions import Sessions, open_project, upload_session
from monocontext.sessions.readers import recognize_session
from monocontext.stores import open_store
from monocontext.stores.protocol import Store
from monocontext.testing import CountingStore
from sessions.agents import Claude, session_id, small


def archive_of(store: Store, folder: Path, count: int, **options: object) -> list[Claude]:
    sessions = [small(n, day=f"2026-02-{n:02d}", **options) for n in range(1, count + 1)]  # type: ignore[arg-type]
    for session in sessions:
        upload_session(store, recognize_session(session.write(folder)), user="dev@here")
    return sessions


def test_one_text(any_store: Store, tmp_path: Path) -> None:
    archive_of(any_store, tmp_path, 3)
    with open_project(any_store, "proj") as context:
        assert isinstance(context, Monocontext)
        text = str(context)
    heads = [line for line in text.splitlines() if line.startswith("===")]
    assert heads == [f"=== SESSION: {session_id(n)} ===" for n in (1, 2, 3)]
    assert (text.count("dev@here"), text.count("[Turn 1 - USER] 2026-02-0")) == (3, 3)
    assert "method 2 instead of a lock" in text


def test_between_two_times(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    archive_of(store, tmp_path, 5)
    project = Sessions(store).project("proj")

    def days(since: object = None, until: object = None) -> list[str]:
        found = project.context(since, until)
        return [line[13:-4][-2:] for line in str(found).splitlines() if line.startswith("=== SESSION")]

    assert days() == ["01", "02", "03", "04", "05"]
    assert days("2026-02-02", "2026-02-03") == ["02", "03"]
    assert days(date(2026, 2, 2), date(2026, 2, 3)) == ["02", "03"]
    assert days(until=int(datetime(2026, 2, 1, 10, 0, 5, tzinfo=UTC).timestamp())) == ["01"]
    assert days(datetime(2026, 2, 4, tzinfo=UTC)) == days("2026-02-04T11:30:00+02:00") == ["04", "05"]
    assert days(until=datetime(2026, 2, 1, 23, tzinfo=UTC).timestamp()) == ["01"]
    part = str(project.context("2026-02-02T10:00:01Z", "2026-02-02T10:00:02Z"))
    heads = [line for line in part.splitlines() if line.startswith("[Turn")]
    assert heads == [f"[Turn {n} - ASSISTANT] 2026-02-02T10:00:0{n - 1}.000Z text -" for n in (2, 3)]
    assert len(project.context("2030-01-01")) == 0
    assert len(project.sessions("2026-02-03")) == 3
    with pytest.raises(MonocontextError, match="Z, not 'soon'"):
        project.context("soon")


def test_helpers_of_deeprecurse(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    archive_of(store, tmp_path, 2)
    names = open_project(store, "proj").repl_namespace().names
    assert names["list_sessions"]() == [session_id(1), session_id(2)]
    assert names["list_turns"](session_id(1)) == [1, 2, 3, 4]
    turn = names["read_turn"](session_id(1), 1)
    assert turn.items() >= {
        "turn_number": 1, "role": "user", "content": "Please fix bug number 1",
        "timestamp": "2026-02-01T10:00:00.000Z", "session_id": session_id(1),
    }.items()  # fmt: skip
    assert names["read_turn"](session_id(1), 9) == {"error": f"Turn 9 not found in session {session_id(1)}"}
    begun = "[Turn 1 - USER]\nPlease fix bug number 1\n\n[Turn 2 - ASSIST"
    assert names["read_session"](session_id(1)).startswith(begun)
    assert names["read_session"]("../nope") == "No turns found for session ../nope"
    assert [hit["session_id"] for hit in names["search_transcripts"]("METHOD 2")] == [session_id(2)]


def test_what_opening_costs(tmp_path: Path) -> None:
    store = CountingStore(open_store(tmp_path / "a"))
    archive_of(store, tmp_path, 20, turns=6)
    store.reset()
    context = open_project(store, "proj")
    assert store.counts["get"] > 20, "each session once, for the text"
    assert len(context) > 0
    store.reset()
    open_project(store, "proj")
    assert store.counts == {"list": 1, "get": 1}
    store.reset()
    Sessions(store).project("proj").sessions()
    assert store.counts == {"list": 1, "get_range": 20}
    sizes = [info.size_bytes for info in store.list("sessions/")]
    assert store.bytes_read == sum(min(4096, size) for size in sizes), "the head of each, however long it is"
    store.reset()
    Sessions(store).project("proj").turns(session_id(1))
    assert (store.counts, store.bytes_read) == ({"get": 1}, sizes[0])


def test_projects_are_named_or_refused(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    with pytest.raises(NotFound, match="0 projects: upload a session first"):
        open_project(store)
    upload_session(store, recognize_session(small(1, cwd="/x/one").write(tmp_path)))
    assert len(open_project(store)) > 0
    upload_session(store, recognize_session(small(2, cwd="/x/two").write(tmp_path)))
    with pytest.raises(NotFound, match="sessions of 2 projects: pass as project= one of one, two"):
        open_project(store)
    with pytest.raises(NotFound, match="no sessions of project 'three'"):
        open_project(store, "three")
    for name in ("", "x" * 300):
        with pytest.raises(InvalidUrl):
            open_project(store, name)


def test_each_session_is_a_document_and_lists_by_what_is_known_of_it(tmp_path: Path) -> None:
    plain = open_store(tmp_path / "a")
    for number, branch in ((1, "main"), (2, "fix/login"), (3, "fix/login")):
        session = Claude(number, day=f"2026-02-{number:02d}")
        session.user("Please look", gitBranch=branch)
        session.calls("Bash" if number < 3 else "Edit", {"x": 1}, gitBranch=branch)
        upload_session(plain, recognize_session(session.write(tmp_path)), user="ana@x")
    store = CountingStore(plain)
    project = Sessions(store).project("proj")
    assert project.list_sessions(branch="fix/login") == [session_id(2), session_id(3)]
    assert store.counts == {"list": 1, "get_range": 3}
    assert project.list_sessions("2026-02-02", branch="fix/login", tool="Bash") == [session_id(2)]
    assert project.list_sessions(until="2026-02-01") == [session_id(1)]
    with project.context() as context:
        documents = context.documents
        assert list(documents) == [session_id(n) for n in (1, 2, 3)]
        assert [documents.metadata(name)["tools"] for name in documents] == [["Bash"], ["Bash"], ["Edit"]]
        about = documents.metadata(session_id(2))
        assert (about["branch"], about["started"][:10], about["users"]) == ("fix/login", "2026-02-02", ["ana@x"])
        assert str(documents[session_id(2)]).startswith(f"=== SESSION: {session_id(2)} ===")
        assert "".join(str(documents[name]) for name in documents) == context[:]
