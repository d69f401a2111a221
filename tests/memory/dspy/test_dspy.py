"""The real `dspy`, run in an environment that has it: `MONOCONTEXT_DSPY_PYTHON`, else this one."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from monocontext.text.from_str import wrap_str

CONTRACT = Path(__file__).with_name("contract.py")
_found = importlib.util.find_spec("dspy")
HERE = sys.executable if _found and _found.origin else ""  # without an origin it is the folder of these tests
PYTHON = os.environ.get("MONOCONTEXT_DSPY_PYTHON") or HERE


@pytest.mark.skipif(not PYTHON, reason="no dspy here: pip install 'dspy>=3.4', or name an interpreter")
def test_signatures_and_agent(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(CONTRACT.parents[3]), "DSPY_CACHEDIR": str(tmp_path)}
    done = subprocess.run([PYTHON, CONTRACT], capture_output=True, text=True, env=environment, timeout=110)
    assert done.returncode == 0, done.stderr
    assert [row[0] for row in json.loads(done.stdout)] == [
        "ExploreMemory",
        "MemoryChainReasoning",
        "SynthesizeMemories",
        "AgentMemoryRetrieval",
    ]


@pytest.mark.parametrize("value", ["", "a", "zeile\r\nñ🦜\n" * 50_000])
def test_a_wrapped_text_is_the_text(value: str) -> None:
    text = wrap_str(value)
    assert str(text) == value
    assert [hit.line_number for hit in text.grep("ñ", max_hits=2)] == ([2, 4][: value.count("ñ")])
