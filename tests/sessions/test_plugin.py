"""The plugin of Claude Code and Codex: its files say what `hooks install` would write, and its hooks run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import monocontext
from monocontext.sessions import settings

TOP = Path(__file__).resolve().parents[2]
PLUGIN = TOP / "plugins" / "monocontext"


def test_the_marketplace_names_the_plugin() -> None:
    market = json.loads((TOP / ".claude-plugin" / "marketplace.json").read_text())
    (entry,) = market["plugins"]
    assert (TOP / entry["source"]).resolve() == PLUGIN
    for folder in (".claude-plugin", ".codex-plugin"):
        manifest = json.loads((PLUGIN / folder / "plugin.json").read_text())
        assert (manifest["name"], manifest["version"]) == (entry["name"], monocontext.__version__)
        assert all((PLUGIN / manifest[name]).exists() for name in ("skills", "hooks", "mcpServers") if name in manifest)
        assert manifest["homepage"].startswith("https://")
        assert list(manifest["userConfig"]) == ["url", "rlm"]


@pytest.mark.parametrize(("agent", "file"), [("claude-code", "hooks.json"), ("codex", "codex-hooks.json")])
def test_its_hooks_are_those_that_install_writes(agent: str, file: str) -> None:
    hooks = json.loads((PLUGIN / "hooks" / file).read_text())["hooks"]
    written = settings.add_hooks({}, settings.AGENTS[agent], ["--agent", agent], ["monocontext-hook"])
    assert hooks == written["hooks"]
    skill = (PLUGIN / "skills" / settings.SKILL_NAME / "SKILL.md").read_text()
    assert skill == settings.skill("URL", []).replace("at URL.", "where MONOCONTEXT_URL says.")
