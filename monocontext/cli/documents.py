"""The commands `update` and `sync`, and `rm --document`: change the documents of a context."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import click

from monocontext.cli.cluster import Dask, workers
from monocontext.cli.options import S3, AsJson, FollowLinks, globs_of, options_of
from monocontext.cli.parameters import Option
from monocontext.cli.printing import note, say, say_row
from monocontext.cli.writing import (
    Encoding,
    Errors,
    Globs,
    Kinds,
    NoIgnore,
    Places,
    print_root,
    split_places,
    usage_errors,
)
from monocontext.errors import NotFound
from monocontext.options import StoreOptions
from monocontext.text.monocontext import Monocontext
from monocontext.writing.tables import table_documents
from monocontext.writing.upkeep.edit import delete
from monocontext.writing.upkeep.edit import update as update_documents
from monocontext.writing.upkeep.sync import sync as sync_files

if TYPE_CHECKING:
    from monocontext.writing.tables import Kind
    from monocontext.writing.upkeep.sync import Synced


def update(
    places: Places,
    tables: Annotated[str, Kinds] = "jsonl",
    text_field: Annotated[str, Option(metavar="FIELD", help="The field that holds the text.")] = "text",
    name_field: Annotated[str, Option(metavar="FIELD", help="The field that holds the name.")] = "name",
    encoding: Encoding = "utf-8",
    *,
    s3: S3,
    as_json: AsJson = False,
) -> None:
    """Replace documents of the context at URL by the rows of SRC with their names, and append rows with new names."""
    sources, url, options = split_places(places, s3)
    for name in sources:
        if Path(name).expanduser().is_dir():
            raise click.BadParameter(f"{name!r} is a folder, but update reads tables: `monocontext sync` takes folders")
    with usage_errors():
        read = partial(table_documents, text_field=text_field, name_field=name_field, encoding=encoding)
        rows = (row for name in sources for row in read(Path(name).expanduser(), cast("Kind", tables)))
        manifest = update_documents(url, rows, store_options=options)
    print_root(manifest, url, as_json)


def sync(
    places: Places,
    delete: Annotated[bool, Option(help="Also remove documents whose files are gone.")] = False,
    dry_run: Annotated[bool, Option(help="Change nothing; list what would change.")] = False,
    no_ignore: NoIgnore = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    include: Globs = None,
    exclude: Globs = None,
    follow_links: FollowLinks = False,
    files_from: Annotated[str | None, Option(metavar="FILE", help="Read more SRC from its lines; - is stdin.")] = None,
    dask: Dask = None,
    *,
    s3: S3,
    as_json: AsJson = False,
) -> None:
    """Make the context at URL hold the files of SRC: read and store only what is new or has changed.

    SRC may also be a URL in a store, to take the objects below it.
    """
    if files_from is not None:
        listed = sys.stdin.read() if files_from == "-" else Path(files_from).expanduser().read_text("utf-8")
        places = [line for line in listed.splitlines() if line.strip()] + places
    value, url, options = split_places(places, s3, of_sources=True)
    sources: list[str | Path] = [name if "://" in name else Path(name).expanduser() for name in value]

    with usage_errors(), workers(dask) as executor:
        result = sync_files(
            sources, url, delete=delete, dry_run=dry_run, ignored=no_ignore, store_options=options, encoding=encoding,
            errors=cast("Any", errors), include=tuple(include or ()), exclude=tuple(exclude or ()),
            follow_links=follow_links, note=note, executor=executor,
        )  # fmt: skip
    _print_synced(result, url, dry_run, as_json)


def _print_synced(found: Synced, url: str, dry_run: bool, as_json: bool) -> None:
    changes = {"added": found.added, "changed": found.changed, "deleted": found.deleted}
    version = found.root.generation if found.root else None
    if as_json:
        print(json.dumps({"url": url, "version": version, **changes, "unchanged": found.unchanged}), flush=True)
        return
    for sign, names in zip("+~-", changes.values(), strict=True):
        for name in names:
            say_row(f"{sign} {name}")
    counts = ", ".join(f"{len(names):,} {kind}" for kind, names in changes.items())
    say(f"{url}: {'would be ' if dry_run else f'version {version}: '}{counts}, {found.unchanged:,} unchanged")


def remove_documents(url: str, globs: list[str], yes: bool, forget: bool, s3: StoreOptions) -> None:
    """Delete the documents that match names or globs. Asks for confirmation if these are all."""
    options = options_of(url, s3)
    with Monocontext.open(url, **options) as context:
        names = list(context.documents)
    wanted: dict[str, None] = {}
    for glob in globs:
        results = [glob] if glob in names else []
        if not results and not glob.startswith("!"):  # else it would remove all that it does not name
            results = list(filter(globs_of([glob]).select, names))
        if not results:
            raise NotFound(f"{url}: no document is named {glob!r} or matches that glob")
        wanted.update(dict.fromkeys(results))
    if len(wanted) == len(names) and not yes:
        if not sys.stdin.isatty():
            raise click.UsageError(f"this would remove all {len(names):,} documents of {url}: confirm with --yes")
        click.confirm(f"Remove all {len(names):,} documents of {url}?", abort=True, err=True)
    manifest = delete(url, wanted, forget=forget, store_options=options)
    count = f"{len(wanted):,} document" + "s" * (len(wanted) != 1)
    rest = "earlier versions are gone" if forget else "`gc` removes the versions before it"
    say(f"{url}: version {manifest.generation} without {count}; {rest}")
