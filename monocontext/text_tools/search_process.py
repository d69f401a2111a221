"""Run a search in a separate process, which can be killed if a pattern backtracks for ever.

`re` keeps the GIL while it matches: in this process it would block all other threads, and could not be stopped. The
text stays here. The first message to the process has the arguments as JSON. After each part of the text, the process
sends `+` and the reply so far as JSON. Its last message is `=`, or `!` and an error.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from monocontext.engine.remote import ServedReader
from monocontext.errors import MonocontextError, ToolRefusal
from monocontext.shell.process import Child, Ended, Host
from monocontext.text.monocontext import Monocontext, served_text
from monocontext.text_tools.outputs import MatchedLine, Matches, Range, ToolReply
from monocontext.text_tools.replies import NOT_A_PATTERN, search_replies

END_SECONDS = 30.0  # after this time the process is killed; a search that does not backtrack has stopped by then
_OPERATORS = frozenset("\\.^$*+?{}[]|()")  # characters of patterns that may backtrack


def search(text: Monocontext, **arguments: Any) -> ToolReply[Matches]:
    """The last reply of `search_replies(text, **arguments)`, or the last one so far if the search is killed.

    A pattern with operators may backtrack, so it is searched in a process that can be killed. Raises `ToolRefusal` for
    an invalid pattern, or if there is no reply yet.
    """
    if arguments["fixed"] or _OPERATORS.isdisjoint(arguments["pattern"]):
        *_, last_reply = search_replies(text, **arguments)
        return last_reply
    server, child = text.serve(), Child(__name__, END_SECONDS)
    replies = [b""]  # the replies so far, as they arrive
    try:
        end = child.call(json.dumps(arguments).encode(), lambda _, request: server.answer(request), replies.append)
        if end[:1] == b"=":
            return _decode(replies[-1])
        raise ToolRefusal(end[1:].decode())
    except Ended:
        if not child.is_late:
            status = child.process.returncode
            raise ToolRefusal(
                f"the search process ended with exit status {status}: search a smaller range with start and stop"
            ) from None
        why = f"the search was stopped after {END_SECONDS:g} s: the pattern may backtrack for ever, as (a+)+ does"
        if not replies[-1]:
            raise ToolRefusal(f"{why}; simplify it, or search a smaller range with start and stop") from None
        last_reply = _decode(replies[-1])
        return ToolReply(f"{last_reply}\n[{why}]", replace(last_reply.data, note=f"{last_reply.data.note}; {why}"))
    finally:
        child.close()


def main() -> None:
    """Run the process: do the search that the first message describes, and send the replies."""
    host = Host()
    arguments = json.loads(host.receive())
    try:
        reader = ServedReader(partial(host.ask, 0))
        for reply in search_replies(served_text(reader), **arguments):
            reader.report()
            host.send(b"+" + json.dumps({"text": reply, "data": asdict(reply.data)}).encode())
        host.send(b"=")
    except (MonocontextError, OSError) as error:
        host.send(b"!" + str(error).encode("utf-8", "replace"))
    except NOT_A_PATTERN as error:
        host.send(f"!not a regular expression: {error}".encode("utf-8", "replace"))


def _decode(message: bytes) -> ToolReply[Matches]:
    reply = json.loads(message)
    data = reply["data"]
    following = Range(**data["next"]) if data["next"] else None
    return ToolReply(reply["text"], Matches([MatchedLine(**hit) for hit in data["hits"]], following, data["note"]))
