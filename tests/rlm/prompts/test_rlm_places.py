"""`[read: document, lines]` below an output: what stands there to the letter, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from monocontext import Monocontext, publish
from rlm import RLM, ScriptedLM
from rlm.prompts.places import describe_printed

DICE = Random(5)
FILES = {
    f"src/file_{i}.py": "".join(f"def function_{i}_{k}(): return {DICE.random()}\n" for k in range(400))
    for i in range(40)
}
NEEDLE = "def function_23_99("


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monocontext]:
    folder = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    place = tmp_path_factory.mktemp("context") / "context"
    publish(Path(folder), place, frame_bytes=16_384)
    with Monocontext.open(place) as text:
        yield text


def place(context: object, code: str) -> str:
    """The line below the output of a cell, as the model reads it."""
    lm = ScriptedLM([f"```repl\n{code}\n```", "FINAL(1)"])
    completion = RLM(lm=lm).completion("q", context)
    told = completion.trajectory[1]["code_blocks"][0]["result"].get("place", "")
    assert completion.trajectory[1]["code_blocks"][0]["result"]["stderr"] == ""
    assert told in lm.calls[1][-1]["content"]
    assert (told == "") == ("[read:" not in lm.calls[1][-1]["content"])
    return str(told)


AT = f"at = context.find({NEEDLE!r})\n"


@pytest.mark.parametrize(
    ("code", "start", "stop"),
    [
        (AT + "print(at, context[at - 150:at + 450])", -150, 450),
        (AT + "print(repr(context[at:at + 200]))", 0, 200),
        (AT + "print([context[at:at + 200], 7])", 0, 200),
        (AT + "print(context[at:at + 20_000][:60])", 0, 60),
        ("import re\nfor m in re.finditer('function_23_99.', context): print(context[m.start():m.end() + 30])", 4, 49),
        ("for hit in context.grep('function_23_99.'): print(hit.line)", 0, 30),
        ("context[{at}:{at} + 300]", 0, 300),
    ],
)  # fmt: skip
def test_of_what_a_search_read_the_printed_part_is_told(context: Monocontext, code: str, start: int, stop: int) -> None:
    at = FILES["src/file_23.py"].index(NEEDLE)
    first, last = (FILES["src/file_23.py"].count("\n", 0, at + place) + 1 for place in (start, stop - 1))
    lines = f"line {first}" if first == last else f"lines {first}-{last}"
    assert place(context, code.replace("{at}", str(context.find(NEEDLE)))) == f"[read: src/file_23.py ({lines})]"


@pytest.mark.parametrize(
    "code",
    [
        "print(len(context), context.count('return'))", "print('nothing of it is in the text, not a word')",
        "for piece in context.chunks(100_000): pass\nprint('done with all of the many pieces')",
        AT + "print(at)", "x = context[:5000]", AT + "print(context[at:at + 12])",
    ],
)  # fmt: skip
def test_nothing_is_told_of_an_output_that_is_no_part_of_the_text(context: Monocontext, code: str) -> None:
    assert place(context, code) == ""


@pytest.mark.parametrize("word", ["line 000300 ", "line 009900 ", "line 012345 ", "line 029000 "])
def test_a_hit_anywhere_in_a_frame_of_the_usual_size_is_told(tmp_path: Path, word: str) -> None:
    lines = [f"line {i:06} of a text with frames of the usual size\n" for i in range(30_000)]
    publish("".join(lines), tmp_path / "context")
    with Monocontext.open(tmp_path / "context") as text:
        number = lines.index(next(line for line in lines if line.startswith(word))) + 1
        code = f"at = context.find({word!r})\nprint(at, context[at:at + 90])"
        assert place(text, code) == f"[read: lines {number}-{number + 1}]"


def test_two_documents_are_both_told(context: Monocontext) -> None:
    code = (
        "for name in ('function_3_20(', 'function_30_5('):\n    at = context.find(name)\n    print(context[at:at + 60])"
    )
    told = place(context, code)
    assert told.startswith("[read: ")
    assert "src/file_3.py (lines 21-22)" in told
    assert "src/file_30.py (lines 6-7)" in told
    border = context.find("def function_8_0(")
    told = place(context, f"print(context[{border - 400}:{border + 200}])")
    assert re.fullmatch(r"\[read: src/file_7.py \(from line 39\d to its end\); src/file_8.py \(lines 1-5\)\]", told), (
        told
    )


def test_of_a_str_the_lines_are_told_and_of_other_contexts_nothing() -> None:
    text = "".join(f"line {i} of a text in memory\n" for i in range(1, 1000))
    assert place(text, "at = context.find('line 500 ')\nprint(context[at:at + 90])") == "[read: lines 500-503]"
    for other in ([text], {"a": text}):
        assert place(other, "print(str(context)[:400])") == ""
    assert describe_printed(None, text, None) == ""


def test_lines_that_are_alike_are_told_apart_or_not_told() -> None:
    text = "".join(f"2026-03-01T12:33:07.482Z 10.24.118.6 e2517 hit {i:07} age 70471 s\n" for i in range(9_000))
    at = text.index("hit 0005000")
    for start, stop in ((0, 19_000), (-150, 450), (4, 700)):
        printed = text[at + start : at + stop]
        first, last = (text.count("\n", 0, at + place) + 1 for place in (start, stop - 1))
        assert describe_printed(text, printed, None) == f"[read: lines {first}-{last}]"
    same = "ERROR the same line again and again\n"
    assert describe_printed(same * 900, same * 3, None) == ""
    assert describe_printed(same + text + same, same, None) == ""


def test_it_costs_no_get_when_its_pages_were_read(context: Monocontext) -> None:
    place(context, AT + "print(context[at:at + 300])")
    ranges = [[0, context.find(NEEDLE) + 300]]
    printed = str(context[ranges[0][1] - 300 : ranges[0][1]])
    assert describe_printed(context, printed, ranges)
    before = context.stats.gets
    assert describe_printed(context, printed, ranges).startswith("[read: src/file_23.py")
    assert context.stats.gets == before


def test_a_context_that_cannot_be_read_costs_the_line_and_not_the_run(lazy: object) -> None:
    class Broken(type(lazy)):  # type: ignore[misc]
        encode = repl_namespace = lambda self: None

        def __getitem__(self, key: object) -> str:
            raise OSError("gone")

    assert describe_printed(Broken("x" * 900), "x" * 100, [[0, 900]]) == ""
