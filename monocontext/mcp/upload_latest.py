"""Upload a session of this machine to the archive that is served."""

from __future__ import annotations

from monocontext.errors import NotFound
from monocontext.sessions.readers import discover_sessions, find_sessions
from monocontext.sessions.upload import upload_session
from monocontext.stores.protocol import Store


def upload_latest(store: Store, session_id: str | None, project_dir: str | None, project: str | None) -> str:
    """Upload a session, by default the latest, with those of its subagents; one line for each. Raises `NotFound`."""
    files = find_sessions(session_id) if session_id else discover_sessions("claude-code")
    if project_dir:
        files = [file for file in files if project_dir in file.path.parts]
    if not files:
        raise NotFound("no such session on this machine")
    if not session_id:
        latest = files[0].session_id.partition("/")[0]
        files = [file for file in files if file.session_id.partition("/")[0] == latest]
    done = [upload_session(store, file, project=project) for file in files]
    return "\n".join(
        f"{each.session_id}: {each.records} new records, {each.turns} new turns, to project {each.project}; "
        f"secrets taken out: {sum(each.counts.values())}"
        for each in done
    )
