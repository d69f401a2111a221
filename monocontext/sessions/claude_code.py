"""Find the sessions of Claude Code, and make turns from their records.

The format is internal to Claude Code, so unknown records are kept in the archive and left out of the turns. The archive
holds more than the agent shows: records that compaction dropped and abandoned branches are turns as well.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from monocontext.errors import MonocontextError
from monocontext.sessions.reader import SessionFile, SessionReader, TurnMaker, as_text, content_text, sessions_of
from monocontext.sessions.records import Record, RecordLine, read_lines
from monocontext.sessions.turn import Turn

_NOT_A_PROMPT = re.compile(
    r"\s*(<(local-command-stdout|session-start-hook|tick|goal|ide_opened_file|ide_selection|command-\w+)\b"
    r"|\[Request interrupted by user)"
)
_COMMAND = re.compile(r"<command-name>([^<]+)</command-name>")
LEFT_OUT = frozenset([
    "progress", "file-history-snapshot", "permission-mode", "mode", "agent-name", "agent-color",
    "frame-link", "agent-setting", "pr-link", "tag", "last-prompt", "agent_metadata", "api-request",
    "api-request-blob", "api-request-shape", "atis-latch", "cost-state", "rate_limit_event", "result",
    "stream_event", "tools-used",
])  # fmt: skip
"""Records that make no turn: data of the harness and of the screen. They are in the archive."""
OUTPUT = "tool-output"
"""The type of our record of an output that the agent keeps in a file of its own; its uuid ends in the file's name."""
_OUTPUT_FILE = re.compile(r"tool-results[/\\]+([\w.-]*\w)")
_MOST_OUTPUT_BYTES = 32 << 20
"""Of a longer output only the beginning is kept."""
_STUB_BYTES = 16 << 10
"""A longer file is not read to find out whether it is a stub."""


def roots() -> list[Path]:
    """The folders of the agent of this user; the first one gets new sessions."""
    if folder := os.environ.get("CLAUDE_CONFIG_DIR"):
        return [Path(folder)]
    both = Path.home() / ".claude", Path.home() / ".config" / "claude"
    return [path for path in both if path.is_dir()] or [both[0]]


def session_id_of(path: Path) -> str:
    """The id of a session, `<id>/subagents/agent-x` for a subagent; versions of Claude Code put its file in different
    folders."""
    if not path.stem.startswith("agent-"):
        return path.stem
    for above in path.parents:
        if above.name == "subagents":
            below = path.relative_to(above).with_suffix("")
            return f"{above.parent.name}/subagents/{below.as_posix()}"
    # Older versions put it next to the session, whose id is in the records.
    for line in read_lines(path):
        main = line.record.get("sessionId")
        if isinstance(main, str) and main:
            return f"{main.partition('/')[0] or 'unknown'}/subagents/{path.stem}"
    return path.stem


