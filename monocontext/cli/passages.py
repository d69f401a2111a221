"""`search`: the passages of a context that speak of some words, best first; `outline`: what a context is."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Annotated

import click

from monocontext.cli.options import S3, Allow, AsJson, check_order, options_of, plain_folder
from monocontext.cli.parameters import Argument, Option
from monocontext.cli.printing import escape_controls, remark
from monocontext.errors import MonocontextError


def search(
    url: Annotated[str, Argument(metavar="URL")],
    query: Annotated[
        list[str],
        Argument(metavar="WORDS", help='Words; "a phrase", -word and doc:GLOB count as they do in Python.'),
    ],
    most: Annotated[int, Option("--max-count", "-m", min=1, help="The most passages.")] = 10,
    max_bytes: Annotated[int | None, Option(min=1, help="Text to look at, in bytes; 64 MiB by default.")] = None,
    max_seconds: Annotated[float | None, Option(min=0, help="Time to look.")] = None,
    per_document: Annotated[bool, Option("--per-document", help="Of each document the best passage.")] = False,
    allow: Allow = None,
    *,
    s3: S3,
    as_json: AsJson = False,
) -> None:
    """Print the passages that speak of WORDS, best first, reading as little as search filters allow.

    Exits with 0 if there is one, 1 if there is none, 2 on errors. With --json one object a passage: `start`, `stop`
    (characters), `line` of the whole text, `document`, `document_line`, `score`, `text`.
    """
    from monocontext.text.monocontext import Monocontext
    from monocontext.text.search.ranked import search as rank

    check_order("search", [url, *query], url, query[-1], "first")
    with Monocontext.open(url, allow=allow or (), **options_of(url, s3)) as context:
        try:
            found = rank(
                context.span, " ".join(query), most, max_bytes, max_seconds, documents=context.documents,
                per_document=per_document, between=False,
            )  # fmt: skip
        except ValueError as error:
            raise MonocontextError(str(error)) from None
    for one in found:
        if as_json:
            print(json.dumps(one._asdict() | {"document_line": one.document_line}))
            continue
        place = plain_folder(url) + one.place if one.document is not None else one.place
        print(escape_controls(f"{place} ({one.score:.1f}, characters {one.start} to {one.stop})"))
        for line in one.text.rstrip("\n").split("\n"):
            print(f"    {escape_controls(line)}")
    if found.note:
        print(f"monocontext: {found.note}", file=sys.stderr)
    elif not found:
        remark("note: no passage speaks of these words")
    if not found:
        raise click.exceptions.Exit(1)


def outline(
    url: Annotated[str, Argument(metavar="URL")],
    allow: Allow = None,
    *,
    s3: S3,
    as_json: AsJson = False,
) -> None:
    """Print what the context at URL is: its size, its documents, and headings out of seven places of it.

    With --json one object: `characters`, `lines`, `documents`, `names`, `kinds`, `places`, and `headings`, each with
    `start` (characters), `line`, `kind`, `text`.
    """
    from monocontext.text.monocontext import Monocontext

    with Monocontext.open(url, allow=allow or (), **options_of(url, s3)) as context:
        found = context.outline()
    if as_json:
        print(json.dumps(asdict(found) | {"headings": [one._asdict() for one in found.headings]}))
        return
    for row in str(found).split("\n"):
        print(escape_controls(row))
