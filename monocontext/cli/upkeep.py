"""The commands `update`, `sync`, `compact`, `gc`, `history`, `restore` and `verify`, and what `rm --document` does."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

import click

from monocontext.cli import options as shared
from monocontext.cli import writing
from monocontext.cli.json_lines import read_json_lines
from monocontext.cli.options import S3, Allow, AsJson, Dask, Generation, parse_size
from monocontext.cli.parameters import Argument, Option
from monocontext.cli.printing import print_line, print_note, print_record, print_row, progress_bar
from monocontext.cli.reading import Url
from monocontext.errors import NotFound
from monocontext.options import StoreOptions
from monocontext.text.monocontext import Monocontext
from monocontext.writing.upkeep import edit
from monocontext.writing.upkeep.compact import compact as compact_context
from monocontext.writing.upkeep.forget import find_leftovers
from monocontext.writing.upkeep.gc import SAFE_SECONDS
from monocontext.writing.upkeep.gc import gc as collect
from monocontext.writing.upkeep.sync import Synced
from monocontext.writing.upkeep.sync import sync as sync_files
from monocontext.writing.upkeep.verify import verify as verify_context
from monocontext.writing.upkeep.versions import list_versions
from monocontext.writing.upkeep.versions import restore as restore_version

FilesAndUrl = Annotated[list[str], Argument(metavar="SRC... URL", help="Files of JSON lines; then the context's URL.")]
SourcesAndUrl = Annotated[list[str], Argument(metavar="SRC... URL", help="Files, folders or URLs; then the URL.")]
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}  # by the unit of a duration


def compact(
    url: Url,
    s3: S3,
    segment_bytes: writing.SegmentBytes = "16M",  # type: ignore[assignment]  # defaults are parsed, too
    frame_bytes: Annotated[int | None, Option(type=parse_size, metavar="SIZE", help="New size of frames.")] = None,
    no_filters: writing.NoFilters = False,
    allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Store the text of the context at URL in fewer, larger objects, as a new version, if that saves objects."""
    options = shared.stored_options(url, s3)
    with writing.storing("compact") as work:
        manifest = compact_context(
            url, segment_bytes=segment_bytes, frame_bytes=frame_bytes, filters=not no_filters, allow=allow or (),
            store_options=options, progress=work["progress"],
        )  # fmt: skip
    writing.print_stored(manifest, url, as_json=as_json)


def parse_seconds(text: str) -> float:
    """Parse a duration such as `90m`, `36h` or `7d` into seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw])", text.strip(), re.IGNORECASE)
    if not match:
        raise click.BadParameter(f"not a duration: {text!r}; examples are 90m, 36h and 7d")
    return float(match[1]) * _UNIT_SECONDS[match[2].lower()]


def gc(
    url: Url,
    s3: S3,
    older_than: Annotated[float, Option(type=parse_seconds, metavar="DURATION", help="Grace period, as 36h.")] = "7d",  # type: ignore[assignment]
    dry_run: Annotated[bool, Option(help="Remove nothing; report what would be removed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove earlier versions of the context at URL after a grace period, with the objects that only they use."""
    options = shared.stored_options(url, s3)
    if older_than < SAFE_SECONDS and not dry_run:
        print_note("with a grace period below two days, running uploads and compactions may have to start again")
    with progress_bar("gc", None) as show:
        report = collect(url, older_than_seconds=older_than, dry_run=dry_run, progress=show, store_options=options)
    if as_json:
        print(json.dumps(asdict(report)))
        return
    verb = "would remove" if dry_run else "removed"
    counts = {"version": report.generations, "segment": report.segments, "page": report.pages, "filter": report.filters}
    counts |= {"unfinished file": report.temporaries} if report.temporaries else {}
    removed = ", ".join(_count(number, noun) for noun, number in counts.items())
    print_line(f"{report.url}: {verb} {removed}, {report.bytes:,} bytes; {report.kept_generations:,} versions stay")


