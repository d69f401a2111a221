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


def test_a_context_shows_what_it_is_and_reads_nothing_for_it(context: Monocontext) -> None:
    gets = context.stats.gets
    assert f"Monocontext {len(TEXT):,} characters" in words(show(context))
    assert "[100:12,100]" in words(show(context.view(100, 12_100)))
    assert context.stats.gets == gets


def test_texts_of_other_kinds(tmp_path: Path, context: Monocontext) -> None:
    assert "by lower()" in words(show(context.view(materialize_limit=1000).lower()))
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
    html = context_card("Monocontext", 10, ['s3://<script>alert("x")</script>&'])
    assert "<script" not in html
    assert 's3://<script>alert("x")</script>&' in words(html)


def test_counts() -> None:
    html = show(Stats(gets=1234, bytes_fetched=5_000_000, hits=3, misses=1, wait_seconds=1.25))
    assert all(each in words(html) for each in ("1,234", "5,000,000", "3 of 4 look-ups", "1.25 s"))


def test_progress_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_bar("work", 10) as shown:
        shown(5)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "5/10 bytes" in printed.err
    assert "work" in printed.err


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
    bar, first, after, stats, last = cards
    assert re.fullmatch(r"publish: ([\d,]+) of \1 bytes, [\d.]+ s", bar)
    assert first == after == last
    assert first.startswith("Monocontext")
    assert stats.startswith("Reads GETs")
    assert str(CHECKOUT) in shown[-1]["text/plain"]
