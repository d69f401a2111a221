"""The commands `info`, `outline`, `cat`, `ls-documents`, `search` and `cite`: read texts."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import click

from monocontext.cli.options import S3, Allow, AsJson, Generation, folder_prefix, globs_of, options_of
from monocontext.cli.parameters import AT_LEAST_1, NOT_NEGATIVE, Argument, Option, is_place, make_command
from monocontext.cli.printing import print_error, print_line, print_note, print_record, print_row, write_text
from monocontext.errors import MonocontextError, NotFound
from monocontext.format.directories import expand
from monocontext.format.filters.layout import FilterLayout
from monocontext.stores import open_store
from monocontext.stores.address import parse
from monocontext.text.monocontext import Monocontext
from monocontext.text.search.ranked import search as rank

if TYPE_CHECKING:
    from monocontext.format.manifest import Manifest

Url = Annotated[str, Argument(help="The context: s3://bucket/prefix, or a directory.")]

_SOURCE = re.compile(r"(\d{1,18})-(\d{1,18})(?:@(\d{1,18}))?(?:#([0-9a-f]{8,64}))?")
_MOST_CITED = 1_000_000  # the longest source that `cite` reads, in characters
_SHOWN_OF_PLAIN = ("url", "characters", "lines", "bytes", "documents")
_SHOWN_OF_STORED = ("url", "version", "created", "characters", "lines", "bytes", "stored_bytes", "filters", "documents",
                    "sources")  # fmt: skip
"""The facts for people; `--json` prints all."""


def info(url: Url, s3: S3, generation: Generation = None, as_json: AsJson = False) -> None:
    """Describe the context at URL (1 GET; above 150 GB one more for each directory, which covers 1 TB of text)."""
    options = options_of(url, s3)
    with Monocontext.open(url, generation=generation, prefetch="off", **options) as context:
        manifest: Manifest = context.span.source.reader.manifest  # type: ignore[attr-defined]  # opened: it has one
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
    with Monocontext.open(url, allow=allow or (), **options_of(url, s3)) as context:
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
    lines: Annotated[str | None, Option(metavar="A:B", help="Lines A up to B, without B, from 1; or A alone.")] = None,
    document: Annotated[str | None, Option(metavar="NAME", help="This document alone, in which --lines count.")] = None,
    generation: Generation = None,
    allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Print the text of the context at URL, or a part of it, piece by piece; with --json as one object."""
    if chars is not None and not (lines is None and document is None):
        raise click.BadParameter("--chars cannot be combined with --lines or --document")
    part, line_range = _parse_range(chars or ":"), _line_range(lines)
    options = options_of(url, s3)
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
        raise NotFound(f"{url}: {error}; `ls-documents` lists all") from None
    return context.view(record.start, record.stop)


def _parse_range(text: str) -> slice:
    """Parse `START:STOP`, in which either end may be missing, or a single number."""
    start, colon, stop = text.partition(":")
    try:
        if not colon:
            return slice(int(start), int(start) + 1 or None)
        return slice(int(start) if start else None, int(stop) if stop else None)
    except ValueError:
        raise click.BadParameter(f"not a range: {text!r}; write START:STOP, START:, :STOP or a number") from None


def _line_range(lines: str | None) -> slice | None:
    """Parse `--lines`, which counts from 1, into a slice from 0."""
    if lines is None:
        return None
    part = _parse_range(lines)
    if 0 in (part.start, part.stop):
        raise click.BadParameter(f"lines are counted from 1, or from the end with a minus sign, not {lines!r}")
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
    with Monocontext.open(url, generation=generation, **options_of(url, s3)) as context:
        documents = context.documents
        globs = globs_of([pattern] if pattern else [])
        for record in documents.records():
            if not globs.select(record.name):
                continue
            row = {field: getattr(record, field) for field in ("name", "start", "stop", "first_line", "bytes")}
            row["metadata"] = documents.metadata_of(record.number) if as_json else None
            print_record(as_json, row, f"{len(record):>12,}  {record.newlines:>9,}  {record.name}")


