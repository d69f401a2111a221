"""What an answer rests on: cited places are read back, and what is not there is left out with a note."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from monocontext import Monocontext, append, documents, publish
from monocontext.cli.commands import app as storage
from rlm import RLM, Completion, ScriptedLM, Source
from rlm.cli.commands import app
from rlm.prompts.examples import conversation
from rlm.trajectory.evidence import find_sources
from rlm.trajectory.source import NONE_RECORDED, format_sources, link_to
from rlm.view.feed import RowFeed

cli = CliRunner()
TEXT = "".join(f"line {i}: the value of item {i} is {i * 37 % 1009}\n" for i in range(20_000))
AT = TEXT.index("line 1234:")
LINE = TEXT[AT : TEXT.index("\n", AT)]


def repl(code: str) -> str:
    return f"```repl\n{code}\n```"


def ask(context: Any, *replies: str, **options: Any) -> Completion:
    return RLM(lm=ScriptedLM(list(replies)), **options).completion("q", context)


def cited(completion: Completion) -> list[Source]:
    return [source for source in completion.sources if source.how == "cited"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sources") / "context"
    publish(TEXT, path, frame_bytes=16_384)
    return path


LOOK = repl(f"print(context[{AT - 200}:{AT + 200}])")


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    "finish",
    [
        repl(f"FINAL('it', sources=[({AT}, {AT + len(LINE)})])"),
        repl(f"FINAL('it', sources=[{LINE!r}])"),
        repl(f"FINAL('it', sources={LINE!r})"),
        repl(f"FINAL('it', sources=({AT}, {AT + len(LINE)}))"),
        repl(f"found = 'it'\nFINAL_VAR('found', sources=[[{AT}, {AT + len(LINE)}]])"),
        repl(f"answer['content'] = 'it'; answer['sources'] = [{LINE!r}]; answer['ready'] = True"),
        f"FINAL('it', sources=[({AT}, {AT + len(LINE)})])",
    ],
)
def test_each_way_to_answer_may_cite(place: Path, lazy: bool, finish: str) -> None:
    with Monocontext.open(place) as text:
        completion = ask(text if lazy else TEXT, LOOK, finish)
        generation = text.generation
    (source,) = cited(completion)
    assert completion.answer == "it"
    assert (source.start, source.stop, source.lines, source.text) == (AT, AT + len(LINE), (1235, 1235), LINE)
    assert source.sha256 == hashlib.sha256(LINE.encode()).hexdigest()
    assert (source.generation, source.document) == (generation if lazy else None, None)
    assert completion.notes == () or "price" in completion.notes[0]


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        (f"({len(TEXT) - 5}, {len(TEXT) + 5})", "reaches past the end of the text"),
        ("(5, 5)", "it is no pair of characters and no quote"),
        ("(9, 5)", "it is no pair"), ("(-9, 5)", "it is no pair"), ("7", "it is no pair"), ("''", "it is no pair"),
        ("(True, 5)", "it is no pair"), ("(0, 10**30)", "it is no pair"), ("None", "it is no pair"),
        ("(0, 10**9)", "reaches past the end"), ("'nobody said this'", "is not where the run has read"),
        ("'line 19999: the value'", "is not where the run has read"),
    ],
)  # fmt: skip
def test_a_claim_that_does_not_hold_is_left_out_with_a_note(place: Path, claim: str, why: str) -> None:
    with Monocontext.open(place) as text:
        completion = ask(text, LOOK, repl(f"FINAL('it', sources=[{claim}, {LINE!r}])"))
    assert [source.text for source in cited(completion)] == [LINE]
    assert (
        sum(note.startswith("source 1 of the answer is left out: ") and why in note for note in completion.notes) == 1
    )


def test_thirty_runs_with_right_wrong_and_invented_quotes(place: Path) -> None:
    dice = random.Random(7)
    with Monocontext.open(place) as text:
        for _ in range(30):
            start = dice.randrange(len(TEXT) - 2_000)
            look = repl(f"print(context[{start}:{start + 1500}])")
            right = TEXT[start + 100 : start + 100 + dice.randrange(20, 90)]
            wrong = right[:10] + "#" + right[11:]
            claims = [right, wrong, (start, start + 50), "made up by the model", (len(TEXT), len(TEXT) + 9)]
            dice.shuffle(claims)
            completion = ask(text, look, repl(f"FINAL('x', sources={claims!r})"))
            shown = cited(completion)
            assert len(shown) == 2
            for source in shown:
                assert TEXT[source.start : source.stop] == source.text
                assert source.lines == (TEXT.count("\n", 0, source.start) + 1, TEXT.count("\n", 0, source.stop - 1) + 1)
            assert sum("is left out" in note for note in completion.notes) == 3


def test_what_the_cells_read_is_a_source_and_a_scan_is_none(place: Path) -> None:
    with Monocontext.open(place) as text:
        completion = ask(
            text, repl("n = context.count('item')"), repl(f"part = context[{AT}:{AT + 40}]"), repl("FINAL(part)")
        )
    assert [(source.start, source.stop, source.how) for source in completion.sources] == [(AT, AT + 40, "read")]
    assert ask(TEXT, repl(f"FINAL(context[{AT}:{AT + 40}])")).sources == ()  # a str does not say what was read


def test_sources_are_in_the_trajectory_and_come_back(place: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Monocontext.open(place) as text:
        first = ask(text, LOOK, repl(f"FINAL('it', sources=[{LINE!r}])"), trajectory=path)
        assert RLM.resume(path, text, lm=ScriptedLM([])).sources == first.sources
    (source, *_) = RowFeed(path).turn(1)["sources"]
    assert (source["place"], source["how"], source["start"], source["text"]) == ("line:1235", "cited", AT, LINE)


def test_a_context_that_is_no_text_or_cannot_be_read_back_keeps_the_answer() -> None:
    class Broken(str):
        def __getitem__(self, key: Any) -> str:
            raise OSError("gone")

    completion = ask(Broken("some text"), repl("FINAL('it', sources=[(0, 4)])"))
    assert (completion.answer, completion.sources) == ("it", ())
    assert "the sources of the answer could not be read back: OSError: gone" in completion.notes
    listed = ask(["a", "b"], repl("FINAL('it', sources=[(0, 1)])"))
    assert (listed.answer, listed.sources) == ("it", ())
    assert any("no text" in note for note in listed.notes)


def test_the_document_of_a_source_is_named() -> None:
    class Documents:
        def at(self, character: int) -> Any:
            return SimpleNamespace(name="src/a.py", start=TEXT.index("line 1000:")) if character < AT else None

    class WithDocuments(str):
        documents = Documents()

    class Part(str):
        @property
        def documents(self) -> Any:
            raise ValueError("documents are those of the whole context")

    found, _ = find_sources(WithDocuments(TEXT), [(AT - 60, AT - 10), (AT, AT + 5)], [])
    assert [source.document for source in found] == ["src/a.py", None]
    assert found[0].place == "src/a.py:233"  # a line of the document; it begins with line 1001 of the text
    assert found[1].place == "line:1235"
    assert find_sources(Part(TEXT), [(0, 5)], [])[0][0].place == "line:1"


def test_the_confined_worker_hands_claims_on(place: Path) -> None:
    with Monocontext.open(place) as text:
        completion = ask(text, LOOK, repl(f"FINAL('it', sources=[({AT}, {AT + 9}), {LINE!r}, 7])"), runner="subprocess")
    assert [source.text for source in cited(completion)] == [LINE[:9], LINE]
    assert any("source 3 of the answer is left out" in note for note in completion.notes)


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
    assert shown.stdout.startswith("it\n\nSources:\nline:1235  cited  ")
    told = json.loads(cli.invoke(app, [*args, "--json"]).stdout)
    (source, *_) = told["sources"]
    assert (source["text"], source["lines"]) == (LINE, [1235, 1235])
    again = cli.invoke(storage, ["cite", str(context), source["reference"]])
    assert (again.exit_code, again.stdout) == (0, LINE + "\n"), again.output
    append("more\n", context)
    assert json.loads(cli.invoke(storage, ["cite", str(context), source["reference"], "--json"]).stdout)["stands"]
    start, _, rest = source["reference"].partition("-")
    moved = cli.invoke(storage, ["cite", str(context), f"{int(start) + 1}-{rest}"])
    assert moved.exit_code != 0
    assert format_sources([]) == NONE_RECORDED
    for bad in ("nonsense", "5-5", "0-9999999", "1-2#zz"):
        assert cli.invoke(storage, ["cite", str(context), bad]).exit_code != 0


def test_a_source_links_to_where_its_document_came_from(tmp_path: Path) -> None:
    code = "one\ntwo ```\nthree\n"
    address = "https://github.com/o/r/blob/0123/src/a.py"
    publish(
        documents([("src/a.py", code, {"url": address}), ("https://example.com/a%20b", "page\n"), ("b.py", "no\n"),
         ("c.py", "script\n", {"url": "javascript:alert(1)"})]),
        tmp_path,
    )  # fmt: skip
    with Monocontext.open(tmp_path) as context:
        quotes = ["two ```\nthree", "page", "no", "script"]
        found = ask(context, repl(f"print(context[:])\nFINAL('it', sources={quotes!r})"))
        sources = {each.text: each for each in cited(found)}
    assert [sources[quote].url for quote in quotes] == [f"{address}#L2-L3", "https://example.com/a%20b", None, None]
    shown = sources[quotes[0]].markdown()
    assert shown == f"[`src/a.py:2`](<{address}#L2-L3>)\n\n````\ntwo ```\nthree\n````"
    assert sources["no"].markdown() == "`b.py:1`\n\n```\nno\n```"
    assert Source.from_dict(json.loads(json.dumps(sources[quotes[0]].to_dict()))) == sources[quotes[0]]


@pytest.mark.parametrize(
    ("url", "lines", "link"),
    [
        ("https://github.com/o/r/blob/c/a.py", (7, 7), "#L7"),
        ("https://gitlab.com/o/r/-/blob/c/a.py", (7, 9), "#L7-9"),
        ("https://codeberg.org/o/r/src/commit/c/a.py", (7, 9), "#L7-L9"),
        ("https://bitbucket.org/o/r/src/c/a.py", (7, 9), "#lines-7:9"),
        ("https://github.com/o/r/blob/c/a.py", None, ""),
        ("https://example.com/page", (7, 9), ""),
        ("https://example.com/page#part", (7, 9), ""),
    ],
)
def test_lines_in_an_address(url: str, lines: tuple[int, int] | None, link: str) -> None:
    assert link_to(url, lines) == url + link
