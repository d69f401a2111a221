"""Find out why installed hooks do not run, since agents skip them silently.

Codex (as of 0.169) reads the hooks of directories that it trusts, and runs those that the user trusts: it stores their
digests in `config.toml`. Claude Code runs all hooks, unless they are switched off.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monocontext.errors import MonocontextError
from monocontext.sessions.settings import AGENTS, AgentSettings, Settings, is_ours, read_settings

_CODEX_SECONDS = 600
"""Codex's time limit for a hook that gives none."""


@dataclass(frozen=True, slots=True)
class InstalledHooks:
    """Our hooks in one settings file of an agent."""

    agent: str
    path: Path
    missing: str
    """Why the agent does not run them, and what to do; empty if no reason is known."""


def find_hooks(directory: Path) -> list[InstalledHooks]:
    """Our hooks for a directory: in its settings, in those of the user, and in our plugin for Codex."""
    found = []
    for agent in AGENTS.values():
        places = [(agent.settings_path(directory, is_user), "") for is_user in (False, True)]
        if agent.name == "codex":
            places += _plugins(agent.home())
        for path, name in places:
            try:
                settings = read_settings(path)
                if any(_entries(settings)):
                    found.append(InstalledHooks(agent.name, path, what_is_missing(agent, path, settings, name)))
            except MonocontextError as error:
                found.append(InstalledHooks(agent.name, path, str(error)))
    return found


def what_is_missing(agent: AgentSettings, path: Path, settings: Settings, name: str = "") -> str:
    """Why an agent does not run our hooks in a file, and what to do; empty if no reason is known.

    `name`: Codex's name for the file, if the file belongs to a plugin.
    """
    if settings.get("disableAllHooks"):
        return "`disableAllHooks` is set there: no hook runs"
    if agent.name != "codex":
        return ""
    config = _read_config(agent.home())
    if not (name or path.parent == agent.home() or _is_trusted(path.parent.parent, config)):
        return (
            "Codex reads no hooks of a directory that it does not trust. Start `codex` there, and trust the directory "
            "and the hooks when it asks; until then nothing is uploaded, and `codex exec` does not say so"
        )
    trusted = [_has_digest(config, name or str(path), key, hook) for key, hook in _entries(settings)]
    if all(trusted):
        return ""
    return (
        f"Codex runs only hooks that you trust; {trusted.count(False)} of these {len(trusted)} are not trusted. Start "
        "`codex` and trust them when it asks; until then nothing is uploaded, and `codex exec` does not say so"
    )


def _entries(settings: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    """Our hooks in a file, each after Codex's name for it, in the form of which Codex stores a digest."""
    hooks = settings.get("hooks")
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        word = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
        for row, group in enumerate(groups if isinstance(groups, list) else ()):
            inner = group.get("hooks") if isinstance(group, dict) else None
            for column, entry in enumerate(inner if isinstance(inner, list) else ()):
                if is_ours(entry):
                    hook = {"async": False, "timeout": _CODEX_SECONDS, **entry}
                    matcher = {"matcher": group["matcher"]} if "matcher" in group else {}
                    yield f"{word}:{row}:{column}", {"event_name": word, "hooks": [hook], **matcher}


def _has_digest(config: Settings, file: str, key: str, hook: dict[str, Any]) -> bool:
    """Whether Codex's settings have the digest of a hook."""
    text = json.dumps(hook, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = f"sha256:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}"
    state = config.get("hooks", {}).get("state", {})
    known = (state.get(f"{each}:{key}") for each in {file, os.path.realpath(file)})
    return any(isinstance(each, dict) and each.get("trusted_hash") == digest for each in known)


def _is_trusted(directory: Path, config: Settings) -> bool:
    projects = config.get("projects", {})
    return any(
        projects.get(str(each), {}).get("trust_level") == "trusted"
        for each in (directory, *directory.parents, directory.resolve())
    )


def _plugins(home: Path) -> Iterator[tuple[Path, str]]:
    """The files with the hooks of our plugin, if it is enabled, with Codex's names for them."""
    try:
        plugins = _read_config(home).get("plugins", {})
    except MonocontextError:
        return  # reported for the hooks themselves
    for plugin, state in plugins.items():
        name, _, market = plugin.partition("@")
        if name == "monocontext" and isinstance(state, dict) and state.get("enabled", True):
            for path in (home / "plugins" / "cache" / market / name).glob("*/hooks/codex-hooks.json"):
                yield path, f"{plugin}:hooks/codex-hooks.json"


def _read_config(home: Path) -> Settings:
    """Codex's own settings; empty if there are none. Raises `MonocontextError` for a file that is not TOML."""
    path = home / "config.toml"
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as error:
        raise MonocontextError(f"{path} cannot be read: {error}") from None
