"""The command `rlm`, also `python -m rlm`."""

from __future__ import annotations


def main() -> None:
    """Run the console script. The commands are imported here: a demo or a test takes one of them alone."""
    from rlm.cli.commands import main

    main()
