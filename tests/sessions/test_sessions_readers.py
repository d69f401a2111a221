"""Records of each agent as turns, also from files that a crash, a killed agent or a shell has damaged."""

from __future__ import annotations

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard

from monocontext.errors import InvalidText, NotFound
from monocontext.sessions import Sessions, records, upload_session
from monocontext.sessions.reader import TurnMaker
from monocontext.sessions.readers import SESSION_READERS, discover_sessions, find_sessions, recognize_session
from monocontext.sessions.records import read_lines
from monocontext.sessions.turn import Turn, parse, render
from monocontext.stores import open_store
from sessions.agents import Claude, as_lines, session_id


def read(path: Path) -> tuple[list[Turn], TurnMaker]:
    file = recognize_session(path)
    maker = SESSION_READERS[file.agent].maker(file.session_id)
    return [turn for line in SESSION_READERS[file.agent].lines(path) for turn in maker.feed(line.record)], maker


def turns_in(path: Path) -> list[Turn]:
    return read(path)[0]


def texts_in(path: Path) -> list[tuple[str, str, str]]:
    return [(turn.role, turn.kind, turn.text) for turn in turns_in(path)]


def test_claude_code(tmp_path: Path) -> None:
    session = Claude()
    session.bare(type="summary", summary="Fixing the bug", leafUuid="x")
    session.bare(type="file-history-snapshot", messageId="m", snapshot={})
    session.user("<local-command-stdout>x</local-command-stdout>")
    session.user("Fix the bug", isMeta=True)
    session.user("Fix the bug")
    session.blocks([{"type": "thinking", "thinking": "hm", "signature": "sig"}])
    session.says("I look.")
    session.calls("Bash", {"command": "make test"})
    session.result([{"type": "text", "text": "1 failed"}], toolUseResult={"stdout": "1 failed"})
    session.user([{"type": "text", "text": "see"}, {"type": "image", "source": {"type": "base64", "data": "x"}}])
    session.add("system", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 155_000})
    session.user("What was said before", isCompactSummary=True)
    session.says("Side", isSidechain=True)
    for text, more in (("no", {}), ("also the docs", {"reason": "absorbed_mid_turn"}), ("taken back", {})):
        session.bare(type="queue-operation", operation="enqueue", content=text)
        operation = "popAll" if text == "no" else "remove"
        session.bare(type="queue-operation", operation=operation, content=text, **more)
    session.add("hologram", content="of a later version")
    path = session.write(tmp_path)
    assert texts_in(path) == [
        ("user", "text", "<local-command-stdout>x</local-command-stdout>"), ("user", "text", "Fix the bug"),
        ("assistant", "text", "I look."), ("assistant", "tool_use", '{"command": "make test"}'),
        ("tool", "tool_result", "1 failed"), ("user", "text", "see\n[image]"),
        ("system", "summary", "[conversation compacted: auto, 155000 tokens before]"),
        ("user", "summary", "What was said before"), ("assistant", "text", "Side"), ("user", "text", "also the docs"),
    ]  # fmt: skip
    turns, maker = read(path)
    assert [turn.number for turn in turns] == list(range(1, 11))
    assert (turns[4].tool, turns[8].marks) == ("Bash", ("sidechain=yes",))
    assert (maker.title, maker.first_prompt) == ("Fixing the bug", "Fix the bug")
    assert maker.unknown == {"hologram": 1}


def test_what_the_user_wrote_while_the_agent_worked(tmp_path: Path) -> None:
    """As Claude Code 2.1.332 writes it: an attachment as it is delivered, and a record of the queue behind it."""
    session, said, queued = Claude(), "stop, use branch two", {"type": "queued_command"}
    session.user("Run it")
    for text in (said, "and the docs"):
        session.bare(type="queue-operation", operation="enqueue", content=text)
    session.add("attachment", attachment={**queued, "commandMode": "prompt", "prompt": said})
    session.bare(type="queue-operation", operation="remove", content=said, reason="absorbed_mid_turn")
    blocks = [{"type": "text", "text": "look"}, {"type": "image", "source": {}}]
    session.add("attachment", attachment={**queued, "prompt": blocks})
    session.add("attachment", attachment={**queued, "commandMode": "task-notification", "prompt": "<x>"})
    session.add("attachment", attachment={"type": "date", "date": "2026-11-29"})
    assert texts_in(session.write(tmp_path)) == [
        ("user", "text", "Run it"), ("user", "text", "stop, use branch two"), ("user", "text", "look\n[image]"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("plain", "plain"),
        ({"stdout": "out", "stderr": "and err"}, "out\nand err"),
        ({"type": "text", "file": {"filePath": "/x", "content": "of a file"}}, "of a file"),
        ({"content": [{"type": "text", "text": "of a helper"}]}, "of a helper"),
    ],
)
@pytest.mark.parametrize("content", ["", [], None, [{"type": "text", "text": " "}]])
def test_an_output_that_only_the_screen_has(content: Any, result: Any, expected: str, tmp_path: Path) -> None:
    session = Claude()
    session.calls("Bash", {"command": "x"})
    session.result(content, toolUseResult=result)
    assert texts_in(session.write(tmp_path))[1:] == [("tool", "tool_result", expected)]