class _ClaudeTurns(TurnMaker):
    agent = "claude-code"

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self._turn_of: dict[str, int] = {}
        """The number of the last turn at or before a record, by the record's uuid."""
        self._last = ""
        """The uuid of the last record of the main conversation."""
        self._queued: set[str] = set()
        """Texts that the user wrote while the agent worked, and that it took up."""

    def feed(self, record: Record) -> list[Turn]:
        self._see_place(record)
        kind = record.get("type")
        marks = ("sidechain=yes",) if record.get("isSidechain") else ()
        if kind == "unreadable":
            turns = self._unreadable_turn(record)
        elif kind == "user":
            turns = self._user_turns(record, marks + self._back_mark(record))
        elif kind == "assistant":
            turns = self._assistant_turns(record, marks)
        elif kind == "system":
            turns = self._system_turns(record)
        elif kind in ("attachment", "queue-operation"):
            turns = self._queued_turns(record)
        elif kind == OUTPUT:
            text = content_text(record.get("text"))
            turns = self._turn("tool", "tool_result", text, record, tool=self._tools.get(str(record.get("call")), ""))
        else:
            turns = []
            if str(kind) not in LEFT_OUT and not self._take_title(record):
                self._see_unknown(kind)
        uuid = record.get("uuid")
        if isinstance(uuid, str):
            parent = record.get("parentUuid")
            before = self._turn_of.get(parent, 0) if isinstance(parent, str) else self.n
            self._turn_of[uuid] = self.n if turns else before
            if not record.get("isSidechain"):
                self._last = uuid
        return turns

    def _queued_turns(self, record: Record) -> list[Turn]:
        """The turn of what the user wrote while the agent worked, once the agent takes it up: an attachment says so,
        and a record of the queue again. What left the queue for another reason was never delivered."""
        queued = record.get("attachment")
        if not isinstance(queued, dict):
            queued = record if record.get("reason") == "absorbed_mid_turn" else {}
        elif queued.get("type") != "queued_command":
            return []
        text = content_text(queued.get("prompt", queued.get("content")))
        if queued.get("commandMode", "prompt") != "prompt" or (queued is record and text in self._queued):
            return []
        self._queued.add(text)
        return self._turn("user", "text", text, record)

    def _see_place(self, record: Record) -> None:
        self._see_time(record)
        for ours, theirs in (("cwd", "cwd"), ("branch", "gitBranch")):
            if isinstance(record.get(theirs), str) and record[theirs]:
                setattr(self, ours, record[theirs])
        self.began_in = self.began_in or self.cwd

    def _take_title(self, record: Record) -> bool:
        """Take the title from a record; returns whether it has one. Such a record has nothing else."""
        for field in ("customTitle", "aiTitle", "summary"):
            if isinstance(record.get(field), str):
                self.title = " ".join(record[field].split())[:200]
                return True
        return False

    def _back_mark(self, record: Record) -> tuple[str, ...]:
        """The mark of a prompt that does not follow the last record: the turns after its parent were abandoned."""
        parent = record.get("parentUuid")
        content = (record.get("message") or {}).get("content") if isinstance(record.get("message"), dict) else None
        is_result = isinstance(content, list) and any(
            isinstance(block, dict) and block.get("type") == "tool_result" for block in content
        )
        if is_result or record.get("isSidechain") or not isinstance(parent, str) or parent == self._last:
            return ()
        to = self._turn_of.get(parent)
        return (f"back_to={to}",) if to is not None and to < self.n else ()

    def _user_turns(self, record: Record, marks: tuple[str, ...]) -> list[Turn]:
        if record.get("isMeta"):
            return []
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else message
        if record.get("isCompactSummary"):
            return self._turn("user", "summary", content_text(content), record, marks=marks)
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content_text(content)}]
        turns: list[Turn] = []
        words: list[Any] = []
        for block in blocks:
            if isinstance(block, dict) and block.get("type") == "tool_result":
                prefix = "[error]\n" if block.get("is_error") else ""
                if not content_text(block.get("content")).strip():
                    block = {**block, "content": _result_text(record.get("toolUseResult"))}
                turns += self._result_turn(block, record, prefix, marks=marks)
            else:
                words.append(block)
        text = content_text(words)
        if text and "sidechain=yes" not in marks:
            if not _NOT_A_PROMPT.match(text):
                self._see_prompt(text)
            elif command := _COMMAND.search(text):
                self._see_prompt(command[1])
        return turns + self._turn("user", "text", text, record, marks=marks)

    def _assistant_turns(self, record: Record, marks: tuple[str, ...]) -> list[Turn]:
        message = record.get("message")
        if not isinstance(message, dict):
            return []
        if isinstance(message.get("model"), str):
            self.model = message["model"]
        content = message.get("content")
        turns: list[Turn] = []
        for block in content if isinstance(content, list) else [{"type": "text", "text": content_text(content)}]:
            if not isinstance(block, dict):
                continue
            if block.get("type") in ("tool_use", "server_tool_use"):
                turns += self._call_turn(block, record, marks=marks)
            elif block.get("type") not in ("thinking", "redacted_thinking"):
                turns += self._turn("assistant", "text", content_text([block]), record, marks=marks)
        return turns

    def _system_turns(self, record: Record) -> list[Turn]:
        subtype = record.get("subtype")
        if subtype == "compact_boundary":
            details = record.get("compactMetadata")
            details = details if isinstance(details, dict) else {}
            trigger, tokens = details.get("trigger", "?"), details.get("preTokens", "?")
            text = f"[conversation compacted: {trigger}, {tokens} tokens before]"
            return self._turn("system", "summary", text, record)
        is_error = record.get("level") == "error" or "error" in str(subtype)
        if is_error:
            text = content_text(record.get("content")) or as_text(record.get("error") or record.get("cause") or "")
            return self._turn("system", "text", f"[{subtype or 'error'}] {text}", record)
        return []


