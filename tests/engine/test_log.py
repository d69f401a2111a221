"""What `logging` is told: retries, resumed bodies, refusals, and reads that are left to boto3."""

from __future__ import annotations

import logging
import random
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from monocontext import Monocontext
from monocontext.engine.fetch.fetcher import _name_for_log
from monocontext.engine.fetch.requests import FetchRequest
from monocontext.errors import StoreFailure
from monocontext.stores import log, open_store
from monocontext.stores.protocol import Blob
from monocontext.testing import FaultyStore, flip_byte
from tests.stores.http.object_server import GOOD, ObjectServer, Turn, error

from .test_pressure import TEXT, many

DATA = random.Random(5).randbytes(300_000)


@pytest.fixture(autouse=True)
def told(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    log.emit()  # what other tests left behind
    caplog.set_level("DEBUG", "monocontext")
    caplog.clear()
    yield
    log.emit()


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    log.emit()
    assert {record.name for record in caplog.records} <= {"monocontext"}
    return [f"{record.levelname} {record.getMessage()}" for record in caplog.records]


SKEWED = error(403, "RequestTimeTooSkewed", Date="Sun, 22 Nov 2026 10:00:00 GMT")
TURNS = {
    "sent again": ([error(503, "SlowDown"), Turn(reset=True)], [
        r"INFO ctx/a of 127\.0\.0\.1: HTTP 503 SlowDown; sent again in 0\..*",
        r"DEBUG ctx/a of 127\.0\.0\.1: the server closed an idle connection; sent again",
    ]),
    "resumed": ([Turn(cut_at=50_000), Turn(cut_at=0), GOOD], [
        r".*closed after 50,000 of 300,000 bytes; resumed in .*", r".*closed after 0 of 250,000 bytes; resumed in .*",
    ]),
    "cause removed": ([SKEWED], [
        r"INFO ctx/a of 127\.0\.0\.1: HTTP 403 RequestTimeTooSkewed; sent again, its cause removed",
    ]),
}  # fmt: skip


@pytest.mark.parametrize("what", TURNS)
def test_what_the_server_does_to_a_read(what: str, caplog: pytest.LogCaptureFixture) -> None:
    turns, expected = TURNS[what]
    with ObjectServer(DATA, *turns) as server:
        assert open_store("s3://bucket/ctx", endpoint=server.endpoint).get("a").data == DATA
        told = lines(caplog)
    assert len(told) == len(expected)
    assert all(re.fullmatch(pattern, line) for pattern, line in zip(expected, told, strict=True)), told


def test_a_handler_may_read_the_text_that_it_prints(caplog: pytest.LogCaptureFixture) -> None:
    """Its lock is held meanwhile, and the thread that carries the read has something to tell: it must not wait."""
    failed: list[int] = []

    def fail(blob: Blob) -> Blob:
        log.note(log.INFO, "from a thread that carries requests")
        failed.append(1)
        return blob

    class Lazy:
        def __str__(self) -> str:
            return context[:6000]

    context = Monocontext.open(FaultyStore(many(60), lambda number, request: fail if number else None))
    logging.getLogger("monocontext").warning("%s", Lazy())
    assert failed
    assert f"WARNING {TEXT[:6000]}" in lines(caplog)
    assert "INFO from a thread that carries requests" in lines(caplog)


@pytest.mark.slow
def test_no_secret_is_told(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAmine")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secretmine")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "tokenmine")
    moved = Turn(307, b"", {"Location": "/elsewhere?X-Amz-Signature=signedmine"})
    turns = [moved, error(503, "SlowDown"), Turn(cut_at=5), Turn(stall_at=3), *[error(500, "InternalError")] * 4]
    with ObjectServer(DATA, *turns) as server:
        with pytest.raises(StoreFailure):
            open_store("s3://bucket/ctx", endpoint=server.endpoint).get("a")
        assert len(lines(caplog)) == len(server.asked) - 1
    assert "mine" not in "\n".join(lines(caplog))


def test_silent_unless_asked() -> None:
    """Nothing on stderr by default, warnings neither; and a program without `logging` is told nothing, nor later."""
    code = """
import sys
from monocontext.stores import log
assert "logging" not in sys.modules
log.note(log.WARNING, "a")
import logging
log.emit()
log.note(log.WARNING, "b")
log.emit()
logging.basicConfig(format="%(levelname)s %(threadName)s %(message)s")
log.note(log.INFO, "c")
log.note(log.WARNING, "d %s", 1)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "WARNING MainThread d 1\n")


def test_bytes_that_came_damaged(caplog: pytest.LogCaptureFixture) -> None:
    context = Monocontext.open(FaultyStore(many(60), [None, flip_byte(5)]), prefetch="off")
    caplog.clear()
    assert context[:100] == TEXT[:100]
    assert re.match("INFO segments/.* came damaged: bytes 0 to ", *lines(caplog))


def test_a_login_and_a_query_that_may_sign_a_url_are_not_told() -> None:
    request = FetchRequest("https://bob:my?pass@host/a?X-Amz-Signature=mine", 3, 9, ())
    assert _name_for_log(request) == "https://***@host/a"
