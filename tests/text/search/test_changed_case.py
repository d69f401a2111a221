"""`lower()`, `upper()` and `casefold()` that code only searches ask the filters; everything else gets a real `str`."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from monocontext import Monocontext, publish
from monocontext.stores.memory import MemoryStore, forget
from monocontext.testing import CountingStore
from monocontext.text.namespace import NamespacePatch

Search = Callable[[Any, str], object]

SEARCHES: list[Search] = [
    lambda text, needle: text.lower().find(needle.lower()),
    lambda text, needle: text.lower().rfind(needle.lower()),
    lambda text, needle: text.lower().count(needle.lower()),
    lambda text, needle: text.lower().index(needle.lower()) if needle.lower() in text.lower() else None,
    lambda text, needle: needle.lower() not in text.lower(),
    lambda text, needle: text.casefold().find(needle.casefold()),
    lambda text, needle: needle.casefold() in text.casefold(),
    lambda text, needle: text.casefold().count(needle.casefold(), 5),
    lambda text, needle: text.upper().find(needle.upper(), 100),
    lambda text, needle: text.upper().rindex(needle.upper()) if needle.upper() in text.upper() else None,
    lambda text, needle: [text.lower().startswith(needle.lower()), text.upper().endswith(needle.upper())],
]


@pytest.fixture
def store() -> Iterator[CountingStore]:
    yield CountingStore(MemoryStore("changed-case"))
    forget("changed-case")


def random_text(characters: int, planted: str = "") -> str:
    """Lines of hex, with some text in the middle."""
    half = Random(1).randbytes(characters // 4).hex()
    return "\n".join([*(half[at : at + 80] for at in range(0, len(half), 80)), planted, half])


@pytest.mark.slow
@pytest.mark.parametrize("search", SEARCHES)
def test_searches_of_changed_case_equal_those_of_str(
    search: Search, store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monocontext.text.str_methods.AT_ONCE", 0)
    random = Random(7)
    words = ["Straße", "İstanbul", "ΟΔΟΣ", "Kelvin \u212a", "ﬃ", "error", "WARN", "ǅ", "plain"]
    for alphabet in (words, ["error", "WARN", "plain", "x"]):
        text = " ".join(random.choices(alphabet, k=3000))
        publish(text, store, frame_bytes=1024, codec="raw", replace=True)
        with Monocontext.open(store) as context:
            for needle in [*words, "STRASSE", "σ", "no-such-needle", "n e", ""]:
                assert search(context, needle) == search(text, needle), needle


@pytest.mark.parametrize("megabytes", [4, pytest.param(40, marks=pytest.mark.slow)])
def test_a_rare_word_reads_a_few_percent(megabytes: int, store: CountingStore) -> None:
    publish(random_text(megabytes * 1_050_000, "OutOfMemoryError"), store, codec="raw")
    stored = sum(each.size_bytes for each in store.list("segments/"))
    for search in SEARCHES[:6]:
        with Monocontext.open(store) as context:
            store.reset()
            assert search(context, "outofmemoryerror") != -1
        read = sum(request.length or 0 for request in store.log)
        frames = sum(request.key.startswith("segments/") for request in store.log)
        assert read <= 0.03 * stored or frames == 1
        assert read < 0.1 * stored


def test_what_is_kept_is_a_real_str(store: CountingStore) -> None:
    text = random_text(2_000_000, "OutOfMemoryError")
    publish(text, store, codec="raw")
    with Monocontext.open(store) as context:
        lowered = context.lower()
        assert type(lowered) is str
        assert lowered.find("outofmemory") == text.lower().find("outofmemory")
        assert isinstance(context.upper(), str)
        assert type(next(map(Monocontext.casefold, [context]))) is str
        assert re.search("outof(memory)", context.lower()).group(1) == "memory"  # type: ignore[union-attr, arg-type]
        assert context.lower().split("outof")[1] == text.lower().split("outof")[1]


def test_cells_search_words_in_a_changed_case(store: CountingStore) -> None:
    publish(random_text(20_000_000, "OutOfMemoryError"), store, codec="raw")
    stored = sum(each.size_bytes for each in store.list("segments/"))
    code = "found = [word for word in ('outofmemory', 'oom-killer') if word in context.lower()]"
    with Monocontext.open(store) as context:
        kit = NamespacePatch()
        names: dict[str, Any] = {"__builtins__": vars(builtins) | kit.names, "context": context}
        store.reset()
        exec(compile(kit.transform(ast.parse(code)), "<cell>", "exec"), names)
        assert names["found"] == ["outofmemory"]
        assert sum(request.length or 0 for request in store.log) < 0.1 * stored
        with pytest.raises(TypeError, match="requires string"):
            exec(compile(kit.transform(ast.parse("one = 1\none in context.lower()")), "<cell>", "exec"), names)
        with pytest.raises(AttributeError, match="'int' object has no attribute 'lower'"):
            exec(compile(kit.transform(ast.parse("x = 1\nx in x.lower()")), "<cell>", "exec"), names)
