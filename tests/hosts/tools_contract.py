"""Each agent framework, in its own environment, finds a secret in 4 GiB with the tools by a scripted model."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from contract import ANSWER, QUESTION, SHELL_QUESTIONS, Seen, Served, lines_for, served, shell_text, tell

import monocontext
from monocontext.testing import S3StandIn

_tools = monocontext.tools


def next_call(results: list[str]) -> tuple[str, dict[str, Any]] | str:
    """The model's reply to the results of its calls so far: a call of a tool, or the answer."""
    if monocontext.tools is not _tools:
        assert results == [answer for _, answer in SHELL_QUESTIONS[: len(results)]], results
        if len(results) == len(SHELL_QUESTIONS):
            return results[0]
        return "bash", {"command": SHELL_QUESTIONS[len(results)][0]}
    if not results:
        return "describe", {}
    if len(results) == 1:
        assert json.loads(results[0])["characters"] == 4 << 30, results[0]
        return "grep", {"pattern": r"password is \S+", "max_hits": 1}
    if len(results) == 2:
        offset = int(results[1].partition(":")[0])
        return "read", {"start": offset, "stop": offset + 200}
    return re.findall(r"password is (\S+)", results[2])[0]


def check_described(shown: dict[str, tuple[str, set[str]]]) -> None:
    """Compare what a framework shows the model, description and parameters by name, with the functions."""
    with served() as text:
        functions = monocontext.tools(text.context)
    assert set(shown) == {tool.__name__ for tool in functions}
    for tool in functions:
        description, parameters = shown[tool.__name__]
        assert (inspect.getdoc(tool) or "").partition("\n")[0] in description, (tool.__name__, description)
        assert parameters == set(inspect.signature(tool).parameters), (tool.__name__, parameters)


def measure(host: str, run: Callable[[dict[str, Any], str], str]) -> None:
    """Run the lines of docs/hosts.md over the text, and tell what was read. `run` takes the names that the lines define
    and the question, and returns the answer."""
    with served() as text:
        seen = Seen(host)
        names = lines_for(host, text.context)
        seen.before = text.sent()
        seen.answer = run(names, QUESTION)
        seen.read, seen.requests = text.sent(), text.server.requests
    with S3StandIn(shell_text()) as server:
        monocontext.tools = partial(_tools, shell=True)
        item = Served(server)
        with item.context:
            assert run(lines_for(host, item.context), QUESTION) == ANSWER
            assert item.context.stats.bytes_fetched < len(item.context) // 100
            print(f"bash: {item.context.stats.bytes_fetched:,} of {len(item.context):,} bytes")
    tell(seen)
