"""Claude by the login of Claude Code, through its agent SDK (extra `claude-agent`). One prompt in, one text out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any

from rlm.errors import LLMError
from rlm.lm import Message, Reply


class ClaudeAgentLM:
    """Each call is a session of its own with no tools, no settings and one turn.

    The SDK takes one prompt, so a conversation is written out with its roles named. It reports dollars itself.
    """

    def __init__(self, model: str) -> None:
        self.model = model

    def __repr__(self) -> str:
        return f"<ClaudeAgentLM {self.model}>"

    def complete(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        on_delta: Callable[[str], object] | None = None,
    ) -> Reply:
        """One call, from a thread without an event loop of its own. Raises LLMError."""
        try:
            import claude_agent_sdk as sdk
        except ImportError:
            raise LLMError("the agent SDK is not installed: pip install 'monocontext-rlm[claude-agent]'") from None
        name = model or self.model
        try:
            return asyncio.run(self._asked(sdk, messages, name, on_delta))
        except sdk.ClaudeSDKError as exc:
            raise LLMError(f"model {name!r} by Claude Code: {' '.join(str(exc).split())[:300]}") from exc

    async def _asked(
        self, sdk: Any, messages: Sequence[Message], model: str, on_delta: Callable[[str], object] | None
    ) -> Reply:
        options = sdk.ClaudeAgentOptions(
            model=model,
            system_prompt="\n\n".join(m["content"] for m in messages if m["role"] == "system") or None,
            tools=[],
            setting_sources=[],
            max_turns=1,
        )
        pieces: list[str] = []
        used: dict[str, Any] = {}
        dollars: float | None = None
        async with aclosing(sdk.query(prompt=_written_out(messages), options=options)) as answers:
            async for answer in answers:
                if isinstance(answer, sdk.AssistantMessage):
                    for piece in (block.text for block in answer.content if hasattr(block, "text")):
                        pieces.append(piece)
                        if on_delta:
                            on_delta(piece)
                elif isinstance(answer, sdk.ResultMessage):
                    used, dollars = answer.usage or {}, answer.total_cost_usd
                    if answer.is_error:
                        raise LLMError(f"model {model!r} by Claude Code: {' '.join(str(answer.result).split())[:300]}")
        read = sum(used.get(f"{kind}input_tokens") or 0 for kind in ("", "cache_creation_", "cache_read_"))
        return Reply("".join(pieces), read, used.get("output_tokens") or 0, model, dollars)


def _written_out(messages: Sequence[Message]) -> str:
    told = [message for message in messages if message["role"] != "system"]
    if len(told) == 1:
        return told[0]["content"]
    turns = "\n\n".join(f"<{message['role']}>\n{message['content']}\n</{message['role']}>" for message in told)
    return f"{turns}\n\nWrite the next reply of the assistant, without tags."
