"""The README is short, its Python runs as it stands, and its figures are those of docs/benchmarks.md."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from rlm.runners.pyodide import what_is_missing

CHECKOUT = Path(__file__).parents[2]
README = (CHECKOUT / "README.md").read_text("utf-8")


def test_it_is_short() -> None:
    assert len(README.splitlines()) < 120


@pytest.mark.slow
def test_its_python_works_when_pasted(tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", README, re.M | re.S)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={"PYTHONPATH": str(CHECKOUT)})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("5400015 199999 INFO served in 3 ms\n\n202\n8 000007 ERROR disk full on db7\n40008 ")
    assert len(re.findall("ERROR disk full on db7", done.stdout)) == 5
    assert " GETs, " in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_it_names_what_the_runner_wasm_asks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: "/usr/bin/node")
    [install] = re.findall(r"`(npm install[^`]+)`", README)
    assert f"`{install}`" in what_is_missing(tmp_path)


def test_its_figures_were_measured() -> None:
    measured = "".join((CHECKOUT / "docs" / f"{name}.md").read_text("utf-8") for name in ("benchmarks", "comparison"))
    (table,) = re.findall(r"^## What it costs\n(.*?)^Two cores", README, re.M | re.S)
    seconds = re.findall(r"\d+\.\d+(?= s)|(?<=\| )\d+\.\d+(?= \|)", table)
    millions = {"5.0": "5,000,000", "2.7": "2,651,148", "0.750": "750", "0.245": "245", "4.539": "4,539"}
    assert len(seconds) >= 10
    for figure in seconds:
        assert millions.get(figure, figure) in measured, figure


def test_the_chart_of_the_comparison_shows_its_table() -> None:
    made = runpy.run_path(str(CHECKOUT / "docs" / "grep_picture.py"))
    assert made["PICTURE"].read_text("utf-8") == made["drawing"]()
