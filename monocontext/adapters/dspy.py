"""A text, or a list or dict of documents, as an input of `dspy.RLM` (3.3 and later), with either interpreter.

    import dspy
    from monocontext import Monocontext
    from monocontext.adapters import dspy as lazy

    text = lazy.wrap(Monocontext.open("s3://bucket/prefix"))
    rlm = dspy.RLM("context, question -> answer", tools=text.tools())
    print(rlm(context=text, question="Who wrote it?").answer)

The sandbox holds a proxy of the text, whose methods are tools that run in this process. So the store's client,
credentials, cache and read-ahead stay here, and the sandbox starts no thread. The proxy supports all methods and
operators of `str`, `lines`, `grep`, and the functions of `re`; large results are proxies too. An operation that needs a
real `str` of more than a million characters raises `MemoryError`, and so does `re.sub` with a function. Methods of a
compiled pattern take slices, not proxies.

A lazy list or dict (`Monocontext.open(url, shape="list")`) becomes a proxy too. A loop over it gives lazy documents;
the host answers searches in a thousand of them at once, by search filters. An index or a look-up gives a real `str`. C
code needs real strings: `"".join(str(d) for d in context)`, `isinstance(str(d), str)`.

For two texts in one signature write `wrap(context, field="left")` and `wrap(other, field="right")`: the names of their
tools differ. Pyodide has 32 bits, so `len(context)` above 2,147,483,647 raises `OverflowError`: use `context.n`.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monocontext.adapters.dspy_documents import RemoteDocuments
from monocontext.adapters.dspy_remote import Remote
from monocontext.text.documents import DocumentDict, DocumentList
from monocontext.text.lazy_kinds import LazyText

if TYPE_CHECKING:
    from monocontext.text.monocontext import Monocontext

MOST_CHARACTERS = 4 << 20
"""The most characters in one reply of a tool. It goes through a pipe as JSON, to a sandbox with little memory."""
MOST_HITS = 1000
"""The most hits of one `grep`."""
_TEXT_TOOLS = 6
"""The number of tools of a text. The tool for documents comes after them."""


def wrap(context: Monocontext | DocumentList | DocumentDict, field: str = "") -> Any:
    """Make an input for `dspy.RLM`: a `SandboxSerializable`, with `tools()` for its `tools=` (no GET)."""
    if field and not field.isidentifier():
        raise ValueError(f"field must be an identifier, the name of an input, not {field!r}")
    text_class, documents_class = _classes()
    if isinstance(context, DocumentList | DocumentDict):
        return documents_class(context, field)
    if not isinstance(context, LazyText):
        raise TypeError(f"context must be a lazy text, list or dict, not {type(context).__name__}")
    return text_class(context, field)


@cache
def _classes() -> tuple[type[Any], type[Any]]:
    """The classes for a text, and for a list or dict of documents."""
    import dspy

    class DspyText(dspy.SandboxSerializable):  # type: ignore[misc]
        """A `Monocontext` as an input."""

        def __init__(self, context: Any, field: str):
            self.context = context
            self._suffix = f"_{field}" if field else ""

        def tools(self) -> list[Callable[..., Any]]:
            return _tools(self.context, self._suffix)

        def sandbox_setup(self) -> str:
            return ""

        def to_sandbox(self) -> bytes:
            return str(len(self.context)).encode()

        def sandbox_assignment(self, var_name: str, data_expr: str) -> str:
            names = ", ".join(tool.__name__ for tool in self.tools()[:_TEXT_TOOLS])
            return f"{_proxy_source('dspy_proxy')}\n{var_name} = ContextProxy(int({data_expr}), {names})"

        def rlm_preview(self, max_chars: int = 500) -> str:
            note = (
                f"A text of {len(self.context):,} characters, fetched where you look (a length given elsewhere "
                "is the length of this note). Use it as a str: context[a:b], context.find(x, start), x in context, "
                "context.count(x), context.lines[i:j] (their text), context.grep(regex) for hits with .offset, "
                ".line_number and .line, "
                "for line in context.lines, re.finditer(regex, context). Its length is context.n."
            )
            return note[:max_chars]

    class DspyDocuments(DspyText):
        """A list or dict of documents as an input."""

        def tools(self) -> list[Callable[..., Any]]:
            return [*_tools(self.context.text, self._suffix), _documents_tool(self.context, self._suffix)]

        def to_sandbox(self) -> bytes:
            return str(len(self.context.text)).encode()

        def sandbox_assignment(self, var_name: str, data_expr: str) -> str:
            call = self.tools()[_TEXT_TOOLS].__name__
            kind = "DocumentListProxy" if isinstance(self.context, DocumentList) else "DocumentDictProxy"
            return (
                f"{super().sandbox_assignment(var_name, data_expr)}\n{_proxy_source('dspy_documents_proxy')}\n"
                f"{var_name} = {kind}(DocumentsInHost({call}, {len(self.context)}), {var_name})"
            )

        def rlm_preview(self, max_chars: int = 500) -> str:
            is_list = isinstance(self.context, DocumentList)
            kind, by = ("list", "number, context[i]") if is_list else ("dict", "name, context[name]")
            each = "d for d in context" if is_list else "name for name, d in context.items()"
            note = (
                f"A {kind} of {len(self.context):,} documents, fetched where you look. Take one by {by}; search all by "
                f'one loop, [{each} if "text" in d] or re.search(regex, d). In a loop d is a lazy str: str(d) makes it '
                "real, which ''.join needs. context.text is all as one str; context.text.grep(regex) finds its lines."
            )
            return note[:max_chars]

    return DspyText, DspyDocuments


@cache
def _proxy_source(module: str) -> str:
    """The source code of a module for the sandbox, without imports of this package, which the sandbox lacks."""
    lines = (Path(__file__).parent / f"{module}.py").read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("from monocontext."))


def _documents_tool(texts: DocumentList | DocumentDict, suffix: str) -> Callable[..., Any]:
    """Make the tool that proxies of documents call."""
    remote = RemoteDocuments(texts, MOST_CHARACTERS)

    def documents_call(steps: list[Any], operation: str, arguments: list[Any]) -> dict[str, Any]:
        """Run an operation on the documents, or on the result of the steps."""
        return remote.call(steps, operation, arguments)

    documents_call.__name__ += suffix
    return documents_call


def _tools(context: Monocontext, suffix: str) -> list[Callable[..., Any]]:
    """Make the tools that the proxy's methods call. Arguments and results are JSON."""

    def text_read(start: int, stop: int) -> str:
        """Characters [start, stop)."""
        if stop - start > MOST_CHARACTERS:
            raise ValueError(f"a slice must have at most {MOST_CHARACTERS:,} characters here, not {stop - start:,}")
        return str(context[start:stop])

    def text_find(sub: str, start: int, stop: int) -> int:
        """The character at which `sub` begins, or -1."""
        return context.find(sub, start, stop)

    def text_count(sub: str, start: int, stop: int) -> int:
        """The number of occurrences of `sub` that do not overlap."""
        return context.count(sub, start, stop)

    def text_lines(start: int, stop: int) -> str:
        """The text of lines [start, stop)."""
        return str(context.lines[start:stop])

    def text_grep(pattern: str, max_hits: int, start: int) -> list[list[Any]]:
        """Lines that match, from character `start` on: offset, line number, line."""
        hits = context.grep(pattern, max_hits=min(operator.index(max_hits), MOST_HITS), start=start)
        return [[hit.offset, hit.line_number, hit.line] for hit in itertools.islice(hits, MOST_HITS)]

    remote = Remote(context, MOST_CHARACTERS)

    def text_call(steps: list[Any], operation: str, arguments: list[Any]) -> dict[str, Any]:
        """Run any other operation of a str on the result of the steps."""
        return remote.call(steps, operation, arguments)

    tools: list[Callable[..., Any]] = [text_read, text_find, text_count, text_lines, text_grep, text_call]
    for tool in tools:
        tool.__name__ += suffix
    return tools
