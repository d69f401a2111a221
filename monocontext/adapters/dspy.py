"""`dspy.RLM` (3.3 and later), with either of its interpreters.

    import dspy
    from monocontext import Monocontext
    from monocontext.adapters import dspy as lazy

    text = lazy.wrap(Monocontext.open("s3://bucket/prefix"))
    rlm = dspy.RLM("context, question -> answer", tools=text.tools())
    print(rlm(context=text, question="Who wrote it?").answer)

The sandbox holds a proxy with the text's length; its methods are tools that run here. So the store's client,
credentials, cache and read-ahead stay in this process, and no thread lives in the sandbox. Slices, `find`, `count`,
`in`, `lines`, `grep` and iteration work there; other methods of `str` are `AttributeError` that says to take a slice.

Two texts in one signature: `wrap(context, field="left")` and `wrap(other, field="right")`, whose tools have names of
their own. In Pyodide, which has 32 bits, `len(context)` above 2,147,483,647 is an `OverflowError`: `context.n`.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from monocontext.text import Monocontext

MOST_CHARACTERS = 4 << 20
"""Of one answer of a tool. It crosses a pipe as JSON, and the sandbox may have little memory."""
MOST_HITS = 1000
"""Of one `grep`."""


def wrap(context: Monocontext, field: str = "") -> Any:
    """What an input field of `dspy.RLM` takes: a `SandboxSerializable`, with `tools()` for its `tools=` (no GET)."""
    if field and not field.isidentifier():
        raise ValueError(f"field is the name of an input, an identifier, not {field!r}")
    return _class()(context, field)


@cache
def _class() -> type[Any]:
    import dspy

    class Text(dspy.SandboxSerializable):  # type: ignore[misc]
        """A `Monocontext` as an input. `str` of it is short: the host takes it of what it does not know."""

        def __init__(self, context: Monocontext, field: str):
            self.context = context
            self._suffix = f"_{field}" if field else ""

        def tools(self) -> list[Callable[..., Any]]:
            return _tools(self.context, self._suffix)

        def sandbox_setup(self) -> str:
            return ""

        def to_sandbox(self) -> bytes:
            return str(len(self.context)).encode()

        def sandbox_assignment(self, var_name: str, data_expr: str) -> str:
            named = ", ".join(tool.__name__ for tool in self.tools())
            return f"{_proxy()}\n{var_name} = LazyText(int({data_expr}), {named})"

        def rlm_preview(self, max_chars: int = 500) -> str:
            said = (
                f"A text of {len(self.context):,} characters, fetched where you look (a length that is given elsewhere "
                "is that of this note). Use it as a str: context[a:b], context.find(x, start), x in context, "
                "context.count(x), context.lines[i:j] (their text), context.grep(regex) for hits with .offset, "
                ".line_number and .line, "
                "for line in context.lines. For all else take a slice, which is a real str. Its length is context.n."
            )
            return said[:max_chars]

    return Text


@cache
def _proxy() -> str:
    """The source of the class that the sandbox runs."""
    return (Path(__file__).parent / "dspy_proxy.py").read_text(encoding="utf-8")


def _tools(context: Monocontext, suffix: str) -> list[Callable[..., Any]]:
    """The methods of the proxy, as the host calls them: arguments and results are JSON."""

    def text_read(start: int, stop: int) -> str:
        """Characters [start, stop)."""
        if stop - start > MOST_CHARACTERS:
            raise ValueError(f"a slice has at most {MOST_CHARACTERS:,} characters here, not {stop - start:,}")
        return str(context[start:stop])

    def text_find(sub: str, start: int, stop: int) -> int:
        """Where it begins, or -1."""
        return context.find(sub, start, stop)

    def text_count(sub: str, start: int, stop: int) -> int:
        """Occurrences that do not overlap."""
        return context.count(sub, start, stop)

    def text_lines(start: int, stop: int) -> str:
        """The text of lines [start, stop)."""
        return str(context.lines[start:stop])

    def text_grep(pattern: str, max_hits: int, start: int) -> list[list[Any]]:
        """Lines that match, from a character on: offset, line number, line."""
        hits = context.grep(pattern, max_hits=min(operator.index(max_hits), MOST_HITS), start=start)
        return [[hit.offset, hit.line_number, hit.line] for hit in itertools.islice(hits, MOST_HITS)]

    tools: list[Callable[..., Any]] = [text_read, text_find, text_count, text_lines, text_grep]
    for tool in tools:
        tool.__name__ += suffix
    return tools
