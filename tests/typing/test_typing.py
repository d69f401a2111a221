"""What mypy and pyright say of programs that use the public names, rightly and wrongly."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # pyright fetches itself by npm

TOP, PROGRAM = Path(__file__).parents[2], Path(__file__).with_name("program.py")


def run(*command: str | Path) -> str:
    done = subprocess.run([sys.executable, "-m", *map(str, command)], capture_output=True, text=True, cwd=TOP)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def mypy() -> set[int]:
    """The lines on which mypy finds an error."""
    lines = run("mypy", "--strict", "--no-error-summary", "--hide-error-context", PROGRAM).splitlines()
    found = [line.split(":", 3) for line in lines if ": error: " in line]
    assert all(Path(place) == PROGRAM.relative_to(TOP) for place, *_ in found), lines
    return {int(number) for _, number, *_ in found}


def pyright() -> set[int]:
    """The lines on which pyright finds an error, in its standard mode."""
    said = json.loads(run("pyright", "--outputjson", "--pythonpath", sys.executable, PROGRAM))
    assert said["summary"]["filesAnalyzed"] == 1
    errors = [each for each in said["generalDiagnostics"] if each["severity"] == "error"]
    return {each["range"]["start"]["line"] + 1 for each in errors}


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_mistakes_are_errors_on_their_lines_and_nothing_else_is(checker: Callable[[], set[int]]) -> None:
    lines = PROGRAM.read_text().splitlines()
    marked = {number for number, line in enumerate(lines, 1) if line.endswith("  # error")}
    assert len(marked) > 20
    assert checker() == marked
