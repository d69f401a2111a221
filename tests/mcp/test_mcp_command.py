"""The command line of the server: what is named, what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from monocontext.cli.mcp import parse_contexts


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process whose imports of `mcp` fail, as without the extra."""
    hidden = "import sys; sys.modules['mcp'] = None; sys.argv = ['monocontext', 'mcp', *sys.argv[1:]]"
    program = f"{hidden}; from monocontext.cli import main; main()"
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=60)


def test_names_of_contexts() -> None:
    assert parse_contexts(["s3://bucket/logs", "notes=s3://bucket/n", "/data/texts/", "s3://bucket/a=b"]) == {
        "logs": "s3://bucket/logs",
        "notes": "s3://bucket/n",
        "texts": "/data/texts/",
        "a=b": "s3://bucket/a=b",
    }


@pytest.mark.parametrize("given", [["a/x", "b/x"], ["s3://bucket/memory"], ["sessions=dir"], ["/"]])
def test_names_must_be_of_their_own(given: list[str]) -> None:
    with pytest.raises(click.BadParameter, match="is empty, reserved or already used"):
        parse_contexts(given)


def test_without_the_sdk(tmp_path: Path) -> None:
    done = run(str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "monocontext: the MCP SDK is missing: in the clone of monocontext, pip install -e '.[mcp]'\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [((), "nothing to serve"), (("memory://x",), "memory of one process"), (("ftp://host/x",), "ftp")],
)
def test_what_cannot_be_served(arguments: tuple[str, ...], said: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
