"""What reading ahead must show, to the millisecond and the GET."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from .model import CHARACTERS, FRAME, LATENCY_SECONDS, LINE, Model, text

MODES = ["all", "code", "history", "off"]


def zooms(seed: int, count: int = 24) -> list[tuple[int, int]]:
    random = Random(seed)
    starts = [random.randrange(CHARACTERS - 10_000) for _ in range(count)]
    return [(start, start + random.choice((500, 2_000, 5_000))) for start in starts]


@pytest.mark.parametrize("mode", ["all", "code"])
def test_literal_zooms_never_wait(mode: str) -> None:
    model = Model(mode)
    for start, stop in zooms(1):
        assert model.writes(f"piece = context[{start}:{stop}]\nprint(len(piece), piece[:100])") == 0.0
        assert model.names["piece"] == text()[start:stop]
    stats = model.context.stats
    assert model.moved_bytes <= 1.3 * stats.bytes_used
    assert stats.prefetch.precision >= 0.85
    assert stats.gets == 1 + stats.prefetch.gets  # the root


def test_eight_scans_that_take_turns_in_a_small_cache() -> None:
    """Each reads 20 pieces of two frames and a half; eight windows of a few pieces are more than the cache holds."""

    def scans(mode: str) -> tuple[Model, float]:
        model = Model(mode, cache_bytes=64 * FRAME)
        worst = watch(model)
        size, pieces = FRAME * 5 // 2, 20
        for k in range(pieces):
            for scan in range(8):
                at = scan * (CHARACTERS // 8) + k * size
                assert model.context[at : at + size] == text()[at : at + size]
        assert not worst
        return model, model.waited

    without, waited_without = scans("off")
    ahead, waited = scans("history")
    assert ahead.gets <= without.gets + 8  # a window each may be open at the end
    assert waited <= 0.6 * waited_without
    assert ahead.moved_bytes <= 1.1 * without.moved_bytes


def watch(model: Model) -> list[str]:
    """What broke the budget, at any step of the books."""
    broken: list[str] = []
    ahead = model.reader.ahead
    cache, walk = model.reader.cache, model.reader.fetcher.refill or (lambda: None)

    def checked() -> None:
        walk()
        most_bytes = max(ahead._guessed_bytes, ahead._announced_bytes)
        if cache.used_bytes > cache.capacity_bytes or cache.expected_bytes > most_bytes:
            broken.append(repr(cache))

    model.reader.fetcher.refill = checked
    return broken


WALKS: dict[str, Callable[[int], int]] = {
    "forward": lambda k: k * 3 * FRAME,
    "backward": lambda k: CHARACTERS - (k + 1) * 3 * FRAME,
    "stride": lambda k: k * 11 * FRAME + 777,
    "stride backward": lambda k: CHARACTERS - 5000 - k * 11 * FRAME,
    "pieces of a frame": lambda k: k * 3 * FRAME // 4,
    "pieces of a frame backward": lambda k: CHARACTERS - (k + 1) * 3 * FRAME // 4,
}


@pytest.mark.parametrize("name", WALKS)
def test_walks_are_recognised(name: str) -> None:
    walk = WALKS[name]
    width = 3 * FRAME // 4 if "pieces" in name else 3 * FRAME if "stride" not in name else 1000

    def wait(mode: str) -> tuple[float, Model]:
        model = Model(mode)
        for k in range(40):
            at = walk(k)
            assert model.context[at : at + width] == text()[at : at + width]
        return model.waited, model

    without, _ = wait("off")
    waited, model = wait("history")
    assert waited < 0.6 * without
    assert model.context.stats.prefetch.precision > 0.6


def test_thinking_between_the_pieces_of_a_walk_hides_them_all() -> None:
    """Two reads make a walk; whoever thinks after that waits no more."""
    model = Model("history")
    waits = []
    for k in range(20):
        before = model.waited
        _ = model.context[k * 50_000 : (k + 1) * 50_000]
        waits.append(model.waited - before)
        model.ask("think of it")
    assert waits[2:] == [0.0] * 18
    assert model.moved_bytes <= 1.1 * model.context.stats.bytes_used + 3 * 50_000


def test_chunks_with_sub_calls_wait_for_nothing() -> None:
    code = "for at in range(0, len(context), 500_000):\n    llm_query(context[at : at + 500_000])"
    waited = {mode: Model(mode).writes(code) for mode in MODES}
    assert waited["all"] <= 0.01
    assert waited["code"] <= 0.01
    assert waited["off"] > 16 * LATENCY_SECONDS
    assert waited["history"] < 0.5 * waited["off"]


def test_a_search_is_asked_and_its_first_candidates_are_there() -> None:
    model = Model("all")
    assert model.writes("at = context.find('line 00200000')\nprint(context[at - 300 : at + 1200])") == 0.0
    assert model.names["at"] == text().find("line 00200000")
    assert model.writes("import re\nm = re.search(r'line 00123456 \\w+', context)") == 0.0
    assert model.names["m"].start() == 123456 * LINE
    assert model.moved_bytes <= 12 * FRAME
    assert Model("off").writes("at = context.find('line 00200000')") >= 2 * LATENCY_SECONDS


def test_windows_around_hits_come_while_the_model_thinks() -> None:
    """The window reaches into the frame behind, which no search has read."""
    at = 301 * FRAME - 5 * LINE
    needle = text()[at : at + 13]
    waits = {}
    for mode in ("history", "off"):
        model = Model(mode)
        model.runs(f"at = context.find({needle!r})")
        model.ask("what is around it")
        waits[mode] = model.runs("piece = context[at - 300 : at + 1200]")
        assert model.names["piece"] == text()[at - 300 : at + 1200]
    assert waits == {"history": 0.0, "off": pytest.approx(LATENCY_SECONDS, abs=0.01)}


def test_a_wrong_hint_costs_bounded_bytes_and_no_result() -> None:
    model = Model("all", cache_bytes=100 * FRAME)
    worst = watch(model)
    model.writes("for at in range(0, len(context), 50_000):\n    print(context[at : at + 50_000])", runs=False)
    assert model.moved_bytes <= 50 * FRAME + 2 * FRAME
    spent = model.moved_bytes
    assert model.writes("print(context[5_000_000:5_001_000])") == 0.0  # what nobody read makes room
    assert model.moved_bytes <= spent + 2 * FRAME
    assert not worst
    assert model.reader.cache.expected_bytes == 0
