"""The commands `upload`, `append`, `index`, `update` and `sync`: make contexts from text, and change them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import click

from monocontext.cli.cluster import Dask, workers
from monocontext.cli.options import (
    S3,
    Allow,
    AsJson,
    one_of,
    options_of,
    parse_bytes,
    parse_seconds,
    stored_options,
    with_options,
)
from monocontext.cli.parameters import Argument, Option
from monocontext.cli.printing import note, remark, say, say_row
from monocontext.cli.progress import progress_bar, total_bytes
from monocontext.options import StoreOptions

if TYPE_CHECKING:
    from monocontext.format.manifest import Manifest
    from monocontext.writing.inputs import Source
    from monocontext.writing.tables import Kind
    from monocontext.writing.upkeep.sync import Synced

Places = Annotated[
    list[str], Argument(metavar="SRC... URL", help="Files, directories or - for stdin; then the URL of the context.")
]
Frames = Annotated[int, Option(parser=parse_bytes, metavar="SIZE", help="Text in one frame, the unit of reads.")]
Segments = Annotated[int, Option(parser=parse_bytes, metavar="SIZE", help="Stored bytes in one object.")]
Encoding = Annotated[str, Option(help="Encoding of the sources.")]
Errors = Annotated[
    str,
    Option(
        help="Bytes that are not text: strict refuses them, replace puts U+FFFD, skip leaves such files out.",
        autocompletion=one_of("strict", "replace", "skip"),
    ),
]
Header = Annotated[str, Option(help="Line to write before each file of a directory; empty for none.")]
Globs = Annotated[
    list[str] | None, Option(metavar="GLOB", help="Files of a directory to take, or to leave out; repeatable.")
]
FollowLinks = Annotated[bool, Option("--follow-links", help="Follow links in a directory, also out of it.")]
Tables = Annotated[
    str | None,
    Option(
        "--documents",
        metavar="KIND",
        help="Read files as tables, each row a document: jsonl, csv or parquet.",
        autocompletion=one_of("jsonl", "csv", "parquet"),
    ),
]
TextField = Annotated[str, Option(metavar="FIELD", help="With --documents: the field that holds the text.")]
NameField = Annotated[
    str | None,
    Option(metavar="FIELD", help="With --documents: the field that holds the name; by default the number of the row."),
]
Unique = Annotated[bool, Option("--unique", help="With --documents: refuse two rows of the same name.")]
NoFilters = Annotated[bool, Option("--no-filters", help="Write no search filters.")]

HEADER = "=== FILE: {path} ==="


class Inputs(NamedTuple):
    """The sources of a command, and how it reads them."""

    read: Callable[[list[str]], Iterable[Source]]
    folders: dict[str, Any]
    """Keywords of `publish` and `append` about files and folders."""


def input_options(
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    header: Header = HEADER,
    include: Globs = None,
    exclude: Globs = None,
    follow_links: FollowLinks = False,
    tables: Tables = None,
    text_field: TextField = "text",
    name_field: NameField = None,
    unique: Unique = False,
) -> Inputs:
    """Build the argument `inputs` of a command from these options."""
    header = header.replace("\\n", "\n")
    folders = {
        "encoding": encoding,
        "errors": errors,
        "header": header if not header or header.endswith("\n") else header + "\n",
        "include": tuple(include or ()),
        "exclude": tuple(exclude or ()),
        "follow_links": follow_links,
        "note": note,
    }
    fields = {"text_field": text_field, "name_field": name_field, "encoding": encoding}
    return Inputs(partial(_sources, tables=tables, fields=fields, unique=unique), folders)


with_inputs = with_options("inputs", input_options)


@with_inputs
def upload(
    places: Places,
    frame_bytes: Frames = "256K",  # type: ignore[assignment]  # click parses defaults too
    segment_bytes: Segments = "16M",  # type: ignore[assignment]
    codec: Annotated[
        str, Option(help="zstd, or raw to store plain text.", autocompletion=one_of("zstd", "raw"))
    ] = "zstd",
    replace: Annotated[bool, Option("--replace", help="Replace the text of an existing context.")] = False,
    no_filters: NoFilters = False,
    dask: Dask = None,
    *,
    inputs: Inputs,
    s3: S3,
    as_json: AsJson = False,
) -> None:
    """Store texts as a new context at URL."""
    from monocontext.writing.publish import publish

    sources, url, options = _split(places, s3)
    with storing("upload", dask, total_bytes(sources, inputs.folders["follow_links"])) as work:
        manifest = publish(
            inputs.read(sources),
            url,
            frame_bytes=frame_bytes,
            segment_bytes=segment_bytes,
            codec=codec,
            filters=not no_filters,
            replace=replace,
            store_options=options,
            **inputs.folders,
            **work,
        )
    print_root(manifest, url, as_json)


@with_inputs
def append(
    places: Places,
    segment_bytes: Segments = "16M",  # type: ignore[assignment]
    no_filters: NoFilters = False,
    drop_older_than: Annotated[
        float | None,
        Option(
            parser=parse_seconds,
            metavar="DURATION",
            help="Also remove some versions that were superseded so long ago, for example 7d.",
        ),
    ] = None,
    dask: Dask = None,
    *,
    inputs: Inputs,
    s3: S3,
    as_json: AsJson = False,
) -> None:
    """Add texts at the end of the context at URL, as a new version of it."""
    from monocontext.writing.publish import append as append_to

    sources, url, options = _split(places, s3)
    with storing("append", dask, total_bytes(sources, inputs.folders["follow_links"])) as work:
        manifest = append_to(
            inputs.read(sources),
            url,
            segment_bytes=segment_bytes,
            filters=not no_filters,
            drop_older_than_seconds=drop_older_than,
            store_options=options,
            **inputs.folders,
            **work,
        )
    print_root(manifest, url, as_json)


def index(
    places: Annotated[
        list[str],
        Argument(metavar="SRC... DEST", help="Objects, or places that hold objects; then the URL of the context."),
    ],
    filters: Annotated[
        bool | None,
        Option("--filters/--no-filters", help="Write search filters; with DEST alone, add them to that context."),
    ] = None,
    rebuild: Annotated[bool, Option("--rebuild", help="With --filters: write all filters again.")] = False,
    frame_bytes: Frames = "256K",  # type: ignore[assignment]
    replace: Annotated[
        bool,
        Option(
            "--replace", help="Replace the text of an existing context; of an index, only changed objects are read."
        ),
    ] = False,
    allow: Allow = None,
    dask: Dask = None,
    *,
    s3: S3,
    as_json: AsJson = False,
) -> None:
    """Make a context at DEST from plain text objects in S3 or a directory, without copying them.

    With --filters and no SRC: add the search filters that the context at DEST lacks. Its text stays as it is.
    """
    from monocontext.writing.index_in_place import index as index_objects
    from monocontext.writing.upkeep.add_filters import add_filters

    if filters and len(places) == 1:
        if replace:
            raise click.BadParameter("--replace needs sources: --filters alone does not change the text")
        options = options_of(places[0], s3)
        with storing("index --filters", dask) as work:
            manifest = add_filters(places[0], rebuild=rebuild, allow=allow or (), store_options=options, **work)
        print_root(manifest, places[0], as_json)
        return
    sources, url, options = _split(places, s3)
    with storing("index", dask, total_bytes(sources)) as work:
        manifest = index_objects(
            sources,
            url,
            frame_bytes=frame_bytes,
            filters=filters is not False,
            replace=replace,
            note=note,
            store_options=options,
            **work,
        )
    print_root(manifest, url, as_json)


def update(
    places: Places,
    tables: Annotated[
        str,
        Option(
            "--documents",
            metavar="KIND",
            help="The kind of the files, each row a document: jsonl, csv or parquet.",
            autocompletion=one_of("jsonl", "csv", "parquet"),
        ),
    ] = "jsonl",
    text_field: Annotated[str, Option(metavar="FIELD", help="The field that holds the text.")] = "text",
    name_field: Annotated[str, Option(metavar="FIELD", help="The field that holds the name.")] = "name",
    encoding: Encoding = "utf-8",
    *,
    s3: S3,
    as_json: AsJson = False,
) -> None:
    """Replace documents of the context at URL by the rows of SRC with their names, and append rows with new names."""
    from monocontext.writing.tables import table_documents
    from monocontext.writing.upkeep.edit import update as update_documents

    sources, url, options = _split(places, s3)
    for name in sources:
        if Path(name).expanduser().is_dir():
            raise click.BadParameter(f"{name!r} is a folder, but update reads tables: `monocontext sync` takes folders")
    with usage_errors():
        kind = cast("Kind", tables)
        rows = (
            row
            for name in sources
            for row in table_documents(
                Path(name).expanduser(), kind, text_field=text_field, name_field=name_field, encoding=encoding
            )
        )
        manifest = update_documents(url, rows, store_options=options)
    print_root(manifest, url, as_json)


def sync(
    places: Places,
    delete: Annotated[bool, Option("--delete", help="Also remove documents whose files are gone.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Change nothing; list what would change.")] = False,
    no_ignore: Annotated[
        bool, Option("--no-ignore", help="Also take files of a git repository that git ignores.")
    ] = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    include: Globs = None,
    exclude: Globs = None,
    follow_links: FollowLinks = False,
    commit: Annotated[
        str | None, Option("--commit", metavar="REV", help="Take the files of a git repository at this commit.")
    ] = None,
    files_from: Annotated[
        str | None, Option("--files-from", metavar="FILE", help="Read more SRC from the lines of a file; - is stdin.")
    ] = None,
    watch: Annotated[bool, Option("--watch", help="Sync again whenever a file changes, until Ctrl-C.")] = False,
    dask: Dask = None,
    *,
    s3: S3,
    as_json: AsJson = False,
) -> None:
    """Make the context at URL hold the files of SRC: read and store only what is new or has changed.

    SRC may also be a URL in a store, to take the objects below it, or the https:// address of a page.
    """
    from monocontext.writing.upkeep.sync import sync as sync_files

    if files_from is not None:
        listed = sys.stdin.read() if files_from == "-" else Path(files_from).expanduser().read_text("utf-8")
        places = [line for line in listed.splitlines() if line.strip()] + places
    given, url, options = _split(places, s3)
    sources: list[str | Path] = [name if "://" in name else Path(name).expanduser() for name in given]

    def sync_once() -> None:
        with usage_errors(), workers(dask) as executor:
            found = sync_files(
                sources,
                url,
                delete=delete,
                dry_run=dry_run,
                ignored=no_ignore,
                commit=commit,
                store_options=options,
                encoding=encoding,
                errors=cast("Any", errors),
                include=tuple(include or ()),
                exclude=tuple(exclude or ()),
                follow_links=follow_links,
                note=note,
                executor=executor,
            )
        _print_synced(found, url, dry_run, as_json)

    if watch:
        _watch([each for each in sources if isinstance(each, Path)], sync_once)
    else:
        sync_once()


def _watch(paths: list[Path], sync_once: Callable[[], None]) -> None:
    """Call `sync_once`, and again after each change of these files and folders, until Ctrl-C."""
    from monocontext.errors import MonocontextError, NotFound

    try:
        import watchfiles
    except ImportError:
        raise click.UsageError('--watch needs watchfiles: pip install "monocontext[watch]"') from None
    if not paths:
        raise click.UsageError("--watch follows files and folders, but none is among the sources")
    for path in paths:
        if not path.exists():
            raise NotFound(f"{path}: no such file or folder")

    def is_wanted(_: object, path: str) -> bool:
        return ".git" not in Path(path).parts

    is_first = True  # the first sync comes after the watch began, which then sees changes during it
    rounds = watchfiles.watch(*paths, watch_filter=is_wanted, yield_on_timeout=True, rust_timeout=500)
    for changes in rounds:
        if not (changes or is_first):
            continue
        try:
            sync_once()
        except (MonocontextError, OSError) as error:
            if is_first:
                raise
            remark(f"not synced, trying again at the next change: {error}")  # perhaps a file is being written
        sys.stdout.flush()
        is_first = False


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


def remove_documents(url: str, globs: list[str], yes: bool, forget: bool, s3: S3) -> None:
    """Delete the documents that match names or globs. Asks for confirmation if these are all."""
    from fnmatch import fnmatchcase

    from monocontext.errors import NotFound
    from monocontext.text.monocontext import Monocontext
    from monocontext.writing.upkeep.edit import delete

    options = options_of(url, s3)
    with Monocontext.open(url, **options) as context:
        names = list(context.documents)
    wanted: dict[str, None] = {}
    for glob in globs:
        found = [name for name in names if name == glob] or [name for name in names if fnmatchcase(name, glob)]
        if not found:
            raise NotFound(f"{url}: no document is named {glob!r} or matches that glob")
        wanted.update(dict.fromkeys(found))
    if len(wanted) == len(names) and not yes:
        if not sys.stdin.isatty():
            raise click.UsageError(f"these are all {len(names):,} documents of {url}: confirm with --yes")
        click.confirm(f"Remove all {len(names):,} documents of {url}?", abort=True, err=True)
    manifest = delete(url, wanted, forget=forget, store_options=options)
    count = f"{len(wanted):,} document" + "s" * (len(wanted) != 1)
    rest = "no object holds them any more" if forget else "`gc` removes the versions before it"
    say(f"{url}: version {manifest.generation} without {count}; {rest}")


def _split(places: list[str], options: StoreOptions) -> tuple[list[str], str, StoreOptions]:
    *sources, url = places
    if not sources:
        raise click.BadParameter(f"expected one or more sources and then a URL, got only {url!r}")
    return sources, url, stored_options(url, options)


def _sources(names: list[str], tables: str | None, fields: dict[str, Any], unique: bool) -> Iterable[Source]:
    from monocontext.writing.tables import KINDS

    if tables is not None and tables not in KINDS:
        raise ValueError(f"--documents must be one of {', '.join(KINDS)}, not {tables!r}")
    if tables is None and (unique or fields["name_field"] is not None or fields["text_field"] != "text"):
        raise ValueError("--text-field, --name-field and --unique go with --documents")
    paths = [name if name == "-" else Path(name).expanduser() for name in names]
    if tables is None and "-" not in names:
        return cast("list[Source]", paths)  # a list, so that documents of the same name can be told apart
    return _stream(paths, cast("Kind | None", tables), fields, unique)


def _stream(paths: list[str | Path], tables: Kind | None, fields: dict[str, Any], unique: bool) -> Iterator[Source]:
    from monocontext.writing.decoding import PIECE_BYTES
    from monocontext.writing.documents import documents
    from monocontext.writing.tables import table_documents

    for path in paths:
        if tables is not None:
            yield documents(table_documents(path, tables, **fields), unique=unique)
        elif isinstance(path, Path):
            yield path
        else:
            while data := sys.stdin.buffer.read(PIECE_BYTES):
                yield data


@contextmanager
def storing(label: str, dask: str | None, total: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the keywords `progress` and `executor` of a function that stores; report its errors as a command does."""
    with progress_bar(label, total) as progress, usage_errors(), workers(dask) as executor:
        yield {"progress": progress, "executor": executor}


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn a `ValueError` about the value of an option into a usage error of click."""
    try:
        yield
    except ValueError as error:
        if type(error) is not ValueError:  # subclasses such as `InvalidText` are not about options
            raise
        raise click.BadParameter(str(error)) from error


def print_root(manifest: Manifest, url: str, as_json: bool) -> None:
    if as_json:
        fields = ("generation", "characters", "text_bytes", "lines", "frames", "stored_bytes")
        print(json.dumps({"url": url, **{name: getattr(manifest, name) for name in fields}}))
        return
    if not manifest.characters:
        remark(f"note: {url} is an empty text: its sources hold no text")
    version = f"version {manifest.generation}, " if manifest.generation > 1 else ""
    share = f", {100 * manifest.stored_bytes / manifest.text_bytes:.0f} % of the text" if manifest.text_bytes else ""
    say(
        f"{url}: {version}{manifest.characters:,} characters in {manifest.lines:,} lines, "
        f"{manifest.stored_bytes:,} bytes stored{share}"
    )
