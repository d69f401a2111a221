"""A language model without an endpoint: it follows a script."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rlm.errors import ScriptExhausted
from rlm.models.lm import Message, Reply

Script = Iterable[str | BaseException] | Callable[[Any], str]


class ScriptedLM:
    """Replies from a list, in order, or from a function.

    A list item that is an exception is raised in its turn. The function gets the text of the message when there is one
    message, as in a sub-call, and the list of messages when there are several, as at the root.
    """

    def __init__(self, script: Script, *, model: str = "scripted") -> None:
        if isinstance(script, str):
            raise TypeError("a script must be a list of replies or a function, not one str")
        self._reply = script if callable(script) else None
        self._replies = [] if callable(script) else list(script)
        self._lock = threading.Lock()
        self.model = model
        """The name under which usage is counted."""
        self.calls: list[list[Message]] = []
        """The messages of each call so far, copied."""

    def complete(
        self, messages: Sequence[Message], *, model: str | None = None, on_delta: Callable[[str], object] | None = None
    ) -> Reply:
        """The next reply, handed to `on_delta` line by line. Tokens are estimated: four characters each.

        Raises ScriptExhausted when the list is at its end.
        """
        with self._lock:
            turn = len(self.calls)
            self.calls.append([dict(message) for message in messages])
        if self._reply is not None:
            text = self._reply(messages[0]["content"] if len(messages) == 1 else list(messages))
        elif turn >= len(self._replies):
            raise ScriptExhausted(f"the script of {len(self._replies)} replies has no reply number {turn + 1}")
        elif isinstance(reply := self._replies[turn], BaseException):
            raise reply
        else:
            text = reply
        if on_delta:
            for line in text.splitlines(keepends=True):
                on_delta(line)
        characters = sum([len(message["content"]) for message in messages])
        return Reply(text, (characters + 3) // 4, (len(text) + 3) // 4, model or self.model)
