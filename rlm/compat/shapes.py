"""`RLM_REPL`, the class of rlm-minimal and DeepRecurse, which takes the context first and returns a str."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from rlm.calls.usage import Usage
from rlm.models.lm import Message
from rlm.rlm import READ_ALL, RLM


def _no_names() -> Any:
    """An empty `repl_env`, to which a subclass may add names for the code of a run."""
    return SimpleNamespace(globals={}, locals={})


class RLM_REPL:
    """The interface of rlm-minimal: `RLM_REPL(...).completion(context, query)` returns the answer as a str."""

    def __init__(
        self, api_key: str | None = None, model: str = "gpt-5", recursive_model: str | None = None,
        max_iterations: int = 20, depth: int = 0, enable_logging: bool = False, context_obj: object = None, *,
        custom_tools: Mapping[str, object] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        """- `api_key`: for both models
        - `model`, `recursive_model`: the root model, and the model of sub-calls
        - `max_iterations`: turns of a question
        - `depth`: accepted and unused, as in rlm-minimal
        - `enable_logging`: print each step on stderr
        - `context_obj`: the default context, as in DeepRecurse
        - `custom_tools`, `options`: keywords of `RLM`
        """
        self.depth = depth
        self.context_obj = context_obj
        self._tools = dict(custom_tools or {})
        self._options = {
            "model": model, "sub_model": recursive_model, "api_key": api_key, "max_iterations": max_iterations,
            "verbose": enable_logging, **options,
        }  # fmt: skip
        self._rlm = RLM(custom_tools=self._tools, **self._options)
        self._usage = Usage().to_dict()
        self.query: str | None = None
        self.messages: list[Message] = []
        self.repl_env = _no_names()

    def setup_context(self, context: object, query: str | None = None) -> list[Message]:
        """Begin a question. Returns the messages that the model gets before it. A subclass may add text to them, and
        names for the code, even `context`, to `repl_env.globals` and `.locals`."""
        self.repl_env = _no_names()
        self.query = query or READ_ALL
        self.messages = [{"role": "system", "content": ""}]
        return self.messages

    def completion(self, context: object = None, query: str | None = None, *, context_obj: object = None) -> str:
        """Answer `query`, by default the question that the context contains. Raises LLMError."""
        contexts = (value for value in (context_obj, context, self.context_obj) if value is not None)
        context = next(contexts, None)
        messages = self.setup_context(context, query)
        names = self.repl_env.globals | self.repl_env.locals
        context = names.pop("context", context)
        texts = [message["content"].strip() for message in messages]
        rlm = RLM(custom_tools=self._tools | names, **self._options) if names else self._rlm
        completion = rlm.completion("\n\n".join(filter(None, [*texts, query or READ_ALL])), context)
        self._usage = completion.usage.to_dict()
        return completion.answer

    def cost_summary(self) -> dict[str, Any]:
        """The calls, tokens and dollars of the last question."""
        return self._usage

    def reset(self) -> None:
        """Forget the last question."""
        self.repl_env = _no_names()
        self.query = None
        self.messages = []
