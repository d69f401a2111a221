"""The tree of errors: what a handler catches, and that verbs raise nothing outside of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monocontext import Monocontext, append, delete, errors, publish, update
from monocontext.errors import AccessDenied, MonocontextError, NotAContext, NotFound, StoreFailure, Unsupported
from monocontext.stores import open_store
from monocontext.testing import FaultyStore, fail
from monocontext.writing.upkeep.compact import compact
from monocontext.writing.upkeep.gc import gc
from monocontext.writing.upkeep.verify import verify
from monocontext.writing.upkeep.versions import list_versions, restore

VERBS: list[Callable[[Any], object]] = [
    Monocontext.open, lambda it: append("x", it), lambda it: update(it, {"a": "x"}), lambda it: delete(it, "a"),
    compact, gc, verify, list_versions, lambda it: restore(it, 1),
]  # fmt: skip


def test_every_error_is_in_one_tree_and_kin_to_a_builtin_where_a_caller_expects_one() -> None:
    found = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, Exception)]
    assert [kind for kind in found if not issubclass(kind, MonocontextError)] == []
    for kind, kin in ((NotFound, FileNotFoundError), (AccessDenied, PermissionError), (StoreFailure, OSError)):
        assert issubclass(kind, kin)
    assert not issubclass(NotAContext, NotFound)  # something is stored there
    assert not issubclass(AccessDenied, StoreFailure)  # trying again does not help
    assert not issubclass(Unsupported, StoreFailure)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("error", [AccessDenied("no right"), StoreFailure("away"), Unsupported("never")])
def test_a_verb_raises_what_its_store_says(tmp_path: Path, verb: Callable[[Any], object], error: Exception) -> None:
    publish({"a": "one\n", "b": "two\n"}, tmp_path)
    fault = fail(error)
    with pytest.raises(type(error), match=str(error)):
        verb(FaultyStore(open_store(tmp_path), lambda *_: fault))
    with pytest.raises(NotFound, match="no context"):
        verb(str(tmp_path / "none"))
