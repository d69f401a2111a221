"""The comparison can pass, and it can fail: `str` itself is all the same, `collections.UserString` is not quite."""

from __future__ import annotations

import sys
from collections import UserString
from typing import Any

import pytest

from . import comparison
from .comparison import campaign
from .subject import read

COMPARISONS = 6000

USER_STRING_DIFFERS = {
    "__add__": "text + 3 takes the str() of whatever is added",
    "__format__": "object.__format__ takes no specification",
    "__iter__": "join and the like are given items of its own class",
}
if sys.version_info >= (3, 13):
    USER_STRING_DIFFERS["replace"] = "its count has another name"


def test_str_scores_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "stored", lambda text, *_: text)
    monkeypatch.setattr(comparison, "joined", lambda text, *_: text)
    counts = campaign(seed=3, compared=COMPARISONS, wrong=1)
    assert counts.same == counts.compared >= COMPARISONS, counts.wrong


def test_user_string_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "stored", lambda text, *_: UserString(text))
    monkeypatch.setattr(comparison, "joined", lambda text, *_: UserString(text))
    monkeypatch.setattr(comparison, "read", _read)
    counts = campaign(seed=3, compared=COMPARISONS, wrong=COMPARISONS)
    assert len(counts.wrong) > 20
    assert counts.same > 0.85 * counts.compared
    assert set(counts.wrong_in) == set(USER_STRING_DIFFERS)


def _read(value: Any) -> Any:
    if isinstance(value, UserString):
        return "str", value.data
    if isinstance(value, list | tuple):
        return type(value).__name__, [_read(item) for item in value]
    return read(value)
