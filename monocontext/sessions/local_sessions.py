"""Read the sessions on this machine as one text, without a bucket.

They are uploaded, without their secrets, to an archive in the user's cache folder, which only the user may open. Later
calls read only new and longer sessions, and remove those that are gone. Nothing is written elsewhere, nothing is sent.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Unpack

from monocontext.engine.open import TextOptions
from monocontext.errors import InvalidText, InvalidUrl, NotFound
from monocontext.sessions import claude_code, codex, names
from monocontext.sessions.archive import Project
from monocontext.sessions.changed_files import read_states, state_of, upload_changed
from monocontext.sessions.identity import user_at_machine
from monocontext.sessions.reader import SessionFile
from monocontext.sessions.readers import AGENTS, discover_sessions, recognize_session
from monocontext.sessions.upload import Uploaded, upload_session
from monocontext.stores.address import parse
from monocontext.stores.local import LocalStore
from monocontext.text.monocontext import Monocontext

Note = Callable[[str], object]

_PROJECT = "local"
_MOST_FILES = 20_000
"""The most files to look at for sessions; a folder with more is refused."""
_PLAIN = "chat"
"""A format that no agent keeps in a folder of its own: a folder with such files is not a folder of sessions."""
_OTHER_ENDINGS = (".meta.json", ".lock")
_OTHER_FOLDERS = frozenset(["tool-results", "memory", "logs"])
"""Files and folders that agents keep next to sessions."""


def open_machine(note: Note | None = None, **options: Unpack[TextOptions]) -> Monocontext:
    """All sessions of agents on this machine as one text. Raises `NotFound` if there is none."""
    files = [file for file in discover_sessions() if file.agent != _PLAIN]
    if not files:
        raise NotFound("no sessions of an agent on this machine")
    return _open(files, "machine", note, options)


def open_folder(
    place: str | os.PathLike[str], note: Note | None = None, **options: Unpack[TextOptions]
) -> Monocontext | None:
    """The sessions in an agent's folder as one text, each a document; None for any other folder.

    An agent's folder is one in which it keeps sessions (`~/.claude/projects/...`, `~/.codex/sessions`), or a copy of
    it: a folder that contains only sessions and their files.
    """
    try:
        address = parse(os.fspath(place))
    except InvalidUrl:
        return None
    if address.scheme != "file" or not Path(address.path).is_dir():
        return None
    folder = Path(address.path).resolve()
    files = _find_sessions(folder)
    return _open(files, str(folder), note, options) if files else None


def _find_sessions(folder: Path) -> list[SessionFile]:
    """The sessions in an agent's folder; empty for any other folder."""
    if any(folder.is_relative_to(root) or (folder == root.parent and folder.name[:1] == ".") for root in _roots()):
        return [file for file in discover_sessions() if file.path.resolve().is_relative_to(folder)]
    results = []
    for path in _session_paths(folder):
        try:
            file = recognize_session(path)
        except (InvalidText, OSError):
            return []
        if file.agent == _PLAIN or (file.agent == "claude-code" and not _is_claude(file)):
            return []
        results.append(file)
    return results


def _roots() -> list[Path]:
    """The folders in which the agents of this user keep sessions."""
    folders = [item / "projects" for item in claude_code.roots()]
    folders += [codex.home() / name for name in codex.FOLDERS]
    return [item.resolve() for item in folders]


def _session_paths(folder: Path) -> list[Path]:
    """The files of a copied folder that may be sessions; empty if there are more than `_MOST_FILES`, or any file that
    agents do not keep next to sessions."""
    results: list[Path] = []
    for node, folders, files in os.walk(folder):
        folders[:] = [item for item in folders if item not in _OTHER_FOLDERS]
        for name in files:
            if name.endswith((".jsonl", ".jsonl.zst")):
                results.append(Path(node, name))
            elif not name.endswith(_OTHER_ENDINGS):
                return []
        if len(results) > _MOST_FILES:
            return []
    return sorted(results)


def _is_claude(file: SessionFile) -> bool:
    """Whether a file is Claude Code's. The agent of JSON lines of no known kind is given as Claude Code, too."""
    lines = AGENTS[file.agent].lines(file.path)
    return any({"sessionId", "uuid"} & line.record.keys() for line, _ in zip(lines, range(50), strict=False))


def _open(files: list[SessionFile], key: str, note: Note | None, options: TextOptions) -> Monocontext:
    """Bring the archive for `key` up to date with the files, and open it."""
    folder = _cache_folder() / hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    folder.mkdir(mode=0o700, exist_ok=True)
    store, noted, note = LocalStore(str(folder)), folder / "taken.json", note or (lambda _: None)
    project, before = Project(store, _PROJECT), read_states(noted)
    new = [file for file in files if before.get(str(file.path)) != state_of(file.path)]
    agents = ", ".join(f"{count} of {agent}" for agent, count in sorted(Counter(file.agent for file in files).items()))
    number = "1 session" if len(files) == 1 else f"{len(files)} sessions"
    note(f"{number} on this machine ({agents}), {len(new)} new; secrets are taken out; kept in {folder}")
    for gone in set(project.list_sessions()) - {file.session_id for file in files}:
        store.delete(names.session_key(_PROJECT, gone))

    def upload(file: SessionFile) -> Uploaded:
        return upload_session(store, file, project=_PROJECT, user=user_at_machine(), is_open=True)

    upload_changed(new, noted, upload, note)
    return project.context(**options)


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(base if os.path.isabs(base) else os.path.expanduser("~/.cache")) / "monocontext" / "sessions"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
