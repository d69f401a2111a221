"""Use a text, or a list or dict of documents, as an input of `predict-rlm`.

The interpreter's Python has this package installed:

    from monocontext import Monocontext
    from monocontext.adapters import predict_rlm as lazy
    from predict_rlm import DirectPythonBackend, PredictRLM

    context = Monocontext.open("s3://bucket/prefix")
    skills, local = [lazy.skill(context)], DirectPythonBackend()
    rlm = PredictRLM("context: dict, question -> answer", skills=skills, interpreter=local)
    print(rlm(context=lazy.handle(context), question="Who wrote it?").answer)

Its evidence refuses unknown objects, and it sends inputs to the sandbox before each cell. So the input is a small
handle, from which code in the sandbox opens the text once. In a sandbox without this package or the network
(Pyodide, containers) take `tools(context)` as `Skill(tools=...)` instead: they run on the host, as coroutines.
"""

from __future__ import annotations

import base64
import functools
import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from monocontext.adapters import description

if TYPE_CHECKING:
    from monocontext.adapters.description import Context
    from monocontext.text.monocontext import Monocontext

MOST_CHARACTERS = 1 << 20
"""The most characters in one answer of `ctx_read`."""


def handle(context: Context) -> dict[str, Any]:
    """The value of an input field: where the text lies, without secrets (no GET). Raises `NotPicklable`."""
    return {
        "what": f"a context in storage; open it with {__name__}.open_context",
        "handle": base64.b64encode(pickle.dumps(context)).decode("ascii"),
    }


def open_context(handle: dict[str, Any]) -> Any:
    """In the sandbox: open what a handle stands for; the same object each time (1 GET for the first call)."""
    return _open_once(handle["handle"])


@functools.cache
def _open_once(handle: str) -> Any:
    return pickle.loads(base64.b64decode(handle))


def skill(context: Context, field: str = "context") -> Any:
    """A `Skill` that opens the text, or its documents, of an input field in the sandbox (no GET; 1 for documents)."""
    from predict_rlm import Skill

    return Skill(
        name="lazy-text",
        instructions=(
            f"The input `{field}` is a handle. Begin with\n"
            f"    from {__name__} import open_context\n"
            f"    text = open_context({field})\n"
            f"`text` is {description.describe(context, 'text', 're takes slices of it.')} Do not read it whole."
        ),
    )


def tools(context: Monocontext) -> dict[str, Callable[..., Any]]:
    """`ctx_read`, `ctx_find` and `ctx_grep` for `Skill(tools=...)`: `await ctx_read(start=0, stop=100)` (no GET)."""

    async def ctx_read(start: int, stop: int) -> str:
        """Characters [start, stop) of the text, at most a million at once."""
        if stop - start > MOST_CHARACTERS:
            raise ValueError(f"a slice has at most {MOST_CHARACTERS:,} characters here, not {stop - start:,}")
        return str(await _run_in_thread(lambda: context[start:stop]))

    async def ctx_find(sub: str, start: int = 0) -> int:
        """Where `sub` first begins from `start` on, or -1."""
        return int(await _run_in_thread(lambda: context.find(sub, start)))

    async def ctx_grep(pattern: str, max_hits: int = 20) -> list[list[Any]]:
        """The first lines that a regular expression matches: [offset, line number, line]."""
        hits = await _run_in_thread(lambda: list(context.grep(pattern, max_hits=max_hits)))
        return [[hit.offset, hit.line_number, hit.line] for hit in hits]

    return {tool.__name__: tool for tool in (ctx_read, ctx_find, ctx_grep)}


async def _run_in_thread(work: Callable[[], Any]) -> Any:
    """Run a read in a thread, so that the host's event loop goes on."""
    import asyncio

    return await asyncio.to_thread(work)
