"""Which addresses code is about to read, told from its source while it is being written. Pure; nothing is ever run.

`CodeHints` takes a reply of the model as it streams in; `read_block` a complete block.
"""

from monocontext.hints.blocks import read_block
from monocontext.hints.code_hints import CodeHints
from monocontext.hints.hint import Hint, Lines, Needle, Pattern, Ranges, Reach, Whole

__all__ = ["CodeHints", "Hint", "Lines", "Needle", "Pattern", "Ranges", "Reach", "Whole", "read_block"]
