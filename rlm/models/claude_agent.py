"""Ask Claude with the login of Claude Code, through its agent SDK (extra `claude-agent`). One prompt, one reply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any

from rlm.errors import LLMError, takes
from rlm.models.lm import Message, Reply, read_details, sum_tokens


class ClaudeAgentLM:
    """Each call is a session of its own with no tools, no settings and one turn.

    The SDK takes one prompt, so a conversation becomes one text with tags for its roles. The SDK reports dollars.
    """

    backend = "claude-agent"
    window_tokens = 200_000

    @takes()
    def __init__(self, model: str, *, window_tokens: int | None = None, prompt_characters: int | None = None) -> None:
        self.model = model
        self.window_tokens = window_tokens or self.window_tokens
        if prompt_characters is not None:
            self.prompt_characters = prompt_characters

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
            import asyncio  # 25 ms that other models need not pay

            return asyncio.run(self._ask(sdk, messages, name, on_delta))
        except sdk.ClaudeSDKError as exc:
            raise LLMError(f"model {name!r} by Claude Code: {' '.join(str(exc).split())[:300]}") from exc

    async def _ask(
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
        async with aclosing(sdk.query(prompt=_write_conversation(messages), options=options)) as answers:
            async for answer in answers:
                if isinstance(answer, sdk.AssistantMessage):
                    for piece in (block.text for block in answer.content if hasattr(block, "text")):
                        pieces.append(piece)
                        if on_delta:
                            on_delta(piece)
                elif isinstance(answer, sdk.ResultMessage):
                    used = answer.usage if isinstance(answer.usage, dict) else {}
                    dollars = answer.total_cost_usd
                    if answer.is_error:
                        raise LLMError(f"model {model!r} by Claude Code: {' '.join(str(answer.result).split())[:300]}")
        kept, found = (used.get(f"cache_{kind}_input_tokens") or 0 for kind in ("creation", "read"))
        read, written = sum_tokens(used.get("input_tokens"), kept, found), sum_tokens(used.get("output_tokens"))
        details = read_details(read, written, cache_read=found, cache_write=kept)
        return Reply("".join(pieces), read, written, model, dollars, details=details)


def _write_conversation(messages: Sequence[Message]) -> str:
    turns = [message for message in messages if message["role"] != "system"]
    if len(turns) == 1:
        return turns[0]["content"]
    text = "\n\n".join(f"<{message['role']}>\n{message['content']}\n</{message['role']}>" for message in turns)
    return f"{text}\n\nWrite the next reply of the assistant, without tags."
