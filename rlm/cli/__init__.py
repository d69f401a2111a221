"""The command `rlm`, also `python -m rlm`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from monocontext.cli.help import CommandGroup


def main() -> NoReturn:
    """Run the console script. Each command imports its module when it is called."""
    from monocontext.cli.running import run_program
    from rlm import __version__

    run_program("rlm", __version__, _load)


def _load() -> CommandGroup:
    from rlm.cli.commands import app

    return app
