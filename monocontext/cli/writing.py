"""`upload`, `append`, `index`: text into contexts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from monocontext.cli.cluster import Dask, workers
from monocontext.cli.options import (
    Allow,
    Anonymous,
    AsJson,
    Endpoint,
    Profile,
    Region,
    check_place,
    options_of,
    parse_bytes,
    s3_options,
)
from monocontext.cli.progress import bar, of_upload, total_bytes
from monocontext.manifest import Manifest
from monocontext.sources import PIECE_BYTES, Source

Places = Annotated[list[str], typer.Argument(metavar="SRC... URL", help="Files, directories or - for stdin; then URL.")]
Frames = Annotated[int, typer.Option(parser=parse_bytes, metavar="SIZE", help="Text in a frame: what one zoom reads.")]
Segments = Annotated[int, typer.Option(parser=parse_bytes, metavar="SIZE", help="Stored bytes in one object.")]
Encoding = Annotated[str, typer.Option(help="Encoding of the sources.")]
Errors = Annotated[str, typer.Option(help="What is not text: strict refuses it, replace puts U+FFFD.")]
Header = Annotated[str, typer.Option(help="Line before each file of a directory; empty for none.")]
Globs = Annotated[list[str] | None, typer.Option(metavar="GLOB", help="Files of a directory; may be repeated.")]
NoFilters = Annotated[bool, typer.Option("--no-filters", help="Write no search filters.")]

HEADER = "=== FILE: {path} ==="


def upload(
    places: Places,
    frame_bytes: Frames = "256K",  # type: ignore[assignment]  # typer parses defaults too
    segment_bytes: Segments = "16M",  # type: ignore[assignment]
    codec: Annotated[str, typer.Option(help="zstd, or raw: segments stay plain text.")] = "zstd",
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    header: Header = HEADER,
    include: Globs = None,
    exclude: Globs = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the text of a context that is there.")] = False,
    no_filters: NoFilters = False,
    dask: Dask = None,
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
) -> None:
    """Store texts as a new context at URL."""
    from monocontext.writer import publish

    sources, url, options = _split(places, s3_options(endpoint, region, profile, anonymous))
    with of_upload("upload", total_bytes(sources)) as progress, settings(), workers(dask) as executor:
        manifest = publish(
            _sources(sources),
            url,
            frame_bytes=frame_bytes,
            segment_bytes=segment_bytes,
            codec=codec,
            filters=not no_filters,
            replace=replace,
            progress=progress,
            store_options=options,
            executor=executor,
            **_reading(encoding, errors, header, include, exclude),
        )
    print_root(manifest, url, as_json)


def append(
    places: Places,
    segment_bytes: Segments = "16M",  # type: ignore[assignment]
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    header: Header = HEADER,
    include: Globs = None,
    exclude: Globs = None,
    no_filters: NoFilters = False,
    dask: Dask = None,
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
) -> None:
    """Add texts at the end of the context at URL, as a new generation."""
    from monocontext.writer import append as append_to

    sources, url, options = _split(places, s3_options(endpoint, region, profile, anonymous))
    with of_upload("append", total_bytes(sources)) as progress, settings(), workers(dask) as executor:
        manifest = append_to(
            _sources(sources),
            url,
            segment_bytes=segment_bytes,
            filters=not no_filters,
            progress=progress,
            store_options=options,
            executor=executor,
            **_reading(encoding, errors, header, include, exclude),
        )
    print_root(manifest, url, as_json)


def index(
    places: Annotated[list[str], typer.Argument(metavar="SRC... DEST", help="Objects or places that hold some; DEST.")],
    filters: Annotated[
        bool | None,
        typer.Option(
            "--filters/--no-filters", help="Write search filters; with DEST alone, a context, add them to it."
        ),
    ] = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="With --filters: make all of them anew.")] = False,
    frame_bytes: Frames = "256K",  # type: ignore[assignment]
    replace: Annotated[bool, typer.Option("--replace", help="Replace the text of a context that is there.")] = False,
    allow: Allow = None,
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
) -> None:
    """Make a context at DEST of plain text objects that already lie in S3 (or a directory), without copying them.

    With --filters and no SRC: give the context at DEST the search filters that it lacks, its text as it is.
    """
    from monocontext.refilter import add_filters
    from monocontext.virtual import index as index_objects

    if filters and len(places) == 1:
        if replace:
            raise typer.BadParameter("--filters without sources replaces nothing")
        options = options_of(places[0], endpoint, region, profile, anonymous)
        with bar("index --filters", None) as show:
            manifest = add_filters(places[0], rebuild=rebuild, allow=allow or (), progress=show, store_options=options)
        print_root(manifest, places[0], as_json)
        return
    sources, url, options = _split(places, s3_options(endpoint, region, profile, anonymous))
    with of_upload("index", total_bytes(sources)) as progress, settings():
        manifest = index_objects(
            sources,
            url,
            frame_bytes=frame_bytes,
            filters=filters is not False,
            replace=replace,
            progress=progress,
            note=_note,
            store_options=options,
        )
    print_root(manifest, url, as_json)


def _split(places: list[str], options: dict[str, Any]) -> tuple[list[str], str, dict[str, Any]]:
    *sources, url = places
    if not sources:
        raise typer.BadParameter(f"one or more sources and then a URL; only {url!r} was given")
    options = options if url.startswith("s3:") else {}
    check_place(url, options)
    return sources, url, options


def _sources(names: list[str]) -> Iterator[Source]:
    for name in names:
        if name == "-":
            while data := sys.stdin.buffer.read(PIECE_BYTES):
                yield data
        else:
            yield Path(name).expanduser()


def _reading(
    encoding: str, errors: str, header: str, include: list[str] | None, exclude: list[str] | None
) -> dict[str, Any]:
    header = header.replace("\\n", "\n")
    return {
        "encoding": encoding,
        "errors": errors,
        "header": header if not header or header.endswith("\n") else header + "\n",
        "include": tuple(include or ()),
        "exclude": tuple(exclude or ()),
        "note": _note,
    }


class settings:
    """Turns a `ValueError` about an option's value into typer's own complaint."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if kind is ValueError:
            raise typer.BadParameter(str(error)) from error


def _note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)


def print_root(manifest: Manifest, url: str, as_json: bool) -> None:
    if as_json:
        fields = ("generation", "characters", "text_bytes", "lines", "frames", "stored_bytes")
        print(json.dumps({"url": url, **{name: getattr(manifest, name) for name in fields}}))
        return
    share = f", {100 * manifest.stored_bytes / manifest.text_bytes:.0f} % of the text" if manifest.text_bytes else ""
    print(
        f"{url}: generation {manifest.generation}, {manifest.characters:,} characters in {manifest.lines:,} lines, "
        f"{manifest.stored_bytes:,} bytes stored{share}"
    )
