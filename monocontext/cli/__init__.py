"""The command `monocontext`: the only part of the package that reads and writes the terminal."""

from __future__ import annotations

from typing import NoReturn

from monocontext import __version__
from monocontext.cli.running import run_program


def main() -> NoReturn:
    """Run the console script. Each command imports its module when it is called."""
    run_program("monocontext", __version__)
