"""The command `monocontext`: the one place of the package that reads and writes the terminal."""

from __future__ import annotations


def main() -> None:
    """Run the console script. The commands are imported here: `rlm` shares their options, and has its own."""
    from monocontext.cli.commands import main

    main()
