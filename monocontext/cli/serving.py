"""Serve a page until Ctrl-C; with the options of the commands that do so."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Callable
from typing import Annotated

from monocontext.cli.parameters import Option
from monocontext.cli.printing import remark, say
from monocontext.page.loopback import is_loopback
from monocontext.page.serving import PageServer

Host = Annotated[str, Option(help="Address to listen on; the default is reachable from this machine alone.")]
Port = Annotated[int, Option(min=0, max=65535, help="Port; 0 takes a free one.")]
OpenBrowser = Annotated[
    bool | None, Option("--open/--no-open", help="Open the page in a browser; by default on a terminal only.")
]


def serve_page(make: Callable[[], PageServer], host: str, what: str, *, open_browser: bool | None) -> None:
    """Serve the page that `make` returns until Ctrl-C. Print its URL on stdout, and a remark about `what` on stderr."""
    with make() as server:
        if not is_loopback(host):
            say(f"warning: anyone who can reach {host} can read this page", err=True)
        print(server.url, flush=True)
        remark(f"serving {what}; Ctrl-C ends it")
        if sys.stdout.isatty() if open_browser is None else open_browser:
            webbrowser.open(server.url)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            remark("")
