"""What an answer rests on, for each of the common ways to find it: the source holds the fact, and little else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monocontext import Monocontext, publish
from rlm import RLM, Completion, ScriptedLM
from rlm.trajectory.answer_words import Words
from rlm.trajectory.source import NONE_RECORDED, format_sources

FACT = "2026-03-04 ERROR billing: invoice INV-88213 failed, the retry code is QX-7741 (see ledger)"
CODE = "QX-7741"
_LINES = [f"2026-03-{i % 28 + 1:02d} INFO worker {i}: job {i * 37 % 9973} done in {i % 90} ms" for i in range(6_000)]
_LINES.insert(4_321, FACT)
TEXT = "\n".join(_LINES) + "\n"
AT = TEXT.index(FACT)
END = AT + len(FACT)
DONE = "```repl\nFINAL('QX-7741')\n```"

WAYS = """
# grep, printed
print(context.grep('retry code'))
# grep, hits in a loop
for hit in context.grep('retry code'):
    print(hit.line_number, hit.line)
# grep, a list of lines
print([hit.line for hit in context.grep('INV-88213')])
# search
for found in context.search('retry code of the invoice', k=3):
    print(found.text)
# search, printed
print(context.search('invoice retry code', k=3))
# re.search
import re
print(re.search(r'retry code is (\\S+)', context).group(1))
# re.findall
import re
print(re.findall(r'retry code is \\S+', context))
# re.finditer
import re
for m in re.finditer(r'invoice .*', context):
    print(m.start(), m.group())
# find and a slice
i = context.find('INV-88213')
print(context[max(0, i - 80):i + 120])
# index and the repr of a slice
i = context.index('INV-88213')
print(repr(context[i - 20:i + 60]))
# partition
print(context.partition('INV-88213')[2][:60])
# lines
for line in context.lines:
    if 'INV-88213' in line:
        print(line)
# splitlines with numbers
for i, line in enumerate(context.splitlines()):
    if 'billing' in line:
        print(f'{i}: {line!r}')
# split
print([line for line in context.split('\\n') if 'INV-88213' in line])
# a line that was cut
hits = [line for line in context.split('\\n') if 'billing' in line.lower()]
print(f'{len(hits):>6} | {hits[0][17:84]}...')
# a hit that was kept
hits = [line for line in context.lines if 'INV-88213' in line]
print(len(hits))
# chunks and a slice of one
for part in context.chunks(10_000):
    at = part.find('INV-88213')
    if at >= 0:
        print(part[at - 30:at + 70])
# chunks and a line of one
for n, part in enumerate(context.chunks(10_000)):
    for line in part.split('\\n'):
        if 'INV-88213' in line:
            print('chunk', n, line.strip())
# slices in a loop
for i in range(0, len(context), 9_000):
    part = context[i:i + 9_100]
    if 'INV-88213' in part:
        at = part.index('INV-88213')
        print(i, part[at:at + 64])
        break
# re over slices
import re
for i in range(0, len(context), 9_000):
    found = re.findall(r'retry code is (\\S+)', context[i:i + 9_100])
    if found:
        print(found)
# a function
def look(word):
    i = context.find(word)
    return context[i:i + 90]
