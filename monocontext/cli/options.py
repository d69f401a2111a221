"""Define the options that several commands share, and parse and check their values."""

from __future__ import annotations

import os
import re
import shlex
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated, Any, cast

import click

from monocontext.cli.parameters import Option, OptionGroup
from monocontext.errors import InvalidUrl, MonocontextError, install_line
from monocontext.globs import Globs
from monocontext.options import StoreOptions
from monocontext.stores import open_store, options_for
from monocontext.stores.protocol import Store
from monocontext.stores.secrets_in_urls import without_secrets

if TYPE_CHECKING:
    from concurrent.futures import Executor

Endpoint = Annotated[str | None, Option(help="URL of an S3 server other than AWS; by default AWS_ENDPOINT_URL.")]
Region = Annotated[str | None, Option(help="S3 region; by default that of the AWS configuration.")]
Profile = Annotated[str | None, Option(help="Profile of the AWS configuration to take keys from.")]
Anonymous = Annotated[bool, Option(help="Send unsigned requests, for public buckets.")]
AsJson = Annotated[bool, Option("--json", help="Print JSON.")]
Allow = Annotated[list[str] | None, Option(help="URL outside the context from which it may read objects; repeatable.")]
Dask = Annotated[str | None, Option(metavar="ADDRESS", help="Use the workers of this Dask scheduler, tcp://host:8786.")]
Generation = Annotated[int | None, Option(help="Use this version of the text instead of the newest.")]

_CONNECT_SECONDS = 10  # the time to wait for a Dask scheduler


def one_of(*names: str) -> Callable[[object, object, str], list[str]]:
    """A function that completes a value in a shell: it returns the names that begin with the typed characters."""
    return lambda _, __, incomplete: [name for name in names if name.startswith(incomplete)]


def repeat(watch: bool, seconds: float) -> Iterator[None]:
    """Yield once. With `watch`, yield again after each pause of `seconds`, until Ctrl-C in a pause."""
    yield
    while watch:
        try:
            time.sleep(seconds)
        except KeyboardInterrupt:
            return
        yield


def s3_options(
    endpoint: Endpoint = None, region: Region = None, profile: Profile = None, anonymous: Anonymous = False
) -> StoreOptions:
    """The store options that the command line sets."""
    arguments = StoreOptions(endpoint=endpoint, region=region, profile=profile, anonymous=anonymous or None)
    return cast(StoreOptions, {name: value for name, value in arguments.items() if value is not None})


S3 = Annotated[StoreOptions, OptionGroup(s3_options)]


def checked_options(url: str, s3: StoreOptions, *others: str) -> StoreOptions:
    """Check a URL and the store options, and return those that the store at the URL takes (no request).

    `others`: further URLs of the command. Raises `InvalidUrl` for a URL that no command can open, and for an option
    that no store at these URLs takes.
    """
    if url.startswith("memory:"):
        raise InvalidUrl(f"{url} lives in the memory of one process, so no command can reach it: use a directory or S3")
    options = options_for(url, s3)
    for name in s3:
        if not any(name in options_for(location, s3) for location in (url, *others)):
            raise InvalidUrl(f"--{name} is not an option for {without_secrets(url)}: leave it out, or give s3://...")
    open_store(url, **options).close()
    return options


@contextmanager
def workers(address: str | None) -> Iterator[Executor | None]:
    """Yield an executor on the workers of a Dask scheduler, which must have monocontext; None without an address."""
    if address is None:
        yield None
        return
    from concurrent.futures import CancelledError

    try:
        import distributed
    except ImportError:
        raise MonocontextError(f"--dask needs Dask: {install_line('dask')}") from None
    connect: Any = distributed.Client  # untyped
    try:
        client = connect(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise MonocontextError(f"no Dask scheduler at {address}: {error}; `dask scheduler` starts one") from None
    with client, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about large batches of text, which are intended
        try:
            yield client.get_executor(pure=False, retries=2)
        except distributed.KilledWorker as error:
            raise MonocontextError(
                f"workers of the Dask scheduler at {address} died repeatedly on the same task ({error.task}), perhaps "
                "for lack of memory: see their logs"
            ) from None
        except CancelledError:
            raise MonocontextError(f"the Dask scheduler at {address} stopped during the work: start it again") from None


@contextmanager
def open_store_at(url: str, s3: StoreOptions) -> Iterator[Store]:
    """Open the store at a URL for a `with` block. Raises `InvalidUrl` for a URL that no command can open."""
    with closing(open_store(url, **checked_options(url, s3))) as store:
        yield store


def context_options(url: str, s3: StoreOptions, *others: str) -> StoreOptions:
    """`checked_options` for the URL of a context, stored or new. Also raises `InvalidUrl` for a local file."""
    options = checked_options(url, s3, *others)
    if os.path.isfile(os.path.expanduser(url)):
        raise InvalidUrl(
            f"{url} is a file, but a context is a folder: `monocontext upload {shlex.quote(url)} FOLDER` creates one"
        )
    return options


def stored_options(url: str, s3: StoreOptions) -> StoreOptions:
    """`context_options` for a stored context. Also raises `InvalidUrl` for a plain folder of files."""
    path = os.path.expanduser(url)
    is_folder = os.path.isdir(path) and folder_prefix(url) is not None
    if is_folder and os.listdir(path) and not os.path.exists(os.path.join(path, "manifest.json")):
        raise InvalidUrl(
            f"{url} is a plain folder, not a context: `monocontext upload {shlex.quote(url)} FOLDER` creates one"
        )
    return context_options(url, s3)


def folder_prefix(url: str) -> str | None:
    """The prefix that turns the name of a document in a plain folder or file into a path: `src/` for the folder `src`,
    empty for `.`. None for anything else, such as a stored context."""
    path = os.path.expanduser(url)
    if os.path.isfile(path):
        return path.removesuffix(os.path.basename(path))
    if "://" in url or not os.path.isdir(path) or os.path.isdir(os.path.join(path, "generations")):
        return None
    return "" if path.rstrip("/") == "." else path.rstrip("/").removeprefix("./") + "/"


def parse_size(text: str) -> int:
    """The bytes of a size: `262144`, `256K` or `16MiB`. Units are powers of 1024. Raises `click.BadParameter`."""
    match = re.fullmatch(r"(\d+)\s*(?:([KMG])(?:i?B)?|B)?", text.strip(), re.IGNORECASE)
    if not match:
        raise click.BadParameter(f"not a size: {text!r}; examples are 262144, 256K and 16M")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[(match[2] or "").upper()]


def globs_of(globs: list[str]) -> Globs:
    """Parse globs of the command line. Raises `click.BadParameter` for an invalid one."""
    try:
        return Globs(globs)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
