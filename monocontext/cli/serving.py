"""The command `view`: show a context in a browser; and a function that serves any page until Ctrl-C."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Callable
from functools import partial
from typing import Annotated

import click

from monocontext.cli.options import S3, Allow, Generation, checked_options
from monocontext.cli.parameters import Option
from monocontext.cli.printing import print_line, print_remark
from monocontext.cli.reading import Url
from monocontext.errors import MonocontextError
from monocontext.page.serving import PageServer, is_loopback
from monocontext.text.monocontext import Monocontext
from monocontext.view.feed import ContextServer

Host = Annotated[str, Option(help="Address to listen on; the default is reachable from this machine alone.")]
Port = Annotated[int, Option(type=click.IntRange(0, 65535), help="Port; 0 takes a free one.")]
OpenBrowser = Annotated[bool | None, Option("--open/--no-open", help="Open a browser; by default on a terminal only.")]


def serve_page(
    make: Callable[[str, int], PageServer], host: str, port: int, subject: str, *, open_browser: bool | None
) -> None:
    """Run the server that `make` returns until Ctrl-C. Prints its URL on stdout, and `subject` on stderr."""
    try:
        server = make(host, port)
    except (OSError, OverflowError) as error:
        raise MonocontextError(f"cannot serve at {host} port {port}: {error}; try another --host or --port") from error
    with server:
        if not is_loopback(host):
            print_line(f"warning: anyone who can reach {host} can read this page", err=True)
        print(server.url, flush=True)
        print_remark(f"serving {subject}; Ctrl-C stops it")
        if sys.stdout.isatty() if open_browser is None else open_browser:
            webbrowser.open(server.url)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            print_remark("")


def view(
    url: Url,
    s3: S3,
    host: Host = "127.0.0.1",
    port: Port = 0,
    open_browser: OpenBrowser = None,
    generation: Generation = None,
    allow: Allow = None,
) -> None:
    """Show the context at URL in a browser: documents, text, searches and versions."""
    with Monocontext.open(url, allow=allow or (), generation=generation, **checked_options(url, s3)) as context:
        serve_page(partial(ContextServer, context), host, port, context.url, open_browser=open_browser)
