"""A module like `re` that also takes lazy texts: `from monocontext import regex as re`.

The implementation is in `monocontext.text.regex`.
"""

from __future__ import annotations

import re as _re
from typing import Any

from monocontext.text import regex as _regex
from monocontext.text.regex import Match as Match
from monocontext.text.regex import Pattern as Pattern
from monocontext.text.regex import compile as compile
from monocontext.text.regex import escape as escape
from monocontext.text.regex import findall as findall
from monocontext.text.regex import finditer as finditer
from monocontext.text.regex import fullmatch as fullmatch
from monocontext.text.regex import match as match
from monocontext.text.regex import purge as purge
from monocontext.text.regex import required_literals as required_literals
from monocontext.text.regex import search as search
from monocontext.text.regex import split as split
from monocontext.text.regex import sub as sub
from monocontext.text.regex import subn as subn

__all__ = [*_re.__all__, "required_literals"]


def __getattr__(name: str) -> Any:
    return getattr(_regex, name)


def __dir__() -> list[str]:
    return dir(_regex)
