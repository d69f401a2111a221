"""Every block of code on our pages runs, or says why not: `<!-- not run: why -->`. What is no code is `text`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from monocontext import publish
from monocontext.testing import S3StandIn
from rlm.prompts.system import conversation
from tests.rlm.conftest import Endpoint
from tests.sessions.agents import as_lines, small

CHECKOUT = Path(__file__).parents[2]
RUN = {"python", "sh"}
PARSED: dict[str, Any] = {"json": json.loads, "toml": tomllib.loads}
PAGES = [
    str(page.relative_to(CHECKOUT))
    for page in (CHECKOUT / "README.md", CHECKOUT / "rlm/README.md", *sorted((CHECKOUT / "docs").rglob("*.md")))
    if "decisions" not in page.parts
]
TEXT = "".join(f"{n:06} {'ERROR disk full on db7' if n % 400 == 7 else 'INFO served in 3 ms'}\n" for n in range(2000))
BUCKETS = ("bucket", "team")


class Block(NamedTuple):
    """What stands between two fences; `line` is that of its code in the page, from 1."""

    language: str
    line: int
    code: str
    not_run: str | None


_FENCED = re.compile(
    r"(?:^[ ]*<!-- not run: (?P<why>[^\n]+?) -->\n)?^(?P<fence> *`{3,})(?P<info>[^\n]*)\n(?P<code>.*?)^(?P=fence) *$",
    re.M | re.S,
)


def blocks(page: str) -> list[Block]:
    text = (CHECKOUT / page).read_text("utf-8")
    return [
        Block(item["info"].strip(), text.count("\n", 0, item.start("code")) + 1, item["code"], item["why"])
        for item in _FENCED.finditer(text)
    ]


def run(page: str) -> list[Block]:
    return [block for block in blocks(page) if block.not_run is None and block.language in RUN]


@pytest.fixture
def model() -> Iterator[Endpoint]:
    """A model behind an endpoint: as the root of a run it looks once and answers, to anything else it says A."""
    server = Endpoint()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    server.reply = reply
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def reply(body: dict[str, Any]) -> str:
    if not any("```repl" in str(message["content"]) for message in body["messages"]):
        return "A"
    looked = len(conversation(body["messages"])) > 1
    return "```repl\nFINAL('A')\n```" if looked else "```repl\nprint(str(context)[:40])\n```"


@pytest.fixture
def world(tmp_path: Path, model: Endpoint) -> dict[str, str]:
    """The environment of a page, whose folder is a clone with files of ours: a model, a home of an agent."""
    for name in ("docs", "examples"):
        shutil.copytree(
            CHECKOUT / name, tmp_path / name, ignore=shutil.ignore_patterns("*.svg", "*.png", "__pycache__")
        )
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "monday.log").write_text(TEXT, "utf-8")
    (tmp_path / "notes.txt").write_text("We decided to retry once.\n" * 50, "utf-8")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text('[remote "origin"]\n\turl = git@github.com:acme/api.git\n')
    session = small(cwd=str(tmp_path))
    session.says("It is a race. We retry once.")
    transcript = tmp_path / "home" / ".claude" / "projects" / "-api" / f"{session.session_id}.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text(as_lines(session.records), "utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MONOCONTEXT", "OPENAI"))}
    environment |= {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}",
        "PYTHONPATH": str(CHECKOUT),
        "HOME": str(tmp_path / "home"),
        "OPENAI_API_KEY": "sk-of-the-test",
        "OPENAI_BASE_URL": model.url,
        "COLUMNS": "120",
    }
    return environment


@pytest.mark.parametrize("page", PAGES)
def test_each_block_is_code_that_runs_or_says_what_it_is(page: str) -> None:
    assert [b.line for b in blocks(page) if b.language not in RUN | set(PARSED) | {"text"} and not b.not_run] == []
    assert [b.line for b in blocks(page) if b.language == "text" and b.not_run] == [], "text needs no mark"
    for block in blocks(page):
        if block.language in PARSED:
            assert PARSED[block.language](block.code), f"{page}:{block.line}"
    fences = (CHECKOUT / page).read_text("utf-8").count("```")
    assert fences == 2 * len(blocks(page)), "a fence that is no block"


def cases() -> list[Any]:
    """Each command is a process, and each run of a model has a sandbox: pages with several are slow."""
    commands = {page: sum(b.code.count("\n") for b in run(page) if b.language == "sh") for page in PAGES if run(page)}
    return [pytest.param(page, marks=pytest.mark.slow if count > 1 else ()) for page, count in commands.items()]


@pytest.mark.slow
@pytest.mark.parametrize("page", cases())
def test_the_code_of_a_page_runs(page: str, tmp_path: Path, world: dict[str, str]) -> None:
    code = run(page)
    whole = "".join(block.code for block in code)
    (bucket,) = {name for name in BUCKETS if f"s3://{name}/" in whole} or {"bucket"}
    publish(TEXT, f"memory://{tmp_path.name}/prefix")
    with S3StandIn(f"memory://{tmp_path.name}", bucket=bucket) as server:
        done = subprocess.run(
            [sys.executable, str(Path(__file__).parent / "run_page.py"), page],
            input=json.dumps([(block.language, block.line, block.code) for block in code]),
            cwd=tmp_path,
            env=world | {"AWS_ENDPOINT_URL_S3": server.endpoint, "AWS_REGION": "us-east-1"},
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
