"""The command `monocontext`. The one place of the package that looks at the terminal."""

from __future__ import annotations

import os
import sys

import typer

from monocontext.cli import reading, writing
from monocontext.errors import MonocontextError

app = typer.Typer(
    help="Texts that live in S3: put them there, look at them, check them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (writing.upload, writing.append, writing.index, reading.info, reading.cat, reading.verify):
    app.command()(command)


def main() -> None:
    """The console script. What a user can mend is one line and exit 2; a bug keeps its traceback."""
    try:
        app()
    except BrokenPipeError:  # the reader of our output has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except (MonocontextError, OSError) as error:
        print(f"monocontext: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
