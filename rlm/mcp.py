"""`rlm mcp`: what `monocontext mcp` serves, and a tool that answers questions. An edge: it knows `monocontext`.

Annotations are real objects here, not strings: the SDK reads them from functions that it wraps.
"""

from collections.abc import Callable, Mapping
from typing import Any

from monocontext.errors import ToolRefusal
from monocontext.mcp import Served
from monocontext.mcp.replies import MAX_REPLY_BYTES
from rlm.errors import RLMError
from rlm.rlm import RLM

ALIAS = "chat_rlm_query"
"""What DeepRecurse's server calls it."""


def asking(served: Served, options: Mapping[str, Any]) -> dict[str, Callable[..., str]]:
    """The tools that ask a model, by name; `options` are those of `RLM`."""

    def ask(query: str, context: str = "") -> str:
        """Let a recursive language model answer a question about a text of any size; takes a while and costs tokens.

        It reads and searches the text by code of its own, and asks another model about parts of it.

        query: the question, complete in itself. context: the name of the text, one of context_list; may be left out
        where there is one only.
        """
        if not query.strip():
            raise ToolRefusal("the query is empty")
        text = served.context(context or served.the_only())
        try:
            with RLM(**options) as rlm:
                answer = rlm.completion(query, text).answer
        except RLMError as error:
            raise ToolRefusal(str(error)) from None
        return _fitting(answer)

    def chat_rlm_query(query: str, chat_file: str = "", thread_id: str = "") -> str:
        """The same as ask, by the name that it has elsewhere. query: the question. chat_file, thread_id: the text."""
        return ask(query, chat_file or thread_id)

    return {"ask": ask, ALIAS: chat_rlm_query}


def serve(
    contexts: list[str],
    sessions: str | None,
    memory: str | None,
    models: Mapping[str, Any],
    *,
    allow: list[str],
    store_options: dict[str, Any],
    **listening: Any,
) -> None:
    """What the command does: serve until the other side ends. `models`: options of `RLM`."""
    from monocontext.cli import mcp as command
    from monocontext.mcp.server import make_server

    def make() -> Any:
        return make_server(
            served,
            name="rlm",
            more=lambda _: asking(served, models),
            uploads=not listening["http"],
            host=listening["host"],
        )

    with command.serving(contexts, sessions, memory, allow, store_options) as served:
        command.serve(make, **listening)


def _fitting(answer: str) -> str:
    data = answer.encode()
    if len(data) <= MAX_REPLY_BYTES:
        return answer
    kept = data[: MAX_REPLY_BYTES - 200].decode(errors="ignore")
    return f"{kept}\n[cut: characters 0 to {len(kept)} of an answer of {len(answer)}; ask for the rest by itself]"
