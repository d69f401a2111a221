"""`context.explain` says what a search would read, and reads no text to say so."""

from __future__ import annotations

import uuid
from collections import Counter

import pytest
from engine.counted import Counted, counted

from monocontext import Monocontext, publish
from monocontext.engine.reader import Reader
from monocontext.format.filters.query import Any, Literal
from monocontext.regex import required_literals
from monocontext.stores.memory import MemoryStore, forget
from monocontext.testing import CountingStore, SimulatedWorkers, virtual_context
from monocontext.text.search.explain import format_query

from .cases import FRAME_BYTES

LINES = "".join(f"{number:06d} the quick brown fox\n" for number in range(2000))
TEXT = LINES + "user-4711 disk failure\n" + LINES


def explain_counted(text: str = TEXT, **options: object) -> Counted:
    return counted(text, filters=True, frame_bytes=FRAME_BYTES, options={"materialize_limit": 1000, **options})


def test_what_a_search_by_words_would_read_at_most() -> None:
    sought = explain_counted()
    found = sought.context.explain("the failures", words=True)
    asked = sought.asked()
    assert set(asked) == {"filter"}
    assert (found.ranked, found.scans, found.needs) == (True, "", "'failur' in any case")
    assert f"would read at most {found.candidate_bytes:,} of" in str(found)
    assert 0 < found.candidates < found.frames / 5
    assert "user-4711 disk failure" in sought.context.search("the failures")[0].text
    assert Counter(sought.asked())["segment"] <= found.gets
    with pytest.raises(ValueError, match="a query of common words alone finds everything: of the"):
        sought.context.explain("of the", words=True)
    with pytest.raises(ValueError, match="with words=True, the query must be one str"):
        sought.context.explain("disk", words=True, fixed=True)


def test_what_a_search_would_read() -> None:
    sought = explain_counted()
    found = sought.context.explain(r"user-\d+ (disk|memory) failure")
    asked = sought.asked()
    assert set(asked) == {"filter"}
    assert found.needs == "'user-' AND ' ' AND ('disk' OR 'memory') AND ' failure'"
    assert found.frames == sought.context._reader.manifest.frames  # type: ignore[union-attr]
    assert found.pruned == found.frames - found.candidates > found.frames - 4
    assert (found.filter_gets, found.scans) == (len(asked), "")
    assert 0 < found.candidate_bytes < found.stored_bytes / 50
    assert found.share == found.candidate_bytes / found.stored_bytes
    assert len(list(sought.context.grep(r"user-\d+ (disk|memory) failure"))) == 1
    assert Counter(sought.asked()) == {"segment": found.gets}, "what filters said is remembered"
    search = sought.context.stats.search
    assert (search.searches, search.pruned, search.looked_at) == (1, found.pruned, found.candidates)


def test_it_prints_in_a_few_lines() -> None:
    found = explain_counted().context.explain("user-4711")
    first, second, third = str(found).split("\n")
    assert first == "needs 'user-4711'"
    assert second == f"{found.candidates} of {found.frames} frames may have a match, {found.pruned} are left out"
    assert third.startswith(f"would read {found.candidate_bytes:,} of {found.stored_bytes:,} stored bytes, ")
    assert f"(GETs: {found.gets}); to say so took {found.filter_bytes:,} bytes of filters (GETs: " in third


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
    found = sought.context.explain(query)
    assert found.scans.endswith(why)
    assert (found.needs, found.candidates, found.pruned, found.share) == (needs, found.frames, 0, 1.0)
    assert found.gets == 1
    assert str(found).split("\n")[1] == f"scans all {found.frames} frames: {found.scans}"
    assert "segment" not in sought.asked()


def test_why_the_text_is_at_fault() -> None:
    unfiltered = counted(TEXT, frame_bytes=FRAME_BYTES, options={"materialize_limit": 1000})
    assert unfiltered.context.explain("user-4711").scans == "the context has no search filters"
    sought = explain_counted()
    few = sought.context.view(0, 5 * FRAME_BYTES).explain("user-4711")
    assert (few.frames, few.scans) == (6, "filters are asked where a text has 8 frames or more")
    joined = (sought.context + sought.context).explain("user-4711")
    assert (joined.frames, joined.scans) == (0, "the text is derived from others, which no search filter covers")
    assert str(joined) == f"needs 'user-4711'\nscans: {joined.scans}"
    assert sought.context.view(9, 9).explain("user-4711").scans == "the text is empty"
    preloaded = explain_counted(preload=True).context.explain("user-4711")
    assert (preloaded.scans, preloaded.gets) == ("all of the text is in memory", 0)


