"""Commands run in the process of the tests."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from ran import TEXT, Cli, Ran

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


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "in.txt").write_text(TEXT)
    return tmp_path / "in.txt"


@pytest.fixture
def uploaded(cli: Cli, file: Path, tmp_path: Path) -> Path:
    """A context that holds TEXT, in four frames or more."""
    cli("upload", file, tmp_path / "ctx", "--frame-bytes", "64K").fine()
    return tmp_path / "ctx"
