"""`context.grep` gives what a loop over the lines of the whole text gives, and reads what it must."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from engine.counted import Counted, counted, wait_until_idle

from monocontext import Monocontext, publish, regex
from monocontext.errors import ContextTooLarge
from monocontext.text.search.hits import Hit
from tests.budget import examples

from . import grep_cases
from .cases import FRAME_BYTES

ID = "3f0c1d4e-7a52"


@pytest.mark.parametrize("seed", range(examples(40)))
def test_random_greps(seed: int) -> None:
    grep_cases.run(seed, 40, Counter())


@pytest.mark.fuzz
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(10_000, 13_500, 700))
def test_a_hundred_thousand_random_greps(first: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(first, first + 700):
        grep_cases.run(seed, 40, counts)
    assert counts["cases"] > 18_000
    assert counts["pruned"] > counts["frames"] / 2, "filters that prune little prove little"


def small(text: str, limit: int = 1 << 26) -> Monocontext:
    publish(text, "memory://grep-small", frame_bytes=5, replace=True)
    return Monocontext.open("memory://grep-small", materialize_limit=limit)


# -- what a line is ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["", "a", "a\n", "\n", "\n\n", "a\n\nb", "a\r\nb\rc\x0bd\n", "é\n漢字\n😀 x", "a\nb\n\n"]
)
@pytest.mark.parametrize("pattern", ["", "a", "^", "$", r"\Z", "b", r"\r$", ".", r"\B", "[^a]", "漢", "x$", r"\s"])
def test_lines(text: str, pattern: str) -> None:
    assert list(small(text).grep(pattern)) == grep_cases.hits(text, [re.compile(pattern)])


def test_a_match_stays_in_its_line() -> None:
    context = small("ab\ncd\nabcd\n")
    assert [hit.line_number for hit in context.grep(r"b\s*c")] == [3]
    assert [hit.line_number for hit in context.grep("(?s)b.*d")] == [3]
    for pattern in ("b\nc", r"b\nc", "(?s)b.*\n", "(a\n|b\n)c", ["d", "b[\n]"]):
        with pytest.raises(ValueError, match="needs a newline, but grep matches within a line"):
            context.grep(pattern)
    with pytest.raises(ValueError, match="needs a newline"):
        context.grep("b\nc", fixed=True)
    assert [hit.line_number for hit in context.grep(r"(?<!b)(?:\A|\n)cd")] == [2]


def test_what_a_pattern_may_be() -> None:
    context = small("a.c\nABC\nabc\n")
    for pattern in ("a.c", re.compile("a.c"), regex.compile("a.c"), ["a.c"], ("zzz", re.compile("a.c"))):
        assert [hit.line for hit in context.grep(pattern)] == ["a.c", "abc"]
    assert [hit.line for hit in context.grep("A.C", fixed=True, ignore_case=True)] == ["a.c"]
    assert [hit.line for hit in context.grep(["bc", re.compile("A.C", re.I)])] == ["a.c", "ABC", "abc"]
    assert [hit.offset for hit in context.grep(["c", "b"])] == [2, 9]
    assert [hit.offset for hit in context.grep("c", start=-6)] == [10]


def test_what_a_pattern_may_not_be() -> None:
    context = small("abc\n")
    with pytest.raises(re.error):
        context.grep("(")  # at once, not when the first hit is asked for
    with pytest.raises(TypeError):
        context.grep(b"abc")
    with pytest.raises(TypeError):
        context.grep(re.compile(b"abc"))
    with pytest.raises(TypeError):
        context.grep(None)
    for options in ({"ignore_case": True}, {"fixed": True}):
        with pytest.raises(ValueError, match="compiled pattern"):
            context.grep(re.compile("abc"), **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least one"):
        context.grep([])
    with pytest.raises(ValueError, match="max_hits"):
        context.grep("a", max_hits=-1)


# -- long lines --------------------------------------------------------------------------------------------------------


def test_a_hit_in_a_line_above_the_limit_says_what_to_write() -> None:
    context = small("short x\n" + "y" * 200 + "needle" + "y" * 200 + "\nshort needle\n", limit=100)
    assert [hit.line_number for hit in context.grep("x")] == [1], "a line without a match may be of any length"
    hits = context.grep("needle")
    with pytest.raises(ContextTooLarge) as raised:
        next(hits)
    message = str(raised.value)
    assert message.startswith("grep: line 2 has 406 characters, more than the limit of 100 (materialize_limit): ")
    position, start = (int(number) for number in re.findall(r"(?:context\[|start=)(\d+)", message))
    assert context[position : position + 6] == "needle"
    assert [hit.line for hit in context.grep("needle", start=start)] == ["short needle"]


def test_a_line_longer_than_memory_should_hold_is_searched_as_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monocontext.text.search.grep.LONG_LINE", 2000)
    text = "x" * 30_000 + "needle" + "x" * 30_000 + "\nneedle 2\n" + "z" * 5000
    sought = counted(text, frame_bytes=1000, options={"materialize_limit": 10_000})
    assert [hit.line_number for hit in sought.context.grep("needle 2")] == [2]
    with pytest.raises(ContextTooLarge, match="line 1"):
        list(sought.context.grep("xneed"))
    assert [hit.line_number for hit in sought.context.grep("z$")] == [3]


# -- what is read ------------------------------------------------------------------------------------------------------


PLAIN = "\n" + "." * (FRAME_BYTES - 2) + "\n"
"""A frame that begins and ends a line."""
FAR = "." * 100
"""What lies in the first 64 bytes of a frame counts for the frame before it too."""


def with_id(before: str, after: str) -> str:
    """A frame with the id."""
    return before + FAR + ID + after + "." * (FRAME_BYTES - len(before + FAR + ID + after) - 1) + after[-1:]


def among(*frames: str) -> Counted:
    """These frames, between forty others; nothing is read yet."""
    assert {len(frame) for frame in frames} <= {FRAME_BYTES}
    return counted("".join([*[PLAIN] * 20, *frames, *[PLAIN] * 20]), filters=True, frame_bytes=FRAME_BYTES)


def text_gets(sought: Counted) -> int:
    """GETs since the last look, those for filters left out; there is one frame in a segment."""
    kinds = Counter(sought.asked())
    assert kinds.keys() <= {"segment", "filter"}
    return kinds["segment"]


def test_an_absent_id_reads_no_text() -> None:
    sought = among()
    assert list(sought.context.grep(ID)) == list(sought.context.grep(ID.upper(), ignore_case=True)) == []
    assert list(sought.context.view(700, 15_000).grep(ID)) == []
    assert list(sought.context.grep(rf"^error: {ID} \w+$")) == []
    assert text_gets(sought) == 0


@pytest.mark.parametrize("pattern", [ID, rf"\b{ID}\b", rf"^\.*{ID}", rf"\.{{4}}{ID}$", rf"{ID}|{ID[::-1]}"])
def test_a_hit_costs_its_frame(pattern: str) -> None:
    sought = among(with_id("\n", "\n"))
    assert list(sought.context.grep(pattern)) == [
        Hit(20 * FRAME_BYTES + 1 + (0 if "*" in pattern else 96 if "{4}" in pattern else 100), 42, FAR + ID)
    ]
    assert text_gets(sought) == 1


def test_a_line_over_frames_costs_these() -> None:
    end = "x\n" + PLAIN[2:]
    behind = among(with_id("\n", "x"), end)
    (hit,) = behind.context.grep(ID)
    assert (hit.line_number, len(hit.line)) == (42, FRAME_BYTES)
    assert text_gets(behind) == 2
    begin = PLAIN[:-1] + "x"
    before = among(begin, with_id("x", "\n"))
    (hit,) = before.context.grep(ID)
    assert (hit.line_number, hit.offset) == (42, 21 * FRAME_BYTES + 101)
    assert len(hit.line) == FRAME_BYTES - 1 + 101 + len(ID)
    assert text_gets(before) == 2


def test_a_line_that_may_not_have_a_match_is_not_read_on() -> None:
    """The id stands in a line that ends in its frame, which begins and ends inside others."""
    sought = among(PLAIN[:-1] + "x", with_id("x\n", "\nx"), "x\n" + PLAIN[2:])
    (hit,) = sought.context.grep(ID)
    assert hit.line == FAR + ID
    assert text_gets(sought) == 1
    sought = among(PLAIN[:-1] + "x", with_id("x\n", "\n" + ID[0]), "x\n" + PLAIN[2:])
    assert len(list(sought.context.grep(ID))) == 1
    assert text_gets(sought) == 2, "a match may begin where the frame ends"


def test_numbers_cost_nothing() -> None:
    text = "".join(f"{number} line\n" for number in range(5000))
    sought = counted(text, frame_bytes=1000, options={"cache_bytes": 0})
    assert [hit.line_number for hit in sought.context.grep("")] == list(range(1, 5001))
    assert text_gets(sought) <= len(text) // 900


def test_who_leaves_early_reads_little() -> None:
    sought = counted("hit\n" * 2_000_000, frame_bytes=1 << 16)
    hits = sought.context.grep("hit")
    assert next(hits).line_number == 1
    del hits
    wait_until_idle(sought.context)
    assert text_gets(sought) < 20 < 8_000_000 >> 16
    assert len(list(sought.context.grep("hit", max_hits=3))) == 3
    assert list(sought.context.grep("hit", max_hits=0)) == []


def test_a_line_between_documents_is_in_none(tmp_path: Path) -> None:
    """A match of nothing at its beginning stands where the document before it ends."""
    for name, data in {"a.txt": "x\n", "b.txt": "", "c.txt": "y\n\nz"}.items():
        (tmp_path / name).write_text(data)
    with Monocontext.open(tmp_path) as text:
        for pattern in ("^", "$", ""):
            result = [(hit.line, hit.document, hit.document_line) for hit in text.grep(pattern) if "=" not in hit.line]
            assert result == [("x", "a.txt", 1), ("y", "c.txt", 1), ("", "c.txt", 2), ("z", "c.txt", 3)]
            assert [hit.document for hit in text.grep(pattern) if "=" in hit.line] == [None] * 3
