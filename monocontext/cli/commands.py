"""The commands of `monocontext`, put together."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from monocontext import __version__
from monocontext.cli import (
    citing,
    config,
    hooks,
    mcp,
    memory,
    passages,
    reading,
    searching,
    sessions,
    upkeep,
    volume,
    writing,
)
from monocontext.cli.help import add_help, command_group
from monocontext.cli.options import with_s3_options
from monocontext.cli.printing import fail
from monocontext.cli.verbosity import Quiet, Verbose
from monocontext.errors import MonocontextError

app = command_group("Texts that live in S3: put them there, look at them, check them.", is_program=True)


def _print_version(print_it: bool) -> None:
    if print_it:
        print(f"monocontext {__version__}")
        raise typer.Exit


@app.callback()
def before(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Take the options of the program itself."""


def _end_when_output_closes(command: Callable[..., None]) -> Callable[..., None]:
    """End a command with success when the reader of its output stops early, as `head` does; typer would exit with 1."""

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
    *(reading.info, reading.cat, reading.ls_documents, citing.cite, searching.grep, passages.search),
    *(passages.outline, reading.verify),
    *(upkeep.compact, upkeep.gc),
    *volume.on_objects,
)
for command in commands:
    app.command()(_end_when_output_closes(with_s3_options(command)))
for group in (memory, sessions, hooks, volume):
    for name, of_group in group.commands.items():
        group.app.command(name)(_end_when_output_closes(with_s3_options(of_group)))
    app.add_typer(group.app, name=group.__name__.rpartition(".")[2])
app.add_typer(config.app, name="config")
app.command()(with_s3_options(mcp.mcp))  # its stdout belongs to the protocol, which closes it
add_help(app)


def main() -> None:
    """Run the console script. An error that a user can repair is one line and exit 2; a bug keeps its traceback."""
    try:
        app()
    except (MonocontextError, OSError) as error:
        fail("monocontext", error)
        sys.exit(2)
