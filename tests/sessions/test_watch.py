"""`sessions upload --watch` and the hook, as processes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from monocontext.sessions import Sessions
from monocontext.stores import open_store
from sessions.agents import small

COMMAND = [sys.executable, "-P", "-m", "monocontext"]


def test_watch_uploads_what_is_added(tmp_path: Path) -> None:
    session = small()
    path = session.write(tmp_path)
    project = Sessions(open_store(tmp_path / "a")).project("proj")
    words = ["sessions", "upload", str(path), "--to", str(tmp_path / "a"), "--watch", "--interval", "0.1"]
    process = subprocess.Popen([*COMMAND, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        for turns in (4, 5, 6):
            end = time.monotonic() + 60
            while len(project.list_turns(path.stem)) != turns:
                assert time.monotonic() < end
                assert process.poll() is None
                time.sleep(0.05)
            session.user("And more")
            session.write(tmp_path)
    finally:
        process.kill()
        process.communicate()


def test_the_hook_uploads_a_session_that_ends(tmp_path: Path) -> None:
    path = small().write(tmp_path)
    told = json.dumps({"session_id": path.stem, "transcript_path": str(path), "cwd": "/x/proj"}).encode()
    words = ["session-end", "--url", str(tmp_path / "a"), "--project", "other"]
    command = [sys.executable, "-m", "monocontext.sessions.hook", *words]
    done = subprocess.run(command, input=told, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    end = time.monotonic() + 60
    while not Sessions.open(tmp_path / "a").projects():
        assert time.monotonic() < end
        time.sleep(0.1)
    with Sessions.open(tmp_path / "a") as archive:
        assert archive.project("other").list_sessions() == [path.stem]
