"""Find the sessions of Claude Code and make turns from their records, including turns that were abandoned."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from monocontext.errors import InvalidText
from monocontext.sessions.reader import SessionFile, SessionReader, TurnMaker, as_text, blocks_of, text_of
from monocontext.sessions.records import Record, RecordLine, object_in, read_lines, string_in
from monocontext.sessions.turn import Turn

_NOT_A_PROMPT = re.compile(  # <command-name>/clear</command-name>, [Request interrupted by user]; not <b>
    r"\s*(<(local-command-stdout|session-start-hook|tick|goal|ide_opened_file|ide_selection|command-\w+)\b"
    r"|\[Request interrupted by user)"
)
_COMMAND = re.compile(r"<command-name>([^<]+)</command-name>")
_LEFT_OUT = frozenset([  # records of the harness and of the screen, which make no turn
    "progress", "file-history-snapshot", "permission-mode", "mode", "agent-name", "agent-color", "frame-link",
    "agent-setting", "pr-link", "tag", "last-prompt", "agent_metadata", "api-request", "api-request-blob",
    "api-request-shape", "atis-latch", "cost-state", "rate_limit_event", "result", "stream_event", "tools-used",
])  # fmt: skip
_TITLES = ("customTitle", "aiTitle", "summary")  # a record with one of these fields has nothing else
TOOL_OUTPUT = "tool-output"  # the type of a record that we make of a tool's output file, whose name ends its uuid
_OUTPUT_FILE = re.compile(r"tool-results[/\\]+([\w.-]*\w)")
_MOST_OUTPUT_BYTES = 32 << 20  # of a longer output only the beginning is kept
_STUB_BYTES = 16 << 10  # a longer file is not a stub
_SIDECHAIN = ("sidechain=yes",)  # marks of turns beside the main conversation


def roots() -> list[Path]:
    """The folders in which Claude Code keeps this user's files; new sessions go to the first."""
    if folder := os.environ.get("CLAUDE_CONFIG_DIR"):
        return [Path(folder)]
    both = Path.home() / ".claude", Path.home() / ".config" / "claude"
    return [path for path in both if path.is_dir()] or [both[0]]


class _ClaudeTurns(TurnMaker):
    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self._turn_of: dict[str, int] = {}  # the number of the last turn at or before a record, by the record's uuid
        self._last = ""  # the uuid of the last record of the main conversation
        self._queued: set[str] = set()  # texts that the user wrote while the agent worked, and that it took up

    def _turns(self, record: Record) -> list[Turn]:
        self.cwd = string_in(record, "cwd") or self.cwd
        self.branch = string_in(record, "gitBranch") or self.branch
        self.began_in = self.began_in or self.cwd
        turns = self._turns_by_type(record)
        if uuid := string_in(record, "uuid"):
            parent = record.get("parentUuid")
            before = self._turn_of.get(parent, 0) if isinstance(parent, str) else self.turn_count
            self._turn_of[uuid] = self.turn_count if turns else before
            if not record.get("isSidechain"):
                self._last = uuid
        return turns

    def _turns_by_type(self, record: Record) -> list[Turn]:
        record_type = record.get("type")
        turns_of = {
            "user": self._user_turns, "assistant": self._assistant_turns, "system": self._system_turns,
            "attachment": self._queued_turns, "queue-operation": self._queued_turns,
        }.get(str(record_type))  # fmt: skip
        if turns_of is not None:
            return turns_of(record)
        if record_type == TOOL_OUTPUT:
            tool = self._tools.get(str(record.get("call")), "")
            return self._add_turn("tool", "tool_result", text_of(record.get("text")), tool=tool)
        title = next((record[name] for name in _TITLES if isinstance(record.get(name), str)), None)
        if title is not None:
            self._note_title(title)
        elif str(record_type) not in _LEFT_OUT:
            self._note_unknown(record_type)
        return []

    def _queued_turns(self, record: Record) -> list[Turn]:
        """The turn of a prompt that was queued while the agent worked; a `queue-operation` may repeat it."""
        attachment = record.get("attachment")
        if isinstance(attachment, dict):
            queued = attachment if attachment.get("type") == "queued_command" else {}
        else:
            queued = record if record.get("reason") == "absorbed_mid_turn" else {}
        text = text_of(queued.get("prompt", queued.get("content")))
        if queued.get("commandMode", "prompt") != "prompt" or (queued is record and text in self._queued):
            return []
        self._queued.add(text)
        return self._add_turn("user", "text", text)

    def _user_turns(self, record: Record) -> list[Turn]:
        if record.get("isMeta"):
            return []
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else message
        blocks = content if isinstance(content, list) else [{"type": "text", "text": text_of(content)}]
        results = [block for block in blocks_of(blocks) if block.get("type") == "tool_result"]
        marks = self._user_marks(record, has_results=bool(results))
        if record.get("isCompactSummary"):
            return self._add_turn("user", "summary", text_of(content), marks=marks)
        turns: list[Turn] = []
        for block in results:
            text = text_of(block.get("content"))
            text = text if text.strip() else _result_text(record.get("toolUseResult"))
            turns += self._result_turns(block, f"[error]\n{text}" if block.get("is_error") else text, marks)
        text = text_of([block for block in blocks if not isinstance(block, dict) or block.get("type") != "tool_result"])
        if not record.get("isSidechain"):
            if not _NOT_A_PROMPT.match(text):
                self._note_prompt(text)
            elif command := _COMMAND.search(text):
                self._note_prompt(command[1])
        return turns + self._add_turn("user", "text", text, marks=marks)

    def _user_marks(self, record: Record, *, has_results: bool) -> tuple[str, ...]:
        """The marks of a user's turns. A prompt that does not follow the last record abandons the turns between."""
        if record.get("isSidechain"):
            return _SIDECHAIN
        parent = record.get("parentUuid")
        earlier_turn = self._turn_of.get(parent) if isinstance(parent, str) and parent != self._last else None
        is_return = not has_results and earlier_turn is not None and earlier_turn < self.turn_count
        return (f"back_to={earlier_turn}",) if is_return else ()

    def _assistant_turns(self, record: Record) -> list[Turn]:
        content, turns = object_in(record, "message").get("content"), list[Turn]()
        marks = _SIDECHAIN if record.get("isSidechain") else ()
        for block in blocks_of(content if isinstance(content, list) else [{"text": text_of(content)}]):
            if block.get("type") in ("tool_use", "server_tool_use"):
                turns += self._call_turns(block, marks)
            elif block.get("type") not in ("thinking", "redacted_thinking"):
                turns += self._add_turn("assistant", "text", text_of([block]), marks=marks)
        return turns

    def _system_turns(self, record: Record) -> list[Turn]:
        subtype = record.get("subtype")
        if subtype == "compact_boundary":
            details = object_in(record, "compactMetadata")
            details_text = f"{details.get('trigger', '?')}, {details.get('preTokens', '?')} tokens before"
            return self._add_turn("system", "summary", f"[conversation compacted: {details_text}]")
        if record.get("level") == "error" or "error" in str(subtype):
            text = text_of(record.get("content")) or as_text(record.get("error") or record.get("cause") or "")
            return self._add_turn("system", "text", f"[{subtype or 'error'}] {text}")
        return []


