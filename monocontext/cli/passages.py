"""The command `search`: find the best passages of a context."""

from __future__ import annotations

import json
from typing import Annotated

import click

from monocontext.cli.options import AT_LEAST_1, S3, SECONDS, Allow, AsJson, is_place, options_of, plain_folder
from monocontext.cli.parameters import Argument, Option
from monocontext.cli.printing import as_flags, escape_controls, remark, say
from monocontext.errors import MonocontextError
from monocontext.text.monocontext import Monocontext
from monocontext.text.search.ranked import search as rank


def search(
    words: Annotated[
        list[str],
        Argument(metavar="WORDS URL", help='Words; "a phrase" must occur, -word must not, doc:GLOB limits documents.'),
    ],
    most: Annotated[int, Option("--max-count", "-m", type=AT_LEAST_1, help="Print at most so many passages.")] = 10,
    max_bytes: Annotated[int | None, Option(type=AT_LEAST_1, help="Read at most so many bytes, or 64 MiB.")] = None,
    max_seconds: Annotated[float | None, Option(type=SECONDS, help="Search at most this long.")] = None,
    per_document: Annotated[bool, Option(help="Print only the best passage of each document.")] = False,
    allow: Allow = None,
    *,
    s3: S3,
    as_json: AsJson = False,
) -> None:
    """Print the passages that match WORDS best, the best first, reading as little as search filters allow.

    Exits with 0 if there is a passage, 1 if there is none, 2 on errors. With --json, prints an object for each passage:
    `start` and `stop` in characters, `line` of the whole text, `document`, `document_line`, `score`, `text`.
    """
    if len(words) < 2:
        raise click.BadParameter(f"expected WORDS and a URL, got only {words[0]!r}")
    query, url = _split_url(words)
    with Monocontext.open(url, allow=allow or (), **options_of(url, s3)) as context:
        try:
            result = rank(
                context.span, " ".join(query), most, max_bytes, max_seconds, documents=context.documents,
                per_document=per_document, between=False,
            )  # fmt: skip
        except ValueError as error:
            raise MonocontextError(str(error)) from None
    for item in result:
        if as_json:
            print(json.dumps(item._asdict() | {"document_line": item.document_line}))
            continue
        location = plain_folder(url) + item.place if item.document is not None else item.place
        print(escape_controls(f"{location} ({item.score:.1f}, characters {item.start} to {item.stop})"))
        for line in item.text.rstrip("\n").split("\n"):
            print(f"    {escape_controls(line)}")
    if result.note:
        say(f"monocontext: {as_flags(result.note)}", err=True)
    elif not result:
        remark("note: no passage matches these words")
    if not result:
        raise click.exceptions.Exit(1)


def _split_url(words: list[str]) -> tuple[list[str], str]:
    """Take the URL, which comes last or first, from the words. Raises a usage error where either end may be it."""
    first, last = is_place(words[0]), is_place(words[-1])
    if first and last:
        first, last = "://" in words[0], "://" in words[-1]
        if first == last:
            raise click.BadParameter(
                f"which is the text, {words[0]!r} or {words[-1]!r}? Write a word that is also a path as a phrase: "
                f"'\"{words[-1]}\"'"
            )
    return (words[1:], words[0]) if first and not last else (words[:-1], words[-1])
