"""Define a model that answers with the replies of a recorded run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from rlm.errors import ScriptExhausted, TrajectoryError
from rlm.models.lm import Message, OnDelta, Reply, call_key
from rlm.trajectory.decoding import sub_calls
from rlm.trajectory.recording import Recording


class ReplayLM:
    """Answers with the replies of a trajectory, as root and for sub-calls, so that showing a run costs nothing.
    A prompt of several messages gets the next reply of the recorded root; a single message gets the recorded reply to
    it. A run with child runs cannot be replayed, since their roots send prompts of several messages too."""

    def __init__(self, trajectory: str | os.PathLike[str] | Iterable[dict[str, Any]]) -> None:
        """`trajectory`: a file, or the lines of one, as `Completion.trajectory` holds them. Raises TrajectoryError."""
        if isinstance(trajectory, (str, os.PathLike)):
            self._recording = Recording.load(trajectory)
        else:
            self._recording = Recording(list(trajectory))
        if any("iterations" in call for call in sub_calls(self._recording.iterations)):
            raise TrajectoryError("a run with child runs cannot be replayed: choose a run with max_depth=1")
        self.model = str(self._recording.metadata["root_model"])
        """The root model of the recorded run."""
        self._turns = count(1)  # the turns of the root that are still to be replayed

    def complete(self, messages: Sequence[Message], *, model: str | None = None, on_delta: OnDelta = None) -> Reply:
        """The recorded reply. Raises ScriptExhausted if there is none, LLMError if the recorded call failed."""
        if len(messages) > 1:
            turn = next(self._turns)
            reply = self._recording.root_reply(turn)
            missing = f"the trajectory holds no turn {turn}: ask the question that it records"
        else:
            names = self._recording.sub_models if model is None else (model,)
            replies = (self._recording.take_reply(call_key(name, messages)) for name in names)
            reply = next((reply for reply in replies if reply), None)
            missing = f"the trajectory holds no answer to the prompt {messages[0]['content'][:80]!r}"
        if reply is None:
            raise ScriptExhausted(missing)
        if on_delta:
            for line in reply.text.splitlines(keepends=True):
                on_delta(line)
        return reply if reply.model else replace(reply, model=self.model)  # rlms does not write it
