"""Predict from code, while it streams in, which parts of a context it will read. See `monocontext.engine.hints`."""

from monocontext.engine.hints import CodeHints, Hint, Lines, Needle, Pattern, Ranges, Reach, Whole, read_block

__all__ = ["CodeHints", "Hint", "Lines", "Needle", "Pattern", "Ranges", "Reach", "Whole", "read_block"]
