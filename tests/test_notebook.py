"""What a notebook shows of contexts, counts and runs, and the notebook of `examples/` in a real kernel."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest
from nbclient import NotebookClient

from monocontext import Monocontext, publish
from monocontext.engine.stats import Stats
from monocontext.notebook import context_card, progress_bar
from monocontext.writing.segments import Progress

pytestmark = pytest.mark.slow  # needs packages that `make test` does not install

CHECKOUT = Path(__file__).parents[1]
LINES = [f"line {i:06d}\n" for i in range(20_000)]
TEXT = "".join(LINES)


@pytest.fixture
def context(tmp_path: Path) -> Monocontext:
    publish(TEXT, tmp_path / "context", frame_bytes=4096)
    return Monocontext.open(tmp_path / "context", prefetch="off")


def show(value: object) -> str:
    """The HTML of a value: small, well-formed, with no colour of its own for text and nothing to fetch."""
    html = value._repr_html_()  # type: ignore[attr-defined]
    ElementTree.fromstring(html)
    assert len(html) < 20_000
    assert not re.search(r"<script|<style|<link|src=|href=|[^-]color:|background", html)
    return str(html)


def words(html: str) -> str:
    return " ".join(" ".join(ElementTree.fromstring(html).itertext()).split())


def blue(html: str) -> list[tuple[int, int]]:
    """The columns of the map that are drawn as read."""
    return [(int(x), int(width)) for x, width in re.findall(r'<rect x="(\d+)" width="(\d+)"', html)]


def test_a_context_shows_what_was_read_and_reads_nothing_for_it(context: Monocontext) -> None:
    gets = context.stats.gets
    first = show(context)
    assert f"{len(TEXT):,} characters" in words(first)
    assert "0% read" in words(first).replace(" %", "%")
    assert "from now on" in words(first)
    assert blue(first) == []
    assert context.stats.gets == gets
    half = len(TEXT) // 2
    assert context[half : half + 1200] == TEXT[half : half + 1200]
    gets = context.stats.gets
    later = show(context)
    assert blue(later) == [(100, 1)]
    assert "1,200 characters in 1 range" in words(later)
    assert "from now on" not in words(later)
    assert context.stats.gets == gets
    [part] = blue(show(context.view(half, half + 12_000)))
    assert part == (0, 20), "the map of a view is its own"


def test_showing_takes_no_mark_away(context: Monocontext) -> None:
    mark, _ = context.reads_since()
    context[:10]
    show(context)
    assert context.reads_since(mark)[1] == [(0, 10)]
    assert "10 characters" in words(show(context))


def test_texts_of_other_kinds(tmp_path: Path, context: Monocontext) -> None:
    big = context.view(materialize_limit=1000)
    assert "by expandtabs()" in words(show(big.expandtabs()))
    context.close()
    assert "characters" in show(context), "a closed one still says what it was"
    publish({"a<b>.txt": "one " * 100, "c.txt": "two " * 100}, tmp_path / "documents")
    for shape, kind in (("list", "DocumentList"), ("dict", "DocumentDict")):
        with Monocontext.open(tmp_path / "documents", shape=shape, prefetch="off") as shaped:
            gets = shaped.stats.gets
            assert f"{kind} 802 characters" in words(show(shaped))
            assert "2 documents" in words(show(shaped))
            assert shaped.stats.gets == gets
    publish("", tmp_path / "empty")
    with Monocontext.open(tmp_path / "empty") as empty:
        assert "0 characters" in show(empty)


def test_names_are_escaped() -> None:
    html = context_card("Monocontext", 10, ['s3://<script>alert("x")</script>&'], [(0, 10)])
    assert "<script" not in html
    assert 's3://<script>alert("x")</script>&' in words(html)


@pytest.mark.parametrize("characters", [1, 7, 199, 200, 201, 12_345, 10**12])
def test_a_map_shows_the_smallest_read_and_all_of_a_whole_one(characters: int) -> None:
    whole = blue(context_card("Monocontext", characters, [], [(0, characters)]))
    assert whole == [(0, 200)]
    last = blue(context_card("Monocontext", characters, [], [(characters - 1, characters)]))
    assert last[0][0] == int((characters - 1) / (characters / 200))
    assert sum(last[-1]) == 200


def test_counts() -> None:
    html = show(Stats(gets=1234, bytes_fetched=5_000_000, hits=3, misses=1, wait_seconds=1.25))
    assert all(each in words(html) for each in ("1,234", "5,000,000", "3 of 4 look-ups", "1.25 s"))


def test_progress_elsewhere_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_bar("upload", 10) as shown:
        shown(5)
        shown(Progress(10, 10, 1))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("unit", "shows"), [("bytes", "5/10 bytes"), ("questions", "5/10")])
def test_progress_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, unit: str, shows: str
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_bar("work", 10, unit=unit) as shown:
        shown(5, 10, "what else `on_progress` is given")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert shows in printed.err
    assert "work" in printed.err


@pytest.mark.slow
def test_the_notebook_of_the_examples(tmp_path: Path) -> None:
    """In the kernel that readers have, since a progress bar asks it where it is; one kernel, some 2 s of processor."""
    notebook = nbformat.read(CHECKOUT / "examples" / "notebook.ipynb", as_version=4)
    assert all(not cell.outputs for cell in notebook.cells if cell.cell_type == "code"), "committed without outputs"
    notebook.cells.append(nbformat.v4.new_code_cell("import rlm.trajectory.completion as c; c.__file__"))
    client = NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(CHECKOUT)}})
    client.execute()
    shown = [out.data for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs if "data" in out]
    cards = [words(data["text/html"]) for data in shown if "text/html" in data]
    assert [out for cell in notebook.cells for out in cell.get("outputs", ()) if out.output_type == "stream"] == []
    bar, first, after, stats, run, last = cards
    assert re.fullmatch(r"publish: ([\d,]+) of \1 bytes, [\d.]+ s", bar)
    assert "0 characters in 0 ranges, from now on" in first
    assert "100,060 characters in 2 ranges" in after
    assert stats.startswith("Reads GETs")
    assert run.startswith("Line 31338: 2026-11-22T18 service-5 ERROR disk full")
    assert "Ended by answer: 2 turns, 2 calls" in run
    assert last.startswith("Monocontext")
    assert str(CHECKOUT) in shown[-1]["text/plain"]