def test_parts_and_other_cases() -> None:
    sought = explain_counted()
    at = TEXT.index("user-4711")
    part = sought.context.view(100, at - 2 * FRAME_BYTES).explain("user-4711")
    whole = sought.context.explain("user-4711")
    assert part.candidates == 0 < whole.candidates
    assert part.frames < whole.frames / 2 + 2
    assert part.stored_bytes < whole.stored_bytes * 0.6
    lowered = sought.context.lower().explain("USER-4711", ignore_case=True)
    assert (lowered.candidates, lowered.frames) == (whole.candidates, whole.frames)
    assert lowered.needs == "'USER-4711' in any case"
    assert sought.context.upper().view(0, 9).explain("USER-4711").frames == 1
    assert sought.context.explain("user.*4711", fixed=True).needs == "'user.*4711'"
    assert sought.context.explain(["user-4711", "zzzzz"]).needs == "'user-4711' OR 'zzzzz'"


def test_needs_are_shown_as_one_would_say_them() -> None:
    assert format_query(required_literals("(?i:ab)c+(d|ef)")) == "'ab' in any case AND 'c' AND ('d' OR 'ef')"
    assert format_query(None) == ""
    assert format_query(Literal("x" * 100)) == f"'{'x' * 60}...'"
    assert format_query(Any((Literal("a"), Any((Literal("b"), Literal("c")))))) == "'a' OR ('b' OR 'c')"


def test_ten_gigabytes() -> None:
    frame = "2026-11-22 INFO served\n" * 11_000
    store = CountingStore(virtual_context(40_000, frame, filters=True))
    with Monocontext.open(store, workers=SimulatedWorkers(lambda request: 0.0)) as context:
        store.reset()
        found = context.explain("3f0c1d4e-7a52")
        assert (found.frames, found.candidates, found.gets) == (40_000, 0, 0)
        assert {request.key.split("/")[0] for request in store.log} == {"filters"}
        assert found.filter_bytes == store.bytes_read < 1 << 20
        store.reset()
        assert context.explain(r"\d").gets == -(-found.stored_bytes // (8 << 20))
        assert store.gets == 0


@pytest.mark.parametrize("start", [0, 30_000])
def test_it_says_the_documents(start: int) -> None:
    given = {f"n{i}": f"document {i}\n" * 20 + "user-4711\n" * (i % 1000 == 7) for i in range(5000)}
    name = uuid.uuid4().hex
    store = MemoryStore(name)
    publish(given, store, frame_bytes=4096)
    with Monocontext.open(store) as context:
        text = context.view(start, len(context))
        found = text.explain("user-4711")
        hits = {f"n{i}" for i in range(7, 5000, 1000) if not (start and i == 7)}
        reached = [
            record.name
            for record in context.documents.records()
            if any(a < record.stop and record.start < b for a, b in candidates(context, "user-4711", start))
        ]
        assert (found.documents, found.candidate_documents) == (5000, len(reached))
        assert found.first_documents == tuple(reached[:5])
        assert hits <= set(reached)
        assert len(reached) < 400
        names = ", ".join(map(repr, reached[:5]))
        assert (
            str(found).split("\n")[2] == f"in {len(reached)} of 5,000 documents: {names}, and {len(reached) - 5} more"
        )
        everything = context.explain("o")
        assert (everything.candidate_documents, everything.first_documents) == (5000, ("n0", "n1", "n2", "n3", "n4"))
        assert everything.scans
    forget(name)


def candidates(context: Monocontext, needle: str, start: int) -> list[tuple[int, int]]:
    """Characters of the frames that filters do not rule out."""
    reader = context._reader
    assert isinstance(reader, Reader)
    runs = reader.narrow(Literal(needle), start, len(context), within_line=True).runs
    assert runs
    return [(max(reader.frame(a).start, start), reader.frame(b - 1).stop) for a, b in runs]
