"""Facts that the source of a cell shows without running."""

from __future__ import annotations

from rlm.models.syntax import compiles as compiles
from rlm.models.syntax import hide_syntax_warnings as hide_syntax_warnings
from rlm.models.syntax import parse as parse


def has_no_statement(code: str) -> bool:
    """Whether `code` has no statement: it is empty, or comments only."""
    try:
        return not parse(code).body
    except SyntaxError:
        return False
