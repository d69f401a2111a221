"""`Monocontext.open(url)` opens a context, `context.open()` a file over it: one name for both."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, overload

from monocontext.stores.protocol import Store

if TYPE_CHECKING:
    from typing import Literal, Protocol, TypeVar, Unpack

    from monocontext.engine.open import OpenOptions
    from monocontext.text.context_file import ContextFile as ContextFile
    from monocontext.text.documents.shapes import DocumentDict, DocumentList
    from monocontext.text.lines import LineView

    Text = TypeVar("Text")
    Made = TypeVar("Made", covariant=True)

    class Opening(Protocol[Made]):
        """Open a context: the type of `Monocontext.open`."""

        @overload
        def __call__(
            self, url: Place, *, unit: Literal["characters", "chars"] = ..., **options: Unpack[OpenOptions]
        ) -> Made: ...
        @overload
        def __call__(self, url: Place, *, unit: Literal["lines"], **options: Unpack[OpenOptions]) -> LineView: ...
        @overload
        def __call__(self, url: Place, *, shape: Literal["list"], **options: Unpack[OpenOptions]) -> DocumentList: ...
        @overload
        def __call__(self, url: Place, *, shape: Literal["dict"], **options: Unpack[OpenOptions]) -> DocumentDict: ...

    class OpeningOfText(Protocol[Made]):
        """Open a file over a text, or another context: the type of `context.open`."""

        @overload
        def __call__(self, mode: Literal["r", "rt"] = ...) -> ContextFile: ...
        @overload
        def __call__(
            self, url: Place, *, unit: Literal["characters", "chars"] = ..., **options: Unpack[OpenOptions]
        ) -> Made: ...
        @overload
        def __call__(self, url: Place, *, unit: Literal["lines"], **options: Unpack[OpenOptions]) -> LineView: ...
        @overload
        def __call__(self, url: Place, *, shape: Literal["list"], **options: Unpack[OpenOptions]) -> DocumentList: ...
        @overload
        def __call__(self, url: Place, *, shape: Literal["dict"], **options: Unpack[OpenOptions]) -> DocumentDict: ...


_MODE = r"[rwxa](?:[bt]?\+?|\+[bt])"
"""Modes of the builtin `open`."""


Place = str | os.PathLike[str] | Store


class OpenOrFile:
    """`Monocontext.open(url)` opens a context, and `context.open()` is a file over one. Decorates a class method."""

    def __init__(self, opening: Any):
        self._opening = opening
        self.__doc__ = opening.__doc__

    @overload
    def __get__(self, text: None, owner: type[Text]) -> Opening[Text]: ...
    @overload
    def __get__(self, text: Text, owner: type[Text]) -> OpeningOfText[Text]: ...
    def __get__(self, text: Any, owner: type) -> Any:
        opening = self._opening.__get__(None, owner)
        if text is None:
            return opening

        def open(*arguments: Any, **options: Any) -> Any:
            """The text as a seekable text file (no GET): `open()`; with a URL, what `Monocontext.open` gives."""
            first, *rest = arguments or (options.get("mode", "r"),)
            if first in ("r", "rt") and not rest and options.keys() <= {"mode"}:
                from monocontext.text.context_file import ContextFile as ContextFile

                return ContextFile(text, text.url)
            if isinstance(first, str | os.PathLike) and not re.fullmatch(_MODE, os.fspath(first)):
                return opening(*arguments, **options)
            given = ", ".join([*map(repr, arguments), *options])
            raise TypeError(
                f"context.open() takes nothing, or 'r', and is a file over the text, to read; not {given}. "
                "Monocontext.open(url) opens another text"
            )

        return open


def __getattr__(name: str) -> object:
    if name != "ContextFile":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from monocontext.text.context_file import ContextFile

    return ContextFile
