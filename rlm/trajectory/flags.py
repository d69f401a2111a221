"""Rewrite keywords of Python as flags of a command."""

from __future__ import annotations

import re

_IN_FLAGS = (
    (", or pass api_key= or base_url=", ", or give --base-url"),
    (", or pass api_key=", ""),
    ("; pass prices=", ""),
    ("works as backend='openai' with its base_url=", "works as --backend openai with its --base-url"),
    ("base_url must be a URL", "--base-url must be a URL"),
    ("the context of this run, ", "the CONTEXT of this run, "),
    ("is missing: give context=...", "is to be given before --resume"),
    ("anonymous=True", "--anonymous"),
    ("raise max_calls or chunk_characters", "raise --max-calls or --chunk-characters"),
)
_LIMIT = re.compile(
    r"\bmax_(calls|dollars_per_day|dollars|tokens|seconds|iterations|depth)(?= is reached| must | counts )"
)
"""Matches in sentences of ours alone: a provider's error may name a parameter that is called the same."""


def in_flags(message: str) -> str:
    """A message about keywords of Python, in the flags of a command."""
    for keyword, flag in _IN_FLAGS:
        message = message.replace(keyword, flag)
    return _LIMIT.sub(lambda found: "--max-" + found[1].replace("_", "-"), message)