print(look('INV-88213'))
"""
SIX: dict[str, str] = {
    part.partition("\n")[0]: part.partition("\n")[2].strip() for part in WAYS.strip().removeprefix("# ").split("\n# ")
}
OF_A_STR = [name for name in SIX if not name.startswith(("grep", "search", "lines", "a hit", "chunks"))]


def repl(code: str) -> str:
    return f"```repl\n{code}\n```"


def ask(context: Any, *replies: str, **options: Any) -> Completion:
    return RLM(lm=ScriptedLM(list(replies)), **{"runner": "local", **options}).completion("which code?", context)


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monocontext]:
    path = tmp_path_factory.mktemp("evidence") / "context"
    publish(TEXT, path, frame_bytes=4_096)
    with Monocontext.open(path) as text:
        yield text


def check(completion: Completion) -> None:
    """The first source holds the code and stands where the fact does, and none is a pass."""
    first = completion.sources[0]
    assert CODE in TEXT[first.start : first.stop]
    assert AT - 500 <= first.start < END
    assert first.how == "read"
    assert CODE in first.text
    assert all(source.stop - source.start < 1_000 for source in completion.sources)


@pytest.mark.parametrize("code", SIX.values(), ids=SIX)
def test_each_way_to_find_it_is_a_source(context: Monocontext, code: str) -> None:
    check(ask(context, repl(code), DONE))


def test_each_way_of_a_confined_worker_too(context: Monocontext) -> None:
    lm = ScriptedLM([reply for code in SIX.values() for reply in (repl(code), DONE)])
    with RLM(lm=lm) as rlm, rlm.session(context) as session:
        for _ in SIX:
            check(session.ask("which code?"))


@pytest.mark.parametrize("name", OF_A_STR)
def test_what_was_printed_of_a_str_is_looked_for_in_it(name: str) -> None:
    check(ask(TEXT, repl(SIX[name]), DONE))


def test_the_places_are_exact(context: Monocontext) -> None:
    def places(code: str) -> list[tuple[int, int]]:
        return [(source.start, source.stop) for source in ask(context, repl(code), DONE).sources]

    at = TEXT.index("INV-88213")
    assert places("print(list(context.grep('INV-88213')))") == [(AT, END)]
    assert places("i = context.find('INV-88213')\nprint(context[i:i + 40])") == [(at, at + 40)]
    assert places("[print(line) for line in context.lines if 'INV-88213' in line]") == [(AT, END)]
    assert places("for p in context.chunks(9_000):\n    i = p.find('INV-88213')\n    if i > 0: print(p[i:i + 40])") == [
        (at, at + 40)
    ]
    found = places("import re\nprint(re.search(r'code is (\\S+)', context)[1])")
    assert [TEXT[start:stop] for start, stop in found] == ["code is QX-7741"]


@pytest.mark.parametrize(
    "replies",
    [
        ("import re\nanswer_text = re.search(r'code is (\\S+)', context)[1]", "FINAL_VAR('answer_text')"),
        ("import re\nFINAL(re.search(r'code is (\\S+)', context)[1])",),
        ("FINAL(next(context.grep('INV-88213')).line[-20:-13])",),
        ("code = [line for line in context.lines if 'INV-88213' in line][0][70:77]", "FINAL(code)"),
        (
            "parts = list(context.chunks(9_000))",
            "for p in parts:\n    if 'INV-88213' in p: print(p[p.find('INV'):][:70])",
            DONE,
        ),
        (
            "print(context[:300], context.find('code'))",
            SIX["lines"] + "\nprint(context[:200])",
            "FINAL('The code is QX-7741')",
        ),
        (SIX["grep, printed"], "print('checked', 7 * 6)", "FINAL('It is QX-7741, as the ledger has it.')"),
        (SIX["lines"], "print('all well')", "FINAL('qx-7741')"),
        (SIX["find and a slice"], "x = 5", "print(x)", "FINAL('The retry code of the invoice is QX-7741.')"),
    ],
)
def test_however_the_answer_is_given(context: Monocontext, replies: tuple[str, ...]) -> None:
    check(ask(context, *(reply if reply.startswith("```") else repl(reply) for reply in replies)))


def test_of_many_hits_those_with_the_answer_come_alone(context: Monocontext) -> None:
    found = ask(context, repl("for hit in context.grep('ERROR|worker 43'): print(hit.line)"), DONE)
    assert [source.text for source in found.sources] == [FACT]
    words = ask(context, repl("print(list(context.grep('worker 432[0-9]')))"), repl("FINAL('yes')"))
    assert [source.text[16:27] for source in words.sources] == [f"worker 432{i}" for i in range(10)]


@pytest.mark.parametrize(
    "code",
    [
        "print(context.count('INFO'))",
        "n = sum('INFO' in line for line in context.lines)\nprint(n)",
        "print(len(context))",
    ],
)
@pytest.mark.parametrize("is_str", [False, True])
def test_a_pass_over_everything_is_no_source(context: Monocontext, code: str, is_str: bool) -> None:
    if is_str:
        code = code.replace("context.lines", "context.splitlines()")
    number = len(TEXT) if "len" in code else 6_000
    found = ask(TEXT if is_str else context, repl(code), repl(f"FINAL('{number}')"))
    assert found.sources == ()
    assert format_sources(found.sources) == NONE_RECORDED
    assert NONE_RECORDED in found._repr_html_()


def test_a_long_line_is_no_source_as_a_whole(context: Monocontext, tmp_path_factory: pytest.TempPathFactory) -> None:
    flat = TEXT.replace("\n", " | ")
    path = tmp_path_factory.mktemp("flat") / "context"
    publish(flat, path, frame_bytes=4_096)
    with Monocontext.open(path) as text:
        for code in (SIX["find and a slice"], SIX["chunks and a slice of one"], SIX["re.search"]):
            (source,) = ask(text, repl(code), DONE).sources
            assert CODE in flat[source.start : source.stop]
            assert source.stop - source.start < 1_200


@pytest.mark.parametrize(
    ("answer", "text", "score"),
    [
        ("1,234 cases", "there were 1234 of them", 3), ("1234", "there were 1,234 of them", 3),
        ("It is yes.", "yes", 0), ("7", "7", 0), ("QX-7741", "code qx-7741", 3 + 0), ("Zürich", "in ZÜRICH", 1),
        ("答案是北京", "首都是北京。", 2), ("Ada Lovelace", "Lovelace, Ada", 1), ("", "anything", 0),
    ],
)  # fmt: skip
def test_the_words_of_an_answer(answer: str, text: str, score: int) -> None:
    assert Words(answer).score(text) == score


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["text", "list", "dict"])
@pytest.mark.parametrize("runner", ["local", "subprocess"])
def test_the_document_of_a_source_is_named(tmp_path: Path, shape: Any, runner: str) -> None:
    (tmp_path / "docs").mkdir()
    for i in range(40):
        said = FACT if i == 23 else "nothing of note"
        (tmp_path / "docs" / f"note-{i:02d}.md").write_text(f"# Note {i}\n\n{said}\nand more\n")
    publish(tmp_path / "docs", tmp_path / "context", frame_bytes=4_096)
    code = {
        "text": "print(list(context.grep('INV-88213'))[0])",
        "list": "for text in context:\n    if 'INV-88213' in text: print(text[text.find('INV'):][:60])",
        "dict": "for name, text in context.items():\n    if 'INV-88213' in text: print(name, text.split('\\n')[2])",
    }[shape]
    with Monocontext.open(tmp_path / "context", shape=shape) as documents:
        found = ask(documents, repl(code), repl(f"FINAL('QX-7741', sources=[(0, 4), {FACT[:30]!r}])"), runner=runner)
    assert {source.document for source in found.sources if source.how == "read"} == {"note-23.md"}
    assert all(source.lines and source.lines[0] == 3 for source in found.sources if CODE in source.text)
    if shape != "text":
        assert [source.text for source in found.sources if source.how == "cited"] == [FACT[:30]]
        assert any("no pair of characters" in note for note in found.notes)


@pytest.mark.parametrize("code", ["print(line.split()[-3])", "print(line.upper())", "print(sorted(line.split()))"])
def test_what_was_changed_on_its_way_is_found_by_its_number(context: Monocontext, code: str) -> None:
    check(ask(context, repl(f"for line in context.lines:\n    if 'INV-88213' in line:\n        {code}"), DONE))


@pytest.mark.slow
def test_six_ways_over_a_text_of_100_mb(tmp_path: Path) -> None:
    """The sources cost few GETs more than the cells: what was read is in the cache."""
    with (tmp_path / "large.log").open("w") as file:
        for i in range(1_950_000):
            file.write(
                f"{FACT}\n" if i == 1_234_567 else f"2026-03-04 INFO worker {i}: job {i * 37 % 9973} done in time\n"
            )
    place = (1_234_567, FACT)
    publish(tmp_path / "large.log", tmp_path / "context")
    with Monocontext.open(tmp_path / "context") as text:
        assert len(text) > 100_000_000
        for name in ("grep, printed", "search", "re.search", "find and a slice", "lines", "chunks and a slice of one"):
            gets = [0, 0]

            def note(step: Any, gets: list[int] = gets) -> None:
                gets[:] = gets[1], text.stats.gets

            began = time.process_time()
            completion = ask(text, repl(SIX[name]), DONE, on_step=note)
            took = time.process_time() - began
            first = completion.sources[0]
            print(f"{name}: {first.place} [{first.start}:{first.stop}], {gets[1] - gets[0]} GETs more, {took:.1f} s")
            assert CODE in str(text[first.start : first.stop])
            assert first.stop - first.start < 20_000
            assert first.lines is not None
            assert first.lines[0] <= place[0] + 1 <= first.lines[1]
