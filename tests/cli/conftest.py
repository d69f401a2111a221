"""Commands run in the process of the tests."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from ran import Cli, Ran

from monocontext.cli import main


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """Runs a command in this process, through the door that the console script takes."""

    def run(*arguments: str | Path, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "argv", ["monocontext", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfdbinary.readouterr()
        code = ended.value.code or 0
        assert isinstance(code, int)
        return Ran(code, out.decode(), err.decode())

    return run
