"""The commands `compact`, `gc`, `history` and `restore`: store a text in fewer objects, and manage its versions."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

from monocontext.cli.options import S3, Allow, AsJson, existing_options, parse_bytes, parse_seconds
from monocontext.cli.parameters import Argument, Option
from monocontext.cli.printing import note, progress_bar, say, say_row
from monocontext.cli.reading import Url
from monocontext.cli.writing import NoFilters, Segments, print_root, storing
from monocontext.writing.upkeep.compact import compact as compact_context
from monocontext.writing.upkeep.gc import SAFE_SECONDS
from monocontext.writing.upkeep.gc import gc as collect
from monocontext.writing.upkeep.versions import list_versions
from monocontext.writing.upkeep.versions import restore as restore_version


def compact(
    url: Url,
    segment_bytes: Segments = "16M",  # type: ignore[assignment]  # defaults are parsed, too
    frame_bytes: Annotated[
        int | None, Option(type=parse_bytes, metavar="SIZE", help="Text in one frame; by default as it is.")
    ] = None,
    no_filters: NoFilters = False,
    allow: Allow = None,
    *,
    s3: S3,
    as_json: AsJson = False,
) -> None:
    """Store the text of the context at URL in fewer, larger objects, as a new version; do nothing if none is saved."""
    options = existing_options(url, s3)
    with storing("compact", None) as work:
        manifest = compact_context(
            url, segment_bytes=segment_bytes, frame_bytes=frame_bytes, filters=not no_filters, allow=allow or (),
            store_options=options, progress=work["progress"],
        )  # fmt: skip
    print_root(manifest, url, as_json)


def gc(
    url: Url,
    older_than: Annotated[
        float, Option(type=parse_seconds, metavar="DURATION", help="Grace period, for example 36h or 7d.")
    ] = "7d",  # type: ignore[assignment]
    dry_run: Annotated[bool, Option(help="Remove nothing; report what would be removed.")] = False,
    *,
    s3: S3,
    as_json: AsJson = False,
) -> None:
    """Remove earlier versions of the context at URL after a grace period, with the objects that only they use."""
    options = existing_options(url, s3)
    if older_than < SAFE_SECONDS and not dry_run:
        note("with a grace period below two days, uploads and compactions that are running have to start again")
    with progress_bar("gc", None) as show:
        result = collect(url, older_than_seconds=older_than, dry_run=dry_run, progress=show, store_options=options)
    if as_json:
        print(json.dumps(asdict(result)))
        return
    verb = "would remove" if dry_run else "removed"
    removed = f"{result.generations:,} versions, {result.segments:,} segments, {result.pages:,} pages"
    unfinished = f", {result.temporaries:,} unfinished files" if result.temporaries else ""
    kept = f"{result.kept_generations:,} versions stay"
    say(f"{result.url}: {verb} {removed}, {result.filters:,} filters{unfinished}, {result.bytes:,} bytes; {kept}")


def history(url: Url, *, s3: S3, as_json: AsJson = False) -> None:
    """List the versions of the context at URL: time, characters, documents, and the changes in both."""
    options = existing_options(url, s3)
    characters = documents = 0
    for root in list_versions(url, store_options=options):
        count = root.documents.documents if root.documents else 0
        if as_json:
            fields = {"version": root.generation, "created": root.created, "characters": root.characters}
            say_row(json.dumps({**fields, "documents": count}))
        else:
            change = f"{root.characters - characters:+,} characters, {count - documents:+,} documents"
            sizes = f"{root.characters:>15,} {count:>9,}"
            say_row(f"{root.generation:>8} {root.created} {sizes}  {change}")
        characters, documents = root.characters, count


def restore(
    url: Url,
    version: Annotated[int, Argument(help="The number of a version, as `history` lists it.")],
    allow: Allow = None,
    *,
    s3: S3,
    as_json: AsJson = False,
) -> None:
    """Make an earlier version of the context at URL the newest one; the versions in between stay."""
    options = existing_options(url, s3)
    print_root(restore_version(url, version, allow=allow or (), store_options=options), url, as_json)