def _search(
    words: Annotated[
        list[str],
        Argument(metavar="WORDS URL", help="As in '\"must occur\" matters -must-not doc:GLOB'; then the URL."),
    ],
    s3: S3,
    most: Annotated[int, Option("--max-count", "-m", type=AT_LEAST_1, help="Print at most so many passages.")] = 10,
    max_bytes: Annotated[int | None, Option(type=AT_LEAST_1, help="Most bytes to read; by default 64 MiB.")] = None,
    max_seconds: Annotated[float | None, Option(type=NOT_NEGATIVE, help="Search at most this long.")] = None,
    allow: Allow = None,
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
            passages = rank(
                context.span, " ".join(query), most, max_bytes, max_seconds, documents=context.documents, between=False
            )
        except ValueError as error:
            raise MonocontextError(str(error)) from None
    for item in passages:
        if as_json:
            print(json.dumps(item._asdict() | {"document_line": item.document_line}))
            continue
        location = item.place if item.document is None else (folder_prefix(url) or "") + item.place
        print_line(f"{location} ({item.score:.1f}, characters {item.start} to {item.stop})")
        for line in item.text.rstrip("\n").split("\n"):
            print_line(f"    {line}")
    if passages.note:
        print_error("monocontext", passages.note)
    elif not passages:
        print_note("no passage matches these words")
    if not passages:
        raise click.exceptions.Exit(1)


class _SearchCommand(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. `-word` stands for no options: after a blank, which the query ignores, it is a word."""
        return super().parse_args(ctx, [re.sub(r"^-(?=[^\W\d_]{2})", " -", word) for word in args])


search = make_command(_search, "search", kind=_SearchCommand)


def _split_url(words: list[str]) -> tuple[list[str], str]:
    """Take the URL from the words: the first or last that is no ` -word`. Raises a usage error where both may be it."""
    unwanted = [word for word in words if word.startswith(" -")]
    words = [word for word in words if word not in unwanted] or words
    first, last = len(words) > 1 and is_place(words[0]), is_place(words[-1])
    if first and last:
        first, last = "://" in words[0], "://" in words[-1]
        if first == last:
            raise click.BadParameter(
                f"which is the text, {words[0]!r} or {words[-1]!r}? Write a word that is also a path as a phrase: "
                f"'\"{words[-1]}\"'"
            )
    rest, url = (words[1:], words[0]) if first and not last else (words[:-1], words[-1])
    return rest + unwanted, url


def cite(
    url: Url,
    source: Annotated[str, Argument(metavar="SOURCE", help="As an answer names it: START-STOP@GENERATION#CHECKSUM.")],
    s3: S3,
    allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Print the passage that a source of an answer names.

    With #CHECKSUM, fail if the newest version of URL has another text there; without, only if the text is shorter.
    """
    match = _SOURCE.fullmatch(source)
    start, stop = (int(match[1]), int(match[2])) if match else (0, 0)
    if not match or not 0 < stop - start <= _MOST_CITED:
        raise MonocontextError(
            f"not a source: {source!r}; a source is START-STOP, optionally with @GENERATION and #CHECKSUM, and spans "
            f"at most {_MOST_CITED:,} characters"
        )
    with Monocontext.open(url, allow=allow or (), **options_of(url, s3)) as context:
        text = str(context[start:stop])
        line = len(context.view(0, start + 1).lines)
        generation = context.generation
    checksum = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    is_unchanged: bool | None = len(text) == stop - start and checksum.startswith(match[4] or "")
    if is_unchanged and not match[4] and match[3] != str(generation):
        is_unchanged = None  # unknown: nothing in the source tells what the passage was
    if as_json:
        print(json.dumps({
            "stands": is_unchanged, "start": start, "stop": stop, "line": line, "sha256": checksum, "text": text,
            "cited_generation": match[3] and int(match[3]), "generation": generation,
        }))  # fmt: skip
    else:
        write_text(text if text.endswith("\n") else text + "\n")
    if is_unchanged is None:
        print_note("the source has no checksum, so the text may differ from what was cited")
    if is_unchanged is False:
        raise MonocontextError(f"{url}: line {line}, characters {start} to {stop} differ from the cited text")
