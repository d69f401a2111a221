"""A home of its own for each test, without any setting."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[[str, str], Path]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith("AWS_") or name.lower().endswith("_proxy") or name in ("BOTO_CONFIG", "REQUESTS_CA_BUNDLE"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    # Both are read when botocore is imported.
    for module in ("botocore.credentials.SSOProvider", "botocore.tokens.SSOTokenProvider"):
        monkeypatch.setattr(f"{module}._SSO_TOKEN_CACHE_DIR", str(tmp_path / ".aws" / "sso" / "cache"))
    (tmp_path / ".aws").mkdir()
    return tmp_path


@pytest.fixture
def write(home: Path) -> Write:
    """Write a file below `~/.aws`."""

    def write(name: str, text: str) -> Path:
        path = home / ".aws" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write
