"""The bridges to LangGraph and DSPy with the real packages, and the examples as a user runs them."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from monocontext.memory import Memory

CHECKOUT = Path(__file__).parents[2]
PACKAGES = ["langgraph-checkpoint>=2.0.20"]
DSPY = os.environ.get("MONOCONTEXT_DSPY_PYTHON") or (sys.executable if importlib.util.find_spec("dspy") else "")


def run(program: str, *arguments: object, python: str = sys.executable, **variables: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), **variables}
    command = [python, str(CHECKOUT / program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/", timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == "" or python == DSPY, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_langgraph(tmp_path: Path) -> None:
    """Installed into a folder of its own for it."""
    command = [Path(sys.executable).with_name("uv"), "pip", "install", "--quiet", "--target", tmp_path / "packages"]
    done = subprocess.run([*command, *PACKAGES], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"uv cannot fetch {PACKAGES}: {done.stderr.strip().splitlines()[-1]}")
    paths = {"PYTHONPATH": os.pathsep.join([str(tmp_path / "packages"), str(CHECKOUT)])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/memory/contract_langgraph.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=CHECKOUT, env={**os.environ, **paths})
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(not DSPY, reason="no dspy here: pip install 'dspy>=3.4', or name an interpreter")
def test_signatures_and_agent_of_dspy(tmp_path: Path) -> None:
    figures = json.loads(run("tests/memory/contract_dspy.py", python=DSPY, DSPY_CACHEDIR=str(tmp_path)))
    names = ["ExploreMemory", "MemoryChainReasoning", "SynthesizeMemories", "AgentMemoryRetrieval"]
    assert [row[0] for row in figures] == names


def test_a_session_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    script = "examples/memory_session_with_snapshots.py"
    first = run(script, tmp_path, "--stop-after", 2)
    assert "the session begins at section 1 of 5" in first
    assert first.endswith("the session is interrupted before section 3\n")
    memory = Memory.open(tmp_path)
    point = memory.entry("recovery_point")
    assert (point.value, point.ttl_seconds) == ("Resume_at_section_3", 7200)
    second = run(script, tmp_path)
    assert "the session begins at section 3 of 5" in second
    assert "P summary_2" not in second
    assert memory.list("summary_") == [f"summary_{number}" for number in range(1, 6)]
    assert "=== KEY: summary_5 ===\nNeap tides come between.\n" in second
    assert "the session begins at section 6 of 5" in run(script, tmp_path)


def test_a_council_decides_once(tmp_path: Path) -> None:
    out = run("examples/council.py", tmp_path)
    memory = Memory.open(tmp_path)
    assert memory["final_decision"] == "option_A with 2 of 3 votes"
    assert memory["claimed:minutes"] in ("analyst", "strategist", "implementer")
    assert memory.list("vote_") == ["vote_analyst", "vote_implementer", "vote_strategist"]
    assert out.count("Another member writes the minutes.") == 2
    assert out.endswith("decision: option_A with 2 of 3 votes\n")
    assert memory.entry("vote_analyst").ttl_seconds == 3600
