"""Contexts that earlier versions wrote: they open for ever. What lies in `golden/` is never rewritten."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from monocontext import Monocontext
from monocontext.verify import verify
from monocontext.writer import append

GOLDEN = Path(__file__).parent / "golden"
VERSION_1 = ["raw", "zstd"]


def expected(name: str) -> str:
    return (GOLDEN / name / "text.txt").read_bytes().decode()


@pytest.fixture(params=[f"v1/{codec}" for codec in VERSION_1])
def golden(request: pytest.FixtureRequest) -> Path:
    return GOLDEN / str(request.param)


def test_the_golden_text_is_worth_keeping() -> None:
    for codec in VERSION_1:
        text = expected(f"v1/{codec}")
        for part in ("\r\n", "é", "e\u0301", "漢", "😀", "\u2028", "\u0130", "Σ", "\n\n"):
            assert part in text


def test_reads(golden: Path) -> None:
    text = (golden / "text.txt").read_bytes().decode()
    with Monocontext.open(golden / "context") as context:
        assert str(context) == text
        assert len(context) == len(text)
        assert list(context.lines) == [line + "\n" for line in text.split("\n")[:-1]]
        assert [context.find(character) for character in "é漢😀Σ"] == [text.find(character) for character in "é漢😀Σ"]
        assert context[20:70] == text[20:70]


def test_reads_the_first_generation_too(golden: Path) -> None:
    text = (golden / "text.txt").read_bytes().decode()
    with Monocontext.open(golden / "context", generation=1) as first:
        assert 0 < len(first) < len(text)
        assert str(first) == text[: len(first)]


def test_has_several_frames_segments_and_generations(golden: Path) -> None:
    context = golden / "context"
    assert len(list((context / "segments").iterdir())) >= 2
    assert len(list((context / "generations").iterdir())) == 2
    with Monocontext.open(context) as opened:
        assert opened.generation == 2


def test_verifies(golden: Path) -> None:
    report = verify(golden / "context")
    assert report.problems == []
    assert report.frames > 3


def test_can_be_appended_to(golden: Path, tmp_path: Path) -> None:
    shutil.copytree(golden / "context", tmp_path / "copy")
    append("more\n", tmp_path / "copy")
    with Monocontext.open(tmp_path / "copy") as context:
        assert str(context) == (golden / "text.txt").read_bytes().decode() + "more\n"
    assert verify(tmp_path / "copy").ok


def test_is_as_it_was_committed(golden: Path) -> None:
    """Objects are named by content, so that this finds a golden file that was regenerated or converted."""
    import hashlib

    for folder, suffix in [("segments", ".seg"), ("index", ".idx")]:
        for file in (golden / "context" / folder).iterdir():
            assert file.name == hashlib.sha256(file.read_bytes()).hexdigest()[:32] + suffix
