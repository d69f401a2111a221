"""Our confined worker as the interpreter of `dspy.RLM` (3.4). `monocontext.dspy` is the public path."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any


def interpreter(context: object, **options: Any) -> Any:
    """A factory for `dspy.RLM(..., interpreter_factory=...)`, whose code reads lazy texts as `str` (no GET).

    - `context`: a lazy text, list or dict, or a `dict` of them by the names of input fields; one alone is the field
      `context`
    - `options`: `runner` (`confined`, `subprocess`, `wasm`, `docker`), `timeout` (seconds of one step, 600), and those
      of the runner

    The factory's `inputs` are the texts as inputs of the program: `program(**factory.inputs, question=...)`. Only what
    code looks at is fetched, by this process, which keeps keys and cache. `ModuleNotFoundError` without the package
    `monocontext-rlm`, whose worker runs the code.
    """
    for entry in entry_points(group="monocontext.dspy", name="interpreter"):
        return entry.load()(context, **options)
    raise ModuleNotFoundError("monocontext.dspy.interpreter needs monocontext-rlm, whose worker runs the code")
