"""A shell over texts, from the side of the host: starts its process and answers its requests for text."""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from monocontext.engine.remote import ReaderServer
from monocontext.errors import MonocontextError, ToolRefusal, install_line
from monocontext.shell.process import Child, Ended
from monocontext.text.monocontext import Monocontext

COMMAND_SECONDS = 45.0
"""A command line may take this long."""
_MORE_SECONDS = 10.0
"""A process that does not end a command line by itself ends this much later; clients of MCP wait for 60 seconds."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a command line wrote, and its exit code. `note` says how to go on where output was cut, else it is empty."""

    stdout: str
    stderr: str
    exit_code: int
    note: str


class Shell:
    """A shell over texts. Command lines run one after another; `/tmp` lives on between them. Safe for many threads.

    `texts` has a function for each folder, such as `/logs`, that returns its text. It is called when the folder is
    first used, then for each command line: where it returns another text, the folder has the files of that.
    """

    def __init__(self, texts: Mapping[str, Callable[[], Monocontext]], *, seconds: float = COMMAND_SECONDS) -> None:
        if importlib.util.find_spec("bashkit") is None:
            raise MonocontextError(f"the shell is missing: {install_line('shell')}")
        self._folders, self._open, self._seconds = list(texts), list(texts.values()), seconds
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._opened: dict[int, tuple[Monocontext, ReaderServer]] = {}
        """The texts that the process has used."""

    def run(self, command: str, most_bytes: int) -> Output:
        """Run a command line; returns at most `most_bytes` of its output (the GETs of what it reads).

        Raises `ToolRefusal` if its process had to be ended.
        """
        with self._lock:
            changed = [index for index, (text, _) in self._opened.items() if self._open[index]() is not text]
            for index in changed:
                del self._opened[index]
            request = {
                "command": command, "folders": self._folders, "changed": changed, "seconds": self._seconds,
                "most_bytes": most_bytes,
            }  # fmt: skip
            seconds = self._seconds + _MORE_SECONDS
            child = self._child = self._child or Child("monocontext.shell.worker", seconds)
            try:
                return Output(**json.loads(child.call(json.dumps(request).encode(), self._answer)))
            except Ended:
                why = f"was stopped after {seconds:g} s" if child.is_late else "has died, perhaps for lack of memory"
                raise ToolRefusal(f"the shell {why}; it begins anew, and /tmp is empty") from None
            finally:
                if not child.close.alive:
                    self.close()

    def close(self) -> None:
        """End the process. Idempotent; the next `run` starts another."""
        if self._child is not None:
            self._child.close()
        self._child = None
        self._opened.clear()

    def _answer(self, index: int, request: bytes) -> bytes:
        if index not in self._opened:
            text = self._open[index]()
            self._opened[index] = text, text.serve()
        return self._opened[index][1].answer(request)
