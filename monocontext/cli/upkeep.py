"""`compact`, `gc`: keeping contexts small."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from monocontext.cli.options import (
    Allow,
    Anonymous,
    AsJson,
    Endpoint,
    Profile,
    Region,
    options_of,
    parse_bytes,
    parse_seconds,
)
from monocontext.cli.progress import bar
from monocontext.cli.reading import Url
from monocontext.cli.writing import NoFilters, Segments, print_root, settings

FrameBytes = Annotated[
    int | None, typer.Option(parser=parse_bytes, metavar="SIZE", help="Text in a frame; else as in the context.")
]


def compact(
    url: Url,
    segment_bytes: Segments = "16M",  # type: ignore[assignment]  # typer parses defaults too
    frame_bytes: FrameBytes = None,
    no_filters: NoFilters = False,
    allow: Allow = None,
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
) -> None:
    """Store the text of the context at URL in few full objects, as a new generation; nothing where it is so already."""
    from monocontext.compact import compact as compact_context

    options = options_of(url, endpoint, region, profile, anonymous)
    with bar("compact", None) as show, settings():
        manifest = compact_context(
            url,
            segment_bytes=segment_bytes,
            frame_bytes=frame_bytes,
            filters=not no_filters,
            allow=allow or (),
            progress=show,
            store_options=options,
        )
    print_root(manifest, url, as_json)


def gc(
    url: Url,
    older_than: Annotated[
        float, typer.Option(parser=parse_seconds, metavar="DURATION", help="Grace period, such as 36h or 7d.")
    ] = "7d",  # type: ignore[assignment]
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Remove nothing, say what would go.")] = False,
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
) -> None:
    """Remove earlier generations of the context at URL, and what no other one names, after a grace period."""
    from monocontext.collect import SAFE_SECONDS
    from monocontext.collect import gc as collect

    options = options_of(url, endpoint, region, profile, anonymous)
    if older_than < SAFE_SECONDS and not dry_run:
        print("note: with less than two days no writer may be at work: its segments could go", file=sys.stderr)
    with bar("gc", None) as show:
        found = collect(url, older_than_seconds=older_than, dry_run=dry_run, progress=show, store_options=options)
    if as_json:
        print(json.dumps(asdict(found)))
        return
    verb = "would remove" if dry_run else "removed"
    of = f"{found.generations:,} generations, {found.segments:,} segments, {found.pages:,} pages"
    kept = f"{found.kept_generations:,} generations stay"
    print(f"{found.url}: {verb} {of}, {found.filters:,} filters, {found.bytes:,} bytes; {kept}")
