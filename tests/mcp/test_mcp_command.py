"""The command line of the server: what is named, what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from monocontext.cli.mcp import listen_options, parse_contexts, serving
from monocontext.errors import InvalidUrl


def test_names_of_contexts() -> None:
    assert parse_contexts(["s3://bucket/logs", "notes=s3://bucket/n", "/data/texts/", "s3://bucket/a=b"]) == {
        "logs": "s3://bucket/logs",
        "notes": "s3://bucket/n",
        "texts": "/data/texts/",
        "a=b": "s3://bucket/a=b",
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["a/x", "b/x"], "the name 'x' of 'b/x' is used twice: write NAME=b/x"),
        (["s3://bucket/memory"], "is reserved"), (["sessions=dir"], "is reserved: write NAME=dir"),
        (["/"], "is empty: write NAME=/"), (["docs="], "'docs=' has no URL"),
    ],
)  # fmt: skip
def test_names_must_be_of_their_own(given: list[str], message: str) -> None:
    with pytest.raises(click.BadParameter, match=message):
        parse_contexts(given)


@pytest.mark.parametrize("option", [{"host": "0.0.0.0"}, {"port": 0}, {"token": "secret"}])
def test_options_of_http_need_it(option: dict[str, Any]) -> None:
    assert listen_options(http=True, **option).items() >= option.items()
    with pytest.raises(click.UsageError, match="add --http"):
        listen_options(**option)


def test_without_the_sdk(tmp_path: Path) -> None:
    """In a process whose imports of `mcp` fail, as without the extra."""
    program = "import sys; sys.modules['mcp'] = None; sys.argv = ['monocontext', 'mcp', '.']"
    command = [sys.executable, "-c", f"{program}; from monocontext.cli import main; main()"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "monocontext: the MCP SDK is missing: in the clone of monocontext, pip install -e '.[mcp]'\n"


@pytest.mark.parametrize(
    ("url", "said"), [([], "nothing to serve"), (["memory://x"], "memory of one process"), (["ftp://host/x"], "ftp")]
)
def test_what_cannot_be_served(url: list[str], said: str) -> None:
    with pytest.raises((click.BadParameter, InvalidUrl), match=said), serving(url, {}):
        pass
