"""Work handed to executors: threads, processes, a Dask cluster of real worker processes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from monocontext import Monocontext, publish
from monocontext.stores.parallel import in_order
from monocontext.text.search import grep_parallel as grep_parts


def text(lines: int) -> str:
    return "".join(f"{i:07d} straße {i * i:x} ΣΊΣΥΦΟΣ needle-{i % 997}\n" for i in range(lines))


@pytest.fixture(params=["threads", "processes"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    made: Executor
    if request.param == "threads":
        made = ThreadPoolExecutor(2)
    else:
        made = ProcessPoolExecutor(2, mp_context=get_context("spawn"))
    with made:
        yield made


def test_in_order_takes_few_at_once_and_cancels_the_rest() -> None:
    begun: list[int] = []

    def work(part: int) -> int:
        begun.append(part)
        return part * part

    with ThreadPoolExecutor(1) as executor:
        results = in_order(executor, work, range(1000), ahead=4)
        assert [next(results) for _ in range(3)] == [0, 1, 4]
        results.close()  # type: ignore[attr-defined]
    assert len(begun) <= 7


@pytest.mark.slow
@pytest.mark.parametrize("filters", [True, False])
def test_grep(executor: Executor, tmp_path: Path, filters: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grep_parts, "PART_FRAMES", 3)
    monkeypatch.setattr(grep_parts, "PART_CHARACTERS", 12_000)
    publish(text(5_000), tmp_path, frame_bytes=4096, segment_bytes=16 << 10, filters=filters)
    with Monocontext.open(tmp_path) as context:
        for pattern, options in [("needle-99[0-6]$", {}), ("NEEDLE-1\\b", {"ignore_case": True}), ("absent-id", {})]:
            expected = list(context.grep(pattern, **options))
            assert list(context.grep(pattern, executor=executor, **options)) == expected
            result = context.grep(pattern, executor=executor, max_hits=5, start=100, stop=150_000, **options)
            assert list(result) == list(context.grep(pattern, max_hits=5, start=100, stop=150_000, **options))
