"""Define the options of commands that use an archive of sessions, find its URL and open it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from monocontext.cli.options import open_store_at
from monocontext.cli.parameters import Argument, Option
from monocontext.errors import MonocontextError
from monocontext.options import StoreOptions
from monocontext.sessions.archive import Sessions

ArchiveUrl = Annotated[str | None, Argument(metavar="[URL]", help="URL of the archive; by default MONOCONTEXT_URL.")]
To = Annotated[str | None, Option("--to", "--url", help="URL of the archive, if not the last argument.")]
ProjectName = Annotated[str | None, Option("--project", "-p", help="Only this project.")]
OwnProject = Annotated[str | None, Option("--project", "-p", help="The project; by default that of the repository.")]
Patterns = Annotated[list[str] | None, Option(help="Regular expression that matches more secrets; repeatable.")]


def archive_url(url: str | None, to: str | None = None) -> str:
    """The URL of the archive: `url`, `to` or else MONOCONTEXT_URL. Raises `MonocontextError` if there is none."""
    chosen = find_archive_url(url, to)
    if not chosen:
        raise MonocontextError("no archive: give its URL as the last argument, or in MONOCONTEXT_URL")
    return chosen


def find_archive_url(url: str | None, to: str | None) -> str | None:
    """Like `archive_url`, but None if there is no URL. Raises `MonocontextError` if there are two."""
    if url and to:
        raise MonocontextError(f"the archive is named twice, as {url!r} and by --to or --url as {to!r}: leave one out")
    return url or to or os.environ.get("MONOCONTEXT_URL")


@contextmanager
def open_archive(url: str, s3: StoreOptions) -> Iterator[Sessions]:
    """Open the archive at a URL for a `with` block. Raises `InvalidUrl` for a URL that no command can open."""
    with open_store_at(url, s3) as store:
        yield Sessions(store)
