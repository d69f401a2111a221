"""Write the page of commands, while the site is built, from what their `--help` says, and topics from `help TOPIC`."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

MARK = "<!-- commands -->"
TOPIC = re.compile(r"<!-- help: (\w+) -->")
APPS = {"monocontext": "monocontext.cli.commands", "rlm": "rlm.cli.commands"}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for each page."""
    if MARK in markdown:
        markdown = markdown.replace(MARK, "\n".join(map(_help, APPS)))
    return TOPIC.sub(_topic, markdown)


def _topic(found: re.Match[str]) -> str:
    from monocontext.cli.topics import TOPICS

    return TOPICS[found[1]]


def _help(name: str) -> str:
    import typer
    from typer.cli import get_docs_for_click

    command = typer.main.get_command(import_module(APPS[name]).app)
    context = typer.Context(command, info_name=name)
    return get_docs_for_click(obj=command, ctx=context, name=name)
