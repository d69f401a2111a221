"""A model of DSPy that follows a script: the engine of a `dspy.LM`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dspy
from dspy.lm15 import Message, Request, Response, Usage

warnings.simplefilter("error", DeprecationWarning)  # what the next version drops
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "true"  # prices of this version, else they come from GitHub


class Engine:
    """Answers with what `reply` makes of the text of a request."""

    def __init__(self, reply: Callable[[str], str]) -> None:
        self.reply = reply

    def complete(self, request: Request) -> Response:
        system = [str(request.system)] if request.system else []
        said = self.reply("\n".join([*system, *(str(message.text) for message in request.messages)]))
        return Response(None, request.model, Message.assistant(said), "stop", Usage(10, 2))


class AsyncEngine(Engine):
    async def complete(self, request: Request) -> Response:  # type: ignore[override]
        return super().complete(request)


def model(reply: Callable[[str], str], name: str = "scripted", **options: Any) -> dspy.LM:
    return dspy.LM(name, engine=Engine(reply), async_engine=AsyncEngine(reply), cache=False, **options)


def step(code: str) -> str:
    """A reply of the root: one cell."""
    return f"[[ ## reasoning ## ]]\nlook\n\n[[ ## code ## ]]\n```python\n{code}\n```\n\n[[ ## completed ## ]]"


@contextmanager
def raises(kind: type[Exception], said: str = "") -> Iterator[list[Exception]]:
    """An error of this kind, which says this; what is given holds it afterwards."""
    raised: list[Exception] = []
    try:
        yield raised
    except kind as error:
        if said not in str(error):
            raise
        raised.append(error)
    else:
        raise AssertionError(f"no {kind.__name__}")
