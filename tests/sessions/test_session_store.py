"""What the Agent SDK asks of a `SessionStore`; its own suite runs with `make test-sdk`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from monocontext.errors import InvalidUrl
from monocontext.sessions import Sessions, SessionStore
from monocontext.stores import open_store
from monocontext.stores.protocol import Store

T = TypeVar("T")
MAIN = {"project_key": "-home-dev-proj", "session_id": "s1"}
SIDE = {**MAIN, "subpath": "subagents/agent-x"}


def done(what: Awaitable[T]) -> T:
    async def wait() -> T:
        return await what

    return asyncio.run(wait())


def fold(before: Any, key: Any, entries: list[Any]) -> dict[str, Any]:
    count = (before["data"]["count"] if before else 0) + len(entries)
    return {"session_id": key["session_id"], "mtime": 0, "data": {"count": count}}


@pytest.fixture
def sdk(any_store: Store) -> SessionStore:
    return SessionStore(any_store, fold=fold)


def entries(*names: str) -> list[dict[str, Any]]:
    return [{"type": "user", "uuid": name, "message": {"content": f"{name} 文", "n": [1, None]}} for name in names]


def test_entries_come_back_in_order_and_once(sdk: SessionStore) -> None:
    done(sdk.append(MAIN, entries("z", "a")))
    done(sdk.append(MAIN, [{"type": "mode"}, {"type": "mode"}]))
    done(sdk.append(MAIN, entries("a", "m")))
    done(sdk.append(MAIN, []))
    expected = [*entries("z", "a"), {"type": "mode"}, {"type": "mode"}, *entries("m")]
    assert done(sdk.load(MAIN)) == expected
    assert done(sdk.load(SIDE)) is None
    assert done(sdk.load({**MAIN, "session_id": "s"})) is None


def test_lists_and_summaries(sdk: SessionStore) -> None:
    done(sdk.append(MAIN, entries("a")))
    done(sdk.append(SIDE, entries("b")))
    done(sdk.append({**MAIN, "session_id": "s2"}, entries("c", "d")))
    listed = {each["session_id"]: each["mtime"] for each in done(sdk.list_sessions("-home-dev-proj"))}
    summaries = {each["session_id"]: each for each in done(sdk.list_session_summaries("-home-dev-proj"))}
    assert listed.keys() == summaries.keys() == {"s1", "s2"}
    assert all(summaries[name]["mtime"] >= mtime > 1e12 for name, mtime in listed.items())
    assert [summaries[name]["data"] for name in ("s1", "s2")] == [{"count": 1}, {"count": 2}]
    assert done(sdk.list_sessions("-home-dev")) == done(sdk.list_session_summaries("other")) == []
    assert done(sdk.list_subkeys(MAIN)) == ["subagents/agent-x"]
    assert done(sdk.list_subkeys({**MAIN, "session_id": "s2"})) == []


def test_delete(sdk: SessionStore) -> None:
    for key in (MAIN, SIDE, {**MAIN, "session_id": "s2"}):
        done(sdk.append(key, entries("a")))
    done(sdk.delete(SIDE))
    assert done(sdk.load(SIDE)) is None
    assert done(sdk.load(MAIN)) == entries("a")
    done(sdk.append(SIDE, entries("a")))
    done(sdk.delete(MAIN))
    assert done(sdk.load(MAIN)) is done(sdk.load(SIDE)) is None
    assert [each["session_id"] for each in done(sdk.list_sessions("-home-dev-proj"))] == ["s2"]
    assert [each["session_id"] for each in done(sdk.list_session_summaries("-home-dev-proj"))] == ["s2"]
    done(sdk.delete({**MAIN, "session_id": "never"}))


def test_writers_at_once_lose_no_entry_and_no_fold(sdk: SessionStore) -> None:
    async def all_at_once() -> None:
        await asyncio.gather(*(sdk.append(MAIN, entries(f"e{n}")) for n in range(6)))

    asyncio.run(all_at_once())
    loaded = done(sdk.load(MAIN))
    assert loaded is not None
    assert [entry["uuid"] for entry in loaded] == [f"e{n}" for n in range(6)]
    (summary,) = done(sdk.list_session_summaries("-home-dev-proj"))
    assert summary["data"] == {"count": 6}


def test_hostile_keys_stay_inside(tmp_path: Path) -> None:
    store = open_store(tmp_path / "outer" / "inner")
    sdk = SessionStore(store, fold=fold)
    for name in ("../x", "..", "a/../../b", "/etc"):
        key = {"project_key": name, "session_id": name, "subpath": f"subagents/{name.strip('/')}"}
        done(sdk.append(key, entries(name)))
        done(sdk.append({"project_key": name, "session_id": name}, entries(name)))
        assert done(sdk.load(key)) == entries(name)
        assert [each["session_id"] for each in done(sdk.list_sessions(name))] == [name]
    assert not [path for path in (tmp_path / "outer").rglob("*") if "inner" not in path.parts]
    for bad in ({**MAIN, "subpath": ""}, {**MAIN, "session_id": ""}, {"project_key": "", "session_id": "s"}):
        with pytest.raises(InvalidUrl):
            done(sdk.append(bad, entries("a")))


def test_its_sessions_open_as_text_too(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    said = [{"type": "user", "uuid": "u", "timestamp": "2026-02-14T10:00:00Z", "message": {"content": "Hello there"}}]
    done(SessionStore(store, fold=fold).append(MAIN, said))
    project = Sessions(store).project("-home-dev-proj")
    assert project.read_session("s1") == "[Turn 1 - USER]\nHello there"
    assert "Hello there" in project.context()
    assert [info.first_prompt for info in project.sessions()] == ["Hello there"]
