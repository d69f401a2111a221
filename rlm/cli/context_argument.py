"""Open the text that the argument CONTEXT of a command names."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click

from monocontext import Monocontext
from monocontext.cli.options import checked_options
from monocontext.options import StoreOptions
from rlm.errors import RLMError

LOCAL_SESSIONS = "sessions:"  # the CONTEXT that stands for all sessions of coding agents on this machine


class UsageError(RLMError):
    """An argument of a command is wrong. The message is one line, and says how to correct it."""


def names_context(argument: str) -> bool:
    """Whether an argument is `-` for stdin, a URL, or a file or directory that exists."""
    is_url = re.match(r"[a-z][a-z0-9+.-]*://\S+\Z", argument, re.IGNORECASE) is not None  # not "Is s3://b/x large?"
    # Not a `Path`, which raises for a question that is too long for a file name, and takes "" for ".".
    return argument == "-" or is_url or os.path.exists(argument)


def named_texts(argument: str) -> dict[str, str]:
    """The files or URLs in `code=URL logs=URL`, by name; empty for any other argument."""
    pairs = _named_locations(argument)
    texts = dict(pairs)
    return texts if len(texts) == len(pairs) and all(map(names_context, texts.values())) else {}


def _named_locations(argument: str) -> list[tuple[str, str]]:
    """The pairs (name, location) in `code=URL logs=nosuch`, whether they exist or not; empty for any other argument."""
    try:
        words = shlex.split(argument)
    except ValueError:  # a question with an apostrophe: an unclosed quote
        return []
    matches = [re.fullmatch(r"([A-Za-z_]\w*)=(.+)", word, re.DOTALL) for word in words]
    pairs = [(match[1], match[2]) for match in matches if match]
    return pairs if len(pairs) == len(words) and not names_context(argument) else []


@contextmanager
def open_argument(context: str, options: StoreOptions | None = None, shape: str = "text") -> Iterator[Any]:
    """Open CONTEXT: a stored context lazily, a text file or `-` (stdin) as a str, several texts by name as a dict.
    `options`: those of a store in S3. `shape`: "text"; "list" or "dict" of the documents of a stored context.
    Raises UsageError, and the errors of `Monocontext.open`."""
    with ExitStack() as stack:
        yield _open(context, options or StoreOptions(), shape, stack)


def _open(context: str, options: StoreOptions, shape: str, stack: ExitStack) -> Any:
    """Open what CONTEXT names; `stack` closes it."""
    from monocontext.sessions.local_sessions import open_folder, open_machine  # slow to import

    is_path = "://" not in context and context != "-"
    is_file = is_path and os.path.isfile(context)
    _check_shape(context, shape, is_text=is_file or context == "-")
    if texts := named_texts(context):
        if list(texts.values()).count("-") > 1:
            raise UsageError("only one text can come from stdin: give the others as files or URLs")
        return {name: _open(location, options, shape, stack) for name, location in texts.items()}
    _check_named_locations(_named_locations(context))
    if context == LOCAL_SESSIONS:
        return stack.enter_context(open_machine(note=lambda text: click.echo(f"rlm: {text}", err=True)))
    if context == "-":
        return _decode(sys.stdin.buffer.read(), "stdin")
    if is_file:
        return _decode(Path(context).read_bytes(), context)
    if is_path and not os.path.exists(context):
        raise UsageError(f"{context}: no such file or directory; give a path, a URL such as s3://bucket/prefix, or -")
    sessions = open_folder(context) if shape == "text" else None
    return stack.enter_context(_open_stored(context, options, shape) if sessions is None else sessions)


def _check_named_locations(pairs: list[tuple[str, str]]) -> None:
    """Raise UsageError for several named texts of which one is missing, or which share a name."""
    if len(pairs) < 2:
        return
    for _, location in pairs:
        if not names_context(location):
            raise UsageError(f"{location}: no such file or directory; give each text as NAME=FILE or NAME=URL")
    raise UsageError("two texts have the same name: give each its own, as in code=URL logs=URL")


def _check_shape(context: str, shape: str, *, is_text: bool) -> None:
    """Raise UsageError for a shape that CONTEXT cannot have. `is_text`: whether CONTEXT is a text file or stdin."""
    if shape not in ("text", "list", "dict"):
        raise UsageError(f"--shape must be text, list or dict, not {shape!r}")
    if shape != "text" and context == LOCAL_SESSIONS:
        raise UsageError(f"--shape {shape} needs a stored context: leave it out with --sessions")
    if shape != "text" and is_text:
        raise UsageError(f"--shape {shape} needs a stored context: `monocontext upload` creates one from {context}")


def _open_stored(context: str, options: StoreOptions, shape: str) -> Any:
    """Open a context at a URL or in a directory. Raises UsageError, and the errors of `Monocontext.open`."""
    try:
        return Monocontext.open(context, shape=shape, **checked_options(context, options))  # type: ignore[call-overload]
    except ValueError as error:
        if type(error) is ValueError:  # for an option; subclasses, such as InvalidUrl, are printed as they are
            raise UsageError(str(error)) from None
        raise


def _decode(data: bytes, source: str) -> str:
    """Decode UTF-8, without its byte order mark. Line ends stay as they are. Raises UsageError."""
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as exc:
        byte = f"0x{data[exc.start]:02x} at offset {exc.start}"
        raise UsageError(f"{source} is not UTF-8: byte {byte}; convert it to UTF-8") from None
