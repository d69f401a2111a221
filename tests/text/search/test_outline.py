"""`outline`: what a text is, for 16 GETs at most, whatever its size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from monocontext import Monocontext, documents, publish
from monocontext.cli.commands import app
from monocontext.stores.memory import MemoryStore, forget
from monocontext.testing import CountingStore
from monocontext.text.search.outline import MOST_HEADINGS, MOST_LINE_CHARACTERS, SAMPLES
from tests.virtual import virtual_context

FRAME_CHARACTERS = 1 << 18
MOST_GETS = 16

TEXTS = {
    "Markdown": "# Guide\n\nSome words.\n\n## Install\n\nMore words, and `code`.\n\n## Use\n\nThe end.\n",
    "code": "import os\n\n# a comment\nclass Store:\n    def get(self):\n        return os\n\n\ndef main():\n    ...\n",
    "log": "".join(f"2026-11-23T07:{minute:02}:00Z INFO served in {minute} ms\n" for minute in range(60)),
    "CSV": "name,age,city\n" + "".join(f"ann{n},{n},bern\n" for n in range(30)),
    "JSON lines": "".join(json.dumps({"id": n, "text": "a: b"}) + "\n" for n in range(30)),
    "session": "[Turn 1 - USER] 2026-11-23 text -\nWhy?\n\n[Turn 2 - ASSISTANT] 2026-11-23 text -\nBecause.\n",
    "prose": "It was the best of times, it was the worst of times,\nit was the age of wisdom.\n",
}


def opened(text: object, **options: object) -> tuple[CountingStore, Monocontext]:
    forget("outline")
    store = CountingStore(MemoryStore("outline"))
    publish(text, store, codec="raw", **options)  # type: ignore[arg-type]
    return store, Monocontext.open(store)


@pytest.mark.parametrize("frames", [1, 2, 5, SAMPLES, 100, 3800, 40_960])
def test_gets_whatever_the_size(frames: int) -> None:
    line = "2026-03-01 INFO host-1 served in 7 ms\n"
    frame = line * (FRAME_CHARACTERS // len(line))
    store = CountingStore(virtual_context(frames, frame))
    with Monocontext.open(store) as context:
        store.reset()
        result = context.outline()
        assert store.gets <= MOST_GETS
        assert (result.places, result.characters, result.lines) == (
            min(frames, SAMPLES),
            len(context),
            len(context.lines),
        )
        assert result.headings[-1].start == len(context) - len(line)
        assert result.headings[-1].line == len(context.lines)
        for item in result.headings:
            assert context[item.start : item.start + len(item.text)] == item.text == line.rstrip()
        assert len(str(result).split("\n")) <= 2 + SAMPLES * MOST_HEADINGS


def test_an_empty_text() -> None:
    store, context = opened("")
    store.reset()
    result = context.outline()
    assert (store.gets, result.places, result.characters, result.lines, result.headings) == (0, 0, 0, 0, ())
    assert str(result) == "0 characters in 0 lines"


@pytest.mark.parametrize("kind", TEXTS)
def test_kinds(kind: str) -> None:
    _, context = opened(TEXTS[kind])
    result = context.outline()
    assert result.kinds == (kind,)
    assert result.headings
    assert result.lines == TEXTS[kind].count("\n")
    lines = TEXTS[kind].split("\n")
    for item in result.headings:
        assert item.line is not None
        assert lines[item.line - 1].startswith(item.text)
        assert TEXTS[kind].startswith(item.text, item.start)


def test_what_lines_are_named() -> None:
    named = {kind: [item.text for item in opened(text)[1].outline().headings] for kind, text in TEXTS.items()}
    assert named["Markdown"] == ["# Guide", "## Install", "## Use"]
    assert named["code"] == ["class Store:", "    def get(self):", "def main():"]
    assert named["log"] == [TEXTS["log"].split("\n")[0], TEXTS["log"].split("\n")[-2]]
    assert named["CSV"][0] == "name,age,city"
    assert [text[:15] for text in named["session"]] == ["[Turn 1 - USER]", "[Turn 2 - ASSIS"]


def test_higher_levels_come_first() -> None:
    text = "".join(f"## Part {n}\n\nwords\n\n" + "### Detail\n\nwords\n\n" * 9 for n in range(5))
    result = opened(text)[1].outline()
    assert [item.text for item in result.headings if item.text.startswith("## ")] == [f"## Part {n}" for n in range(5)]
    assert len(result.headings) == MOST_HEADINGS


def test_documents() -> None:
    store, context = opened(documents([(f"part-{n}.md", f"# Part {n}\n\n## Words\n") for n in range(50)]))
    store.reset()
    result = context.outline()
    assert store.gets <= MOST_GETS
    assert (result.documents, result.names[:2]) == (50, ("part-0.md", "part-1.md"))
    assert "50 documents: part-0.md, part-1.md" in str(result)


def test_views_and_derived_texts() -> None:
    text = "preface\n" * 100 + TEXTS["Markdown"] * 50 + "É\n"
    _, context = opened(text, frame_bytes=512)
    view = context.view(800, len(text))
    result = view.outline()
    assert (result.headings[0].text, result.headings[0].start, result.headings[0].line) == ("# Guide", 0, 1)
    assert result.lines == len(view.lines)
    for item in result.headings:
        assert item.line is not None
        assert view.lines[item.line - 1].startswith(item.text)
    small = Monocontext.open(context.url, materialize_limit=10)
    lowered = small.lower()
    assert isinstance(lowered, Monocontext)
    assert "# guide" in [item.text for item in lowered.outline().headings]


def test_a_long_line_is_cut() -> None:
    result = opened("x" * 5000)[1].outline()
    assert [len(item.text) for item in result.headings] == [MOST_LINE_CHARACTERS]


def test_the_command(tmp_path: Path) -> None:
    place = str(tmp_path / "text")
    publish(TEXTS["Markdown"], place)
    ran = CliRunner().invoke(app, ["outline", place])
    assert ran.exit_code == 0
    assert "looks like Markdown in 1 place" in ran.stdout
    assert "line 5, character 22: ## Install" in ran.stdout
    result = json.loads(CliRunner().invoke(app, ["outline", place, "--json"]).stdout)
    assert result["headings"][1] == {"start": 22, "line": 5, "kind": "heading", "text": "## Install"}
    assert result["characters"] == len(TEXTS["Markdown"])
