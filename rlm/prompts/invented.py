"""Find where a reply goes on to write the next turn, which only the REPL and the user write. Pure."""

from __future__ import annotations

import re

_TURN = re.compile(
    r"[ \t#*_]*(?:Turn \d+/\d+[.:]|Turn \d+:|REPL output(?: \(block \d+\))?:|REPL variables:)"
    r"|<\|(?:im_start|im_end|start_header_id|eot_id|end_of_turn)\|>|<start_of_turn>|<end_of_turn>"
)
_BEHIND_CODE = re.compile(
    r"[ \t#*_>\[]*(?:(?:(?:repl|execution|code|console|expected|program|python) )?output(?: \(block \d+\))?[*_\]]*:"
    r"|(?:output|stdout)[*_#]*[ \t]*$|results?[*_]*:[*_]*[ \t]*$|stdout:|observation:|Out\[\d+\]:|<output>"
    r"|(?:`{3,}|~{3,})[ \t]*(?:output|stdout)\b"
    r"|(?:user|human|assistant|system)[*_]*:)",
    re.IGNORECASE,
)


def begins_turn(line: str, *, behind_code: bool) -> bool:
    """Whether a line opens an invented turn; `behind_code`: it is the first one behind a block that ended."""
    return _TURN.match(line) is not None or (behind_code and _BEHIND_CODE.match(line) is not None)
