"""Read the sessions on this machine as one text without secrets, from an archive in a private cache folder."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Unpack

from monocontext.engine.open import TextOptions
from monocontext.errors import InvalidUrl, NotFound
from monocontext.sessions import claude_code, codex
from monocontext.sessions.archive import Project
from monocontext.sessions.reader import SessionFile
from monocontext.sessions.readers import discover_sessions
from monocontext.sessions.session_info import session_key
from monocontext.sessions.upload import Note, read_states, state_of, upload_changed, upload_session, user_at_machine
from monocontext.stores.address import parse
from monocontext.stores.local import LocalStore
from monocontext.text.monocontext import Monocontext

_PROJECT = "local"


def open_machine(note: Note | None = None, **options: Unpack[TextOptions]) -> Monocontext:
    """All sessions on this machine as one text. `note` gets lines on progress. Raises `NotFound` if there is none."""
    files = discover_sessions()
    if not files:
        raise NotFound("no agent has sessions on this machine: run Claude Code or Codex here first")
    return _open(files, "machine", note, options)


def open_folder(url: str | os.PathLike[str], **options: Unpack[TextOptions]) -> Monocontext | None:
    """The sessions in `~/.claude`, `~/.codex`, or a folder below these, as one text, each a document; None if `url` is
    no such folder, or the folder has no sessions."""
    try:
        address = parse(os.fspath(url))
    except InvalidUrl:
        return None
    folder = Path(address.path).resolve()
    homes = (home.resolve() for home in (*claude_code.roots(), codex.home()))
    if address.scheme != "file" or not any(map(folder.is_relative_to, homes)):
        return None
    files = [file for file in discover_sessions() if file.path.resolve().is_relative_to(folder)]
    return _open(files, str(folder), None, options) if files else None


def _open(files: list[SessionFile], key: str, note: Note | None, options: TextOptions) -> Monocontext:
    """The text of these sessions, from an archive in the cache that `key` names; its other sessions are removed."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    cache = Path(base if os.path.isabs(base) else os.path.expanduser("~/.cache")) / "monocontext" / "sessions"
    folder = cache / hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    store, states_path, note = LocalStore(str(folder)), folder / "taken.json", note or (lambda _: None)
    project, before = Project(store, _PROJECT), read_states(states_path)
    new = [file for file in files if before.get(str(file.path)) != state_of(file.path)]
    agents = ", ".join(f"{count} of {agent}" for agent, count in sorted(Counter(file.agent for file in files).items()))
    number = "1 session" if len(files) == 1 else f"{len(files)} sessions"
    note(f"{number} on this machine ({agents}), {len(new)} new; secrets are taken out; kept in {folder}")
    for gone in set(project.list_sessions()) - {file.session_id for file in files}:
        store.delete(session_key(_PROJECT, gone))
    upload = partial(upload_session, store, project=_PROJECT, user=user_at_machine(), is_open=True)
    upload_changed(files, states_path, upload, note)
    return project.context(**options)
