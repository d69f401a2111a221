"""Offer the classes of rlm-minimal: `RLM_REPL`, which takes the context first and answers with a str, and `REPLEnv`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rlm.calls.subcalls import SubCalls
from rlm.calls.usage import Usage
from rlm.errors import takes
from rlm.models.lm import LM, Message, check_whole
from rlm.models.registry import choose
from rlm.options import RLMOptions
from rlm.rlm import READ_ALL, RLM
from rlm.runners.local import LocalRunner

_OUTPUT_CHARACTERS = 10_000_000
"""In effect no limit on the output of a cell."""


@dataclass
class _Names:
    """Names that a subclass adds for the code of a run."""

    globals: dict[str, Any] = field(default_factory=dict)
    locals: dict[str, Any] = field(default_factory=dict)


class RLM_REPL:
    """The interface of rlm-minimal: `RLM_REPL(...).completion(context, query)` returns the answer as a str."""

    @takes(RLMOptions)
    def __init__(
        self,
        api_key: str | None = None,
        model: str = "gpt-5",
        recursive_model: str | None = None,
        max_iterations: int = 20,
        depth: int = 0,
        enable_logging: bool = False,
        context_obj: object = None,
        **options: Any,
    ) -> None:
        """`recursive_model` is the model of sub-calls. `enable_logging` prints each step on stderr.

        `depth` is accepted and unused, as in rlm-minimal. `context_obj` is the default context, as in its fork
        DeepRecurse. Other keywords are those of `RLM`.
        """
        self.depth = depth
        self.context_obj = context_obj
        options.setdefault("verbose", enable_logging)
        options |= {"api_key": api_key, "max_iterations": max_iterations}
        self._make = partial(RLM, model, recursive_model, **options)
        self._tools = dict(options.get("custom_tools") or {})
        self._rlm = self._make()
        self._usage = Usage().to_dict()
        self.query: str | None = None
        self.messages: list[Message] = []
        self.repl_env = _Names()

    def setup_context(self, context: object, query: str | None = None) -> list[Message]:
        """Begin a question. Returns messages that the model gets before the question.

        A subclass may add text to the messages, and names to `repl_env.globals` and `.locals`, even `context`.
        """
        self.repl_env = _Names()
        self.query = query or READ_ALL
        self.messages = [{"role": "system", "content": ""}]
        return self.messages

    def completion(self, context: object = None, query: str | None = None, *, context_obj: object = None) -> str:
        """The answer to `query`, by default to the question in the context. Raises LLMError."""
        given = (each for each in (context_obj, context, self.context_obj) if each is not None)
        context = next(given, None)
        messages = self.setup_context(context, query)
        names = self.repl_env.globals | self.repl_env.locals
        context = names.pop("context", context)
        texts = [message["content"].strip() for message in messages]
        rlm = self._make(custom_tools=self._tools | names) if names else self._rlm
        completion = rlm.completion("\n\n".join(filter(None, [*texts, query or READ_ALL])), context)
        self._usage = completion.usage.to_dict()
        return completion.answer

    def cost_summary(self) -> dict[str, Any]:
        """The calls, tokens and dollars of the last question."""
        return self._usage

    def reset(self) -> None:
        """Forget the last question."""
        self.repl_env = _Names()
        self.query = None
        self.messages = []


class Sub_RLM:
    """A model that answers a prompt, or a list of messages."""

    def __init__(self, model: str = "gpt-5", *, lm: LM | None = None) -> None:
        self.model = model
        self.lm = choose(model, lm=lm).root

    def completion(self, prompt: str | Sequence[Message]) -> str:
        """The reply of the model. Raises LLMError."""
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        return check_whole(self.lm.complete(messages)).text


@dataclass
class REPLResult:
    """The result of a block of code."""

    stdout: str
    stderr: str
    locals: dict[str, Any]
    """The variables after the block."""
    execution_time: float | None = None
    """The time in seconds."""


class REPLEnv:
    """A namespace with `context`, `llm_query` and `FINAL_VAR` for blocks of code.

    As in rlm-minimal the code runs in this process, with all its rights: `RLM` confines it.
    """

    def __init__(
        self,
        recursive_model: str = "gpt-5-mini",
        context_json: dict[str, Any] | list[Any] | None = None,
        context_str: str | None = None,
        context_obj: object = None,
        setup_code: str | None = None,
        *,
        lm: LM | None = None,
    ) -> None:
        """The context is the first given one of `context_obj`, `context_str` and a copy of `context_json`.

        `lm` answers `llm_query` instead of `recursive_model`.
        """
        self.sub_rlm = Sub_RLM(recursive_model, lm=lm)
        copied = None if context_json is None else json.loads(json.dumps(context_json))
        context = next((each for each in (context_obj, context_str, copied) if each is not None), None)
        subcalls = SubCalls(self.sub_rlm.lm, Usage())
        self._runner = LocalRunner(context, subcalls, cell_timeout=None, output_limit=_OUTPUT_CHARACTERS)
        self.globals = self.locals = self._runner.namespace
        if setup_code:
            self.code_execution(setup_code)

    def code_execution(self, code: str) -> REPLResult:
        """Run a block of code. An exception is text in `stderr`."""
        done = self._runner.run(code)
        found = {name: self.locals[name] for name in ("context", *done.variables) if name in self.locals}
        return REPLResult(done.stdout, done.stderr, found, done.execution_seconds)

    def close(self) -> None:
        """End the thread that runs the code. Idempotent."""
        self._runner.close()
