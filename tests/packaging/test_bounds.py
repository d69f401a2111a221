"""Lower bounds of dependencies that were found by trying."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]


@pytest.mark.parametrize("project", ["pyproject.toml", "rlm/pyproject.toml"])
def test_typer_works_with_todays_click(project: str) -> None:
    """0.15.0 to 0.15.3 take click 8.2 and break every --help with it; 0.15.4 refuses it; 0.16 works, to click 8.5."""
    wanted = tomllib.loads((CHECKOUT / project).read_text("utf-8"))["project"]["dependencies"]
    (bound,) = (each.partition(">=")[2] for each in wanted if each.startswith("typer"))
    assert tuple(map(int, bound.split("."))) >= (0, 16)
