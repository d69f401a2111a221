"""Earlier versions: listed, and made the newest again, whatever `gc` removes afterwards."""

from __future__ import annotations

import pytest

from monocontext import Monocontext, append, delete, publish
from monocontext.errors import NotFound
from monocontext.stores.protocol import Store
from monocontext.writing.upkeep.gc import gc
from monocontext.writing.upkeep.versions import list_versions, restore


def test_versions_are_listed(store: Store) -> None:
    publish({"a": "A\n"}, store)
    append({"b": "B\n"}, store)
    delete(store, "a")
    assert [(root.generation, root.characters) for root in list_versions(store)] == [(1, 2), (2, 4), (3, 2)]
    assert [root.generation for root in list_versions(store, newest=2)] == [2, 3]
    with pytest.raises(ValueError, match="newest must be at least 1, not 0"):
        list_versions(store, newest=0)
    with pytest.raises(NotFound, match="no context at memory://nothing-here"):
        list_versions("memory://nothing-here")


def test_a_restore_can_be_taken_back(any_store: Store) -> None:
    publish({"a": "A" * 5000, "b": "B"}, any_store, frame_bytes=600)
    delete(any_store, "a")
    restore(any_store, 1)
    restore(any_store, 2)
    with Monocontext.open(any_store, shape="dict") as found:
        assert found == {"b": "B"}
    assert [root.generation for root in list_versions(any_store)] == [1, 2, 3, 4]


def test_what_was_forgotten_does_not_come_back(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restore between the commit of a forget and the removal of earlier versions."""
    publish({"a": "A\n", "s": "secret\n"}, store)
    monkeypatch.setattr("monocontext.writing.upkeep.edit.forget_rest", lambda *_: None)  # it is slow, or was killed
    delete(store, "s", forget=True)
    with pytest.raises(NotFound, match="version 1 cannot be restored: its text has since been forgotten"):
        restore(store, 1)
    restore(store, 2)
    with Monocontext.open(store, shape="dict") as found:
        assert found == {"a": "A\n"}


def test_a_version_that_is_gone_is_an_error(store: Store) -> None:
    publish({"a": "A"}, store)
    append({"b": "B"}, store)
    gc(store, older_than_seconds=0)
    with pytest.raises(NotFound, match=r"no version 1: `monocontext history` lists the versions"):
        restore(store, 1)
