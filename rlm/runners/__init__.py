"""Run the model's code: check and make a runner by its name."""

from rlm.runners.registry import RUNNERS, check_runner, make_runner

__all__ = ["RUNNERS", "check_runner", "make_runner"]
