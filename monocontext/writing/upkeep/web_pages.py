"""Pages of the web as sources of a sync."""

from __future__ import annotations

import http.client
import string
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from monocontext import records
from monocontext.errors import AccessDenied, NotFound, StoreFailure
from monocontext.writing.input_options import InputOptions
from monocontext.writing.upkeep.sync_source import decode_source

_PAGE_SECONDS = 60.0
"""The longest wait for the next bytes of a page."""


class WebPage:
    """A page, or any other file on a web server. Its name is its address."""

    def __init__(self, url: str) -> None:
        """Asks the server for its headers (1 HEAD)."""
        if "@" in urllib.parse.urlsplit(url).netloc:
            raise ValueError("an address with a user or a password is refused: it would be stored as a document's name")
        self.name = url
        try:
            self._set_facts(_request(url, "HEAD")[0])
        except StoreFailure:  # some servers answer only GET, so ask with that
            self._set_facts(http.client.HTTPMessage())

    def _set_facts(self, headers: http.client.HTTPMessage) -> None:
        known = {"etag": headers["ETag"], "modified": headers["Last-Modified"], "bytes": headers["Content-Length"]}
        self.facts: dict[str, Any] = {"file": {name: value for name, value in known.items() if value}}
        self.facts_are_certain = bool(known["etag"] or known["modified"])

    def is_text(self, options: InputOptions) -> bool:
        return self.text(options) is not None

    def text(self, options: InputOptions) -> str | None:
        headers, data = _request(self.name, "GET")
        self._set_facts(headers)
        charset = headers.get_content_charset()
        return decode_source(data, self.name, records.replace(options, encoding=charset) if charset else options)


def _request(url: str, method: str) -> tuple[http.client.HTTPMessage, bytes]:
    """The headers and the body of a page. Raises `NotFound`, `AccessDenied` and `StoreFailure`, which name the page."""
    ascii_url = urllib.parse.quote(url, safe=string.punctuation)
    headers = {"User-Agent": "monocontext", "Accept": "text/*, */*"}
    try:
        request = urllib.request.Request(ascii_url, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=_PAGE_SECONDS) as response:
            if url.startswith("https:") and not response.url.startswith("https:"):
                raise AccessDenied(f"{url} leads to {response.url}, which is not encrypted")
            data = response.read()
            if method == "GET" and response.headers["Content-Encoding"] not in (None, "identity"):
                encoding = response.headers["Content-Encoding"]
                raise StoreFailure(f"{url}: the server sent the content encoding {encoding}, which was not requested")
            return response.headers, data
    except urllib.error.HTTPError as error:
        error.close()
        kinds = {404: NotFound, 410: NotFound, 401: AccessDenied, 403: AccessDenied}
        raise kinds.get(error.code, StoreFailure)(f"{url}: the server answered {error.code} {error.reason}") from None
    except http.client.IncompleteRead as error:
        raise StoreFailure(f"{url}: the page broke off after {len(error.partial):,} bytes") from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise StoreFailure(f"{url}: {reason}") from None
