"""Serve a page until Ctrl-C, and the options of commands that do."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Callable
from typing import Annotated

from monocontext.cli.parameters import Option
from monocontext.cli.printing import remark, say
from monocontext.page.loopback import is_loopback
from monocontext.page.serving import PageServer

Host = Annotated[str, Option(help="Where to serve; by default this machine alone reaches it.")]
Port = Annotated[int, Option(min=0, max=65535, help="0 for any free one.")]
OpenBrowser = Annotated[bool | None, Option("--open/--no-open", help="Open it in a browser; by default on a terminal.")]


def serve_page(make: Callable[[], PageServer], host: str, what: str, *, open_browser: bool | None) -> None:
    """Serve what `make` makes until Ctrl-C; the address goes to stdout, `what` is served to stderr."""
    with make() as server:
        if not is_loopback(host):
            say(f"warning: anyone who reaches {host} can read this", err=True)
        print(server.url, flush=True)
        remark(f"serving {what}; Ctrl-C ends it")
        if sys.stdout.isatty() if open_browser is None else open_browser:
            webbrowser.open(server.url)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            remark("")
