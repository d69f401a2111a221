"""A copy is the text itself; a pickle is a handle that opens it again."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monocontext import Monocontext, publish
from monocontext.errors import NotPicklable

TEXT = "".join(f"line {number} é İ Σ 😀\n" for number in range(200))

MAKERS: dict[str, Callable[[Any], Any]] = {
    "the whole text": lambda t: t,
    "a view": lambda t: t[100:2000],
    "a view of a view": lambda t: t[100:2000][50:1500],
    "lower()": lambda t: t.lower(),
    "a view of lower()": lambda t: t.lower()[100:2000],
    "upper() of a view": lambda t: t[100:2000].upper(),
    "replace() of lower()": lambda t: t.lower().replace("line", "No."),
    "strip()": lambda t: t.strip("lin\n"),
    "what partition() leaves": lambda t: t.partition("line 7")[2],
}


@pytest.fixture
def context(tmp_path: Path) -> Monocontext:
    publish(TEXT, tmp_path / "context", frame_bytes=100, segment_bytes=1000)
    return Monocontext.open(tmp_path / "context", materialize_limit=50, cache_bytes=12345)


@pytest.mark.parametrize("name", MAKERS)
def test_a_copy_is_the_text_itself(name: str, context: Monocontext) -> None:
    text = MAKERS[name](context)
    assert copy.copy(text) is text
    assert copy.deepcopy(text) is text
    assert copy.deepcopy({"context": [text]})["context"][0] is text


LISTS: dict[str, Callable[[Any], Any]] = {
    "split()": lambda t: t.split(),
    "split(sep)": lambda t: t.split("\n"),
    "splitlines()": lambda t: t.splitlines(),
    "split of lower()": lambda t: t.lower().split("li"),
    "lines": lambda t: t.lines,
}


@pytest.mark.parametrize("name", [*MAKERS, *LISTS])
def test_a_pickle_is_a_handle(name: str, context: Monocontext) -> None:
    value = (MAKERS | LISTS)[name](context)
    for protocol in (2, pickle.HIGHEST_PROTOCOL):
        pickled = pickle.dumps(value, protocol)
        again = pickle.loads(pickled)
        assert len(pickled) < 1000
        assert list(again) == list(copy.deepcopy(value)) == list(value)
        assert name in LISTS or (again, again._limit) == (MAKERS[name](TEXT), 50)


def test_a_pickle_keeps_its_generation(context: Monocontext, tmp_path: Path) -> None:
    data = pickle.dumps(context)
    publish("another text", tmp_path / "context", replace=True)
    assert pickle.loads(data) == TEXT


def test_a_pickle_holds_no_secret(moto_s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"s3://{moto_s3}/pickled"
    publish(TEXT, url)
    with Monocontext.open(url, materialize_limit=50) as context:
        data = pickle.dumps([context, context[5:500], context.lower()])
        again = pickle.loads(data)
        assert again[1] == TEXT[5:500]
        for item in again:
            item.close()
    for secret in (b"devaccess", b"devsecret123"):
        assert secret not in data


@pytest.mark.parametrize("name", [*MAKERS, "split(sep)"])
def test_a_text_in_memory_says_so(name: str) -> None:
    publish(TEXT, f"memory://{name}", replace=True)
    with (
        Monocontext.open(f"memory://{name}", materialize_limit=50) as context,
        pytest.raises(NotPicklable, match="in the memory of this process"),
    ):
        pickle.dumps((MAKERS | LISTS)[name](context))
