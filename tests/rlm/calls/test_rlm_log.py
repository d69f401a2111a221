"""What `logging` is told under the name `rlm`, beside tries: fallbacks, lost workers, a full disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from rlm import ScriptedLM, SubCache, Usage
from rlm.calls.gateway import Gateway

ASK = [{"role": "user", "content": "what the user asks"}]


@pytest.fixture(autouse=True)
def _all_is_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "rlm")


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [f"{record.levelname} {record.getMessage()}" for record in caplog.records if record.name == "rlm"]


def test_a_sub_answer_that_cannot_be_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), tmp_path)

    cache = SubCache(tmp_path)
    monkeypatch.setattr(Path, "write_text", fail)
    assert Gateway(Usage(), cache=cache).ask(ScriptedLM(["paid"]), ASK).text == "paid"
    assert lines(caplog) == ["WARNING a sub-answer was not kept: No space left on device"]
