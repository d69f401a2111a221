"""What the real agents wrote, without words of their makers: each turn that the model saw stands once, in order."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from agents.stand_in import rows_of

from monocontext.sessions import Sessions, upload_session
from monocontext.sessions.readers import discover_sessions
from monocontext.stores import open_store

REAL = Path(__file__).with_name("real")
KEPT = sorted(path.parent for path in REAL.glob("*/*/seen.json"))


@pytest.mark.parametrize("folder", KEPT, ids=[f"{path.parent.name}-{path.name}" for path in KEPT])
def test_what_the_model_saw_is_in_the_archive(folder: Path, own_home: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, own_home, dirs_exist_ok=True)
    seen = [tuple(row) for row in json.loads((folder / "seen.json").read_text("utf-8"))]
    store = open_store(tmp_path / "a")
    for file in discover_sessions():
        upload_session(store, file)
    assert [sum(upload_session(store, file).records for file in discover_sessions())] == [0]
    archive = Sessions(store)
    (project,) = archive.projects()
    assert project == ("github.com-acme-api" if folder.parent.name.startswith("codex") else "api")
    sessions = archive.project(project).sessions()
    (main,) = (info for info in sessions if "/" not in info.session_id)
    script = {**{words: () for kind, words in seen if kind == "user"}, "": [w for k, w in seen if k == "assistant"]}
    assert rows_of(archive.project(project).turns(main.session_id), script) == seen
    assert [info.unknown for info in sessions] == [{}] * len(sessions)
    assert (folder.name == "subagent") == (len(sessions) > 1)
    kinds = {turn.kind for info in sessions for turn in archive.project(project).turns(info.session_id)}
    assert (folder.name == "compaction") == ("summary" in kinds)
