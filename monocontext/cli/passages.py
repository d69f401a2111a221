"""The commands `search` and `outline`: find the best passages of a context, and summarize it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import click

from monocontext.cli.options import S3, Allow, AsJson, is_place, options_of, plain_folder
from monocontext.cli.parameters import Argument, Option
from monocontext.cli.printing import as_flags, escape_controls, remark, say
from monocontext.errors import MonocontextError
from monocontext.text.monocontext import Monocontext
from monocontext.text.search.ranked import search as rank


def search(
    words: Annotated[
        list[str],
        Argument(
            metavar="WORDS URL", help='Words; "a phrase" must occur, -word must not, doc:GLOB limits the documents.'
        ),
    ],
    most: Annotated[int, Option("--max-count", "-m", min=1, help="Print at most this many passages.")] = 10,
    max_bytes: Annotated[
        int | None, Option(min=1, help="Read at most this much text, in bytes; by default 64 MiB.")
    ] = None,
    max_seconds: Annotated[float | None, Option(min=0, help="Search at most this long.")] = None,
    per_document: Annotated[
        bool, Option("--per-document", help="Print only the best passage of each document.")
    ] = False,
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


def outline(
    url: Annotated[str, Argument(metavar="URL")], allow: Allow = None, *, s3: S3, as_json: AsJson = False
) -> None:
    """Summarize the context at URL: its size, its documents, and headings from seven places in it.

    With --json, prints one object: `characters`, `lines`, `documents`, `names`, `kinds`, `places`, and `headings`, each
    with `start` in characters, `line`, `kind` and `text`.
    """
    with Monocontext.open(url, allow=allow or (), **options_of(url, s3)) as context:
        result = context.outline()
    if as_json:
        print(json.dumps(asdict(result) | {"headings": [heading._asdict() for heading in result.headings]}))
        return
    for row in str(result).split("\n"):
        print(escape_controls(row))
