"""Work handed to executors: threads, processes, a Dask cluster of real worker processes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from monocontext import Monocontext, publish
from monocontext.format.manifest import Manifest
from monocontext.stores.local import LocalStore
from monocontext.stores.parallel import in_order
from monocontext.testing import Crash, CrashingStore
from monocontext.text.search import grep_parallel as grep_parts
from monocontext.writing import shares
from monocontext.writing.publish import append
from monocontext.writing.segments import SegmentLayout
from monocontext.writing.upkeep.verify import verify


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


def same_text(left: Manifest, right: Manifest) -> bool:
    names = ("characters", "text_bytes", "newlines", "frames", "final_newline", "stored_bytes")
    return all(getattr(left, name) == getattr(right, name) for name in names)


@pytest.mark.slow
def test_publish_and_append(executor: Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "SHARE_BYTES", 100_000)
    layout = {"frame_bytes": 4096, "segment_bytes": 16 << 10}
    first, second = text(8000), text(3000)
    here = publish(first, tmp_path / "here", **layout)  # type: ignore[arg-type]
    spread = publish(first, tmp_path / "spread", executor=executor, **layout)  # type: ignore[arg-type]
    assert same_text(here, spread)
    assert len(here.filters) == 1
    assert len(spread.filters) == 2  # one of what lies within shares, one of the frames where two shares meet
    assert same_text(append(second, tmp_path / "here"), append(second, tmp_path / "spread", executor=executor))
    assert verify(tmp_path / "spread").ok
    with Monocontext.open(tmp_path / "spread") as context:
        assert context == first + second


def test_small_texts_get_no_filters_either_way(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as executor:
        assert publish(text(10), tmp_path, executor=executor).filters == ()


def test_an_error_in_a_worker_is_the_callers(tmp_path: Path) -> None:
    store = CrashingStore(LocalStore(tmp_path), after_puts=0)
    with ThreadPoolExecutor(2) as executor, pytest.raises(Crash):
        publish(text(100), store, executor=executor)
    assert not (tmp_path / "manifest.json").exists()


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
    assert SegmentLayout().columns() is not None


@pytest.mark.slow
@pytest.mark.parametrize("filters", [True, False])
def test_grep_and_verify(executor: Executor, tmp_path: Path, filters: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grep_parts, "PART_FRAMES", 3)
    monkeypatch.setattr(grep_parts, "PART_CHARACTERS", 50_000)
    monkeypatch.setattr("monocontext.writing.upkeep.verify.CHECKED_BYTES", 40_000)
    publish(text(20_000), tmp_path, frame_bytes=4096, segment_bytes=16 << 10, filters=filters)
    with Monocontext.open(tmp_path) as context:
        for pattern, options in [("needle-99[0-6]$", {}), ("NEEDLE-1\\b", {"ignore_case": True}), ("absent-id", {})]:
            expected = list(context.grep(pattern, **options))
            assert list(context.grep(pattern, executor=executor, **options)) == expected
            found = context.grep(pattern, executor=executor, max_hits=5, start=100, stop=600_000, **options)
            assert list(found) == list(context.grep(pattern, max_hits=5, start=100, stop=600_000, **options))
    here, spread = verify(tmp_path), verify(tmp_path, executor=executor)
    assert here.ok
    assert (spread.ok, spread.frames, spread.text_bytes, spread.stored_bytes, spread.final_newline) == (
        True,
        here.frames,
        here.text_bytes,
        here.stored_bytes,
        here.final_newline,
    )
    segment = next((tmp_path / "segments").iterdir())
    data = segment.read_bytes()
    segment.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
    assert verify(tmp_path, executor=executor).problems == verify(tmp_path).problems != []
