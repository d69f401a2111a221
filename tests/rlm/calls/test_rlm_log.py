"""What `logging` is told under the name `rlm`, beside tries: fallbacks, lost workers, a full disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from rlm import OpenAILM, ScriptedLM, SubCache, Usage
from rlm.calls.gateway import Gateway

ASK = [{"role": "user", "content": "what the user asks"}]


@pytest.fixture(autouse=True)
def _all_is_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "rlm")


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [f"{record.levelname} {record.getMessage()}" for record in caplog.records if record.name == "rlm"]


@pytest.mark.parametrize(
    ("refused", "status", "said", "notes"),
    [(lambda body: "stream_options" in body, 400, "no stream_options", ["refuses stream_options: left out"]),
     (lambda body: "stream" in body, 400, "cannot stream", ["refuses stream: left out"]),
     (lambda body: "messages" in body, 404, "v1/responses", [])],
)  # fmt: skip
def test_an_endpoint_that_refuses_a_way_of_asking(
    endpoint: Any, refused: Any, status: int, said: str, notes: list[str]
) -> None:
    endpoint.reply = lambda body: (status, f"{said}, key sk-secret") if refused(body) else "hello"
    with OpenAILM("m", base_url=endpoint.url, api_key="sk-secret") as lm:
        for requests in (2, 3):  # asked again once, and from now on so at once
            reply = lm.complete(ASK, on_delta=lambda delta: None)
            assert (reply.text, len(endpoint.paths)) == ("hello", requests)
            assert [note[note.index("refuses") :] for note in reply.notes] == notes


def test_a_sub_answer_that_cannot_be_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), tmp_path)

    cache = SubCache(tmp_path)
    monkeypatch.setattr(Path, "write_text", fail)
    assert Gateway(Usage(), cache=cache).ask(ScriptedLM(["paid"]), ASK).text == "paid"
    assert lines(caplog) == ["WARNING a sub-answer was not kept: No space left on device"]
