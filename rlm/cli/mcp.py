"""Serve the tools of `monocontext mcp`, and a tool that answers questions, for `rlm mcp`.

The SDK reads annotations as objects, so this module does not import `annotations`.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from monocontext.errors import ToolRefusal
from monocontext.mcp.catalog import Served
from monocontext.mcp.outputs import Answer
from monocontext.options import StoreOptions
from monocontext.text_tools.outputs import Reply
from monocontext.text_tools.replies import MAX_REPLY_BYTES
from rlm import __version__
from rlm.errors import RLMError
from rlm.rlm import RLM
from rlm.trajectory.display import why_unfinished
from rlm.trajectory.source import format_sources

ALIAS = "chat_rlm_query"
"""The name of the same tool in the server of DeepRecurse."""


AskTool = Callable[..., Coroutine[Any, Any, Reply[Answer]]]


def make_ask_tools(served: Served, options: Mapping[str, Any]) -> dict[str, AskTool]:
    """Make the tools that call a model, by name. `options` are keywords of `RLM`."""

    async def ask(query: str, context: str = "") -> Reply[Answer]:
        """Let a recursive language model answer a question about a text of any size; takes a while and costs tokens.

        It reads and searches the text by code of its own, and asks another model about parts of it. The sources of the
        answer follow it.

        query: the question, complete in itself. context: the name of the text, one of context_list; may be left out
        if there is only one.
        """
        if not query.strip():
            raise ToolRefusal("the query is empty")
        text = await asyncio.to_thread(lambda: served.context(context or served.only_name()))
        try:
            with RLM(**options) as rlm:
                completion = await rlm.acompletion(query, text)
        except RLMError as error:
            raise ToolRefusal(str(error)) from None
        answer = completion.answer
        unfinished = None if completion.finished else why_unfinished(completion)
        if unfinished and not answer:
            raise ToolRefusal(unfinished)
        text_of_answer = f"{answer}\n\n[{unfinished}]" if unfinished else answer
        sources = f"\n\n{format_sources(completion.sources)}" if completion.sources else ""
        fields = Answer(_cut_to_reply(answer), [source.reference for source in completion.sources], unfinished)
        return Reply(_cut_to_reply(text_of_answer + sources), fields)

    async def chat_rlm_query(query: str, chat_file: str = "", thread_id: str = "") -> Reply[Answer]:
        """The same as ask, by the name that it has elsewhere. query: the question. chat_file, thread_id: the text."""
        return await ask(query, chat_file or thread_id)

    return {"ask": ask, ALIAS: chat_rlm_query}


def serve(
    contexts: list[str],
    sessions: str | None,
    memory: str | None,
    models: Mapping[str, Any],
    *,
    allow: list[str],
    store_options: StoreOptions,
    **listening: Any,
) -> None:
    """Serve until the client leaves. `models` are keywords of `RLM`."""
    from monocontext.cli import mcp as command

    with command.serving(contexts, sessions, memory, allow, store_options) as served:
        more = make_ask_tools(served, models)
        command.serve(served, name="rlm", version=__version__, more=more, **listening)


def _cut_to_reply(answer: str) -> str:
    data = answer.encode()
    if len(data) <= MAX_REPLY_BYTES:
        return answer
    kept = data[: MAX_REPLY_BYTES - 200].decode(errors="ignore")
    return f"{kept}\n[cut: characters 0 to {len(kept)} of an answer of {len(answer)}; request the rest by itself]"
