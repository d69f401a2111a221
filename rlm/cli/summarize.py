"""Summarize a text of any size: one call for each part, then calls that merge the summaries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from rlm.calls.usage import Usage
from rlm.errors import LLMError
from rlm.rlm import RLM

_PART = """\
Summarize this part of a longer text ({place}). Keep names, numbers, dates and decisions. At most 200 words, plain \
sentences, nothing about the part as such.{focus}

{text}"""

_WHOLE = """\
These are summaries of the consecutive parts of one text. Write the summary of the whole in Markdown, with these \
sections: `# ` and a title; `## Overview`, a paragraph; `## Key points`, a list; `## By section`, one line for each \
part or group of parts; `## Open questions`, a list, or "none".{focus}

{text}"""

_MERGE = "Make one summary of these summaries of consecutive parts of a text. At most 300 words.{focus}\n\n{text}"

_PARTS_IN_MEMORY = 16
"""The parts that are read ahead of the model."""


@dataclass(frozen=True, slots=True)
class TextPart:
    """The summary of a part of the text."""

    start: int
    """The first character."""
    stop: int
    """The character after the last."""
    summary: str


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary, and the summaries of the parts."""

    text: str
    """Markdown: title, overview, key points, by section, open questions."""
    parts: tuple[TextPart, ...]
    usage: Usage

    def to_dict(self) -> dict[str, Any]:
        """The summary as JSON can hold it, for `--json`."""
        parts = [{"start": part.start, "stop": part.stop, "summary": part.summary} for part in self.parts]
        return {"summary": self.text, "parts": parts, "usage": self.usage.to_dict()}


def summarize(rlm: RLM, context: Any, *, chunk_characters: int = 60_000, focus: str | None = None) -> Summary:
    """Summarize all of `context`, a str or a lazy text. At most 16 parts are in memory.

    Costs one call for each part and a few more. Raises LLMError if a call fails, and before the first call if the
    budget of `rlm` allows fewer.
    """
    length = len(context)
    if not length:
        raise LLMError("the text is empty: there is nothing to summarize")
    attention = f" Pay attention to: {focus}." if focus else ""
    group = max(2, chunk_characters // 2_000)
    # A part ends at a line end, so it may be a tenth shorter.
    most_parts = 1 if length <= chunk_characters else -(-length * 10 // (9 * chunk_characters))
    needed = _count_calls(most_parts, group)
    allowed = rlm.budget.calls
    if allowed is not None and needed > allowed:
        raise LLMError(
            f"{length:,} characters need {needed:,} calls, but {allowed:,} are allowed: "
            "raise max_calls or chunk_characters"
        )
    with rlm.sub_calls(context) as calls:
        parts: list[TextPart] = []
        unread = _split(context, chunk_characters)
        while batch := list(islice(unread, _PARTS_IN_MEMORY)):
            prompts = [
                _PART.format(place=f"characters {start:,} to {stop:,} of {length:,}", focus=attention, text=text)
                for start, stop, text in batch
            ]
            answers = calls.llm_query_batched(prompts)
            parts += [TextPart(start, stop, str(a)) for (start, stop, _), a in zip(batch, answers, strict=True)]
        texts = [f"Characters {part.start:,} to {part.stop:,}: {part.summary}" for part in parts]
        while len(texts) > group:
            groups = ["\n\n".join(texts[i : i + group]) for i in range(0, len(texts), group)]
            merged = calls.llm_query_batched([_MERGE.format(focus=attention, text=text) for text in groups])
            texts = [str(text) for text in merged]
        whole = calls.llm_query(_WHOLE.format(focus=attention, text="\n\n".join(texts)))
        return Summary(whole, tuple(parts), calls.gate.usage)


def _count_calls(parts: int, group: int) -> int:
    """The number of calls for a text of `parts` parts, merged in groups of `group`."""
    total, level = parts + 1, parts
    while level > group:
        level = -(-level // group)
        total += level
    return total


def _split(context: Any, size: int) -> Iterator[tuple[int, int, str]]:
    """The parts of a text: start, stop, text. A part ends at the last line end in its last tenth, if there is one."""
    start, length = 0, len(context)
    while start < length:
        text = str(context[start : min(start + size, length)])
        if start + len(text) < length and (end := text.rfind("\n", len(text) * 9 // 10)) >= 0:
            text = text[: end + 1]
        yield start, start + len(text), text
        start += len(text)
