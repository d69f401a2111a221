"""`outline`: what a text is, for 16 GETs at most, whatever its size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from monocontext import Monocontext, documents, publish
from monocontext.cli.commands import app
from monocontext.stores.memory import MemoryStore, forget
from monocontext.testing import CountingStore, virtual_context
from monocontext.text.search.outline import HEADINGS, LINE_CHARACTERS, PLACES

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


@pytest.mark.parametrize("frames", [1, 2, 5, PLACES, 100, 3800, 40_960])
def test_gets_whatever_the_size(frames: int) -> None:
    line = "2026-03-01 INFO host-1 served in 7 ms\n"
    frame = line * (FRAME_CHARACTERS // len(line))
    store = CountingStore(virtual_context(frames, frame))
    with Monocontext.open(store) as context:
        store.reset()
        found = context.outline()
        assert store.gets <= MOST_GETS
        assert (found.places, found.characters, found.lines) == (min(frames, PLACES), len(context), len(context.lines))
        assert found.headings[-1].start == len(context) - len(line)
        assert found.headings[-1].line == len(context.lines)
        for one in found.headings:
            assert context[one.start : one.start + len(one.text)] == one.text == line.rstrip()
        assert len(str(found).split("\n")) <= 2 + PLACES * HEADINGS


def test_an_empty_text() -> None:
    store, context = opened("")
    store.reset()
    found = context.outline()
    assert (store.gets, found.places, found.characters, found.lines, found.headings) == (0, 0, 0, 0, ())
    assert str(found) == "0 characters in 0 lines"


@pytest.mark.parametrize("kind", TEXTS)
def test_kinds(kind: str) -> None:
    _, context = opened(TEXTS[kind])
    found = context.outline()
    assert found.kinds == (kind,)
    assert found.headings
    assert found.lines == TEXTS[kind].count("\n")
    lines = TEXTS[kind].split("\n")
    for one in found.headings:
        assert one.line is not None
        assert lines[one.line - 1].startswith(one.text)
        assert TEXTS[kind].startswith(one.text, one.start)


def test_what_lines_are_named() -> None:
    named = {kind: [one.text for one in opened(text)[1].outline().headings] for kind, text in TEXTS.items()}
    assert named["Markdown"] == ["# Guide", "## Install", "## Use"]
    assert named["code"] == ["class Store:", "    def get(self):", "def main():"]
    assert named["log"] == [TEXTS["log"].split("\n")[0], TEXTS["log"].split("\n")[-2]]
    assert named["CSV"][0] == "name,age,city"
    assert [text[:15] for text in named["session"]] == ["[Turn 1 - USER]", "[Turn 2 - ASSIS"]


def test_higher_levels_come_first() -> None:
    text = "".join(f"## Part {n}\n\nwords\n\n" + "### Detail\n\nwords\n\n" * 9 for n in range(5))
    found = opened(text)[1].outline()
    assert [one.text for one in found.headings if one.text.startswith("## ")] == [f"## Part {n}" for n in range(5)]
    assert len(found.headings) == HEADINGS


def test_documents() -> None:
    store, context = opened(documents([(f"part-{n}.md", f"# Part {n}\n\n## Words\n") for n in range(50)]))
    store.reset()
    found = context.outline()
    assert store.gets <= MOST_GETS
    assert (found.documents, found.names[:2]) == (50, ("part-0.md", "part-1.md"))
    assert "50 documents: part-0.md, part-1.md" in str(found)


def test_views_and_derived_texts() -> None:
    text = "preface\n" * 100 + TEXTS["Markdown"] * 50 + "É\n"
    _, context = opened(text, frame_bytes=512)
    view = context.view(800, len(text))
    found = view.outline()
    assert (found.headings[0].text, found.headings[0].start, found.headings[0].line) == ("# Guide", 0, 1)
    assert found.lines == len(view.lines)
    for one in found.headings:
        assert one.line is not None
        assert view.lines[one.line - 1].startswith(one.text)
    small = Monocontext.open(context.url, materialize_limit=10)
    lowered = small.lower()
    assert isinstance(lowered, Monocontext)
    assert "# guide" in [one.text for one in lowered.outline().headings]


def test_a_long_line_is_cut() -> None:
    found = opened("x" * 5000)[1].outline()
    assert [len(one.text) for one in found.headings] == [LINE_CHARACTERS]


def test_the_command(tmp_path: Path) -> None:
    place = str(tmp_path / "text")
    publish(TEXTS["Markdown"], place)
    ran = CliRunner().invoke(app, ["outline", place])
    assert ran.exit_code == 0
    assert "looks like Markdown in 1 place" in ran.stdout
    assert "line 5, character 22: ## Install" in ran.stdout
    found = json.loads(CliRunner().invoke(app, ["outline", place, "--json"]).stdout)
    assert found["headings"][1] == {"start": 22, "line": 5, "kind": "heading", "text": "## Install"}
    assert found["characters"] == len(TEXTS["Markdown"])
