"""Keep what a real agent wrote as a small fixture of the quick suite, without any text but that of our script.

Below `tests/sessions/real/<agent>-<version>/<what happened>/`: files as they lay in the home, and `seen.json`, what the
stand-in model saw. Long strings, and all fields of records that make no turn, are left out: prompts, tools and settings
that a program brings are its makers'.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agents.programs import Program
from agents.seen import Row
from agents.stand_in import SUMMARY, Script
from monocontext.sessions import claude_code, codex

REAL = Path(__file__).resolve().parents[1] / "sessions" / "real"
HOME = "/home/dev"
_LONGEST, _LONGEST_OF_OURS = 60, 600
_MOST_ITEMS = 8
_NO_TURN = {
    "turn_context", "token_count", "thread_settings_applied", "task_started", "task_complete"
}  # fmt: skip
_CHAIN = ("type", "uuid", "parentUuid", "sessionId", "timestamp", "isSidechain", "thread_id", "turn_id", "ordinal")
_FILES = {
    "claude-code": ".claude/projects/**/*.jsonl",
    "codex": ".codex/sessions/**/*.jsonl",
}


def keep(program: Program, version: str, what: str, home: Path, script: Script, rows: Iterable[Row]) -> None:
    """Write the fixture in the place of the one before."""
    words = {*script, SUMMARY, "out-17", *(each for some in script.values() for each in some if isinstance(each, str))}
    cleaner = _Cleaner(str(home), words)
    folder = REAL / f"{program.name}-{version}" / what
    shutil.rmtree(folder, ignore_errors=True)
    for path in sorted(home.glob(_FILES[program.name])):
        if path.suffix == ".jsonl":
            name = re.sub(r"(?<=projects/)-[^/]+", HOME.replace("/", "-") + "-work-api", str(path.relative_to(home)))
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            lines = [cleaner.record(json.loads(line)) for line in path.read_text("utf-8").splitlines()]
            target.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    seen = [[kind, cleaner.clean(words)] for kind, words in rows]
    (folder / "seen.json").write_text(_as_json(seen), "utf-8")


def restore(folder: Path, home: Path) -> None:
    """Lay a fixture out in a home."""
    for path in folder.glob("**/*"):
        target = home / path.relative_to(folder)
        if path.is_dir() or path.name == "seen.json":
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())


class _Cleaner:
    def __init__(self, home: str, words: set[str]) -> None:
        self._home = home
        self._words = words

    def record(self, record: dict[str, Any]) -> dict[str, Any]:
        payload = record.get("payload")
        queued = record.get("attachment")
        is_other = isinstance(queued, dict) and queued.get("type") != "queued_command"
        kinds = {
            "" if is_other else str(record.get("type")),
            str(payload.get("type")) if isinstance(payload, dict) else "",
        }
        if is_other or kinds & (claude_code.LEFT_OUT | set(codex.LEFT_OUT) | _NO_TURN):
            short = {name: record[name] for name in _CHAIN if name in record}
            kept = {name: payload[name] for name in (*_CHAIN, "cwd", "model") if name in payload} if payload else None
            record = short | ({"payload": kept} if kept is not None else {})
        cleaned = self.clean(record)
        assert isinstance(cleaned, dict)
        return cleaned

    def clean(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self.clean(name): self.clean(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.clean(each) for each in (value if len(value) <= _MOST_ITEMS else value[:2])]
        if not isinstance(value, str):
            return value
        text = value.replace(self._home, HOME)
        if text[:1] in "[{" and len(text) > _LONGEST:  # JSON within JSON
            try:
                return json.dumps(self.clean(json.loads(text)), ensure_ascii=False)
            except ValueError:
                pass
        is_ours = len(text) <= _LONGEST_OF_OURS and any(word in text for word in self._words)
        if len(text) <= _LONGEST or is_ours or re.fullmatch(r"[\w./:+-]+", text[:_LONGEST_OF_OURS]):
            return text
        tag = re.match(r"\s*<[\w-]+>|# AGENTS\.md", text)
        return f"{tag[0] if tag else ''}[left out: {len(text):,} characters]"


def _as_json(found: Any) -> str:
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"
