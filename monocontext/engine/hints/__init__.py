"""Predict the reads of code from its source, also while it streams in. Nothing is ever run.

`CodeHints` takes a reply of a model as it streams in, `read_block` a complete block.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from monocontext.engine.hints.code_hints import CodeHints, read_block
    from monocontext.engine.hints.hint import Hint, Lines, Needle, Pattern, Ranges, Reach, Whole

__all__ = ["CodeHints", "Hint", "Lines", "Needle", "Pattern", "Ranges", "Reach", "Whole", "read_block"]

_HOMES = {"CodeHints": "code_hints", "read_block": "code_hints"}


def __getattr__(name: str) -> object:
    """Import each name at its first use: 10 ms that a plain reader need not pay."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'hint')}"), name)
    return value
