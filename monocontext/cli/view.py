"""The command `view`: show a context in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monocontext.cli.options import S3, Allow, options_of
from monocontext.cli.reading import Generation, Url
from monocontext.cli.serving import Host, OpenBrowser, Port, serve_page
from monocontext.errors import MonocontextError
from monocontext.text.monocontext import Monocontext
from monocontext.view.server import ContextServer

if TYPE_CHECKING:
    from monocontext.view.server import ContextServer


def view(
    url: Url,
    host: Host = "127.0.0.1",
    port: Port = 0,
    open_browser: OpenBrowser = None,
    generation: Generation = None,
    allow: Allow = None,
    *,
    s3: S3,
) -> None:
    """Show the context at URL in a browser: documents, text, searches and versions."""
    with Monocontext.open(url, allow=allow or (), generation=generation, **options_of(url, s3)) as context:

        def make() -> ContextServer:
            try:
                return ContextServer(context, host, port)
            except (OSError, OverflowError) as error:
                raise MonocontextError(f"cannot serve at {host} port {port}: {error}") from error

        serve_page(make, host, context.url, open_browser=open_browser)
