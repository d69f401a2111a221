"""Codex: what stands twice, every kind of item, forks, and threads of subagents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from monocontext.sessions import Sessions, background_upload, upload_session
from monocontext.sessions.codex import LEFT_OUT
from monocontext.sessions.readers import SESSION_READERS, discover_sessions, recognize_session
from monocontext.sessions.turn import Turn
from monocontext.stores import open_store
from sessions.agents import as_lines, everything, session_id

Record = dict[str, Any]
SECRET = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"


def at(milliseconds: float | None) -> Record:
    if milliseconds is None:
        return {}
    minutes, rest = divmod(int(milliseconds), 60_000)
    return {"timestamp": f"2026-02-14T10:{minutes:02d}:{rest // 1000:02d}.{rest % 1000:03d}Z"}


def record(kind: str, when: float | None = None, **payload: Any) -> Record:
    return {**at(when), "type": kind, "payload": payload}


def item(role: str, text: str, when: float | None = None) -> Record:
    block = {"type": "input_text" if role == "user" else "output_text", "text": text}
    return record("response_item", when, type="message", role=role, content=[block])


def event(role: str, text: str, when: float | None = None) -> Record:
    kind = {"user": "user_message", "assistant": "agent_message"}[role]
    return record("event_msg", when, type=kind, message=text)


def meta(number: int, when: float | None = 0, **more: Any) -> Record:
    return record("session_meta", when, **{"id": session_id(number), "cwd": "/home/dev/api", **more})


def write(folder: Path, number: int, records: list[Record], second: int = 0) -> Path:
    path = folder / f"rollout-2026-02-14T10-00-{second:02d}-{session_id(number)}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(as_lines(records))
    return path


def feed(records: list[Record], session: str = session_id(1)) -> tuple[list[Turn], Any]:
    maker = SESSION_READERS["codex"].maker(session)
    return [turn for each in records for turn in maker.feed(each)], maker


TOOLS = [
    record("response_item", type="function_call", name="shell", arguments="{}", call_id="c"),
    record("response_item", type="function_call_output", call_id="c", output="ok"),
] * 6


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        pytest.param([item("user", "yes", 0), event("user", "yes", 1)], ["yes"], id="item and event"),
        pytest.param([event("user", "yes", 0), item("user", "yes", 0)], ["yes"], id="event and item"),
        pytest.param([item("user", "yes", 0), item("user", "yes", 1)], ["yes"] * 2, id="two items"),
        pytest.param([event("user", "yes", 0), event("user", "yes", 0)], ["yes"] * 2, id="two events"),
        pytest.param([item("user", "yes"), event("user", "yes")] * 2, ["yes"] * 2, id="two pairs without time"),
        (
            [item("user", "yes", 0), item("user", "yes", 2), event("user", "yes", 3), event("user", "yes", 4)],
            ["yes"] * 2,
        ),
        pytest.param([item("user", "yes", 0), event("user", "yes", 30_000)], ["yes"] * 2, id="two moments"),
        pytest.param([item("user", "yes", 0), event("user", "yes", 1_000)], ["yes"] * 2, id="a second later"),
        ([item("assistant", "Yes.", 0), *TOOLS, item("assistant", "Yes.", 9_000)], ["Yes.", *["{}", "ok"] * 6, "Yes."]),
        pytest.param([item("user", "yes", 0), event("assistant", "yes", 0)], ["yes"] * 2, id="two roles"),
        pytest.param([item("user", "yes ", 0), event("user", "yes\n", 1)], ["yes "], id="white space"),
        ([item("user", "a", 0), item("user", "b", 0), event("user", "b", 1), event("user", "a", 1)], ["a", "b"]),
    ],
)
def test_words_of_one_moment_are_one_turn(records: list[Record], expected: list[str]) -> None:
    assert [turn.text for turn in feed(records)[0]] == expected


@pytest.mark.parametrize("words", ["continue", f"use GITHUB_TOKEN={SECRET}"])
def test_an_upload_between_an_item_and_its_event(words: str, tmp_path: Path) -> None:
    records = [meta(1), item("user", words, 5), event("user", words, 6), item("user", words, 9_000)]
    store = open_store(tmp_path / "a")
    for count in range(1, 5):
        upload_session(store, recognize_session(write(tmp_path, 1, records[:count])))
    turns = Sessions(store).project("api").turns(session_id(1))
    assert [turn.role for turn in turns] == ["user", "user"]
    assert SECRET.encode() not in everything(store)


ITEMS: dict[str, tuple[Record, list[str]]] = {
    # The 18 kinds that `codex app-server generate-json-schema` of 0.169.0 names.
    "additional_tools": ({"role": "developer", "tools": [{"name": "x"}]}, []),
    "message": ({"role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}, ["Hi"]),
    "agent_message": (
        {"author": "/root/count", "recipient": "/root", "content": [{"type": "input_text", "text": "3 files"}]},
        ["[/root/count to /root]\n3 files"],
    ),
    "reasoning": ({"summary": [], "encrypted_content": "gAAAA"}, []),
    "local_shell_call": ({"call_id": "c", "action": {"command": ["ls"]}}, ['{"command": ["ls"]}']),
    "function_call": ({"call_id": "c", "name": "f", "arguments": ""}, ["[no arguments]"]),
    "tool_search_call": ({"call_id": "c", "execution": "client", "arguments": {"query": "git"}}, ['{"query": "git"}']),
    "function_call_output": ({"call_id": "c", "output": [{"type": "input_text", "text": "ok"}]}, ["ok"]),
    "custom_tool_call": ({"call_id": "c", "name": "apply_patch", "input": "*** Begin"}, ["*** Begin"]),
    "custom_tool_call_output": ({"call_id": "c", "output": "done"}, ["done"]),
    "tool_search_output": (
        {"call_id": "c", "tools": [{"name": "git", "tools": [{"name": "log"}, {"name": "diff"}]}, {"name": "ls"}]},
        ["git (log, diff), ls"],
    ),
    "web_search_call": ({"action": {"type": "search", "query": "x"}}, ['{"type": "search", "query": "x"}']),
    "image_generation_call": ({"revised_prompt": "a cat", "result": "iVBORw0KGgo="}, ["a cat", "[image]"]),
    "compaction": ({"encrypted_content": "gAAAA"}, ["[conversation compacted]"]),
    "configuration_update": ({"reasoning": {}}, []),
    "compaction_trigger": ({}, []),
    "context_compaction": ({"encrypted_content": None}, ["[conversation compacted]"]),
    "other": ({}, []),
}


@pytest.mark.parametrize("kind", ITEMS)
def test_every_kind_of_item_is_a_turn_or_is_named_as_left_out(kind: str) -> None:
    fields, expected = ITEMS[kind]
    turns, maker = feed([record("response_item", 0, type=kind, **fields)])
    assert [turn.text for turn in turns] == expected
    assert maker.unknown == {}
    assert bool(expected) != (kind in LEFT_OUT)


def test_what_is_unknown_is_named_by_its_own_word() -> None:
    records = [record("hologram", 0, x=1), record("response_item", 0, type="dream"), record("world_state", 0, x=1)]
    assert feed(records)[1].unknown == {"hologram": 1, "dream": 1}


def test_what_happens_to_a_session() -> None:
    notice = (
        '<subagent_notification>\n{"agent_path":"/root/a","status":{"completed":"3 files"}}\n</subagent_notification>'
    )
    turns, maker = feed(
        [
            item("user", "one", 0), item("user", "two", 1), item("user", "<turn_aborted>\n", 2),
            record("event_msg", 3, type="turn_aborted", reason="interrupted"),
            record("event_msg", 4, type="thread_rolled_back", num_turns=1), item("user", notice, 5),
            record("event_msg", 6, type="thread_name_updated", thread_name="Counting"),
        ]
    )  # fmt: skip
    assert [(turn.role, turn.text, turn.marks) for turn in turns] == [
        ("user", "one", ()), ("user", "two", ()), ("system", "[interrupted]", ()),
        ("system", "[rolled back]", ("back_to=1",)), ("assistant", "[/root/a]\n3 files", ()),
    ]  # fmt: skip
    assert (maker.title, maker.first_prompt) == ("Counting", "one")


OWN = {"cwd": "/home/dev/fork", "git": {"branch": "mine", "repository_url": "git@github.com:acme/api.git"}}
PARENT = {"cwd": "/home/dev/parent", "git": {"branch": "theirs", "repository_url": "git@github.com:acme/old.git"}}


@pytest.mark.parametrize("replayed", [0, 1], ids=["at once", "a millisecond later"])
@pytest.mark.parametrize("is_own_first", [True, False])
def test_a_fork_has_its_own_place_and_title(is_own_first: bool, replayed: int, tmp_path: Path) -> None:
    heads = [meta(2, 100, forked_from_id=session_id(1), **OWN), meta(1, 100 + replayed, **PARENT)]
    replay = [record("turn_context", 100 + replayed, cwd="/home/dev/parent", model="old")]
    replay += [said("user", "Of the parent", 100 + replayed) for said in (item, event)]
    own = [record("turn_context", 5_000, cwd="/home/dev/fork", model="new"), item("user", "Of the fork", 5_001)]
    records = [*heads, *replay, *own] if is_own_first else [*heads[::-1], *own]
    store = open_store(tmp_path / "a")
    assert upload_session(store, recognize_session(write(tmp_path, 2, records))).project == "github.com-acme-api"
    info = Sessions(store).project("github.com-acme-api").info(session_id(2))
    assert (info.branch, info.cwd, info.first_prompt) == ("mine", "/home/dev/fork", "Of the fork")


def test_a_fork_without_words_of_its_own_is_named_by_its_parents() -> None:
    own = record("turn_context", 5_000, cwd="/home/dev/fork")
    turns, maker = feed([meta(1, 0, **OWN), meta(2, 0, **PARENT), item("user", "Of the parent", 0), own])
    assert (maker.first_prompt, maker.branch, len(turns)) == ("Of the parent", "mine", 1)


def spawned(number: int, parent: int, **more: Any) -> Record:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": session_id(parent), "depth": 1}}}
    return meta(number, 0, source=source, thread_source="subagent", agent_nickname="Nash", **more)


def test_threads_of_subagents_belong_to_their_session(own_home: Path, tmp_path: Path) -> None:
    """Also where the hook names a file outside of the known folders."""
    day = own_home / ".codex" / "sessions" / "2026" / "02" / "14"
    main = write(day, 1, [meta(1), item("user", "Count", 1)])
    write(day, 2, [spawned(2, 1), item("user", "Count files", 2)], second=1)
    write(day, 3, [spawned(3, 2), item("user", "Count lines", 3)], second=2)  # below a subagent, session not named
    write(day.parent / "15", 4, [spawned(4, 9, session_id=session_id(1)), item("user", "Later", 4)], second=3)
    write(day, 5, [meta(5, forked_from_id=session_id(1)), item("user", "A fork", 5)], second=4)
    write(day, 6, [meta(6, source={"subagent": "review"}, parent_thread_id=session_id(1))], second=5)
    below = {f"{session_id(1)}/subagents/{session_id(number)}" for number in (2, 3, 4, 6)}
    assert {file.session_id for file in discover_sessions("codex")} == {session_id(1), session_id(5), *below}
    for name in (".codex", "elsewhere"):
        if name == "elsewhere":
            (own_home / ".codex").rename(own_home / name)
        path = own_home / name / main.relative_to(own_home / ".codex")
        job = {"url": str(tmp_path / name), "transcript_path": str(path), "session_id": session_id(1)}
        background_upload.upload_missing({**job, "agent": "codex", "event": "session-end", "cwd": "/nowhere"})
        archive = Sessions.open(tmp_path / name)
        (project,) = map(archive.project, archive.projects())
        assert set(project.list_sessions()) == {session_id(1), *below}
        info = project.info(min(below))
        assert (info.title, info.first_prompt) == ("Nash", "Count files")


def completed(second: int, kind: str, **fields: Any) -> Record:
    fields = {"thread_id": session_id(1), "item": {"type": kind, **fields}}
    return record("event_msg", second, type="item_completed", **fields)


def test_a_rollout_of_completed_items_alone() -> None:
    """As Codex 0.171 writes them beside the items of the model; such a file may hold nothing else."""
    alone = [
        meta(1),
        completed(1, "UserMessage", id="u", content=[{"type": "text", "text": "Run it"}]),
        completed(2, "Reasoning", id="r", summary_text=["hm"]),
        completed(3, "CommandExecution", id="c1", command=["ls"], aggregated_output="a.py", exit_code=0),
        completed(4, "FileChange", id="c2", changes={"a.py": {"type": "add"}}, stdout="Done"),
        completed(5, "McpToolCall", id="c3", server="s", tool="search", arguments={"q": 1}, result={"content": "hit"}),
        completed(6, "AgentMessage", id="m", content=[{"type": "Text", "text": "It ran."}]),
    ]
    turns, maker = feed(alone)
    assert [(turn.role, turn.tool, turn.text) for turn in turns] == [
        ("user", "", "Run it"), ("assistant", "exec_command", '["ls"]'), ("tool", "exec_command", "a.py"),
        ("assistant", "apply_patch", '{"a.py": {"type": "add"}}'), ("tool", "apply_patch", "Done"),
        ("assistant", "search", '{"q": 1}'), ("tool", "search", "hit"), ("assistant", "", "It ran."),
    ]  # fmt: skip
    assert (maker.first_prompt, maker.unknown) == ("Run it", {})
    pairs = [
        [item("user", "Run it", 1), alone[1], event("user", "Run it", 1)],
        [record("response_item", 3, type="function_call", name="shell", arguments="ls", call_id="c1"), alone[3]],
        [item("assistant", "It ran.", 6), alone[6]],
    ]
    for order in (1, -1):  # whichever comes first, each message and call stands once
        turns, _ = feed([meta(1), *(each for pair in pairs for each in pair[::order])])
        assert [turn.role for turn in turns if turn.role != "tool"] == ["user", "assistant", "assistant"]


def test_json_of_an_early_version() -> None:
    head = {"id": session_id(1), "timestamp": "2025-05-01T10:00:00Z", "instructions": None}
    turns, maker = feed([head, item("user", "Hello")["payload"], {"record_type": "state"}])
    assert ([turn.text for turn in turns], maker.unknown) == (["Hello"], {})
