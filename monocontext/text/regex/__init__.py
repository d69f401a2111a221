"""`re` that also takes lazy texts: `from monocontext import regex as re`.

On a `Monocontext` each function gives what `re` gives on the whole text: matches have offsets in the whole text, groups
are real `str`, and `match.string` is the lazy text. Anything else goes to the real `re` untouched. A pattern whose
matches are of bounded length, or stay within a line, streams in bounded memory. Any other pattern takes the text as one
`str`, as `sub` and `split` always do; above `materialize_limit` they raise `ContextTooLarge`, which says what to write.

Cost, with nothing cached: 1 GET for about 8 MiB of stored text read. `search` and `match` read as far as it takes to
decide, `finditer` as far as it is used, and the others read everything that may match.

All other names (flags, `error`, ...) are those of `re`. `Scanner` does not take lazy texts.
"""

from __future__ import annotations

import re as _re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from monocontext.text.regex.match import Match as Match
from monocontext.text.regex.pattern import Pattern as Pattern
from monocontext.text.regex.pattern import materialize, replacement
from monocontext.text.regex.plan import required_literals
from monocontext.text.str_methods import StrLike

__all__ = [*_re.__all__, "required_literals"]


def compile(pattern: Any, flags: Any = 0) -> Pattern:
    """A `Pattern`, which takes `str` and lazy texts alike. A lazy pattern is made a `str`.

    Raises what `re.compile` raises.
    """
    if type(pattern) is Pattern:
        _re.compile(pattern._real, flags)  # raises if `flags` are given
        return pattern
    return _wrap(_re.compile(materialize(pattern), flags))


def search(pattern: Any, string: Any, flags: Any = 0) -> Any:
    """The first match, or None."""
    if isinstance(string, StrLike):
        return compile(pattern, flags).search(string)
    return _re.search(_real(pattern), string, flags)


def match(pattern: Any, string: Any, flags: Any = 0) -> Any:
    """The match at the beginning of the text, or None."""
    if isinstance(string, StrLike):
        return compile(pattern, flags).match(string)
    return _re.match(_real(pattern), string, flags)


def fullmatch(pattern: Any, string: Any, flags: Any = 0) -> Any:
    """The match of the whole text, or None."""
    if isinstance(string, StrLike):
        return compile(pattern, flags).fullmatch(string)
    return _re.fullmatch(_real(pattern), string, flags)


def finditer(pattern: Any, string: Any, flags: Any = 0) -> Iterator[Any]:
    """Matches in order, found on demand."""
    if isinstance(string, StrLike):
        return compile(pattern, flags).finditer(string)
    return _re.finditer(_real(pattern), string, flags)


def findall(pattern: Any, string: Any, flags: Any = 0) -> list[Any]:
    """The groups of all matches, or the matches where the pattern has no groups."""
    if isinstance(string, StrLike):
        return compile(pattern, flags).findall(string)
    return _re.findall(_real(pattern), string, flags)


def split(pattern: Any, string: Any, *args: Any, **kwargs: Any) -> list[Any]:
    """`split(pattern, string, maxsplit=0, flags=0)`: the pieces between matches, and groups."""
    if isinstance(string, StrLike):
        maxsplit, flags = _options(*args, **kwargs)
        return compile(pattern, flags).split(string, maxsplit)
    return _re.split(_real(pattern), string, *args, **kwargs)  # noqa: B034  (by position, if the caller passed them so)


def sub(pattern: Any, repl: Any, string: Any, *args: Any, **kwargs: Any) -> Any:
    """`sub(pattern, repl, string, count=0, flags=0)`: the text with matches replaced."""
    if isinstance(string, StrLike):
        count, flags = _count_options(*args, **kwargs)
        return compile(pattern, flags).sub(repl, string, count)
    return _re.sub(_real(pattern), replacement(repl), string, *args, **kwargs)  # noqa: B034


def subn(pattern: Any, repl: Any, string: Any, *args: Any, **kwargs: Any) -> Any:
    """The result of `sub` and the number of replacements."""
    if isinstance(string, StrLike):
        count, flags = _count_options(*args, **kwargs)
        return compile(pattern, flags).subn(repl, string, count)
    return _re.subn(_real(pattern), replacement(repl), string, *args, **kwargs)  # noqa: B034


def escape(pattern: Any) -> Any:
    """The text with special characters escaped, always as real text.

    Raises `ContextTooLarge` for a lazy text above its limit.
    """
    return _re.escape(materialize(pattern))


def purge() -> None:
    """Forget compiled patterns."""
    _wrap.cache_clear()
    _re.purge()


@lru_cache(maxsize=512)
def _wrap(real: _re.Pattern[Any]) -> Pattern:
    """Our pattern for one of `re`; remembered."""
    return Pattern._of(real)


def _real(pattern: Any) -> Any:
    """The pattern in a form that the real `re` takes."""
    return pattern._real if type(pattern) is Pattern else materialize(pattern)


def _options(maxsplit: Any = 0, flags: Any = 0) -> tuple[Any, Any]:
    """The options of `split`, given by position or by name. Raises `TypeError` for others."""
    return maxsplit, flags


def _count_options(count: Any = 0, flags: Any = 0) -> tuple[Any, Any]:
    """The options of `sub` and `subn`."""
    return count, flags


def __getattr__(name: str) -> Any:
    """All other names are those of `re`."""
    return getattr(_re, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_re)})
