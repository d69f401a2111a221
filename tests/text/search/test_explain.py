"""`context.explain` says what a search would read, and reads no text to say so."""

from __future__ import annotations

from collections import Counter

import pytest
from engine.counted import Counted, counted

from monocontext.format.filters.query import Any, Literal
from monocontext.regex import required_literals
from monocontext.text.search.explain import format_query

from .cases import FRAME_BYTES

LINES = "".join(f"{number:06d} the quick brown fox\n" for number in range(2000))
TEXT = LINES + "user-4711 disk failure\n" + LINES


def explain_counted(text: str = TEXT, **options: object) -> Counted:
    return counted(text, filters=True, frame_bytes=FRAME_BYTES, options={"materialize_limit": 1000, **options})


def test_what_a_search_would_read() -> None:
    sought = explain_counted()
    result = sought.context.explain(r"user-\d+ (disk|memory) failure")
    asked = sought.asked()
    assert set(asked) == {"filter"}
    assert result.needs == "'user-' AND ' ' AND ('disk' OR 'memory') AND ' failure'"
    assert result.frames == sought.context._reader.manifest.frames  # type: ignore[union-attr]
    assert result.pruned == result.frames - result.candidates > result.frames - 4
    assert (result.filter_gets, result.scans) == (len(asked), "")
    assert 0 < result.candidate_bytes < result.stored_bytes / 50
    assert result.share == result.candidate_bytes / result.stored_bytes
    assert len(list(sought.context.grep(r"user-\d+ (disk|memory) failure"))) == 1
    assert Counter(sought.asked()) == {"segment": result.gets}, "what filters said is remembered"
    search = sought.context.stats.search
    assert (search.searches, search.pruned, search.looked_at) == (1, result.pruned, result.candidates)


def test_it_prints_in_a_few_lines() -> None:
    result = explain_counted().context.explain("user-4711")
    first, second, third = str(result).split("\n")
    assert first == "needs 'user-4711'"
    assert second == f"{result.candidates} of {result.frames} frames may have a match, {result.pruned} are left out"
    assert third.startswith(f"would read {result.candidate_bytes:,} of {result.stored_bytes:,} stored bytes, ")
    assert f"(GETs: {result.gets}); to say so took {result.filter_bytes:,} bytes of filters (GETs: " in third


@pytest.mark.parametrize(
    ("query", "needs", "why"),
    [
        (r"\d+", "", "it has no text that every match holds"),
        ("user-4711|x*", "", "it has no text that every match holds"),
        ("di", "'di'", "the filters have no rows for so short a text; they need 5 bytes, or 3 letters"),
        ("quick brown", "'quick brown'", "frames may hold it"),
    ],
)
def test_why_it_scans(query: str, needs: str, why: str) -> None:
    sought = explain_counted()
    result = sought.context.explain(query)
    assert result.scans.endswith(why)
    assert (result.needs, result.candidates, result.pruned, result.share) == (needs, result.frames, 0, 1.0)
    assert result.gets == 1
    assert str(result).split("\n")[1] == f"scans all {result.frames} frames: {result.scans}"
    assert "segment" not in sought.asked()


def test_why_the_text_is_at_fault() -> None:
    unfiltered = counted(TEXT, frame_bytes=FRAME_BYTES, options={"materialize_limit": 1000})
    assert unfiltered.context.explain("user-4711").scans == "the context has no search filters"
    sought = explain_counted()
    few = sought.context.view(0, 5 * FRAME_BYTES).explain("user-4711")
    assert (few.frames, few.scans) == (6, "filters are asked where a text has 8 frames or more")
    lowered = sought.context.lower().explain("user-4711")
    assert (lowered.frames, lowered.scans) == (0, "the text is derived from another")
    assert str(lowered) == f"needs 'user-4711'\nscans: {lowered.scans}"
    assert sought.context.view(9, 9).explain("user-4711").scans == "the text is empty"
    preloaded = explain_counted(preload=True).context.explain("user-4711")
    assert (preloaded.scans, preloaded.gets) == ("all of the text is in memory", 0)


def test_parts_and_other_cases() -> None:
    sought = explain_counted()
    offset = TEXT.index("user-4711")
    part = sought.context.view(100, offset - 2 * FRAME_BYTES).explain("user-4711")
    whole = sought.context.explain("user-4711")
    assert part.candidates == 0 < whole.candidates
    assert part.frames < whole.frames / 2 + 2
    assert part.stored_bytes < whole.stored_bytes * 0.6
    assert sought.context.explain("user.*4711", fixed=True).needs == "'user.*4711'"
    assert sought.context.explain(["user-4711", "zzzzz"]).needs == "'user-4711' OR 'zzzzz'"


def test_needs_are_shown_as_one_would_say_them() -> None:
    assert format_query(required_literals("(?i:ab)c+(d|ef)")) == "'ab' in any case AND 'c' AND ('d' OR 'ef')"
    assert format_query(None) == ""
    assert format_query(Literal("x" * 100)) == f"'{'x' * 60}...'"
    assert format_query(Any((Literal("a"), Any((Literal("b"), Literal("c")))))) == "'a' OR ('b' OR 'c')"
