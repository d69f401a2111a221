"""Options that nobody knows are a `TypeError` that names the nearest one, and signatures show all that are known."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import fields
from inspect import Parameter, signature
from math import nan
from typing import Any, cast

import numpy as np
import pytest

from monocontext import Monocontext, append, publish
from monocontext.aio import AsyncMonocontext
from monocontext.engine.open import OpenOptions
from monocontext.memory import Memory
from monocontext.options import StoreOptions
from monocontext.sessions import Sessions, open_project
from monocontext.stores import open_store
from monocontext.stores.memory import MemoryStore
from monocontext.stores.s3.settings import S3Options
from monocontext.writing.decoding import InputOptions, ReadingOptions
from monocontext.writing.index_in_place import index
from monocontext.writing.upkeep.gc import gc


def place() -> str:
    return f"memory://{uuid.uuid4().hex}"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"prefech": "off"}, "unknown option 'prefech': did you mean prefetch?"),
        ({"end_point": "x"}, "unknown option 'end_point': did you mean endpoint?"),
        ({"cache_byts": 1}, "unknown option 'cache_byts': did you mean cache_bytes?"),
        ({"zzz": 1}, "unknown option 'zzz': options are url, unit, "),
    ],
)
def test_open(options: dict[str, Any], said: str) -> None:
    url = place()
    publish("text", url)
    for where in (url, MemoryStore(url.partition("://")[2])):  # of a store at hand they were dropped in silence
        with pytest.raises(TypeError) as caught:
            Monocontext.open(where, **options)
        assert str(caught.value).startswith(said)


@pytest.mark.parametrize("write", [publish, append])
@pytest.mark.parametrize(
    ("name", "near"),
    [("excluded", "exclude"), ("headers", "header"), ("filter", "filters"), ("follow_link", "follow_links")],
)
def test_publish_and_append(write: Any, name: str, near: str) -> None:
    url = place()
    with pytest.raises(TypeError, match=rf"^unknown option '{name}': did you mean {near}\?$"):
        write("text", url, **{name: 1})


CALLS: dict[str, Callable[..., Any]] = {
    "Monocontext": lambda **options: Monocontext("bucket", "prefix/", "other.json", **options),
    "AsyncMonocontext.open": lambda **options: AsyncMonocontext.open("memory://x", **options),
    "index": lambda **options: index([], "memory://x", **options),
    "open_store": lambda **options: open_store("s3://bucket", **options),
    "Memory.open": lambda **options: Memory.open("memory://x", **options),
    "Memory.open of a store": lambda **options: Memory.open(MemoryStore("x"), **options),
    "Memory.context": lambda **options: Memory.open("memory://x").context(**options),
    "Sessions.open": lambda **options: Sessions.open("memory://x", **options),
    "Project.context": lambda **options: Sessions.open("memory://x").project("p").context(**options),
    "open_project": lambda **options: open_project("memory://x", **options),
}


@pytest.mark.parametrize("call", CALLS)
def test_every_other_function(call: str) -> None:
    with pytest.raises(TypeError, match=r"^unknown option 'zzz': options are [a-z_, ]+$"):
        CALLS[call](zzz=1)


def keywords(function: Callable[..., Any]) -> set[str]:
    result = signature(function).parameters.values()
    assert not [item for item in result if item.kind is Parameter.VAR_KEYWORD]
    return {item.name for item in result}


@pytest.mark.parametrize("name", ["cache_bytes", "materialize_limit"])
def test_a_size_below_nothing(name: str) -> None:
    wrong: dict[str, Any] = {name: -1}
    with pytest.raises(ValueError, match=f"{name} must be at least 0, not -1"):
        Monocontext.open("memory://nowhere", **wrong)


@pytest.mark.parametrize("wrong", ["4", 2.5, True, None])
def test_what_is_no_whole_number(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"^cache_bytes must be an int, not "):
        Monocontext.open("memory://nowhere", cache_bytes=wrong)
    store = MemoryStore(uuid.uuid4().hex)
    for name in ("frame_bytes", "segment_bytes"):
        options: dict[str, Any] = {name: wrong}
        with pytest.raises(TypeError, match=rf"^{name} must be an int, not "):
            publish("text", store, **options)
    assert list(store.list()) == []
    publish("text", store)
    with Monocontext.open(store) as context:
        calls = [context.chunks, lambda size: context.search("text", k=size)]
        if wrong is not None:
            calls += [lambda size: context.grep("text", max_hits=size)]
            calls += [lambda size: context.view(materialize_limit=size)]
            calls += [lambda size: Monocontext.open(store, generation=size)]
        for call in calls:
            with pytest.raises(TypeError, match=r"^[a-z_]+ must be an int, not "):
                call(wrong)


@pytest.mark.parametrize(("wrong", "error"), [("4", TypeError), (True, TypeError), (-1, ValueError), (nan, ValueError)])
def test_what_is_no_number_of_seconds(wrong: Any, error: type[Exception]) -> None:
    store = MemoryStore(uuid.uuid4().hex)
    publish("text", store)
    with pytest.raises(error, match=r"^older_than_seconds must be "):
        gc(store, older_than_seconds=wrong)
    with Monocontext.open(store) as context, pytest.raises(error, match=r"^max_seconds must be "):
        context.search("text", max_seconds=wrong)
    with Monocontext.open(store) as context:
        assert context == "text"


def test_what_is_no_executor() -> None:
    store, wrong = MemoryStore(uuid.uuid4().hex), cast(Any, 3)
    with pytest.raises(TypeError, match=r"^executor must be a concurrent\.futures\.Executor, not 3$"):
        publish("text", store, executor=wrong)
    assert list(store.list()) == []


def test_whole_numbers_of_other_types() -> None:
    store = MemoryStore(uuid.uuid4().hex)
    publish("a\n" * 9, store, frame_bytes=cast(Any, np.int64(4)))
    with Monocontext.open(store, cache_bytes=cast(Any, np.int64(1 << 20))) as context:
        assert context.count("a") == 9


def test_signatures_show_every_option() -> None:
    assert keywords(Monocontext.open) == {"url", "unit", "shape", *OpenOptions.__annotations__}
    assert keywords(open_store) == {"url", *StoreOptions.__annotations__}
    assert keywords(publish) >= ReadingOptions.__annotations__.keys()
    assert signature(Monocontext.open).parameters["endpoint"].annotation == "str | None"


def test_typed_options_are_the_fields_that_they_set() -> None:
    assert {item.name for item in fields(InputOptions)} == ReadingOptions.__annotations__.keys()
    assert {item.name for item in fields(S3Options)} == StoreOptions.__annotations__.keys() - {"client"}
