"""The command `rlm`, also `python -m rlm`."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the console script. Each command imports its module when it is called."""
    from monocontext.cli.running import run_program

    try:
        from rlm import __version__
    except ImportError:  # another distribution, such as rlms, has put its own package `rlm` before ours
        sys.exit(
            "rlm: the module `rlm` of this environment is another package's (rlms?): `pip uninstall` that, "
            "or install monocontext-rlm into an environment of its own"
        )
    run_program("rlm", __version__)
