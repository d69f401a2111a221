"""The examples, as a user runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from monocontext.memory import Memory

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: object) -> str:
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent)}
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_a_session_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    script = "memory_session_with_snapshots.py"
    first = run(script, tmp_path, "--stop-after", 2)
    assert "the session begins at section 1 of 5" in first
    assert first.endswith("the session is interrupted before section 3\n")
    memory = Memory.open(tmp_path)
    assert memory.get("recovery_point") == "Resume_at_section_3"
    assert memory.entry("recovery_point").ttl_seconds == 7200
    second = run(script, tmp_path)
    assert "the session begins at section 3 of 5" in second
    assert "P summary_2" not in second
    assert memory.list("summary_") == [f"summary_{number}" for number in range(1, 6)]
    assert "=== KEY: summary_5 ===\nNeap tides come between.\n" in second
    assert "the session begins at section 6 of 5" in run(script, tmp_path)


def test_a_council_decides_once(tmp_path: Path) -> None:
    out = run("council.py", tmp_path)
    memory = Memory.open(tmp_path)
    assert memory["final_decision"] == "option_A with 2 of 3 votes"
    assert memory["claimed:minutes"] in ("analyst", "strategist", "implementer")
    assert memory.list("vote_") == ["vote_analyst", "vote_implementer", "vote_strategist"]
    assert out.count("Another member writes the minutes.") == 2
    assert out.endswith("decision: option_A with 2 of 3 votes\n")
    assert memory.entry("vote_analyst").ttl_seconds == 3600
