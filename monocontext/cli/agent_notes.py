"""What commands tell a user about a coding agent."""

from __future__ import annotations

from pathlib import Path

from monocontext.sessions.settings import AgentSettings, read_settings

CODEX_TRUST = (
    "Codex runs only hooks that you trust, in directories that you trust, and `codex exec` says nothing of others: "
    "start `codex` there once, and accept both when it asks"
)
_CLAUDE_KEEPS_DAYS = 30  # the default of its setting `cleanupPeriodDays`


def describe_clean_up(agent: AgentSettings, repository: Path) -> str:
    """When an agent deletes its own copy of a session, in a sentence; empty if it does not."""
    if agent.name != "claude-code":
        return ""
    days, source = _CLAUDE_KEEPS_DAYS, "its default"
    for path in (agent.settings_path(repository, True), agent.settings_path(repository, False)):
        recorded = read_settings(path).get("cleanupPeriodDays")
        if isinstance(recorded, int | float) and not isinstance(recorded, bool):
            days, source = int(recorded), str(path)
    when = f"after {days} days (cleanupPeriodDays, {source}): what is uploaded stays"
    return f"Claude Code deletes its own copy of a session {when}"
