"""Write an archived session to where its agent on this machine looks for sessions, so that the agent can resume it.

Paths in the original clone become paths in the clone here, except in thinking that the model's provider signed.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monocontext.errors import MonocontextError, NotFound
from monocontext.sessions import claude_code, codex
from monocontext.sessions.archive import Project, Sessions
from monocontext.sessions.hook import write_file
from monocontext.sessions.project_name import find_repository, project_of
from monocontext.sessions.records import Record, dumps, ids_of, object_in, read_lines, string_in
from monocontext.sessions.session_info import SessionInfo

_MARK = re.compile(r"\[REDACTED:[\w-]+\]")
_DAY = re.compile(r"rollout-(\d{4})-(\d\d)-(\d\d)T")
_RESUMED = ("claude-code", "codex")


@dataclass(frozen=True, slots=True)
class Pulled:
    """A session that was written for its agent to resume."""

    session_id: str
    agent: str
    path: Path  # the agent's file
    folder: Path  # the directory in which the agent goes on with it
    records: int
    redacted: int  # the number of marks such as `[REDACTED:github]`
    is_new: bool  # False if the agent's file had all of these records already, and was kept

    @property
    def command(self) -> list[str]:
        """The command that continues the session, to be run in `folder`."""
        return [*(("claude", "--resume") if self.agent == "claude-code" else ("codex", "resume")), self.session_id]


def pull_session(archive: Sessions, session_id: str | None, into: Path, project: str | None = None) -> Pulled:
    """Write a session and those of its subagents into the folder of their agent (1 LIST; 1 GET per session).

    `session_id`: the id or its beginning; None for the last session of `project`, by default that of the directory
    `into`, where it is to be resumed. Raises `NotFound`, and `MonocontextError` if the session is of another project,
    cannot be resumed, or has other turns here.
    """
    directory = into.expanduser().resolve()
    source, name = _choose(archive, session_id, directory, project)
    info, records = source.records(name)
    if info.agent not in _RESUMED:
        agent = info.agent or "an unknown agent"
        raise MonocontextError(f"{name} is a session of {agent}: only {' and '.join(_RESUMED)} sessions can be resumed")
    if re.search(r"\.\d+$", name):
        raise MonocontextError(f"{name} is the shorter of two copies, and cannot be resumed: use `sessions show`")
    clone, old_clone = Path(find_repository(str(directory))[0] or directory), info.top or info.began_in
    folder = Path(_path_mapper({old_clone: str(clone)})(info.began_in)) if info.began_in else directory
    folder = folder if folder.is_dir() and folder.is_relative_to(clone) else clone
    path = _path_of(info, folder)
    output_paths = (string_in(object_in(record, "toolUseResult"), "persistedOutputPath") for record in records)
    old_output = next(filter(None, output_paths), "")  # a tool's output in its own file, on the other machine
    old_outputs = old_output[: max(old_output.rfind("/"), old_output.rfind("\\"), 0)]
    change = _path_mapper({old_clone: str(clone), old_outputs: str(path.with_suffix("") / "tool-results")})
    is_new, written = _write(path, records, change), list(records)
    for subagent_id in source.list_sessions():
        if subagent_id.startswith(f"{name}/subagents/"):
            subagent, subagent_records = source.records(subagent_id)
            parts = Path(*map(_safe, subagent_id.removeprefix(f"{name}/").split("/"))).with_suffix(".jsonl")
            is_codex = subagent.agent == "codex"  # it keeps the session of a subagent like any other
            _write(_path_of(subagent, folder) if is_codex else path.with_suffix("") / parts, subagent_records, change)
            written += subagent_records
    marks = sum(len(_MARK.findall(json.dumps(record))) for record in written)
    return Pulled(name, info.agent, path, folder, len(records), marks, is_new)


def _choose(archive: Sessions, session_id: str | None, directory: Path, project: str | None) -> tuple[Project, str]:
    """The project and the id of the session to pull. Raises `NotFound`, and `MonocontextError` for another project."""
    expected = project or project_of(str(directory))
    if session_id is None:
        infos = [info for info in archive.project(expected).sessions() if info.agent in _RESUMED]
        ends = [(info.ended, info.session_id) for info in infos if not re.search(r"/|\.\d+$", info.session_id)]
        if not ends:
            raise NotFound(f"no sessions of project {expected!r} to resume at {archive.url}: pass another as --project")
        return archive.project(expected), max(ends)[1]
    source, name = archive.find(session_id, project)
    if source.name != expected:
        advice = f"pass a clone of {source.name} as --into, or use this directory with --project {source.name}"
        raise MonocontextError(f"{name} belongs to project {source.name}, but {directory} to {expected}: {advice}")
    return source, name


def _path_of(info: SessionInfo, folder: Path) -> Path:
    """The file that an agent reads to resume its session in `folder`. Raises `MonocontextError`."""
    if info.agent == "claude-code":
        slug = re.sub(r"[^a-zA-Z0-9]", "-", unicodedata.normalize("NFC", str(folder)))
        if len(slug) > 200:  # then the agent's own name for the folder ends in a hash
            raise MonocontextError(f"{folder}: pull into a path of at most 200 characters, not {len(slug)}")
        return claude_code.roots()[0] / "projects" / slug / f"{_safe(info.session_id)}.jsonl"
    day = _DAY.match(info.file_name)
    if day is None:
        raise MonocontextError(f"{info.session_id}: expected a file rollout-YYYY-MM-DDT..., found {info.file_name!r}")
    return codex.home() / "sessions" / "/".join(day.groups()) / _safe(info.file_name.removesuffix(".zst"))


def _safe(name: str) -> str:
    """`name` itself. Raises `MonocontextError` unless it is a plain file name, which cannot lead to another folder."""
    if not re.fullmatch(r"[\w.-]+", name) or name.startswith("."):
        raise MonocontextError(f"the session was not written: {name!r} is not a plain file name")
    return name


def _path_mapper(folders: Mapping[str, str]) -> Callable[[str], str]:
    """A function that replaces each key of `folders` in a text by its value, both plain and as escaped in JSON."""
    pairs = [(old, new) for old, new in folders.items() if old.strip("/\\") and old != new]
    forms = {form(old): form(new) for old, new in pairs for form in (str, lambda text: json.dumps(text)[1:-1])}
    if not forms:
        return lambda text: text
    olds = "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))
    pattern = re.compile(rf"(?<![\w.-])({olds})(?![\w.-])")
    return lambda text: pattern.sub(lambda match: forms[match[1]], text)


def _map_strings(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value with `change` applied to each string, except in signed thinking."""
    if isinstance(value, list):
        return [_map_strings(item, change) for item in value]
    if isinstance(value, dict) and not (value.get("signature") and "thinking" in str(value.get("type"))):
        return {name: _map_strings(item, change) for name, item in value.items()}
    return change(value) if isinstance(value, str) else value


def _write(path: Path, records: list[Record], change: Callable[[str], str]) -> bool:
    """Write a session's file and its tool outputs. Returns False, and writes nothing, if the file has all records."""
    records = [_map_strings(record, change) for record in records]
    agent_records = [item for item in records if item.get("type") not in (claude_code.TOOL_OUTPUT, "unreadable")]
    if path.exists():
        archived_ids, local_ids = set(ids_of(agent_records)), set(ids_of(line.record for line in read_lines(path)))
        if local_ids >= archived_ids:
            return False
        if not local_ids <= archived_ids:
            raise MonocontextError(f"{path} has turns that the archived session lacks: upload it to keep both")
    files = {path: b"".join(dumps(record) + b"\n" for record in agent_records)}
    for record in [record for record in records if record.get("type") == claude_code.TOOL_OUTPUT]:
        name = _safe(str(record.get("uuid")).removeprefix(f"{claude_code.TOOL_OUTPUT}-"))
        files[path.with_suffix("") / "tool-results" / name] = str(record.get("text")).encode("utf-8", "replace")
    for file, data in reversed(files.items()):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_file(file, data)
    return True
