"""The commands `upload`, `append` and `index`: make a context from text, and add to it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import click

from monocontext.cli.json_lines import read_json_lines
from monocontext.cli.options import S3, Allow, AsJson, Dask, checked_options, context_options, parse_size, workers
from monocontext.cli.parameters import Argument, Option, OptionGroup, is_stored_text
from monocontext.cli.printing import print_line, print_note, progress_bar, shows_progress
from monocontext.format.manifest import Manifest
from monocontext.options import StoreOptions
from monocontext.records import dataclass
from monocontext.writing.decoding import PIECE_BYTES
from monocontext.writing.documents import documents
from monocontext.writing.folder import Folder
from monocontext.writing.index_in_place import index as index_objects
from monocontext.writing.inputs import Source
from monocontext.writing.publish import append as append_to
from monocontext.writing.publish import publish
from monocontext.writing.segments import FRAME_BYTES
from monocontext.writing.upkeep.compact import add_filters

SourcesAndUrl = Annotated[list[str], Argument(metavar="SRC... URL", help="Files, folders, - (stdin); then the URL.")]
FollowLinks = Annotated[bool, Option(help="Follow links in a directory, even those that lead out of it.")]
FrameBytes = Annotated[int, Option(type=parse_size, metavar="SIZE", help="Text in one frame, the unit of reads.")]
SegmentBytes = Annotated[int, Option(type=parse_size, metavar="SIZE", help="Stored bytes in one object.")]
Encoding = Annotated[str, Option(help="Encoding of the sources.")]
Errors = Annotated[str, Option(type=click.Choice(["strict", "replace"]), help="What to do with invalid bytes.")]
Globs = Annotated[list[str] | None, Option(metavar="GLOB", help="Files and folders, as in .gitignore; repeatable.")]
NoIgnore = Annotated[bool, Option(help="Also take files of a git repository that git ignores.")]
NoFilters = Annotated[bool, Option(help="Write no search filters.")]


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options that tell how to read the sources of a text."""

    encoding: Encoding = "utf-8"
    errors: Errors = "strict"
    include: Globs = None
    exclude: Globs = None
    no_ignore: NoIgnore = False
    follow_links: FollowLinks = False
    documents: Annotated[
        str | None, Option(type=click.Choice(["jsonl"]), help="Read files of JSON lines: each row is a document.")
    ] = None
    text_field: Annotated[str, Option(metavar="FIELD", help="With --documents: the field with the text.")] = "text"
    name_field: Annotated[str | None, Option(metavar="FIELD", help="Field with the name; by default a number.")] = None

    def __post_init__(self) -> None:
        """Raise `click.UsageError` for options that exclude each other."""
        reads_plain_text = self.errors != "strict" or self.include or self.exclude or self.no_ignore
        if self.documents and (reads_plain_text or self.follow_links):
            raise click.UsageError("--documents reads rows, not folders or plain text: only --encoding goes with it")
        if not self.documents and (self.name_field is not None or self.text_field != "text"):
            raise click.BadParameter("--text-field and --name-field need --documents jsonl: add it, or leave them out")

    def keywords(self, names: list[str]) -> dict[str, Any]:
        """The keywords of `publish` and `append` for the sources with these names. Raises `click.BadParameter`."""
        return {
            "sources": self._sources(names), "encoding": self.encoding, "errors": self.errors, "note": print_note,
            "include": tuple(self.include or ()), "exclude": tuple(self.exclude or ()), "ignored": self.no_ignore,
            "follow_links": self.follow_links,
        }  # fmt: skip

    def _sources(self, names: list[str]) -> Iterable[Source]:
        if self.documents and "-" in names:
            raise click.BadParameter("--documents reads files, not stdin: write the rows to a file")
        url = next((name for name in names if "://" in name), None)
        if url:
            raise click.BadParameter(
                f"{url} is not a file here: `monocontext sync {url} URL` stores its objects as documents, and "
                f"`monocontext index {url} URL` refers to them without a copy"
            )
        if self.documents:
            fields: dict[str, Any] = {"text_field": self.text_field, "name_field": self.name_field}
            paths = (Path(name).expanduser() for name in names)
            return (documents(read_json_lines(path, encoding=self.encoding, **fields)) for path in paths)
        if "-" in names:
            return _with_stdin(names)
        return [Path(name).expanduser() for name in names]  # a list, so that equal names of documents can be told apart


Inputs = Annotated[SourceOptions, OptionGroup(SourceOptions)]


