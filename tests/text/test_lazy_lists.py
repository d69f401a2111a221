"""Lines and lazy lists by index, forwards, backwards and anywhere: equal to a list's, and each frame is split once."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from monocontext import Monocontext, publish, regex
from monocontext.stores.memory import MemoryStore
from monocontext.text import cached_lines, lazy_lists, splitting
from monocontext.text import windows as search

LINE = "a line of words, née 漢字 😀"


def text_of(lines: int) -> str:
    return "".join(f"{number} {LINE[: number % len(LINE)]}\n" for number in range(lines))


def opened(text: str, frame_bytes: int = 1000, **options: Any) -> Monocontext:
    store = MemoryStore("lazy-lists")
    publish(text, store, frame_bytes=frame_bytes, codec="raw", replace=True)
    return Monocontext.open(store, **options)


LISTS: dict[str, Callable[[Any], Any]] = {
    'split("\\n")': lambda text: text.split("\n"),
    "split()": lambda text: text.split(),
    'split("1")': lambda text: text.split("1"),
    'split("\\n1")': lambda text: text.split("\n1"),
    "splitlines()": lambda text: text.splitlines(),
    'rsplit("11")': lambda text: text.rsplit("11"),
    "re.split": lambda text: regex.split(r"\d+ (a?)", text),
    "re.split, 50 cuts": lambda text: regex.split(r"\n", text, 50),
    'lower().split("\\n")': lambda text: text.lower().split("\n"),
    'replace().split("\\n")': lambda text: text.replace("1", "one").split("\n"),
}


@pytest.mark.parametrize("make", LISTS.values(), ids=LISTS)
def test_lazy_lists_compare_as_lists_do(make: Callable[[Any], Any]) -> None:
    text = text_of(60)
    items, expected = make(opened(text, materialize_limit=40)), make(text)
    longer = [*expected, "more"]
    assert items == expected
    assert expected == items
    assert items != longer
    assert items <= expected
    assert items >= expected
    assert not items < expected
    assert not items > expected
    assert items < longer
    assert longer > items
    assert not longer <= items
    assert [*items, "more"] == longer
    assert ["more", *items] == ["more", *expected]
    assert 2 * items == 2 * expected
    with pytest.raises(TypeError, match="unhashable"):
        hash(items)


@pytest.mark.parametrize("make", LISTS.values(), ids=LISTS)
def test_every_way_to_an_item(make: Callable[[Any], Any]) -> None:
    text = text_of(600)
    context = opened(text, materialize_limit=40)
    expected = make(text)
    dice = random.Random(1)
    places = [dice.randrange(-len(expected), len(expected)) for _ in range(60)]
    assert [make(context)[at] for at in places[:5]] == [expected[at] for at in places[:5]]
    items = make(context)
    assert [items[at] for at in places] == [expected[at] for at in places]
    assert [items[at] for at in range(len(expected))] == expected
    items = make(context)
    assert [items[at] for at in range(len(items) - 1, -1, -1)] == expected[::-1]
    assert list(reversed(make(context))) == expected[::-1]
    for at in places[:20]:
        assert make(context).index(expected[at]) == expected.index(expected[at])
        assert items.index(expected[at], at % len(expected)) == at % len(expected)
        assert items.count(expected[at]) == expected.count(expected[at])
        assert expected[at] in items
    assert None not in items or None in expected
    for absent in ("nowhere", "0", expected[3] + "\n", 7):
        if absent not in expected:
            assert absent not in items
            assert items.count(absent) == 0
            with pytest.raises(ValueError, match="is not in list"):
                items.index(absent)


class Three:
    def __index__(self) -> int:
        return 3


KEYS = (
    *(True, -1, Three(), np.int64(3), np.uint8(200), np.array(3), 10**9, -(10**9), 10**30),
    *(3.0, float("nan"), "3", None, (3,), [3], object(), np.array([1, 2]), np.float64(3)),
    *(slice(2, 5), slice(None, None, -100), slice("a"), slice(2, 9, 0)),
)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: type(key).__name__)
@pytest.mark.parametrize("make", LISTS.values(), ids=LISTS)
def test_keys_of_every_type(make: Callable[[Any], Any], key: Any) -> None:
    text = text_of(300)
    items, expected = make(opened(text, materialize_limit=40)), make(text)
    items[0]  # a block is at hand
    try:
        wanted = expected[key]
    except (IndexError, TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            items[key]
    else:
        assert items[key] == wanted


@pytest.mark.slow
@pytest.mark.parametrize("separator", ["aa", "aba", "ab", "a"])
def test_index_of_every_item_between_separators_that_may_overlap(separator: str) -> None:
    dice = random.Random(separator)
    for _ in range(40):
        text = "".join(dice.choices("ab\n", k=40))
        items, expected = opened(text, 7, materialize_limit=3).split(separator), text.split(separator)
        for item in [*expected, "b", "bb", "", "a"]:
            found = items.index(item) if item in items else None
            assert found == (expected.index(item) if item in expected else None), (text, item)


def counting(patch: pytest.MonkeyPatch, owner: Any, name: str) -> list[int]:
    """How often a function is called."""
    calls, real = [0], getattr(owner, name)

    def counted(*arguments: Any) -> Any:
        calls[0] += 1
        return real(*arguments)

    patch.setattr(owner, name, counted)
    return calls


def test_a_loop_over_lines_by_index_splits_each_frame_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of(2000)
    context = opened(text, materialize_limit=40)
    expected = text.split("\n")
    calls = counting(monkeypatch, cached_lines.CachedLines, "_split")
    frames = context._reader.manifest.frames
    parts = context.split("\n")
    assert [parts[at] for at in range(len(parts))] == expected
    assert calls[0] <= frames
    assert [context.lines[at] for at in range(2000)] == [line + "\n" for line in expected[:-1]]
    assert [context.lines[-1 - at] for at in range(2000)] == [line + "\n" for line in expected[-2::-1]]
    assert calls[0] <= 3 * frames


def count_windows(patch: pytest.MonkeyPatch) -> list[int]:
    """How many parts of frames are looked at."""
    windows, real = [0], search.Window.of_frame.__func__  # type: ignore[attr-defined]

    def counted(kind: Any, frame: Any, start: int, stop: int) -> Any:
        windows[0] += 1
        return real(kind, frame, start, stop)

    patch.setattr(search.Window, "of_frame", classmethod(counted))
    return windows


def test_a_loop_by_index_over_any_list_splits_the_text_once(monkeypatch: pytest.MonkeyPatch) -> None:
    context = opened(text_of(3000), materialize_limit=40)
    windows = count_windows(monkeypatch)
    for make in (lambda: context.split(), lambda: context.splitlines(), lambda: regex.split(r"\s+", context)):
        items, windows[0] = make(), 0
        expected = list(items)
        by_item, windows[0] = windows[0], 0
        assert [items[at] for at in range(len(items))] == expected
        assert windows[0] <= 3 * by_item + 10


def test_items_far_apart_cost_what_lies_between_places_and_not_what_lies_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = opened(text_of(20_000), materialize_limit=40)
    windows = count_windows(monkeypatch)
    items = context.split(" ")
    expected, windows[0] = list(items), 0
    for at in (len(expected) // 2, 17, len(expected) - 100, -5, len(expected) // 3):
        windows[0] = 0
        assert items[at] == expected[at]
        assert windows[0] <= 20


def test_what_is_kept_is_written_down_again_in_a_later_cell() -> None:
    text = text_of(2000)
    context = opened(text, materialize_limit=40)
    mark, _ = context.reads_since()
    lines, words, lower = context.lines, context.split(), context.lower().split("\n")
    for _ in range(3):
        read = [lines[100], lines[101], lines[102], words[400], words[401], lower[200]]
        mark, ranges = context.reads_since(mark)
        assert read == [*(line + "\n" for line in text.split("\n")[100:103]), *text.split()[400:402], read[5]]
        at = text.index(read[0])
        assert any(start <= at and at + len(read[0]) <= stop for start, stop in ranges)
        assert any(start <= text.index("200 ") < stop for start, stop in ranges)
    assert sum(stop - start for start, stop in ranges) < len(text) // 2
    lines[100], lines[101]
    assert context.reads_since(mark)[1] == [(at, at + len(lines[100]) + len(lines[101]))]


def test_views_have_lines_of_their_own() -> None:
    text = text_of(300)
    whole = opened(text)
    for start, stop in ((5, 3000), (0, 2000), (1234, 5678), (len(text) - 50, len(text))):
        view, part = whole.view(start, stop), text[start:stop]
        expected = part.splitlines(keepends=True)
        for _ in range(2):
            assert [view.lines[at] for at in range(len(view.lines))] == expected
            assert [view.lines[at] for at in range(-len(expected), 0)] == expected


def test_many_threads_read_one_list() -> None:
    text = text_of(3000)
    context = opened(text, materialize_limit=40)
    lists = [(context.split("\n"), text.split("\n")), (context.split(), text.split())]
    wrong: list[Any] = []

    def read(seed: int) -> None:
        dice = random.Random(seed)
        for _ in range(20):
            items, expected = lists[dice.randrange(2)]
            at = dice.randrange(len(expected) - 40)
            found = [items[number] for number in range(at, at + 40)]
            if found != expected[at : at + 40]:
                wrong.append((at, found))

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_words_that_go_over_many_pieces() -> None:
    dice = random.Random(3)
    for _ in range(300):
        pieces = ["".join(dice.choices("ab \n", weights=[5, 5, 1, 1], k=dice.randint(1, 4))) for _ in range(8)]
        assert _items(splitting.split_words(pieces)) == "".join(pieces).split()
        assert list(splitting.split_backward(pieces[::-1])) == "".join(pieces).split("\n")[::-1]
        for number, (items, place) in enumerate(splitting.split_words(pieces)):
            done = [item for before, _ in list(splitting.split_words(pieces))[: number + 1] for item in before]
            assert done + "".join(pieces)[place:].split() == "".join(pieces).split() or not items


def _items(blocks: splitting.Blocks) -> list[str]:
    return [item for items, _ in blocks for item in items]


@pytest.fixture(autouse=True)
def small_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_lists, "CHECKPOINT_CHARACTERS", 5000)
    monkeypatch.setattr(lazy_lists, "CHECKPOINT_EVERY", 500)