def _result_text(result: Any) -> str:
    """The text of a tool's result as the screen showed it, for a result of which the model got no text."""
    if not isinstance(result, dict):
        return text_of(result)
    results = [result.get(name) for name in ("stdout", "stderr", "content", "result", "text")]
    return "\n".join(filter(None, map(text_of, [*results, object_in(result, "file").get("content")])))


class ClaudeCode(SessionReader):
    """Finds and reads the sessions of Claude Code."""

    agent = "claude-code"
    maker = _ClaudeTurns

    def discover(self) -> Iterator[SessionFile]:
        """The sessions and those of their subagents, in any order. Journals of workflows are left out."""
        for root, pattern in product(roots(), ("*/*.jsonl", "*/*/subagents/**/agent-*.jsonl")):
            yield from self.files(sorted((root / "projects").glob(pattern)))

    def session_id(self, path: Path) -> str:
        """The id of a session, `<id>/subagents/agent-x` for a subagent. Raises `InvalidText` for a stub."""
        if _is_stub(path):
            raise InvalidText(f"{path} has only settings: the session moved to another project")
        if not path.stem.startswith("agent-"):
            return path.stem
        if main := main_folder(path):
            return f"{main.name}/{path.relative_to(main).with_suffix('').as_posix()}"
        # Older versions put it next to the session, whose id is in the records.
        main_ids = filter(None, (string_in(line.record, "sessionId").partition("/")[0] for line in read_lines(path)))
        return next((f"{main_id}/subagents/{path.stem}" for main_id in main_ids), path.stem)

    def lines(self, path: Path) -> Iterator[RecordLine]:
        """Yield the records of a session's stubs and file. An output follows the record that names its file."""
        if path.parent.parent.name == "projects":  # the title may be in a stub, in another project
            for other in sorted(path.parent.parent.glob(f"*/{glob.escape(path.name)}")):
                if other != path and _is_stub(other):
                    yield from read_lines(other)
        outputs, shown = (main_folder(path) or path.with_suffix("")) / "tool-results", set[str]()
        for line in read_lines(path):
            yield line
            for name in _outputs_in(line.record):
                if name not in shown and (output := _read_output(outputs / name, line.record)):
                    shown.add(name)
                    yield RecordLine(line.number, output)


def _is_stub(path: Path) -> bool:
    """Whether a file is a stub: it has only settings, and stays behind when a session moves to another project."""
    known = _LEFT_OUT | {"ai-title", "custom-title", "summary"}
    try:
        is_short = path.suffix == ".jsonl" and path.stat().st_size <= _STUB_BYTES
        lines = list(read_lines(path)) if is_short else []
    except OSError:  # reading it raises the error again
        return False
    return bool(lines) and all(
        not line.problem and "uuid" not in line.record and str(line.record.get("type")) in known for line in lines
    )


def main_folder(path: Path) -> Path | None:
    """The folder of the main session, for the file of a subagent; None for any other file."""
    return next((above.parent for above in path.parents if above.name == "subagents"), None)


def _outputs_in(record: Record) -> list[str]:
    """The names of the files that hold tool outputs of a record."""
    if record.get("type") != "user":
        return []
    blocks = blocks_of(object_in(record, "message").get("content"))
    texts = [text_of(block.get("content")) for block in blocks if block.get("type") == "tool_result"]
    texts.append(string_in(object_in(record, "toolUseResult"), "persistedOutputPath"))
    return list(dict.fromkeys(name for text in texts for name in _OUTPUT_FILE.findall(text)))


def _read_output(path: Path, record: Record) -> Record | None:
    """A record of the tool output in a file that `record` names; None if the file cannot be read."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_OUTPUT_BYTES + 1)
    except OSError:
        return None
    text = data[:_MOST_OUTPUT_BYTES].decode("utf-8", "replace")
    text += "\n[cut here]" if len(data) > _MOST_OUTPUT_BYTES else ""
    blocks = blocks_of(object_in(record, "message").get("content"))
    call = next((block["tool_use_id"] for block in blocks if "tool_use_id" in block), "")
    known: Record = {key: record[key] for key in ("sessionId", "timestamp") if key in record}
    return {"type": TOOL_OUTPUT, "uuid": f"{TOOL_OUTPUT}-{path.name}", **known, "call": call, "text": text}
