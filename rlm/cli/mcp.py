"""The command `rlm mcp`: serve the tools of `monocontext mcp`, and one that answers questions.

The SDK reads annotations at run time, so this module does not import `annotations` from `__future__`.
"""

import asyncio
import inspect
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from monocontext.cli import mcp as command
from monocontext.cli.options import S3, Allow
from monocontext.cli.parameters import Option
from monocontext.cli.printing import print_remark
from monocontext.errors import NotFound, ToolRefusal
from monocontext.mcp.catalog import Served
from monocontext.mcp.progress import tell
from monocontext.mcp.tools import Answer
from monocontext.text_tools.outputs import ToolReply
from monocontext.text_tools.replies import MAX_REPLY_BYTES
from rlm import __version__
from rlm.calls.budget import Budget
from rlm.cli.context_argument import LOCAL_SESSIONS, UsageError, open_argument
from rlm.cli.options import Limits, ModelOptions, Trajectory, describe_rights, one_line_errors, run_options
from rlm.context.excerpt import make_printable
from rlm.errors import RLMError
from rlm.rlm import RLM
from rlm.trajectory.completion import Completion
from rlm.trajectory.display import why_unfinished
from rlm.trajectory.source import format_sources

ALIAS = "chat_rlm_query"  # the name of the tool in DeepRecurse's server
_FOLDER_HELP = (
    "context may also be the path of a file or folder below the working directory (all of it by default), or "
    "`sessions`: those of coding agents on this machine."
)

AskTool = Callable[..., Coroutine[Any, Any, ToolReply[Answer]]]


def make_ask_tools(served: Served, options: Mapping[str, Any], folder: Path | None = None) -> dict[str, AskTool]:
    """The tools that call a model, by name. `options`: keywords of `RLM`. With `folder` they also answer about paths in
    it, and about the sessions of this machine."""

    async def ask(query: str, context: str = "", max_dollars: float | None = None) -> ToolReply[Answer]:
        """Let a recursive language model answer a question about a text of any size; takes a while and costs tokens.

        It reads and searches the text with its own code, and asks another model about parts of it. The sources of the
        answer follow it.

        query: the question, complete in itself. context: the name of the text, one of context_list; may be left out
        if there is only one. max_dollars: the most that it may cost, if below the server's limit.
        """
        if not query.strip():
            raise ToolRefusal("the query is empty: ask a question")
        with ExitStack() as stack:
            text = await asyncio.to_thread(stack.enter_context, _open_text(served, folder, context))
            try:
                limited = _limit_cost(options, max_dollars)
                with RLM(
                    **limited, on_step=lambda step: tell(f"turn {step.iteration} took {step.seconds:.0f} s")
                ) as rlm:
                    completion = await rlm.acompletion(query, text)
            except RLMError as error:
                raise ToolRefusal(str(error)) from None
        return _reply_of(completion)

    async def chat_rlm_query(query: str, chat_file: str = "", thread_id: str = "") -> ToolReply[Answer]:
        """The same as ask, by the name that it has elsewhere. query: the question. chat_file, thread_id: the text."""
        return await ask(query, chat_file or thread_id)

    if folder is not None:
        ask.__doc__ = f"{inspect.getdoc(ask)} {_FOLDER_HELP}"
    return {"ask": ask, ALIAS: chat_rlm_query} if served.has_texts else {"ask": ask}


def _limit_cost(options: Mapping[str, Any], max_dollars: float | None) -> Mapping[str, Any]:
    """The keywords of `RLM`, with `max_dollars` as the limit of the cost if that is lower than the server's."""
    if max_dollars is None:
        return options
    budget = options.get("budget") or Budget()
    dollars = max_dollars if budget.dollars is None else min(max_dollars, budget.dollars)
    return {**options, "budget": replace(budget, dollars=dollars)}


def _reply_of(completion: Completion) -> ToolReply[Answer]:
    """A reply with the answer and its sources, as text and as fields. Raises ToolRefusal if there is no answer."""
    answer = completion.answer
    unfinished = None if completion.finished else why_unfinished(completion)
    if unfinished and not answer:
        raise ToolRefusal(unfinished)
    sources = format_sources(completion.sources) if completion.sources else ""
    text = "\n\n".join(filter(None, (answer, unfinished and f"[{unfinished}]", sources)))
    fields = Answer(_cut_to_reply(answer), _cut_to_reply(sources).splitlines()[1:], unfinished, completion.cost)
    return ToolReply(_cut_to_reply(text), fields)


@contextmanager
def _open_text(served: Served, folder: Path | None, name: str) -> Iterator[Any]:
    """Open the text of this name on the server. With a `folder`, the name may also be a path in it that is not hidden,
    or `sessions` for those of this machine. Raises NotFound."""
    if folder is None or (name and served.has_name(name)):
        yield served.context(name or served.only_name())
        return
    path, root = (folder / name).resolve(), folder.resolve()
    if name != "sessions":
        is_inside = path.is_relative_to(root) and os.path.exists(path)
        if not is_inside or any(part.startswith(".") for part in path.relative_to(root).parts):
            raise NotFound(f"no text {name!r}: name a file or folder in {root} that is not hidden")
    with open_argument(LOCAL_SESSIONS if name == "sessions" else str(path)) as text:
        yield text


@one_line_errors()
def mcp(
    listen: command.ListenOptions, model_options: ModelOptions, limits: Limits, s3: S3,
    contexts: command.Contexts = None, sessions: command.SessionsUrl = None, memory: command.MemoryUrl = None,
    folder: Annotated[str | None, Option(metavar="DIR", help="Also answer about files in DIR, and about this machine's "
                                                             "`sessions`.")] = None,
    trajectory: Trajectory = None, allow: Allow = None,
) -> None:  # fmt: skip
    """Serve texts and answers over the Model Context Protocol (MCP). Limits apply to each question."""
    print_remark(describe_rights(limits["runner"]))
    if folder is not None and listen["http"]:
        raise UsageError("--folder opens files of this machine, so it cannot be served over HTTP: leave out --http")
    options = run_options(model_options, limits) | {"trajectory": trajectory}
    with ExitStack() as stack:
        served = Served()
        if folder is None or contexts or sessions or memory:
            served = stack.enter_context(
                command.serving(contexts or [], s3, sessions=sessions, memory=memory, allow=allow or [])
            )
        ask_tools = make_ask_tools(served, options, None if folder is None else Path(folder))
        command.serve(served, name="rlm", version=__version__, more_tools=ask_tools, **listen)


def _cut_to_reply(answer: str) -> str:
    """`answer` with lone surrogates escaped, cut to the size of a tool's reply."""
    answer = make_printable(answer, terminal=False)
    data = answer.encode()
    if len(data) <= MAX_REPLY_BYTES:
        return answer
    head = data[: MAX_REPLY_BYTES - 200].decode(errors="ignore")
    return f"{head}\n[cut: characters 0 to {len(head)} of {len(answer)}; ask for the rest in another question]"
