"""The real `dspy`, run in an environment that has it: `MONOCONTEXT_DSPY_PYTHON`, else this one."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from monocontext.memory.dspy.temporal_range import ends_of
from monocontext.text.from_str import wrap_str

CONTRACT = Path(__file__).with_name("contract.py")
_found = importlib.util.find_spec("dspy")
HERE = sys.executable if _found and _found.origin else ""  # without an origin it is the folder of these tests
PYTHON = os.environ.get("MONOCONTEXT_DSPY_PYTHON") or HERE

NOW = datetime(2026, 2, 18, 15, 30, tzinfo=UTC)  # a Wednesday
DAY = "T23:59:59.999999"


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


def test_importing_loads_no_dspy() -> None:
    code = "import sys, monocontext.dspy; print('dspy' in sys.modules, hasattr(monocontext.dspy, 'nothing'))"
    environment = {**os.environ, "PYTHONPATH": str(CONTRACT.parents[3])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == "False False\n"


@pytest.mark.parametrize(
    ("words", "since", "until"),
    [
        ("all time", None, None),
        ("", None, None),
        ("today", "2026-02-18T00:00:00", "2026-02-18T15:30:00"),
        ("Yesterday", "2026-02-17T00:00:00", "2026-02-17" + DAY),
        ("this week", "2026-02-16T00:00:00", "2026-02-18T15:30:00"),
        ("this month", "2026-02-01T00:00:00", "2026-02-18T15:30:00"),
        ("last week", "2026-02-11T15:30:00", "2026-02-18T15:30:00"),
        ("the  last 3 days", "2026-02-15T15:30:00", "2026-02-18T15:30:00"),
        ("past 2 hours", "2026-02-18T13:30:00", "2026-02-18T15:30:00"),
        ("2026-02-14", "2026-02-14T00:00:00", "2026-02-14" + DAY),
        ("2025-12", "2025-12-01T00:00:00", "2025-12-31" + DAY),
        ("2024-02", "2024-02-01T00:00:00", "2024-02-29" + DAY),
        ("2026-02-01 to 2026-02-14", "2026-02-01T00:00:00", "2026-02-14" + DAY),
        ("2026-01..2026-02", "2026-01-01T00:00:00", "2026-02-28" + DAY),
        ("between 2026-02-01 and 2026-02-03", "2026-02-01T00:00:00", "2026-02-03" + DAY),
        ("since 2026-02-01", "2026-02-01T00:00:00", None),
        ("before 2026-02-01", None, "2026-01-31" + DAY),
        ("until 2026-02-01", None, "2026-02-01" + DAY),
        ("2026-02-14T10:00:00Z", "2026-02-14T10:00:00", "2026-02-14T10:00:00"),
    ],
)
def test_words_for_time(words: str, since: str | None, until: str | None) -> None:
    ends = ends_of(words, NOW)
    assert ends is not None
    assert [each and each.isoformat().removesuffix("+00:00") for each in ends] == [since, until]


@pytest.mark.parametrize(
    "words", ["when I was young", "last", "2026-13", "2026-02-30", "last 3 blue moons", "0", "now to"]
)
def test_other_words_are_advice(words: str) -> None:
    assert ends_of(words, NOW) is None


@pytest.mark.parametrize("value", ["", "a", "zeile\r\nñ🦜\n" * 50_000])
def test_a_wrapped_text_is_the_text(value: str) -> None:
    text = wrap_str(value)
    assert str(text) == value
    assert [hit.line_number for hit in text.grep("ñ", max_hits=2)] == ([2, 4][: value.count("ñ")])
