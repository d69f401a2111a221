"""A store of its own for each test."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from monocontext.stores.memory import MemoryStore, forget


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    name = uuid.uuid4().hex
    yield MemoryStore(name)
    forget(name)
