"""Collect one reply out of JSON values, and say how it ended: whole, cut, refused, or not at all. Pure.

`chat`, `responses` and `anthropic` read the shapes of their APIs into a `Heard`; the rest is the same for all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm.errors import LLMError, ReplyRefused
from rlm.models.listener import Listener
from rlm.models.lm import Reply, TokenDetails
from rlm.models.statement import Asked, Failed, find_error, one_line

_NAME_CHARACTERS = 80
"""Longest reason or tool name, in characters."""
_CUT = ("length", "max_tokens", "max_output_tokens", "max_completion_tokens", "max_new_tokens", "limit", "exceeded",
        "truncated", "incomplete")  # fmt: skip
_REFUSED = ("content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii", "refusal", "refused",
            "sensitive", "guardrail", "moderation", "blocked", "content_policy", "language")  # fmt: skip
_BROKEN = (
    "error",
    "abort",
    "cancel",
    "insufficient_system_resource",
    "pause_turn",
    "failed",
    "malformed",
    "other",
    "timeout",
    "interrupt",
    "repetition",
)
_CALLED = ("tool_call", "tool_use", "function_call")


@dataclass(slots=True)
class Heard:
    """The parts of one reply that have arrived so far."""

    text: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    called: str = ""
    """The name of a tool that the model calls."""
    ended: str = ""
    """Why it ended, in the word of the endpoint."""
    whole: bool = False
    """The end came: a reason, or the mark of the end of a stream."""
    said: str = ""
    """The endpoint's reason for the end."""
    aside: set[str] = field(default_factory=set)
    """Items of the output that are no part of the answer."""
    usage: Any = None
    tier: Any = None

    def write(self, text: object, on_delta: Listener | None) -> None:
        """Take a piece of the text."""
        if isinstance(text, str) and text:
            self.text.append(text)
            if on_delta:
                on_delta(text)

    def think(self, text: object, on_delta: Listener | None) -> None:
        """Take a piece of thinking."""
        if isinstance(text, str) and text:
            self.thinking.append(text)
            if on_delta:
                on_delta.alive()

    def end(self, reason: object) -> None:
        """Take the reason of the end; null and the empty text do not count."""
        if isinstance(reason, str) and reason:
            self.ended, self.whole = one_line(reason)[:_NAME_CHARACTERS], True

    def call(self, name: object) -> None:
        """Take the name of a tool that is called; the first counts."""
        self.called = self.called or (one_line(name)[:_NAME_CHARACTERS] if isinstance(name, str) else "") or "unnamed"

    def check(self, value: object) -> None:
        """Raise the failure that a value reports, with any status."""
        if (said := find_error(value)) is not None:
            raise Failed(said)

    def reply(
        self,
        model: str,
        asked: Asked,
        count: Callable[[Any, Any], tuple[int, int, TokenDetails, Any]],
        *,
        streamed: bool,
    ) -> Reply:
        """The reply, which may be cut or empty. Raises LLMError for one that is refused, broken or not whole.

        `count` reads input and output tokens, details and dollars out of the usage and the tier.
        """
        text = join_surrogates("".join(self.text))
        read, written, details, dollars = count(self.usage, self.tier)
        reason = self.ended.lower()
        refusal = " ".join("".join(self.refusal).split())
        reply = Reply(
            text, read, written, model, dollars, details=details,
            thinking=join_surrogates("".join(self.thinking)), cut=_has(reason, _CUT),
            called=self.called or ("unnamed" if _has(reason, _CALLED) else ""),
        )  # fmt: skip
        if refusal or _has(reason, _REFUSED):
            words = refusal or self.said or (one_line(text) if reason == "refusal" else "")
            kind = "refusal" if refusal or reason.startswith("refus") else "content_filter"
            what = "the model refused" if kind == "refusal" else f"a filter held the answer back ({self.ended})"
            refused = ReplyRefused(f"{asked}: {what}{': ' if words else ''}{one_line(words)}", reason=kind)  # type: ignore[arg-type]
            refused.reply = reply
            raise refused
        if _has(reason, _BROKEN):
            words = f": {self.said}" if self.said else ""
            raise LLMError(f"{asked}: the reply broke off ({self.ended}){words}", transient=True)
        if streamed and not self.whole:
            raise LLMError(f"{asked}: the stream ended in the middle, after {len(text):,} characters", transient=True)
        return reply


def join_surrogates(text: str) -> str:
    """`text` with pairs of surrogates as the characters that they are: a pair may come in two pieces."""
    return _PAIR.sub(lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text)


_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def get(value: object, *names: str) -> Any:
    """The value at a path of names; None where something on the way is no object."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def first_of(value: object) -> Any:
    """The first item of a list; None if it is empty."""
    return value[0] if isinstance(value, list) and value else None


def read_parts(content: object) -> tuple[str, str, str]:
    """Text, thinking and refusal of a content: a text, one part, or a list of parts."""
    text: list[str] = []
    thinking: list[str] = []
    refusal: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            text.append(part)
            continue
        kind = get(part, "type")
        kind = kind if isinstance(kind, str) else ""
        if "think" in kind or "reason" in kind or get(part, "thought") is True:
            thinking.append(read_thinking(part))
        elif kind == "refusal":
            refusal.append(_as_text(get(part, "refusal")))
        elif kind in ("", "text", "output_text", "input_text"):
            said = get(part, "text")
            text.append(_as_text(get(said, "value") if isinstance(said, Mapping) else said))
    return "".join(text), "".join(thinking), "".join(refusal)


def read_thinking(value: object, depth: int = 0) -> str:
    """Thinking in any shape: a text, an object that has it under one of several names, or a list of either."""
    if isinstance(value, str):
        return value
    if depth > 4:
        return ""
    if isinstance(value, list):
        return "".join(read_thinking(each, depth + 1) for each in value)
    for name in ("thinking", "reasoning", "text", "content", "summary", "value"):
        if inside := get(value, name):
            return read_thinking(inside, depth + 1)
    return ""


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _has(reason: str, words: tuple[str, ...]) -> bool:
    return any(word in reason for word in words)
