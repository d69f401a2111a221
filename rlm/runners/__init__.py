"""Run the code that a model writes, in a sandbox or in this process."""

from rlm.runners.registry import RUNNERS, check_runner, make_runner

__all__ = ["RUNNERS", "check_runner", "make_runner"]
