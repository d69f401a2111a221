"""Ask Claude with the login of Claude Code, through its agent SDK (extra `claude-agent`). One prompt, one reply."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

from monocontext.errors import install_line
from rlm.errors import LLMError
from rlm.models.anthropic import count_usage
from rlm.models.endpoint_errors import CallTarget, ErrorReport, make_error, one_line
from rlm.models.lm import Listener, Message, OnDelta, Reply
from rlm.models.reply_builder import ReplyBuilder


class ClaudeAgentLM:
    """A model that is asked through Claude Code. Each call is a session of one turn, without tools and settings. As
    the SDK takes one prompt, a conversation becomes one text with tags for its roles. The SDK reports dollars."""

    backend = "claude-agent"
    window_tokens = 200_000

    def __init__(self, model: str) -> None:
        """`model`: its name in Claude Code."""
        self.model = model

    def complete(self, messages: Sequence[Message], *, model: str | None = None, on_delta: OnDelta = None) -> Reply:
        """Make one call, on a thread without a running event loop. Raises LLMError."""
        try:
            import claude_agent_sdk as sdk
        except ImportError:
            raise LLMError(f"the Claude agent SDK is not installed: {install_line('claude-agent', './rlm')}") from None
        name = model or self.model
        listener = on_delta if isinstance(on_delta, Listener) else Listener(on_delta)
        try:
            import asyncio  # 25 ms that other models need not pay

            return asyncio.run(self._ask(sdk, messages, name, listener))
        except LLMError:
            raise
        except Exception as exc:
            if exc is listener.raised:
                raise
            prefix = "" if isinstance(exc, sdk.ClaudeSDKError) else f"{type(exc).__name__}: "
            raise LLMError(f"{CallTarget(name, 'Claude Code')}: {prefix}{one_line(exc)}") from exc

    async def _ask(self, sdk: Any, messages: Sequence[Message], model: str, listener: Listener) -> Reply:
        system = "\n\n".join(message["content"] for message in messages if message["role"] == "system") or None
        options = sdk.ClaudeAgentOptions(model=model, system_prompt=system, tools=[], setting_sources=[], max_turns=1)
        target = CallTarget(model, "Claude Code")
        builder = ReplyBuilder(listener, is_whole=True)  # the SDK raises if a reply breaks off
        dollars: float | None = None
        async with aclosing(sdk.query(prompt=_write_conversation(messages), options=options)) as answers:
            async for answer in answers:
                if isinstance(answer, sdk.AssistantMessage):
                    for block in answer.content if isinstance(answer.content, list) else []:
                        builder.add_thinking(getattr(block, "thinking", None))
                        builder.add_text(getattr(block, "text", None))
                elif isinstance(answer, sdk.ResultMessage):
                    builder.usage = answer.usage
                    dollars = answer.total_cost_usd
                    builder.set_end(getattr(answer, "stop_reason", None))
                    if answer.is_error:
                        report = ErrorReport(one_line(answer.result), status=getattr(answer, "api_error_status", None))
                        raise make_error(report, target)
        return builder.build(target, count_usage(builder.usage, None, None)._replace(dollars=dollars))


def _write_conversation(messages: Sequence[Message]) -> str:
    """All turns as one prompt, each in a tag for its role; a single turn as it is."""
    turns = [message for message in messages if message["role"] != "system"]
    if len(turns) == 1:
        return turns[0]["content"]
    text = "\n\n".join(f"<{message['role']}>\n{message['content']}\n</{message['role']}>" for message in turns)
    return f"{text}\n\nWrite the next reply of the assistant, without tags."
