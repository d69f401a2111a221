"""Write the page of commands, while the site is built, from what their `--help` says."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import click

MARK = "<!-- commands -->"
APPS = {"monocontext": "monocontext.cli.commands", "rlm": "rlm.cli.commands"}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for each page."""
    if MARK in markdown:
        markdown = markdown.replace(MARK, "\n".join(map(_help, APPS)))
    return markdown


def _help(name: str) -> str:
    import click

    program = import_module(APPS[name]).app
    return "\n".join(_describe(click.Context(program, info_name=name), depth=1))


def _describe(context: click.Context, depth: int) -> Iterator[str]:
    """The help of a command, then that of its own commands."""
    command: Any = context.command
    yield f"{'#' * min(depth, 3)} `{context.command_path}`\n"
    yield f"{command.help or ''}\n"
    yield f"```text\n{command.get_usage(context)}\n```\n"
    for parameter in command.get_params(context):
        record = getattr(parameter, "record", None) or parameter.get_help_record(context)
        if record and parameter.name != "help":
            yield f"- `{record[0]}`: {record[1]}"
    yield ""
    for each in getattr(command, "list_commands", lambda _: [])(context):
        yield from _describe(type(context)(command.get_command(context, each), context, each), depth + 1)
