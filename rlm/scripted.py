"""Language models that ask nobody: one follows a script, one repeats what a trajectory holds."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlm.errors import ScriptExhausted
from rlm.lm import Message, Reply
from rlm.recording import Recording
from rlm.sub_cache import call_key

Script = Iterable[str | BaseException] | Callable[[Any], str]


class ScriptedLM:
    """Replies from a list, in order, or from a function.

    A list item that is an exception is raised in its turn. The function gets the text of the message when there is one
    message, as in a sub-call, and the list of messages when there are several, as at the root.
    """

    def __init__(self, script: Script, *, model: str = "scripted") -> None:
        if isinstance(script, str):
            raise TypeError("a script is a list of replies or a function, not one str")
        self._reply = script if callable(script) else None
        self._replies = [] if callable(script) else list(script)
        self._lock = threading.Lock()
        self.model = model
        """The name under which usage is counted."""
        self.calls: list[list[Message]] = []
        """The messages of each call so far, copied."""

    def complete(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        on_delta: Callable[[str], object] | None = None,
    ) -> Reply:
        """The next reply, handed to `on_delta` line by line. Tokens are estimated: four characters each.

        Raises ScriptExhausted when the list is at its end.
        """
        with self._lock:
            turn = len(self.calls)
            self.calls.append([dict(message) for message in messages])
        text = self._next(turn, messages)
        if on_delta:
            for line in text.splitlines(keepends=True):
                on_delta(line)
        asked = sum(len(message["content"]) for message in messages)
        return Reply(text, (asked + 3) // 4, (len(text) + 3) // 4, model or self.model)

    def _next(self, turn: int, messages: Sequence[Message]) -> str:
        if self._reply is not None:
            return self._reply(messages[0]["content"] if len(messages) == 1 else list(messages))
        if turn >= len(self._replies):
            raise ScriptExhausted(f"the script of {len(self._replies)} replies was asked for reply number {turn + 1}")
        reply = self._replies[turn]
        if isinstance(reply, BaseException):
            raise reply
        return reply


class ReplayLM:
    """Gives the replies of a trajectory again, as root and as model of the sub-calls: a run to look at, for nothing.

    A prompt of several messages gets the next reply of the recorded root; a single message gets what was answered to
    it. What was not recorded raises ScriptExhausted.
    """

    def __init__(self, trajectory: str | os.PathLike[str] | Iterable[dict[str, Any]]) -> None:
        """`trajectory`: a file, or the lines of one, as `Completion.trajectory` holds them. Raises TrajectoryError."""
        if isinstance(trajectory, (str, Path, os.PathLike)):
            self._recording, _ = Recording.load(trajectory)
        else:
            self._recording = Recording(list(trajectory))
        self.model = str(self._recording.metadata["root_model"])
        """The root model of the recorded run."""
        self._lock = threading.Lock()
        self._turn = 0

    def complete(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        on_delta: Callable[[str], object] | None = None,
    ) -> Reply:
        """What was replied. Raises ScriptExhausted where nothing was, LLMError where the recorded call had failed."""
        if len(messages) > 1:
            with self._lock:
                self._turn += 1
                turn = self._turn
            reply = self._recording.take_turn(turn)
            missing = f"the trajectory holds no turn {turn}"
        else:
            names = self._recording.sub_models if model is None else (model,)
            found = (self._recording.take(call_key(name, messages)) for name in names)
            reply = next((reply for reply in found if reply), None)
            missing = f"the trajectory holds no answer to the prompt {messages[0]['content'][:80]!r}"
        if reply is None:
            raise ScriptExhausted(missing)
        if on_delta:
            for line in reply.text.splitlines(keepends=True):
                on_delta(line)
        return reply if reply.model else replace(reply, model=self.model)  # rlms does not write it
