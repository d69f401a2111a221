"""Sources are what the model names, checked; reads are what its code was handed. Nothing is inferred."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rlm_replies import repl

from monocontext import Monocontext, append, documents, publish
from monocontext.cli.commands import app as storage
from rlm import RLM, Completion, Read, ScriptedLM, Source
from rlm.cli.commands import app
from rlm.context.text_parts import text_parts
from rlm.prompts.system import conversation
from rlm.trajectory.source import NO_SOURCES, format_sources
from rlm.view.feed import RowFeed

cli = CliRunner()
TEXT = "".join(f"line {i}: the value of item {i} is {i * 37 % 1009}\n" for i in range(20_000))
AT = TEXT.index("line 1234:")
LINE = TEXT[AT : TEXT.index("\n", AT)]


def ask(context: Any, *replies: str, **options: Any) -> Completion:
    return RLM(lm=ScriptedLM(list(replies)), **options).completion("q", context)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sources") / "context"
    publish(TEXT, path, frame_bytes=16_384)
    return path


LOOK = repl(f"print(context[{AT - 200}:{AT + 200}])")


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    "finish",
    [repl(f"FINAL('it', sources=[({AT}, {AT + len(LINE)})])"), repl(f"FINAL('it', sources={LINE!r})"),
     repl(f"found = 'it'\nFINAL_VAR('found', sources=[[{AT}, {AT + len(LINE)}]])"),
     repl(f"answer['content'] = 'it'; answer['sources'] = [{LINE!r}]; answer['ready'] = True")],
)  # fmt: skip
def test_each_way_to_answer_may_cite(place: Path, lazy: bool, finish: str) -> None:
    with Monocontext.open(place) as text:
        completion = ask(text if lazy else TEXT, LOOK, finish)
        generation = text.generation
    (source,) = completion.sources
    assert completion.answer == "it"
    assert (source.start, source.stop, source.lines, source.text) == (AT, AT + len(LINE), (1235, 1235), LINE)
    assert source.sha256 == hashlib.sha256(LINE.encode()).hexdigest()
    assert (source.generation, source.document) == (generation if lazy else None, None)


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        (f"({len(TEXT) - 5}, {len(TEXT) + 5})", "reach past the end of the text"),
        ("(5, 5)", "it must be a pair (start, stop) of character offsets, or a quote"),
        ("(9, 5)", "it must be"), ("(-9, 5)", "it must be"), ("7", "it must be"), ("''", "it must be"),
        ("(True, 5)", "it must be"), ("(0, 10**30)", "it must be"), ("None", "it must be"),
        ("(0, 10**9)", "reach past the end"), ("'nobody said this'", "is not in what the run has read"),
        ("'line 19999: the value'", "is not in what the run has read"),
    ],
)  # fmt: skip
def test_a_claim_that_does_not_hold_is_left_out_with_a_note(place: Path, claim: str, why: str) -> None:
    with Monocontext.open(place) as text:
        completion = ask(text, LOOK, repl(f"FINAL('it', sources=[{claim}, {LINE!r}])"))
    assert [source.text for source in completion.sources] == [LINE]
    told = [note for note in completion.notes if note.startswith("source 1 of the answer is left out: ")]
    assert [why in note for note in told] == [True]


def test_a_quote_that_was_not_looked_for_everywhere_says_so(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm.trajectory.source._MOST_SEARCHED", 5)
    with Monocontext.open(place) as text:
        completion = ask(text, repl("print(context[:9], context[-9:])\nFINAL('it', sources=['none'])"))
    assert any(note.endswith("'none' is not in the 5 characters that were searched") for note in completion.notes)


def test_reads_are_what_code_was_handed_by_document_and_line(tmp_path: Path) -> None:
    publish({"a.py": "one\ntwo\nthree\n", "b.py": "four\nfive\n"}, tmp_path)
    with Monocontext.open(tmp_path) as text:
        edge = len("one\ntwo\nthree\n")
        code = f"n = context.count('o')\nx = context[4:7]\ny = context[{edge - 6}:{edge + 4}]\nFINAL(x)"
        completion = ask(text, repl(code), trajectory=tmp_path / "run.jsonl")
        again = RLM(lm=ScriptedLM([])).resume(tmp_path / "run.jsonl", text)
    assert completion.sources == ()
    assert completion.reads == again.reads == (
        Read(4, 7, (2, 2), "a.py"), Read(edge - 6, edge, (3, 3), "a.py"), Read(edge, edge + 4, (1, 1), "b.py"),
    )  # fmt: skip
    assert completion.reads[1].place == "a.py:3"


def test_sources_are_in_the_trajectory_and_come_back(place: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Monocontext.open(place) as text:
        first = ask(text, LOOK, repl(f"FINAL('it', sources=[{LINE!r}])"), trajectory=path)
        assert RLM(lm=ScriptedLM([])).resume(path, text).sources == first.sources != ()
    (source, *_) = RowFeed(path).turn(1)["sources"]
    assert (source["place"], source["start"], source["text"]) == ("line:1235", AT, LINE)


def test_a_context_that_is_no_text_or_cannot_be_read_back_keeps_the_answer() -> None:
    class Broken(str):
        def __getitem__(self, key: Any) -> str:
            raise OSError("gone")

    completion = ask(Broken("some text"), repl("FINAL('it', sources=[(0, 4)])"))
    assert (completion.answer, completion.sources) == ("it", ())
    assert "the sources of the answer could not be read back: OSError: gone" in completion.notes
    listed = ask(["a", "b"], repl("FINAL('it', sources=[(0, 1)])"))
    assert (listed.answer, listed.sources) == ("it", ())
    assert any("the context is not a text" in note for note in listed.notes)


def test_run_cite_prints_them_and_cite_tells_whether_they_stand(
    endpoint: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-test")
    context = tmp_path / "context"
    publish(TEXT, context)
    endpoint.reply = lambda body: (
        repl(f"FINAL('it', sources=[{LINE!r}])") if len(conversation(body["messages"])) > 1 else LOOK
    )  # fmt: skip
    args = ["run", str(context), "q", "--base-url", endpoint.url, "--runner", "local", "--cite"]
    shown = cli.invoke(app, args)
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith("it\n\nSources:\nline:1235  ")
    (source,) = json.loads(cli.invoke(app, [*args, "--json"]).stdout)["sources"]
    assert (source["text"], source["lines"]) == (LINE, [1235, 1235])
    again = cli.invoke(storage, ["cite", str(context), source["reference"]])
    assert (again.exit_code, again.stdout) == (0, LINE + "\n"), again.output
    append("more\n", context)
    assert json.loads(cli.invoke(storage, ["cite", str(context), source["reference"], "--json"]).stdout)["stands"]
    assert format_sources([]) == NO_SOURCES


def test_a_source_has_the_address_of_its_document(tmp_path: Path) -> None:
    address = "https://github.com/o/r/blob/0123/src/a.py"
    publish(
        documents([("src/a.py", "one\ntwo\n", {"url": address}), ("https://example.com/a%20b", "page\n"),
         ("b.py", "no\n"), ("c.py", "script\n", {"url": "javascript:alert(1)"})]),
        tmp_path,
    )  # fmt: skip
    with Monocontext.open(tmp_path) as context:
        quotes = ["two", "page", "no", "script"]
        found = ask(context, repl(f"print(context[:])\nFINAL('it', sources={quotes!r})")).sources
    assert [source.url for source in found] == [address, "https://example.com/a%20b", None, None]
    assert [source.place for source in found] == ["src/a.py:2", "https://example.com/a%20b:1", "b.py:1", "c.py:1"]
    assert Source.from_dict(json.loads(json.dumps(found[0].to_dict()))) == found[0]


@pytest.mark.parametrize("runner", ["local", "subprocess"])
def test_reads_of_several_texts_are_told_by_their_names(runner: str, place: Path) -> None:
    publish({"a.py": "import os\n", "b.py": "x = 1\ny = 2\n"}, f"memory://reads-{runner}")
    with Monocontext.open(place) as logs, Monocontext.open(f"memory://reads-{runner}") as code:
        cell = f"a = context['logs'][{AT}:{AT + 20}]\nb = context['code'][10:22]\nc = context['notes'][:4]\n"
        given = {"logs": logs, "notes": "some words", "code": code, "n": 5}
        done = ask(
            given, repl(f"{cell}FINAL(a, sources=[{LINE!r}, 'y = 2', 'words', 'not there', (0, 5)])"), runner=runner
        )
        assert [part.start for part in text_parts({1: "ab", "1": code, "c": "x"})] == [0, 2, 2 + len(code)]
    assert [(read.document, read.lines) for read in done.reads] == [("logs", (1235, 1235)), ("code/b.py", (1, 2))]
    assert [(source.document, source.lines, source.text) for source in done.sources] == [
        ("logs", (1235, 1235), LINE), ("code/b.py", (2, 2), "y = 2"), ("notes", (1, 1), "words")
    ]  # fmt: skip
    assert [note.partition(" is left out")[0] for note in done.notes if "left out" in note] == [
        "source 4 of the answer", "source 5 of the answer"
    ]  # fmt: skip
