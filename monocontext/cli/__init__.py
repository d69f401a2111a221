"""The command `monocontext`. The one place of the package that looks at the terminal."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from monocontext import __version__
from monocontext.cli import hooks, mcp, memory, reading, searching, sessions, upkeep, volume, writing
from monocontext.errors import MonocontextError

app = typer.Typer(
    help="Texts that live in S3: put them there, look at them, check them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"monocontext {__version__}")
        raise typer.Exit


@app.callback()
def before(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """What every command takes."""


def _until_closed(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command end well when who reads its output has seen enough, as `head` does; typer would exit with 1."""

    @functools.wraps(command)
    def run(*args: object, **options: object) -> None:
        try:
            command(*args, **options)
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    return run


commands = (
    *(writing.upload, writing.append, writing.index),
    *(reading.info, reading.cat, searching.grep, reading.verify),
    *(upkeep.compact, upkeep.gc),
    *volume.commands,
)
for command in commands:
    app.command()(_until_closed(command))
for group in (memory, sessions, hooks):
    for name, of_group in group.commands.items():
        group.app.command(name)(_until_closed(of_group))
    app.add_typer(group.app, name=group.__name__.rpartition(".")[2])
app.command()(mcp.mcp)  # its stdout is the protocol's, which closes it


def main() -> None:
    """The console script. What a user can mend is one line and exit 2; a bug keeps its traceback."""
    try:
        app()
    except (MonocontextError, OSError) as error:
        print(f"monocontext: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
