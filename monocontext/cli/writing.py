"""The commands `upload`, `append` and `index`: make a context from text, and add to it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import click

from monocontext.cli.cluster import Dask, workers
from monocontext.cli.json_lines import read_json_lines
from monocontext.cli.options import S3, Allow, AsJson, options_of, parse_bytes, stored_options
from monocontext.cli.parameters import Argument, Option, OptionGroup, is_stored_text
from monocontext.cli.printing import print_line, print_note, progress_bar, shows_progress
from monocontext.format.manifest import Manifest
from monocontext.options import StoreOptions
from monocontext.writing.decoding import PIECE_BYTES
from monocontext.writing.documents import documents
from monocontext.writing.folder import Folder
from monocontext.writing.index_in_place import index as index_objects
from monocontext.writing.inputs import Source
from monocontext.writing.publish import append as append_to
from monocontext.writing.publish import publish
from monocontext.writing.segments import FRAME_BYTES
from monocontext.writing.upkeep.compact import add_filters

Places = Annotated[list[str], Argument(metavar="SRC... URL", help="Files, folders, - (stdin); then the context's URL.")]
FollowLinks = Annotated[bool, Option(help="Follow links in a directory, also out of it.")]
Frames = Annotated[int, Option(type=parse_bytes, metavar="SIZE", help="Text in one frame, the unit of reads.")]
Segments = Annotated[int, Option(type=parse_bytes, metavar="SIZE", help="Stored bytes in one object.")]
Encoding = Annotated[str, Option(help="Encoding of the sources.")]
Errors = Annotated[str, Option(type=click.Choice(["strict", "replace"]), help="What to do with invalid bytes.")]
Globs = Annotated[list[str] | None, Option(metavar="GLOB", help="Files and folders, as in .gitignore; repeatable.")]
NoIgnore = Annotated[bool, Option(help="Also take files of a git repository that git ignores.")]
NoFilters = Annotated[bool, Option(help="Write no search filters.")]


def input_options(
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    include: Globs = None,
    exclude: Globs = None,
    no_ignore: NoIgnore = False,
    follow_links: FollowLinks = False,
    documents: Annotated[
        str | None, Option(type=click.Choice(["jsonl"]), help="Read files of JSON lines: each row is a document.")
    ] = None,
    text_field: Annotated[str, Option(metavar="FIELD", help="With --documents: the field with the text.")] = "text",
    name_field: Annotated[str | None, Option(metavar="FIELD", help="The field with the name; else a number.")] = None,
) -> Callable[[list[str]], dict[str, Any]]:
    """The options of sources. Returns a function that turns their names into keywords of `publish` and `append`."""
    if documents and (errors != "strict" or include or exclude or no_ignore or follow_links):
        raise click.UsageError("--documents reads rows, not folders or plain text: only --encoding goes with it")
    fields = {"text_field": text_field, "name_field": name_field, "encoding": encoding}
    return lambda names: {
        "sources": _sources(names, documents is not None, fields), "encoding": encoding, "errors": errors,
        "note": print_note, "include": tuple(include or ()), "exclude": tuple(exclude or ()), "ignored": no_ignore,
        "follow_links": follow_links,
    }  # fmt: skip


Inputs = Annotated[Callable[[list[str]], dict[str, Any]], OptionGroup(input_options)]


def upload(
    places: Places,
    inputs: Inputs,
    s3: S3,
    frame_bytes: Frames = "256K",  # type: ignore[assignment]  # click parses defaults too
    segment_bytes: Segments = "16M",  # type: ignore[assignment]
    codec: Annotated[str, Option(type=click.Choice(["zstd", "raw"]), help="raw stores plain text.")] = "zstd",
    replace: Annotated[bool, Option(help="Replace the text of an existing context.")] = False,
    no_filters: NoFilters = False,
    dask: Dask = None,
    as_json: AsJson = False,
) -> None:
    """Store texts as a new context at URL."""
    sources, url, options = split_places(places, s3)
    with storing("upload", dask, sources) as work:
        manifest = publish(
            url=url, frame_bytes=frame_bytes, segment_bytes=segment_bytes, codec=codec, filters=not no_filters,
            replace=replace, store_options=options, **inputs(sources), **work,
        )  # fmt: skip
    print_stored(manifest, url, as_json)


def append(
    places: Places,
    inputs: Inputs,
    s3: S3,
    segment_bytes: Segments = "16M",  # type: ignore[assignment]
    no_filters: NoFilters = False,
    dask: Dask = None,
    as_json: AsJson = False,
) -> None:
    """Add texts at the end of the context at URL, as a new version of it."""
    sources, url, options = split_places(places, s3)
    with storing("append", dask, sources) as work:
        manifest = append_to(
            url=url, segment_bytes=segment_bytes, filters=not no_filters, store_options=options, **inputs(sources),
            **work,
        )  # fmt: skip
    print_stored(manifest, url, as_json)


def index(
    places: Annotated[
        list[str], Argument(metavar="SRC... DEST", help="Objects, or places of objects; then the URL of the context.")
    ],
    s3: S3,
    filters: Annotated[
        bool | None, Option("--filters/--no-filters", help="Write search filters; with DEST alone, add them to it.")
    ] = None,
    rebuild: Annotated[bool, Option(help="With --filters: write all filters again.")] = False,
    frame_bytes: Frames = "256K",  # type: ignore[assignment]
    replace: Annotated[bool, Option(help="Replace the text of an existing context.")] = False,
    allow: Allow = None,
    dask: Dask = None,
    as_json: AsJson = False,
) -> None:
    """Make a context at DEST from plain text objects in S3 or a directory, without copying them.

    With --filters and no SRC: add the search filters that the context at DEST lacks. Its text stays as it is.
    """
    if filters and len(places) == 1:
        if replace or dask or frame_bytes != FRAME_BYTES:
            raise click.BadParameter("--replace, --frame-bytes and --dask need sources: --filters alone keeps the text")
        _add_missing_filters(places[0], rebuild, allow or (), s3, as_json)
        return
    if rebuild or allow:
        raise click.BadParameter("--rebuild and --allow need --filters and a URL alone: they are for stored contexts")
    sources, url, options = split_places(places, s3, of_sources=True)
    with storing("index", dask, sources) as work:
        manifest = index_objects(
            sources, url, frame_bytes=frame_bytes, filters=filters is not False, replace=replace, note=print_note,
            store_options=options, **work,
        )  # fmt: skip
    print_stored(manifest, url, as_json)


def _add_missing_filters(url: str, rebuild: bool, allow: Sequence[str], s3: StoreOptions, as_json: bool) -> None:
    """Add the search filters that a context lacks, or with `rebuild` write all of them again."""
    options = options_of(url, s3)
    with storing("index --filters") as work:
        manifest = add_filters(url, rebuild=rebuild, allow=allow, store_options=options, progress=work["progress"])
    print_stored(manifest, url, as_json)


def split_places(
    places: list[str], s3: StoreOptions, *, of_sources: bool = False
) -> tuple[list[str], str, StoreOptions]:
    """Split the arguments SRC... URL into the sources, the URL of the context, and options: those of its store, or with
    `of_sources` all that were given, which the library divides between the stores."""
    *sources, url = places
    if not sources:
        raise click.BadParameter(f"expected one or more sources and then a URL, got only {url!r}")
    if text := next((name for name in sources if "://" not in name and is_stored_text(name)), None):
        raise click.BadParameter(f"{text} is a stored text, not a file to read: its URL comes last")
    own = stored_options(url, s3, *(sources if of_sources else ()))  # checks the URL also where all are passed on
    return sources, url, s3 if of_sources else own


def _sources(names: list[str], has_rows: bool, fields: dict[str, Any]) -> Iterable[Source]:
    """The sources that `publish` reads, for the names of files on the command line."""
    if has_rows and "-" in names:
        raise click.BadParameter("--documents reads files, not stdin: write the rows to a file")
    if not has_rows and (fields["name_field"] is not None or fields["text_field"] != "text"):
        raise click.BadParameter("--text-field and --name-field need --documents jsonl: add it, or leave them out")
    if location := next((name for name in names if "://" in name), None):
        raise click.BadParameter(
            f"{location} is not a file here: `monocontext sync {location} URL` stores its objects as documents, and "
            f"`monocontext index {location} URL` refers to them without a copy"
        )
    if has_rows:
        return (documents(read_json_lines(Path(name).expanduser(), **fields)) for name in names)
    if "-" in names:
        return _with_stdin(names)
    return [Path(name).expanduser() for name in names]  # a list, so that documents of the same name can be told apart


def _with_stdin(names: list[str]) -> Iterator[Source]:
    """Yield the files of these names, and for `-` the pieces of stdin."""
    for name in names:
        if name != "-":
            yield Path(name).expanduser()
            continue
        while data := sys.stdin.buffer.read(PIECE_BYTES):
            yield data


@contextmanager
def storing(label: str, dask: str | None = None, sources: Iterable[str] = ()) -> Iterator[dict[str, Any]]:
    """Show progress, report usage errors, and yield `progress` and `executor` for a function that stores."""
    with progress_bar(label, _total_bytes(sources)) as progress, usage_errors(), workers(dask) as executor:
        yield {"progress": progress, "executor": executor}


def _total_bytes(paths: Iterable[str]) -> int | None:
    """Roughly the bytes of files and folders, globs and git ignored; None for stdin, for URLs, and if no bar shows."""
    if not shows_progress():
        return None
    total = 0
    for path in map(os.path.expanduser, paths):
        if path == "-" or "://" in path:
            return None
        if os.path.isdir(path):
            total += sum(os.path.getsize(os.path.join(path, name)) for name in Folder(path).files())
        elif os.path.exists(path):
            total += os.path.getsize(path)
    return total or None


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn a `ValueError` about the value of an option into a usage error of click."""
    try:
        yield
    except ValueError as error:
        if type(error) is not ValueError:  # subclasses such as `InvalidText` are not about options
            raise
        raise click.BadParameter(str(error)) from error


def print_stored(manifest: Manifest, url: str, as_json: bool) -> None:
    """Print the version and the size of a stored text."""
    if as_json:
        fields = ("generation", "characters", "text_bytes", "lines", "frames", "stored_bytes")
        print(json.dumps({"url": url, **{name: getattr(manifest, name) for name in fields}}))
        return
    if not manifest.characters:
        print_note(f"{url} is an empty text: its sources hold no text")
    version = f"version {manifest.generation}, " if manifest.generation > 1 else ""
    share = f", {100 * manifest.stored_bytes / manifest.text_bytes:.0f} % of the text" if manifest.text_bytes else ""
    print_line(
        f"{url}: {version}{manifest.characters:,} characters in {manifest.lines:,} lines, "
        f"{manifest.stored_bytes:,} bytes stored{share}"
    )
