"""`re` that also takes lazy texts: `from monocontext import regex as re`.

On a `Monocontext` each function returns what `re` returns for the whole text: offsets count from its beginning, groups
are real `str`, and `match.string` is the lazy text. Any other argument goes to the real `re` untouched. A pattern
streams in bounded memory if its matches have a bounded length, stay within a line, or cross lines only in repeats of
one character class (`[^x]*`); `(?s).*?` may join such parts. Above `materialize_limit`, `findall` and `split` return
lazy lists. Other patterns, and `sub`, need the text as one `str`: above the limit they raise `ContextTooLarge`.

Cost, with nothing cached: 1 GET for about 8 MiB of stored text. `search` and `match` read until the result is certain,
`finditer` as far as the caller iterates, and the others read everything that may match.

All other names (flags, `error`, ...) are those of `re`. `Scanner` does not take lazy texts.
"""

from __future__ import annotations

import re as _re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from monocontext.text.regex.match import Match as Match
from monocontext.text.regex.pattern import Pattern as Pattern
from monocontext.text.regex.plan import plan as _plan
from monocontext.text.regex.plan import required_literals as required_literals
from monocontext.text.str_methods import materialize

__all__ = ["required_literals"]
__all__ += _re.__all__


def compile(pattern: Any, flags: Any = 0) -> Pattern:
    """A `Pattern`, which searches `str` and lazy texts alike. A lazy text as `pattern` is read, up to its limit.

    Raises what `re.compile` raises.
    """
    if type(pattern) is Pattern:
        _re.compile(pattern._real, flags)  # raises if `flags` are given
        return pattern
    return _wrap(_re.compile(materialize(pattern), flags))


_wrap = lru_cache(maxsize=512)(Pattern)  # equal patterns are one object, as those of `re`


def search(pattern: Any, string: Any, flags: Any = 0) -> Any:
    """The first match, or None."""
    return compile(pattern, flags).search(string)


def match(pattern: Any, string: Any, flags: Any = 0) -> Any:
    """The match at the beginning of the text, or None."""
    return compile(pattern, flags).match(string)


def fullmatch(pattern: Any, string: Any, flags: Any = 0) -> Any:
    """The match of the whole text, or None."""
    return compile(pattern, flags).fullmatch(string)


def finditer(pattern: Any, string: Any, flags: Any = 0) -> Iterator[Any]:
    """The matches in order, each searched for when the caller asks for it."""
    return compile(pattern, flags).finditer(string)


def findall(pattern: Any, string: Any, flags: Any = 0) -> Sequence[Any]:
    """The groups of all matches, or the matches themselves if the pattern has no groups."""
    return compile(pattern, flags).findall(string)


def split(pattern: Any, string: Any, maxsplit: Any = 0, flags: Any = 0) -> Sequence[Any]:
    """The pieces of the text between matches, and between them the groups of each match."""
    return compile(pattern, flags).split(string, maxsplit)


def sub(pattern: Any, repl: Any, string: Any, count: Any = 0, flags: Any = 0) -> Any:
    """The text with matches replaced."""
    return compile(pattern, flags).sub(repl, string, count)


def subn(pattern: Any, repl: Any, string: Any, count: Any = 0, flags: Any = 0) -> Any:
    """The result of `sub` and the number of replacements."""
    return compile(pattern, flags).subn(repl, string, count)


def escape(pattern: Any) -> Any:
    """The text with special characters escaped, always as a `str`.

    Raises `ContextTooLarge` for a lazy text above its limit.
    """
    return _re.escape(materialize(pattern))


def purge() -> None:
    """Forget compiled patterns."""
    _wrap.cache_clear()
    _plan.cache_clear()
    _re.purge()


def __getattr__(name: str) -> Any:
    """All other names are those of `re`."""
    return getattr(_re, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_re)})
