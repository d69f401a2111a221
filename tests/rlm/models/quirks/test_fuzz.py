"""Hostile bytes through the SDKs: what comes out is a reply or an LLMError of one line, at once."""

from __future__ import annotations

import time

import pytest
from fuzz import Fuzz


@pytest.mark.slow
def test_hostile_bytes_end_in_a_reply_or_an_llm_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(seconds: float) -> None:
        raise AssertionError(f"a backend waits {seconds} s: only a run waits, between its tries")

    monkeypatch.setattr(time, "sleep", sleep)
    fuzz = Fuzz(1)
    kinds = {fuzz.call(number) for number in range(300)}
    assert {"Reply", "LLMError", "RateLimited", "ReplyRefused"} <= kinds
