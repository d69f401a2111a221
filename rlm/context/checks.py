"""Checks of the two arguments of a run, the question and the context, for mistakes that would give a wrong answer."""

from __future__ import annotations

import os
import re

from rlm.errors import InvalidArgument

_CHARACTERS_PER_TOKEN = 8
"""More than any text of words has: a longer question cannot fit into a window."""
_ADDRESS = re.compile(r"(s3|gs|az|abfs|memory|file)://\S+")


def check_query(query: object, window_tokens: int) -> None:
    """Raises TypeError for a question that is not a `str`, and InvalidArgument for one that is empty or longer than the
    window of the root model: both happen where the context comes first."""
    if not isinstance(query, str):
        result = type(query).__name__
        raise TypeError(f"the question must be a str, not {result}: the order is completion(query, context)")
    if not query.strip():
        raise InvalidArgument("the question is empty")
    if len(query) > window_tokens * _CHARACTERS_PER_TOKEN:
        raise InvalidArgument(
            f"the question has {len(query):,} characters, more than the model's window of {window_tokens:,} tokens: "
            "the order is completion(query, context)"
        )


def check_context(context: object) -> None:
    """Raises InvalidArgument for a text that is only the address of a stored text, or the name of a file."""
    if not isinstance(context, str) or len(context) > 1000 or "\n" in context:
        return
    if _ADDRESS.fullmatch(context):
        raise InvalidArgument(f"the context is an address, not a text: give Monocontext.open({context!r})")
    if "\0" not in context and os.path.isfile(context):
        raise InvalidArgument(f"the context is the name of a file, not its text: give open({context!r}).read()")
