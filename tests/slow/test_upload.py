"""Uploads as a user has them: large, killed half way and run again, while somebody else already looks."""

from __future__ import annotations

import hashlib
import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from monocontext import Monocontext
from monocontext.errors import NotFound
from slow.big_text import BigText
from slow.commands import Place, command, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

ALLOWED_BYTES = 300 << 20


class Watcher:
    """Opens the text again and again."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.seen: list[tuple[int, str, str] | None] = []
        """Each different thing seen, in order: nothing, or a text of this length, head and tail."""
        self.error: Exception | None = None

    def _watch(self) -> None:
        while not self._stop.is_set():
            try:
                result = self._look()
            except Exception as error:  # raised where the test waits
                self.error = error
                return
            if not self.seen or self.seen[-1] != result:
                self.seen.append(result)
            time.sleep(0.02)

    def _look(self) -> tuple[int, str, str] | None:
        try:
            with Monocontext.open(self._place.url, cache_bytes=1 << 20, **self._place.options) as ctx:
                middle = len(ctx) // 2
                assert len(ctx[middle : middle + 100]) == 100
                return len(ctx), ctx[:100], ctx[-100:]
        except NotFound:
            return None

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def check(self, text: BigText) -> None:
        """Nothing was seen, then this text, or one of them; the text is there now."""
        if self.error:
            raise self.error
        ends = text.characters, text.slice(0, 100), text.slice(text.characters - 100, text.characters)
        assert self.seen in ([None, ends], [None], [ends])
        assert self._look() == ends


def segments(place: Place) -> dict[str, tuple[int, str, float]]:
    """What lies in the store, with what changes when it is written again."""
    with place.store() as store:
        return {info.key: (info.size_bytes, info.etag, info.modified_seconds) for info in store.list("segments/")}


@contextmanager
def kill_after(place: Place, count: int, seconds: float) -> Iterator[Callable[[], bool]]:
    """Gives a question that is true once `count` more segments are there than at first, and `seconds` have passed."""
    since: float | None = None
    with place.store() as store:

        def now() -> bool:
            nonlocal since
            if since is None and sum(1 for _ in store.list("segments/")) >= first + count:
                since = time.monotonic()
            return since is not None and time.monotonic() - since >= seconds

        first = sum(1 for _ in store.list("segments/"))
        yield now


def test_a_large_text_in_one_go(place: Place, big_text: BigText) -> None:
    with Watcher(place) as watcher:
        done = run("upload", str(big_text.path), place.url, *place.arguments)
    assert (done.code, done.errors) == (0, "")
    assert done.peak_bytes < ALLOWED_BYTES
    watcher.check(big_text)


@pytest.fixture(scope="module")
def addition(big_folder: Path) -> Iterator[BigText]:
    text = BigText.write(big_folder / "addition.txt", 96 << 20, seed=5)
    yield text
    text.path.unlink()


def test_killed_and_run_again(place: Place, addition: BigText) -> None:
    """Killed three times at random moments, each run goes on where the last one stopped, and no reader sees a half."""
    rng = random.Random(11)
    arguments = ("upload", str(addition.path), place.url, "--segment-bytes", "1M", *place.arguments)
    sent: dict[str, tuple[int, str, float]] = {}
    with Watcher(place) as watcher:
        for _ in range(3):
            with kill_after(place, rng.randint(1, 4), rng.uniform(0, 0.1)) as stop:
                done = run(*arguments, kill_when=stop)
            assert done.code == -9, done
            before, sent = sent, segments(place)
            assert before.items() <= sent.items(), "what was there is not sent again"
        done = run(*arguments)
        assert (done.code, done.errors) == (0, "")
    assert done.peak_bytes < ALLOWED_BYTES
    finished = segments(place)
    assert len(sent) >= 3
    assert sent.items() <= finished.items(), "what was there is not sent again"
    watcher.check(addition)
    subprocess.run(command("verify", place.url, *place.arguments), check=True)
    text = subprocess.run(command("cat", place.url, *place.arguments), stdout=subprocess.PIPE, check=True).stdout
    assert hashlib.sha256(text).hexdigest() == addition.sha256
