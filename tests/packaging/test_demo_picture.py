"""The picture of the README is what docs/demo_picture.py draws, but for counts, which reading ahead may change."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "demo_picture.py"


def words(svg: str) -> list[str]:
    texts = [element.text or "" for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("}text")]
    return [re.sub(r"[\d.]+ (requests|MB|s)\b", r"some \1", text) for text in texts]


@pytest.mark.slow
def test_the_picture_is_drawn_by_its_script() -> None:
    spec = importlib.util.spec_from_file_location("demo_picture", SCRIPT)
    assert spec
    assert spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    committed = script.PICTURE.read_text("utf-8")
    assert words(committed) == words(script.draw())
    assert any("disk sdq7 failed" in line for line in words(committed))
    assert len(committed) < 8_000
    assert "prefers-color-scheme: dark" in committed
    assert "url(" not in committed, "nothing is fetched from elsewhere"