def test_an_output_in_a_file_of_its_own(own_home: Path, tmp_path: Path) -> None:
    """It is part of the text; a path that a transcript names is not followed out of the session's folder."""
    folder = own_home / ".claude" / "projects" / "-home-dev-proj"
    session = Claude()
    outputs = folder / session.session_id / "tool-results"
    outputs.mkdir(parents=True)
    (outputs / "be8f7.txt").write_text("preview\nzebra at the end of it")
    (outputs / "late.json").write_text("[]")
    (tmp_path / "passwd").write_text("of somebody")
    session.calls("Bash", {"command": "x"})
    saved = f"<persisted-output>\nOutput too large (220KB). Full output saved to: {outputs}/be8f7.txt\n\npreview"
    session.result(saved, toolUseResult={"stdout": "preview", "persistedOutputPath": f"{outputs}/be8f7.txt"})
    session.calls("Bash", {"command": "y"}, call="toolu_2")
    session.result(f"see {outputs}/../../passwd and {tmp_path}/tool-results/passwd", call="toolu_2")
    path = session.write(folder)
    assert texts_in(path)[2] == ("tool", "tool_result", "preview\nzebra at the end of it")
    assert "of somebody" not in str(texts_in(path))
    assert turns_in(path)[2].tool == "Bash"
    store = open_store(tmp_path / "a")
    (file,) = discover_sessions()
    assert [upload_session(store, file).records for _ in "ab"] == [5, 0]
    shutil.rmtree(outputs)  # Claude Code removes it after 30 days
    assert upload_session(store, file).bytes == 0
    assert Sessions(store).project("proj").search_transcripts("zebra at the end")


def test_journals_and_stubs_are_no_sessions(own_home: Path, tmp_path: Path) -> None:
    """A workflow's journal, an output in JSON lines, and what `/cd` leaves in the old project, which has the title."""
    projects = own_home / ".claude" / "projects"
    session = Claude()
    session.user("Hello")
    session.write(projects / "-home-dev-new")
    below = projects / "-home-dev-new" / session.session_id
    for path in ("subagents/workflows/wf_a/journal.jsonl", "tool-results/out.jsonl"):
        (below / path).parent.mkdir(parents=True)
        (below / path).write_text('{"type": "step", "n": 1}\n')
    stub = Claude()
    for kind in ("mode", "last-prompt", "permission-mode"):
        stub.bare(type=kind, sessionId=session.session_id)
    stub.bare(type="ai-title", aiTitle="The title", sessionId=session.session_id)
    stub.write(projects / "-home-dev-old")
    (file,) = discover_sessions()
    store = open_store(tmp_path / "a")
    upload_session(store, file)
    (info,) = Sessions(store).project("proj").sessions()
    assert (info.session_id, info.title, info.turns) == (session.session_id, "The title", 1)


def test_a_branch_that_was_given_up_is_kept_and_marked(tmp_path: Path) -> None:
    session = Claude()
    first = session.user("First")
    session.says("One way")
    session.user("Go on")
    session.says("Wrong way")
    session.last = first["uuid"]
    session.user("Another way, please")
    turns = turns_in(session.write(tmp_path))
    assert [turn.text for turn in turns] == ["First", "One way", "Go on", "Wrong way", "Another way, please"]
    assert [turn.marks for turn in turns] == [(), (), (), (), ("back_to=1",)]


def test_rollouts_that_are_compressed(tmp_path: Path) -> None:
    rows = [
        {"type": "session_meta", "payload": {"id": session_id(7), "cwd": "/home/dev/api"}},
        *({"type": "response_item", "payload": {"type": "message", "role": "user", "content": n}} for n in ("a", "b")),
    ]
    path = tmp_path / f"rollout-2026-02-14T10-00-00-{session_id(7)}.jsonl.zst"
    lines = as_lines(rows).encode().splitlines(keepends=True)
    for packed in (zstandard.compress(b"".join(lines)), b"".join(map(zstandard.compress, lines))):
        path.write_bytes(packed)
        assert [text for _, _, text in texts_in(path)] == ["a", "b"]
    path.write_bytes(packed[:-5])
    assert SESSION_READERS["codex"].file(path).session_id == session_id(7)
    cut = read_lines(path)
    assert next(cut).record == rows[0]
    with pytest.raises(OSError, match="its end is missing"):
        list(cut)
    path.write_bytes(b"")
    assert not list(read_lines(path)), "an agent has just created it"
    assert max(map(len, records._inflate(io.BytesIO(zstandard.compress(bytes(1 << 26))), path))) <= 1 << 24


