"""Use a model of DSPy as the model of an RLM, and a model of rlm as a model of DSPy (3.4 and later).

    RLM(lm=DSPyLM(dspy.LM("openai/gpt-5-mini")))
    dspy.configure(lm=dspy.LM("rlm/gpt-5", engine=DSPyEngine(OpenAILM("gpt-5")), async_engine=...))

DSPy's own cache, retries and callbacks stay in force on its side of each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from rlm.errors import LLMError, PromptTooLong, RateLimited
from rlm.models.lm import LM, Message, Reply


class DSPyLM:
    """A `dspy.LM` as the `lm` or `sub_lm` of an RLM. `dspy` is imported at the first call."""

    def __init__(self, lm: Any) -> None:
        self._lm = lm
        self.model: str = lm.model

    def complete(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        on_delta: Callable[[str], object] | None = None,
    ) -> Reply:
        """Answer a conversation; the reply arrives in one piece. Raises LLMError."""
        import dspy
        from dspy import lm15

        lm = self._lm if model in (None, self.model) else self._lm.copy(model=model)
        system = "\n\n".join(each["content"] for each in messages if each["role"] == "system")
        turns = tuple(
            (lm15.Message.assistant if each["role"] == "assistant" else lm15.Message.user)(each["content"])
            for each in messages
            if each["role"] != "system"
        )
        try:
            response = lm(lm15.Request(lm.model, turns, system or None))
        except dspy.ContextWindowExceededError as exc:
            raise PromptTooLong(_one_line(exc)) from exc
        except dspy.LMRateLimitError as exc:
            raise RateLimited(_one_line(exc)) from exc
        except dspy.LMError as exc:
            passing = isinstance(exc, (dspy.LMServerError, dspy.LMTransportError, dspy.LMTimeoutError))
            raise LLMError(_one_line(exc), transient=passing) from exc
        text = response.text or ""
        if on_delta:
            on_delta(text)
        usage = response.usage
        return Reply(
            text, usage.input_tokens or 0, usage.output_tokens or 0, lm.model, cut=response.finish_reason == "length"
        )


class DSPyEngine:
    """A model of rlm as the `engine` of a `dspy.LM`; its `.asynchronous` is the `async_engine`."""

    def __init__(self, lm: LM) -> None:
        self._lm = lm
        self.asynchronous = _AsyncEngine(self)

    def complete(self, request: Any) -> Any:
        """One `dspy.lm15.Response` to a request of text. Raises errors of `dspy.lm15`."""
        from dspy import lm15

        system = request.system if isinstance(request.system, str) else "".join(p.text for p in request.system or ())
        messages = [{"role": "system", "content": system}] if system else []
        messages += [{"role": each.role, "content": each.text or ""} for each in request.messages]
        try:
            reply = self._lm.complete(messages)
        except PromptTooLong as exc:
            raise lm15.ContextLengthError(str(exc)) from exc
        except RateLimited as exc:
            raise lm15.RateLimitError(str(exc), retry_after=exc.retry_after_seconds) from exc
        except LLMError as exc:
            raise (lm15.ServerError if exc.transient else lm15.ProviderError)(str(exc)) from exc
        usage = lm15.Usage(reply.input_tokens, reply.output_tokens, reply.input_tokens + reply.output_tokens)
        end = "length" if reply.cut else "stop"
        return lm15.Response(None, reply.model, lm15.Message.assistant(reply.text), end, usage)

    def close(self) -> None:
        """Nothing: the model belongs to its caller."""


class _AsyncEngine:
    """The same in a thread, for `acall`."""

    def __init__(self, engine: DSPyEngine) -> None:
        self._engine = engine

    async def complete(self, request: Any) -> Any:
        return await asyncio.to_thread(self._engine.complete, request)

    async def aclose(self) -> None:
        pass


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:500]