def upload(
    arguments: SourcesAndUrl,
    inputs: Inputs,
    s3: S3,
    frame_bytes: FrameBytes = "256K",  # type: ignore[assignment]  # click parses defaults too
    segment_bytes: SegmentBytes = "16M",  # type: ignore[assignment]
    codec: Annotated[str, Option(type=click.Choice(["zstd", "raw"]), help="raw stores plain text.")] = "zstd",
    replace: Annotated[bool, Option(help="Replace the text of an existing context.")] = False,
    no_filters: NoFilters = False,
    dask: Dask = None,
    as_json: AsJson = False,
) -> None:
    """Store texts as a new context at URL."""
    sources, url = split_url(arguments)
    options = context_options(url, s3)
    with storing("upload", dask, sources) as work:
        manifest = publish(
            url=url, frame_bytes=frame_bytes, segment_bytes=segment_bytes, codec=codec, filters=not no_filters,
            replace=replace, store_options=options, **inputs.keywords(sources), **work,
        )  # fmt: skip
    print_stored(manifest, url, as_json=as_json)


def append(
    arguments: SourcesAndUrl,
    inputs: Inputs,
    s3: S3,
    segment_bytes: SegmentBytes = "16M",  # type: ignore[assignment]
    no_filters: NoFilters = False,
    dask: Dask = None,
    as_json: AsJson = False,
) -> None:
    """Add texts at the end of the context at URL, as a new version of it."""
    sources, url = split_url(arguments)
    options = context_options(url, s3)
    with storing("append", dask, sources) as work:
        manifest = append_to(
            url=url, segment_bytes=segment_bytes, filters=not no_filters, store_options=options,
            **inputs.keywords(sources), **work,
        )  # fmt: skip
    print_stored(manifest, url, as_json=as_json)


def index(
    arguments: Annotated[
        list[str], Argument(metavar="SRC... DEST", help="Objects, or prefixes of objects; then the context's URL.")
    ],
    s3: S3,
    filters: Annotated[
        bool | None, Option("--filters/--no-filters", help="Write search filters; with DEST alone, add missing ones.")
    ] = None,
    rebuild: Annotated[bool, Option(help="With --filters: write all filters again.")] = False,
    frame_bytes: FrameBytes = "256K",  # type: ignore[assignment]
    replace: Annotated[bool, Option(help="Replace the text of an existing context.")] = False,
    allow: Allow = None,
    dask: Dask = None,
    as_json: AsJson = False,
) -> None:
    """Make a context at DEST from plain text objects in S3 or a directory, without copying them.

    With --filters and no SRC: add the search filters that the context at DEST lacks. Its text stays as it is.
    """
    if filters and len(arguments) == 1:
        if replace or dask or frame_bytes != FRAME_BYTES:
            raise click.BadParameter("--replace, --frame-bytes and --dask need sources: --filters alone keeps the text")
        _add_missing_filters(arguments[0], allow or (), s3, rebuild=rebuild, as_json=as_json)
        return
    if rebuild or allow:
        raise click.BadParameter("--rebuild and --allow need --filters and a URL alone: they are for stored contexts")
    sources, url = split_url(arguments)
    context_options(url, s3, *sources)  # the library divides the options between the stores
    with storing("index", dask, sources) as work:
        manifest = index_objects(
            sources, url, frame_bytes=frame_bytes, filters=filters is not False, replace=replace, note=print_note,
            store_options=s3, **work,
        )  # fmt: skip
    print_stored(manifest, url, as_json=as_json)


def _add_missing_filters(url: str, allow: Sequence[str], s3: StoreOptions, *, rebuild: bool, as_json: bool) -> None:
    """Add the search filters that a context lacks, or with `rebuild` write all of them again."""
    options = checked_options(url, s3)
    with storing("index --filters") as work:
        manifest = add_filters(url, rebuild=rebuild, allow=allow, store_options=options, progress=work["progress"])
    print_stored(manifest, url, as_json=as_json)


def split_url(arguments: list[str]) -> tuple[list[str], str]:
    """The sources and the URL of the context in the arguments SRC... URL. Raises `click.BadParameter`."""
    *sources, url = arguments
    if not sources:
        raise click.BadParameter(f"expected one or more sources and then a URL, got only {url!r}")
    text = next((name for name in sources if "://" not in name and is_stored_text(name)), None)
    if text:
        raise click.BadParameter(f"{text} is a stored text, not a file to read: its URL comes last")
    return sources, url


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
    """Show progress and report usage errors in a block. Yields the keywords `progress` and `executor` of `publish`."""
    with progress_bar(label, _total_bytes(sources)) as progress, usage_errors(), workers(dask) as executor:
        yield {"progress": progress, "executor": executor}


def _total_bytes(paths: Iterable[str]) -> int | None:
    """The bytes of files and folders, ignored files included. None for stdin and URLs, and if no progress is shown."""
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


def print_stored(manifest: Manifest, url: str, *, as_json: bool) -> None:
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
