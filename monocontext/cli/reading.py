"""The commands `info`, `outline`, `cat` and `ls-documents`: describe texts, and print them or parts of them."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from dataclasses import asdict
from typing import Annotated, Any

import click

from monocontext.adapters.text_bytes import reader_of
from monocontext.cli.options import S3, Allow, AsJson, Generation, checked_options, folder_prefix, globs_of
from monocontext.cli.parameters import Argument, Option
from monocontext.cli.printing import print_line, print_record, print_row, write_text
from monocontext.errors import NotFound
from monocontext.format.directories import expand
from monocontext.format.filters.layout import FilterLayout
from monocontext.format.manifest import Manifest
from monocontext.stores import open_store
from monocontext.stores.address import parse
from monocontext.text.monocontext import Monocontext

Url = Annotated[str, Argument(help="The context: s3://bucket/prefix, or a directory.")]

_SHOWN_OF_PLAIN = ("url", "characters", "lines", "bytes", "documents")
_SHOWN_OF_STORED = ("url", "version", "created", "characters", "lines", "bytes", "stored_bytes", "filters", "documents",
                    "sources")  # fmt: skip
"""The facts that are printed, in this order; `--json` prints all facts."""


def info(url: Url, s3: S3, generation: Generation = None, as_json: AsJson = False) -> None:
    """Describe the context at URL (1 GET; above 150 GB one more for each directory, which covers 1 TB of text)."""
    options = checked_options(url, s3)
    with Monocontext.open(url, generation=generation, prefetch="off", **options) as context:
        manifest = reader_of(context).manifest
    if manifest.has_directories:
        with closing(open_store(url, **options)) as store:
            manifest = expand(manifest, lambda ref: store.get(ref.key).data)
    is_plain = folder_prefix(url) is not None
    location = str(parse(url)) if is_plain else context.url  # the index of a large file is in a cache folder
    facts = {"url": location, **_facts_of(manifest)}
    if as_json:
        print(json.dumps(facts))
        return
    filter_bytes = facts["filters"]["bytes"]
    facts |= {"version": facts["generation"], "filters": f"{filter_bytes:,} bytes" if filter_bytes else "none"}
    for name in _SHOWN_OF_PLAIN if is_plain else _SHOWN_OF_STORED:
        value = ", ".join(facts[name]) if name == "sources" else facts[name]
        if value != "":
            print_row(f"{name.replace('_', ' '):>12}  {value:,}" if isinstance(value, int) else f"{name:>12}  {value}")


def _facts_of(manifest: Manifest) -> dict[str, Any]:
    names = ("generation", "created", "characters", "lines", "stored_bytes", "frames", "frame_bytes", "codec")
    filters = {
        "groups": len(manifest.filters),
        "frames": sum(ref.frames for ref in manifest.filters),
        "bytes": sum(FilterLayout(ref).size_bytes for ref in manifest.filters),
    }
    return {
        **{name: getattr(manifest, name) for name in names},
        "bytes": manifest.text_bytes,
        "pages": len(manifest.pages),
        "filters": filters,
        "documents": manifest.documents.documents if manifest.documents else 0,
        "sources": list(manifest.sources),
    }


def outline(url: Url, s3: S3, allow: Allow = None, as_json: AsJson = False) -> None:
    """Summarize the context at URL: its size, its documents, and headings from seven places in it.

    With --json, prints one object: `characters`, `lines`, `documents`, `names`, `kinds`, `places`, and `headings`, each
    with `start` in characters, `line`, `kind` and `text`.
    """
    with Monocontext.open(url, allow=allow or (), **checked_options(url, s3)) as context:
        described = context.outline()
    if as_json:
        print(json.dumps(asdict(described) | {"headings": [heading._asdict() for heading in described.headings]}))
        return
    for row in str(described).split("\n"):
        print_line(row)


def cat(
    url: Url,
    s3: S3,
    chars: Annotated[str | None, Option(metavar="A:B", help="Characters A to B, as in context[A:B].")] = None,
    lines: Annotated[str | None, Option(metavar="A:B", help="Lines A up to but not including B, from 1; or A.")] = None,
    document: Annotated[str | None, Option(metavar="NAME", help="Only this document; --lines counts in it.")] = None,
    generation: Generation = None,
    allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Print the text of the context at URL, or a part of it, piece by piece; with --json as one object."""
    if chars is not None and not (lines is None and document is None):
        raise click.BadParameter("--chars cannot be combined with --lines or --document: leave out one or the other")
    part, line_range = _parse_range(chars or ":"), _line_range(lines)
    options = checked_options(url, s3)
    with Monocontext.open(url, allow=allow or (), generation=generation, **options) as context:
        view = context.view(part.start, part.stop) if document is None else _document_view(context, url, document)
        if line_range is not None:
            first, last, _ = line_range.indices(len(view.lines))
            view = view.view(view.span.line_start(first), view.span.line_start(max(first, last)))
        if as_json:
            print(json.dumps({"url": context.url, "generation": context.generation, "text": str(view)}))
            return
        for piece in view.chunks(1 << 20):
            write_text(piece)
        sys.stdout.flush()


def _document_view(context: Monocontext, url: str, name: str) -> Monocontext:
    try:
        record = context.documents.record(name)
    except KeyError as error:
        raise NotFound(f"{url}: {error} (`ls-documents` lists all names)") from None
    return context.view(record.start, record.stop)


def _parse_range(text: str) -> slice:
    """Parse `START:STOP`, in which either end may be missing, or a single number."""
    start, colon, stop = text.partition(":")
    try:
        if not colon:
            return slice(int(start), int(start) + 1 or None)  # -1 is the last: up to the end
        return slice(int(start) if start else None, int(stop) if stop else None)
    except ValueError:
        raise click.BadParameter(f"not a range: {text!r}; write START:STOP, START:, :STOP or a number") from None


def _line_range(lines: str | None) -> slice | None:
    """Parse the value of `--lines`, which counts from 1, into a slice that counts from 0; None without the option."""
    if lines is None:
        return None
    part = _parse_range(lines)
    if 0 in (part.start, part.stop):
        raise click.BadParameter(f"no line 0, as in {lines!r}: lines count from 1, or from the end with a minus sign")
    ends = (end - 1 if end is not None and end > 0 else end for end in (part.start, part.stop))
    return slice(*ends)


def ls_documents(
    url: Url,
    s3: S3,
    pattern: Annotated[str, Argument(metavar="[GLOB]", help="Only names that match, for example 'src/*.py'.")] = "",
    generation: Generation = None,
    as_json: AsJson = False,
) -> None:
    """List the documents of the context at URL: characters, lines, name (1 GET for 4,096 documents)."""
    with Monocontext.open(url, generation=generation, **checked_options(url, s3)) as context:
        documents = context.documents
        globs = globs_of([pattern] if pattern else [])
        for record in documents.records():
            if not globs.select(record.name):
                continue
            row = {field: getattr(record, field) for field in ("name", "start", "stop", "first_line", "bytes")}
            row["metadata"] = documents.metadata_of(record.number) if as_json else None
            print_record(as_json, row, f"{len(record):>12,}  {record.newlines:>9,}  {record.name}")
