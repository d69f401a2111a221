"""Earlier versions: listed, and made the newest again, whatever `gc` removes afterwards."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from monocontext import Monocontext, append, delete, publish, replace
from monocontext.errors import NotFound
from monocontext.stores.protocol import Store
from monocontext.writing.upkeep.compact import compact
from monocontext.writing.upkeep.gc import gc
from monocontext.writing.upkeep.verify import verify
from monocontext.writing.upkeep.versions import list_versions, restore
from tests.budget import examples

from .programs import Program, check
from .test_edit import asks_filters

__all__ = ["asks_filters"]


def test_versions_are_listed(store: Store) -> None:
    publish({"a": "A\n"}, store)
    append({"b": "B\n"}, store)
    delete(store, "a")
    found = [
        (root.generation, root.characters, root.documents.documents) for root in list_versions(store) if root.documents
    ]
    assert found == [(1, 2, 1), (2, 4, 2), (3, 2, 1)]
    with pytest.raises(NotFound, match="no context there"):
        list_versions("memory://nothing-here")


@pytest.mark.usefixtures("asks_filters")
@pytest.mark.parametrize("seed", range(examples(60)))
def test_any_version_can_be_restored(store: Store, seed: int, tmp_path: Path) -> None:
    program, chance = Program(store, seed, tmp_path), random.Random(seed)
    texts = {1: dict(program.texts)}
    for _ in range(6):
        before = list_versions(store)[-1].generation
        names = list(program.texts)
        if names and chance.random() < 0.8:
            changed = {name: program.text(60) for name in program.some()}
            replace(store, changed)
            program.texts |= changed
        elif names:
            delete(store, names[0])
            del program.texts[names[0]]
        if chance.random() < 0.3:
            compact(store)
        now = list_versions(store)[-1].generation
        texts |= {number: dict(program.texts) for number in range(before + 1, now + 1)}
    wanted = chance.choice(list(texts))
    restore(store, wanted)
    check(store, texts[wanted], chance)
    gc(store, older_than_seconds=0)
    check(store, texts[wanted], chance)
    assert verify(store).ok


def test_a_restore_can_be_taken_back(any_store: Store) -> None:
    publish({"a": "A" * 5000, "b": "B"}, any_store, frame_bytes=600)
    delete(any_store, "a")
    restore(any_store, 1)
    restore(any_store, 2)
    with Monocontext.open(any_store, shape="dict") as found:
        assert found == {"b": "B"}
    assert [root.generation for root in list_versions(any_store)] == [1, 2, 3, 4]


def test_a_version_that_is_gone_is_an_error(store: Store) -> None:
    publish({"a": "A"}, store)
    append({"b": "B"}, store)
    gc(store, older_than_seconds=0)
    with pytest.raises(NotFound, match=r"no version 1: `history` lists the versions"):
        restore(store, 1)