def history(url: Url, s3: S3, as_json: AsJson = False) -> None:
    """List the versions of the context at URL: number, time, characters, documents, and how both counts changed."""
    characters = documents = 0
    previous_is_listed = False  # not for the oldest version, unless it is version 1: `gc` has removed those before it
    for root in list_versions(url, store_options=shared.stored_options(url, s3)):
        count = root.documents.documents if root.documents else 0
        row = {"version": root.generation, "created": root.created, "characters": root.characters, "documents": count}
        change = f"{root.characters - characters:+,} characters, {count - documents:+,} documents"
        line = f"{root.generation:>8} {root.created} {root.characters:>15,} {count:>9,}"
        print_record(as_json, row, f"{line}  {change}" if previous_is_listed or root.generation == 1 else line)
        characters, documents, previous_is_listed = root.characters, count, True


def restore(
    url: Url,
    version: Annotated[int, Argument(help="The number of a version, as `history` lists it.")],
    s3: S3,
    allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Make an earlier version of the context at URL the newest one; the versions in between stay."""
    options = shared.stored_options(url, s3)
    writing.print_stored(restore_version(url, version, allow=allow or (), store_options=options), url, as_json=as_json)


def update(
    arguments: FilesAndUrl,
    s3: S3,
    text_field: Annotated[str, Option(metavar="FIELD", help="The field that holds the text.")] = "text",
    name_field: Annotated[str, Option(metavar="FIELD", help="The field that holds the name.")] = "name",
    encoding: writing.Encoding = "utf-8",
    as_json: AsJson = False,
) -> None:
    """Replace documents of the context at URL with the rows of SRC that have their names, and append the other rows."""
    sources, url = writing.split_url(arguments)
    options = shared.context_options(url, s3)
    for name in sources:
        if Path(name).expanduser().is_dir():
            raise click.BadParameter(f"{name!r} is a folder, not a file of JSON lines: use `monocontext sync`")
    with writing.usage_errors():
        read = partial(read_json_lines, text_field=text_field, name_field=name_field, encoding=encoding)
        rows = (row for name in sources for row in read(Path(name).expanduser()))
        manifest = edit.update(url, rows, store_options=options)
    writing.print_stored(manifest, url, as_json=as_json)


def sync(
    arguments: SourcesAndUrl,
    s3: S3,
    delete: Annotated[bool, Option(help="Also remove documents whose files are gone.")] = False,
    dry_run: Annotated[bool, Option(help="Change nothing; list what would change.")] = False,
    no_ignore: writing.NoIgnore = False,
    encoding: writing.Encoding = "utf-8",
    errors: writing.Errors = "strict",
    include: writing.Globs = None,
    exclude: writing.Globs = None,
    follow_links: writing.FollowLinks = False,
    dask: Dask = None,
    as_json: AsJson = False,
) -> None:
    """Make the context at URL hold the files of SRC: read and store only what is new or has changed.

    SRC may also be a URL in a store: the objects below it are then the files.
    """
    names, url = writing.split_url(arguments)
    shared.context_options(url, s3, *names)  # the library divides the options between the stores
    sources: list[str | Path] = [name if "://" in name else Path(name).expanduser() for name in names]
    with writing.usage_errors(), shared.workers(dask) as executor:
        result = sync_files(
            sources, url, delete=delete, dry_run=dry_run, ignored=no_ignore, store_options=s3, encoding=encoding,
            errors=cast("Any", errors), include=tuple(include or ()), exclude=tuple(exclude or ()),
            follow_links=follow_links, note=print_note, executor=executor,
        )  # fmt: skip
    _print_synced(result, url, dry_run=dry_run, as_json=as_json)


def _print_synced(synced: Synced, url: str, *, dry_run: bool, as_json: bool) -> None:
    """Print the changes that a sync has made or, with `dry_run`, would make."""
    changes = {"added": synced.added, "changed": synced.changed, "deleted": synced.deleted}
    version = synced.root.generation if synced.root else None
    if as_json:
        print(json.dumps({"url": url, "version": version, **changes, "unchanged": synced.unchanged}), flush=True)
        return
    for sign, names in zip("+~-", changes.values(), strict=True):
        for name in names:
            print_row(f"{sign} {name}")
    counts = ", ".join(f"{len(names):,} {kind}" for kind, names in changes.items())
    print_line(f"{url}: {'would be ' if dry_run else f'version {version}: '}{counts}, {synced.unchanged:,} unchanged")


def remove_documents(url: str, globs: list[str], s3: StoreOptions, *, yes: bool, forget: bool) -> None:
    """Delete the documents that `globs` name or match. Asks for confirmation if no document would stay."""
    options = shared.stored_options(url, s3)
    with Monocontext.open(url, **options) as context:
        names = list(context.documents)
    removed: dict[str, None] = {}  # in place of a set, which has no order
    known = edit.names_of_all_versions(url, store_options=options) if forget and not {*globs} <= {*names} else names
    for glob in globs:
        matches = [glob] if glob in known else []
        if not matches and not glob.startswith("!"):  # a `!glob` would match all other documents
            matches = list(filter(shared.globs_of([glob]).select, names))
        if not matches and not forget:
            raise NotFound(f"{url}: no document is named {glob!r} or matches that glob: `ls-documents` lists names")
        removed.update(dict.fromkeys(matches or [glob]))  # to forget what an earlier version has
    if names and removed.keys() >= set(names) and not yes:
        if not sys.stdin.isatty():
            raise click.UsageError(f"this would remove all {len(names):,} documents of {url}: confirm with --yes")
        click.confirm(f"Remove all {len(names):,} documents of {url}?", abort=True, err=True)
    manifest = edit.delete(url, removed, forget=forget, store_options=options)
    change = f" without {_count(len(removed), 'document')}" if removed else ""
    rest = "earlier versions are gone" if forget else "`gc` removes the versions before it"
    print_line(f"{url}: version {manifest.generation}{change}; {rest}")


def verify(
    url: Url,
    s3: S3,
    generation: Generation = None,
    allow: Allow = None,
    forgotten: Annotated[list[str] | None, Option(metavar="TEXT", help="List objects that hold this text.")] = None,
    as_json: AsJson = False,
) -> None:
    """Read the whole context at URL and check every checksum, length and count. Exits with 1 if there is damage.

    With --forgotten, list the objects that still hold a text. Exits with 1 if there are any.
    """
    if forgotten:
        if generation is not None or allow:
            raise click.BadParameter("--forgotten looks at all objects below URL: leave out --generation and --allow")
        _list_leftovers(url, forgotten, s3, as_json=as_json)
        return
    options = shared.stored_options(url, s3)
    with progress_bar("verify", None) as show:
        report = verify_context(url, generation=generation, allow=allow or (), progress=show, store_options=options)
    if as_json:
        fields = ("url", "generation", "frames", "text_bytes", "stored_bytes", "filters", "ok", "problems")
        print(json.dumps({name: getattr(report, name) for name in fields}))
    else:
        for problem in report.problems:
            print_row(problem)
        state = "all as recorded" if report.ok else _count(len(report.problems), "problem")
        read = f"{report.frames:,} pieces, {report.text_bytes:,} bytes, {report.filters:,} filters"
        print_line(f"{report.url}: version {report.generation}, {read}: {state}")
    if not report.ok:
        raise click.exceptions.Exit(1)


def _list_leftovers(url: str, texts: list[str], s3: StoreOptions, *, as_json: bool) -> None:
    """Print the objects below a URL that still hold one of the texts. Exits with 1 if there are any."""
    keys = find_leftovers(url, texts, store_options=shared.stored_options(url, s3))
    if as_json:
        print(json.dumps({"url": url, "objects": keys}))
    else:
        for key in keys:
            print_row(key)
        print_line(f"{url}: {_count(len(keys), 'object') if keys else 'no object'} with a forgotten text")
    if keys:
        raise click.exceptions.Exit(1)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
