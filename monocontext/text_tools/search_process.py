"""Run a search in a separate process, which can be ended when a pattern backtracks for ever.

`re` holds the GIL while it matches: in the server's own process it would block all other calls, and nothing could end
it. The text stays in the server: the search requests its frames over the pipes of the process.

Messages in both directions are their length (4 bytes, big endian) and bytes. Those of the search begin with a letter:
`?` requests frames, `+` holds the reply so far, `=` ends it, `!` says why there is none.
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
from typing import IO, TYPE_CHECKING, Any, cast

from monocontext.errors import ToolRefusal
from monocontext.text_tools.outputs import Match, Matches, Range, Reply

if TYPE_CHECKING:
    from monocontext.engine.remote.reader import ServedReader
    from monocontext.text.monocontext import Monocontext

END_SECONDS = 30.0
"""A search ends by itself after `SEARCH_SECONDS`, or is ended after this time."""
_PLAIN = frozenset("\\.^$*+?{}[]|()")
_ORPHAN_SECONDS = 10.0
"""Beyond `END_SECONDS`: a process that still runs then has lost its server, and ends."""
_running: set[subprocess.Popen[bytes]] = set()


def may_backtrack(pattern: str, *, fixed: bool) -> bool:
    """Whether a pattern is more than literal text."""
    return not fixed and not _PLAIN.isdisjoint(pattern)


def search(text: Monocontext, **arguments: Any) -> Reply[Matches]:
    """`search_reply(text, **arguments)`, from a process that is ended when it takes too long. Raises `ToolRefusal`."""
    home = str(Path(__file__).resolve().parents[2])
    code = f"import sys; sys.path[:] = {[home, *sys.path]!r}; from {__name__} import main; main({END_SECONDS})"
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        clock = threading.Timer(END_SECONDS, process.kill)
        clock.daemon = True
        clock.start()
        _running.add(process)
        try:
            return _relay_frames(process, clock, text, arguments)
        finally:
            clock.cancel()
            process.kill()
            _running.discard(process)


def end_all() -> None:
    """End the searches that run, before the server ends."""
    for process in tuple(_running):
        process.kill()


def _relay_frames(
    process: subprocess.Popen[bytes], clock: threading.Timer, text: Monocontext, arguments: dict[str, Any]
) -> Reply[Matches]:
    assert process.stdin
    assert process.stdout
    server = text.serve()
    last_reply = b""
    try:
        _write(process.stdin, json.dumps(arguments).encode())
        while message := _read(process.stdout):
            kind, body = message[:1], message[1:]
            if kind == b"?":
                _write(process.stdin, server.answer(body))
            elif kind == b"+":
                last_reply = body
            elif kind == b"=":
                return _decode(last_reply)
            else:
                raise ToolRefusal(body.decode())
    except BrokenPipeError:
        pass  # it is ended as below
    finally:
        server.close()
    if not clock.finished.is_set():
        raise ToolRefusal(f"the search ended by itself, with exit status {process.wait()}")
    why = f"the search was ended after {END_SECONDS:g} s: the pattern may backtrack for ever, as (a+)+ does"
    if last_reply:
        found = _decode(last_reply)
        return Reply(f"{found}\n[{why}]", replace(found.data, note=f"{found.data.note}; {why}"))
    raise ToolRefusal(f"{why}; write a simpler one, or search less at once by start and stop")


def main(seconds: float) -> None:
    """Run the search that stdin describes: the main function of the process."""
    from monocontext.errors import MonocontextError
    from monocontext.text.monocontext import served_text
    from monocontext.text_tools.replies import NOT_A_PATTERN, search_replies

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is the server's
    with open(os.devnull, "w") as nowhere:
        faulthandler.dump_traceback_later(seconds + _ORPHAN_SECONDS, exit=True, file=nowhere)
        inward, outward = sys.stdin.buffer, sys.stdout.buffer
        lock = threading.Lock()

        def ask(request: bytes) -> bytes:
            with lock:
                _write(outward, b"?" + request)
                return _read(inward)

        arguments = json.loads(_read(inward))
        try:
            text = served_text(ask)
            for reply in search_replies(text, **arguments):
                cast("ServedReader", text._reader).ran({})  # the ranges that it read, for the server's log of reads
                _write(outward, b"+" + json.dumps({"text": reply, "data": asdict(reply.data)}).encode())
            _write(outward, b"=")
        except MonocontextError as error:
            _write(outward, b"!" + str(error).encode("utf-8", "replace"))
        except NOT_A_PATTERN as error:
            _write(outward, f"!not a regular expression: {error}".encode("utf-8", "replace"))


def _decode(message: bytes) -> Reply[Matches]:
    told = json.loads(message)
    data = told["data"]
    following = Range(**data["next"]) if data["next"] else None
    return Reply(told["text"], Matches([Match(**hit) for hit in data["hits"]], following, data["note"]))


def _write(file: IO[bytes], message: bytes) -> None:
    file.write(len(message).to_bytes(4, "big") + message)
    file.flush()


def _read(file: IO[bytes]) -> bytes:
    """A message; empty when the other side is gone."""
    size = file.read(4)
    return file.read(int.from_bytes(size, "big")) if len(size) == 4 else b""
