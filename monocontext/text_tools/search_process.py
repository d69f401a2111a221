"""Run a search in a separate process, which can be killed when a pattern backtracks for ever.

`re` keeps the GIL while it matches. In the process of the server it would block all other calls, and could not be
stopped. The text stays in the server, and the search requests frames through the pipes of its process.

The first byte of a message from the search is its kind: `?` requests frames, `+` is the reply so far, `=` ends the
search, and `!` is an error.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monocontext.errors import ToolRefusal
from monocontext.shell.messages import read_message, write_message
from monocontext.text_tools.outputs import Match, Matches, Range, Reply
from monocontext.text_tools.replies import NOT_A_PATTERN, search_replies, search_reply

if TYPE_CHECKING:
    from monocontext.text.monocontext import Monocontext

END_SECONDS = 30.0
"""The process is killed after this time. A search that does not backtrack stops itself after `SEARCH_SECONDS`."""
_OPERATORS = frozenset("\\.^$*+?{}[]|()")
_ORPHAN_SECONDS = 10.0
"""The process exits by itself this long after `END_SECONDS`, if its server has died."""
_running: set[subprocess.Popen[bytes]] = set()
"""The processes of the searches that are running."""


def search(text: Monocontext, **arguments: Any) -> Reply[Matches]:
    """Return `search_reply(text, **arguments)`. Raises `ToolRefusal` if the search takes too long.

    A pattern with operators may backtrack, so it runs in a process that can be killed.
    """
    if arguments["fixed"] or _OPERATORS.isdisjoint(arguments["pattern"]):
        return search_reply(text, **arguments)
    home = str(Path(__file__).resolve().parents[2])
    code = f"import sys; sys.path[:] = {[home, *sys.path]!r}; from {__name__} import main; main({END_SECONDS})"
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        killer = threading.Timer(END_SECONDS, process.kill)
        killer.daemon = True
        killer.start()
        _running.add(process)
        try:
            return _relay_frames(process, killer, text, arguments)
        finally:
            killer.cancel()
            process.kill()
            _running.discard(process)


def end_all() -> None:
    """Kill the running searches, before the server exits."""
    for process in tuple(_running):
        process.kill()


def _relay_frames(
    process: subprocess.Popen[bytes], killer: threading.Timer, text: Monocontext, arguments: dict[str, Any]
) -> Reply[Matches]:
    """Answer a search's requests for frames, and return its last reply."""
    assert process.stdin
    assert process.stdout
    server = text.serve()
    last_reply = b""
    try:
        write_message(process.stdin, json.dumps(arguments).encode())
        while message := read_message(process.stdout):
            kind, body = message[:1], message[1:]
            if kind == b"?":
                write_message(process.stdin, server.answer(body))
            elif kind == b"+":
                last_reply = body
            elif kind == b"=":
                return _decode(last_reply)
            else:
                raise ToolRefusal(body.decode())
    except BrokenPipeError:
        pass  # the process was killed or died: see below
    finally:
        server.close()
    if not killer.finished.is_set():
        raise ToolRefusal(f"the search process died with exit status {process.wait()}")
    why = f"the search was stopped after {END_SECONDS:g} s: the pattern may backtrack for ever, as (a+)+ does"
    if last_reply:
        result = _decode(last_reply)
        return Reply(f"{result}\n[{why}]", replace(result.data, note=f"{result.data.note}; {why}"))
    raise ToolRefusal(f"{why}; write a simpler pattern, or search a smaller range with start and stop")


def main(seconds: float) -> None:
    """The main function of the process: run the search that the first message on stdin describes."""
    from monocontext.engine.remote import ServedReader
    from monocontext.errors import MonocontextError
    from monocontext.text.monocontext import served_text

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    with open(os.devnull, "w") as nowhere:
        faulthandler.dump_traceback_later(seconds + _ORPHAN_SECONDS, exit=True, file=nowhere)
        inward, outward = sys.stdin.buffer, sys.stdout.buffer
        lock = threading.Lock()

        def ask(request: bytes) -> bytes:
            with lock:
                write_message(outward, b"?" + request)
                return read_message(inward)

        arguments = json.loads(read_message(inward))
        try:
            reader = ServedReader(ask)
            text = served_text(reader)
            for reply in search_replies(text, **arguments):
                reader.report()
                write_message(outward, b"+" + json.dumps({"text": reply, "data": asdict(reply.data)}).encode())
            write_message(outward, b"=")
        except MonocontextError as error:
            write_message(outward, b"!" + str(error).encode("utf-8", "replace"))
        except NOT_A_PATTERN as error:
            write_message(outward, f"!not a regular expression: {error}".encode("utf-8", "replace"))


def _decode(message: bytes) -> Reply[Matches]:
    reply = json.loads(message)
    data = reply["data"]
    following = Range(**data["next"]) if data["next"] else None
    return Reply(reply["text"], Matches([Match(**hit) for hit in data["hits"]], following, data["note"]))