def _result_text(result: Any) -> str:
    """The text of a tool's result as the agent's screen has it, where the model got none."""
    if not isinstance(result, dict):
        return content_text(result)
    file = result.get("file")
    results = [result.get(name) for name in ("stdout", "stderr", "content", "result", "text")]
    results.append(file.get("content") if isinstance(file, dict) else None)
    return "\n".join(filter(None, map(content_text, results)))


class ClaudeCode(SessionReader):
    """Finds and reads the sessions of Claude Code."""

    agent = _ClaudeTurns.agent
    maker = _ClaudeTurns

    def discover(self) -> Iterator[SessionFile]:
        """Sessions and those of their subagents, in any order. A file that vanishes meanwhile is left out."""
        for root in roots():
            for pattern in ("*/*.jsonl", "*/*/subagents/**/agent-*.jsonl"):
                for file in sessions_of(sorted((root / "projects").glob(pattern)), self):
                    if not self.is_stub(file.path):
                        yield file

    def file(self, path: Path) -> SessionFile:
        return SessionFile(path, session_id_of(path), self.agent, path.stat().st_mtime)

    def lines(self, path: Path) -> Iterator[RecordLine]:
        """The records of a file, after those of its stubs, each output in a file of its own behind the record that
        names it. Raises `OSError`."""
        for stub in _stubs_of(path):
            yield from read_lines(stub)
        seen: set[str] = set()
        for line in read_lines(path):
            yield line
            for name in _outputs_in(line.record):
                if name not in seen and (output := _read_output(path, name, line.record)):
                    seen.add(name)
                    yield RecordLine(line.number, output)

    def is_stub(self, path: Path) -> bool:
        """Whether a file has only settings: what stays in the old project if a session moves to another one."""
        try:
            return _is_stub(path)
        except (OSError, MonocontextError):  # reading it raises the error again
            return False

    def below(self, file: SessionFile) -> Iterator[SessionFile]:
        """The sessions of a session's subagents; a workflow keeps a journal beside them, which is none."""
        return sessions_of(sorted(file.path.with_suffix("").glob("subagents/**/agent-*.jsonl")), self)


def _stubs_of(path: Path) -> list[Path]:
    """The stubs of a session in other projects; the title may be there."""
    if path.parent.parent.name != "projects":
        return []
    return [
        item
        for item in sorted(path.parent.parent.glob(f"*/{glob.escape(path.name)}"))
        if item != path and ClaudeCode().is_stub(item)
    ]


def _is_stub(path: Path) -> bool:
    if path.suffix != ".jsonl" or path.stat().st_size > _STUB_BYTES:
        return False
    lines = list(read_lines(path))
    known = LEFT_OUT | {"ai-title", "custom-title", "summary"}
    return bool(lines) and all(
        not line.problem and "uuid" not in line.record and str(line.record.get("type")) in known for line in lines
    )


def _outputs_in(record: Record) -> list[str]:
    """The names of files with outputs that a tool's result mentions."""
    if record.get("type") != "user":
        return []
    result, message = record.get("toolUseResult"), record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    blocks = [item for item in content if isinstance(item, dict)] if isinstance(content, list) else []
    texts = [content_text(block.get("content")) for block in blocks if block.get("type") == "tool_result"]
    if isinstance(result, dict):
        texts.append(str(result.get("persistedOutputPath", "")))
    return list(dict.fromkeys(name for text in texts for name in _OUTPUT_FILE.findall(text)))


def _read_output(path: Path, name: str, record: Record) -> Record | None:
    """The record of an output, from the session's own folder: the path in the transcript is not followed. None if there
    is none."""
    main = next((above.parent for above in path.parents if above.name == "subagents"), path.with_suffix(""))
    try:
        with (main / "tool-results" / name).open("rb") as file:
            data = file.read(_MOST_OUTPUT_BYTES + 1)
    except OSError:
        return None
    text = data[:_MOST_OUTPUT_BYTES].decode("utf-8", "replace")
    text += "\n[cut here]" if len(data) > _MOST_OUTPUT_BYTES else ""
    blocks = record["message"]["content"] if isinstance(record.get("message"), dict) else []
    calls = [block.get("tool_use_id") for block in blocks if isinstance(block, dict) and "tool_use_id" in block]
    known: Record = {key: record[key] for key in ("sessionId", "timestamp") if key in record}
    return {"type": OUTPUT, "uuid": f"{OUTPUT}-{name}", **known, "call": calls[0] if calls else "", "text": text}
