"""Add our hooks to an agent's settings and remove them; change nothing else.

Claude Code: `.claude/settings.local.json` of the directory, which only this user has, or `~/.claude/settings.json`.
Codex: `.codex/hooks.json`, or `$CODEX_HOME/hooks.json`. Each change leaves a copy of the old file next to it.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path
from typing import Any

from monocontext.errors import MonocontextError
from monocontext.sessions.hook import EVENTS, parse_arguments, write_file

Settings = dict[str, Any]
SKILL_NAME = "upload-context"
_MARK = "monocontext-hook"
_MODULE = "monocontext.sessions.hook"
_SECONDS = 10  # the time that an agent gives a hook


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Where an agent keeps its settings, and the events that get our hooks."""

    name: str
    folder: str  # the agent's folder in a repository and in the home directory
    local_file: str  # the settings of this user for one repository
    user_file: str  # the settings of this user for all repositories
    home_variable: str  # the environment variable that replaces the folder in the home directory
    events: dict[str, str]  # the events that get our hooks: the agent's name of each, and ours, one of `EVENTS`
    stop_is_async: bool  # whether the agent goes on while its hook at `Stop` runs; else it waits
    takes_args: bool  # whether an entry has a list of arguments; else it has a command for a shell
    example: str  # a command that makes a small session

    def settings_path(self, repository: Path, is_user: bool) -> Path:
        return self._below(repository, is_user) / (self.user_file if is_user else self.local_file)

    def skill_path(self, repository: Path, is_user: bool) -> Path:
        return self._below(repository, is_user) / "skills" / SKILL_NAME / "SKILL.md"

    def _below(self, repository: Path, is_user: bool) -> Path:
        value = os.environ.get(self.home_variable) if is_user else None
        return Path(value) if value else (Path.home() if is_user else repository) / self.folder


_EVENTS = {"SessionStart": "session-start", "PreCompact": "pre-compact", "Stop": "stop"}
_MATCHERS = {"SessionStart": "startup|clear|compact"}  # the causes of an event for which the hook runs; by default all
AGENTS = {
    "claude-code": AgentSettings(
        name="claude-code", folder=".claude", local_file="settings.local.json", user_file="settings.json",
        home_variable="CLAUDE_CONFIG_DIR", events={**_EVENTS, "SessionEnd": "session-end"}, stop_is_async=True,
        takes_args=True, example='claude -p "Say hello"'),
    "codex": AgentSettings(
        name="codex", folder=".codex", local_file="hooks.json", user_file="hooks.json",
        home_variable="CODEX_HOME", events=_EVENTS, stop_is_async=False,
        takes_args=False, example='codex exec "Say hello"')}  # fmt: skip


def add_hooks(settings: Settings, agent: AgentSettings, options: Sequence[str]) -> Settings:
    """The settings with our hooks instead of those of an earlier installation. Raises what `remove_hooks` raises."""
    script = Path(sys.executable).parent / _MARK
    program = [str(script)] if os.access(script, os.X_OK) else [sys.executable, "-P", "-m", _MODULE]
    merged = remove_hooks(settings)
    hooks = merged.setdefault("hooks", {})
    for event, our_event in agent.events.items():
        command = [*program, our_event, *options]
        started = {"command": command[0], "args": command[1:]} if agent.takes_args else {"command": shlex.join(command)}
        waiting = {"async": True} if event == "Stop" and agent.stop_is_async else {"timeout": _SECONDS}
        matcher = {"matcher": _MATCHERS[event]} if event in _MATCHERS else {}
        hooks.setdefault(event, []).append({**matcher, "hooks": [{"type": "command", **started, **waiting}]})
    return merged


def remove_hooks(settings: Settings) -> Settings:
    """The settings without our hooks. Raises `MonocontextError` if `hooks` is not an object of lists."""
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(groups, list) for groups in hooks.values()):
        raise MonocontextError("`hooks` in the settings must be an object with a list for each event: correct it first")
    others = {event: [rest for group in groups for rest in _without_ours(group)] for event, groups in hooks.items()}
    remaining = {event: groups for event, groups in others.items() if groups or not hooks[event]}
    rest = {name: remaining if name == "hooks" else value for name, value in settings.items()}
    if hooks and not remaining:
        del rest["hooks"]
    return rest


def _without_ours(group: Any) -> list[Any]:
    """A group without our hooks, as a list of one; empty if all its hooks are ours. Anything but a group is kept."""
    entries = group.get("hooks") if isinstance(group, dict) else None
    if not isinstance(entries, list) or not any(map(is_ours, entries)):
        return [group]
    others = [entry for entry in entries if not is_ours(entry)]
    return [{**group, "hooks": others}] if others else []


def is_ours(entry: Any) -> bool:
    """Whether an entry of an agent's settings starts our hook."""
    words = f"{entry.get('command')} {entry.get('args')}" if isinstance(entry, dict) else ""
    return _MARK in words or _MODULE in words


def hook_options(settings: Settings) -> dict[str, object] | None:
    """The options of our first hook in settings, such as `url`; None without one. Raises what `remove_hooks` raises."""
    if remove_hooks(settings) == settings:
        return None
    groups = [group for event in settings["hooks"].values() for group in event if isinstance(group, dict)]
    entries = [entry for group in groups if isinstance(group.get("hooks"), list) for entry in group["hooks"]]
    entry = next(filter(is_ours, entries))
    try:
        words = entry["args"] if isinstance(entry.get("args"), list) else shlex.split(str(entry.get("command")))
        return parse_arguments(list(dropwhile(lambda word: word not in EVENTS, map(str, words))))[1]
    except ValueError:  # someone changed it by hand, and the hook itself would refuse it too
        return {}


def read_settings(path: Path) -> Settings:
    """The settings in a file, empty if there is none. Raises `MonocontextError` for anything but a JSON object."""
    try:
        text = path.read_text("utf-8")
        result = json.loads(text) if text.strip() else {}
        json.dumps(result, allow_nan=False)  # refuses numbers that JSON has no form for
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as error:
        raise MonocontextError(f"{path} is not JSON, so it was not changed: correct it first ({error})") from None
    if not isinstance(result, dict):
        raise MonocontextError(f"{path}: expected a JSON object, found a {type(result).__name__}")
    return result


def write_settings(path: Path, settings: Settings) -> Path | None:
    """Write settings whole or not at all; a link stays a link. Returns the path of a copy of the old file, None if
    nothing changes or there was no file. Settings that equal an earlier copy get the formatting of that copy."""
    path = path.resolve()
    if read_settings(path) == settings:
        return None
    backup, mode, text = None, 0o600, json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
    data = text.encode("utf-8", "backslashreplace")  # half of a surrogate pair stays escaped
    for copy in sorted(path.parent.glob(f"{glob.escape(path.name)}.*.bak")):
        with contextlib.suppress(MonocontextError, OSError):
            data = copy.read_bytes() if read_settings(copy) == settings else data  # with the user's own format
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        mode = path.stat().st_mode & 0o777
        backup = path.with_name(f"{path.name}.{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 1_000_000:06d}.bak")
        shutil.copy2(path, backup)
    write_file(path, data, mode)
    return backup
