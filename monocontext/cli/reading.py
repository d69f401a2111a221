"""`info`, `cat`, `verify`: looking at contexts."""

from __future__ import annotations

import json
import sys
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
    options_of,
    parse_range,
)
from monocontext.cli.progress import bar

Url = Annotated[str, typer.Argument(help="Where the context lies: s3://bucket/prefix, or a directory.")]
Generation = Annotated[int | None, typer.Option(help="This generation instead of the newest.")]


def info(
    url: Url,
    generation: Generation = None,
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
) -> None:
    """Say what the context at URL is (1 GET)."""
    from monocontext.filters.layout import Layout
    from monocontext.generations import read_generation, read_root
    from monocontext.writer import opened

    options = options_of(url, endpoint, region, profile, anonymous)
    with opened(url, options) as store:
        manifest = read_root(store)[0] if generation is None else read_generation(store, generation)
        place = store.url
    facts: dict[str, Any] = {
        "url": place,
        "generation": manifest.generation,
        "created": manifest.created,
        "characters": manifest.characters,
        "lines": manifest.lines,
        "bytes": manifest.text_bytes,
        "stored_bytes": manifest.stored_bytes,
        "frames": manifest.frames,
        "pages": len(manifest.pages),
        "frame_bytes": manifest.frame_bytes,
        "codec": manifest.codec,
        "filters": {
            "groups": len(manifest.filters),
            "frames": sum(ref.frames for ref in manifest.filters),
            "bytes": sum(Layout(ref).size_bytes for ref in manifest.filters),
        },
        "sources": list(manifest.sources),
    }
    if as_json:
        print(json.dumps(facts))
        return
    found = facts["filters"]
    facts["filters"] = f"{found['groups']:,} groups, {found['frames']:,} frames covered, {found['bytes']:,} bytes"
    for name, value in facts.items():
        if value != []:
            print(f"{name.replace('_', ' '):>12}  {value:,}" if isinstance(value, int) else f"{name:>12}  {value}")


def cat(
    url: Url,
    chars: Annotated[str | None, typer.Option(metavar="A:B", help="Characters A to B, as in context[A:B].")] = None,
    lines: Annotated[str | None, typer.Option(metavar="A:B", help="Lines A to B, counted from 0.")] = None,
    generation: Generation = None,
    allow: Allow = None,
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
) -> None:
    """Print the text of the context at URL, or a part of it; streams."""
    from monocontext.text import Monocontext

    if chars and lines:
        raise typer.BadParameter("--chars or --lines, not both")
    part = parse_range(chars or lines or ":")
    options = options_of(url, endpoint, region, profile, anonymous)
    with Monocontext.open(url, allow=allow or (), generation=generation, **options) as context:
        if lines:
            first, last, _ = part.indices(len(context.lines))
            part = slice(context.span.line_start(first), context.span.line_start(max(first, last)))
        view = context.view(part.start, part.stop)
        if as_json:
            print(json.dumps({"url": context.url, "generation": context.generation, "text": str(view)}))
            return
        out = sys.stdout.buffer
        for piece in view.chunks(1 << 20):
            out.write(piece.encode())
        out.flush()


def verify(
    url: Url,
    generation: Generation = None,
    allow: Allow = None,
    dask: Dask = None,
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
) -> None:
    """Read the whole context at URL and check every checksum, length and count; exit 1 and a list on damage."""
    from monocontext.verify import verify as check

    options = options_of(url, endpoint, region, profile, anonymous)
    with bar("verify", None) as show, workers(dask) as executor:
        report = check(
            url,
            generation=generation,
            allow=allow or (),
            progress=lambda report: show(report.text_bytes),
            store_options=options,
            executor=executor,
        )
    if as_json:
        fields = ("url", "generation", "frames", "text_bytes", "stored_bytes", "filters", "ok", "problems")
        print(json.dumps({name: getattr(report, name) for name in fields}))
    else:
        for problem in report.problems:
            print(problem)
        state = "all as recorded" if report.ok else f"{len(report.problems)} problems"
        read = f"{report.frames:,} frames, {report.text_bytes:,} bytes, {report.filters:,} filters"
        print(f"{report.url}: generation {report.generation}, {read}: {state}")
    if not report.ok:
        raise typer.Exit(1)