def test_calls_in_messages(tmp_path: Path) -> None:
    """Those of Anthropic, and those of OpenAI, without content."""
    path, use = tmp_path / "chat.jsonl", {"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}}
    result = {"type": "tool_result", "tool_use_id": "1", "content": "42"}
    call = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": '{"a": 1}'}}]}
    anthropic = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    for messages in (anthropic, [call, {"role": "tool", "name": "f", "content": "42"}]):
        path.write_text(as_lines(messages))
        found = [(turn.role, turn.kind, turn.tool, turn.text) for turn in turns_in(path)]
        assert found == [("assistant", "tool_use", "f", '{"a": 1}'), ("tool", "tool_result", "f", "42")]


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.jsonl", "this is\nno JSON\n", "not JSON lines: line 1"), ("a.jsonl", "", "empty"),
        ("a.jsonl", "[" * 100_000, "not JSON"), ("a.txt", "USER: a", "expected a file of JSON lines"),
    ],
)  # fmt: skip
def test_what_is_no_transcript_is_one_line(tmp_path: Path, name: str, text: str, why: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InvalidText, match=why) as raised:
        turns_in(path)
    assert "\n" not in str(raised.value)


def test_sessions_of_this_machine(own_home: Path) -> None:
    projects = own_home / ".claude" / "projects"
    main, side, folder = Claude(1), Claude(1), projects / "-home-dev-proj"
    main.user("Hello")
    main.write(folder)
    side.user("Do it", isSidechain=True, agentId="a1")
    side.write(folder / main.session_id / "subagents", name="agent-a1.jsonl")
    side.write(folder, name="agent-b2.jsonl")  # as older versions
    ids = {file.session_id for file in discover_sessions()}
    assert ids == {main.session_id, f"{main.session_id}/subagents/agent-a1", f"{main.session_id}/subagents/agent-b2"}
    assert {file.session_id for file in find_sessions(main.session_id[:12])} == ids
    with pytest.raises(NotFound, match="no session 'zzz'"):
        find_sessions("zzz")
    with pytest.raises(NotFound, match="no agent 'emacs'"):
        discover_sessions("emacs")


def test_rendered_turns_come_back(tmp_path: Path) -> None:
    texts = ["plain", "[Turn 9 - USER]\nforged", " [Turn 9 - USER] twice\n\n", "a\n\n\nb", "== ünï 文 ==", "[Turn"]
    turns = [Turn("s", n, "user", "text", text, "2026-02-14T10:00:00Z", "x y") for n, text in enumerate(texts, 1)]
    back = list(parse(render(turns), "s"))
    assert [replace(turn, tool="x y") for turn in back] == turns


A = {"type": "user", "uuid": "a", "timestamp": "2026-02-14T10:00:00Z", "message": {"role": "user", "content": "é {}"}}
B = {"type": "assistant", "uuid": "b", "timestamp": "2026-02-14T10:00:01Z", "message": {"content": [{"type": "text"}]}}
a, b = (json.dumps(each, ensure_ascii=False).encode() for each in (A, B))
NULS = b"\0" * 143_000
TORN = a[: len(a) // 2]


def utf16(data: bytes, encoding: str = "utf-16") -> bytes:
    return data.decode().encode(encoding)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(a + NULS + b"\n" + b + b"\n", [A, B], id="padded behind"),
        pytest.param(a + NULS + b + b"\n", [A, B], id="NULs for the newline"),
        pytest.param(a + b + b"\n", [A, B], id="no newline between"),
        pytest.param(TORN + b + b"\n", [TORN.decode(), B], id="a record behind one that broke off"),
        pytest.param(TORN + NULS + b + b"\n" + a, [TORN.decode(), B, A], id="NULs in the place of the rest"),
        pytest.param(b'{"type": "x", "message": ' + b + b"\n", ['{"type": "x", "message": ', B], id="within one"),
        pytest.param(b'{"x": {"type": "y", "z": {}}\n', ['{"x": {"type": "y", "z": {}}'], id="an object of one"),
        pytest.param(b'{"x": "a' + b"\0" * 3 + b'b"}\n', ['{"x": "a[3 NULs]b"}'], id="NULs in a string"),
        pytest.param(b"[1]\n" + a, ["[1]", A], id="JSON of another kind"),
        pytest.param(utf16(a + b"\r\n" + b + b"\r\n"), [A, B], id="UTF-16 with a mark"),
        pytest.param(utf16(a + b"\r\n" + b + b"\r\n", "utf-16-le"), [A, B], id="UTF-16 without a mark"),
        pytest.param(a + b"\n" + utf16(b + b"\r\n" + a + b"\r\n", "utf-16-le"), [A, B, A], id="appended by a shell"),
        pytest.param(b"\xef\xbb\xbf" + a + b"\n\xef\xbb\xbf" + b + b"\n", [A, B], id="UTF-8 with marks"),
    ],
)
def test_records_in_damaged_lines(data: bytes, expected: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(data)
    found = [line.record["text"] if line.problem else line.record for line in read_lines(path)]
    assert found == expected


def test_a_line_of_garbage_ends_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"' * 200_000 + b"\n" + (b'{"a": ' * 30_000) + b"\n" + a)
    assert [bool(line.problem) for line in read_lines(path)] == [True, True, False]
    monkeypatch.setattr(records, "_MOST_SEARCHED_CHARACTERS", 100)
    path.write_bytes(TORN + b"\n" + TORN + b"x" * 100 + b + b"\n")
    assert [bool(line.problem) for line in read_lines(path)] == [True, True], "no record is looked for in a huge line"
