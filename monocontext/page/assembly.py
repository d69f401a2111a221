"""Build a page of markup, style and script, with a Content-Security-Policy that allows nothing else.

The policy names the style and the script by their hashes, so that injected markup can neither run nor load anything.
Data is in blocks that browsers do not execute, with every `<` escaped.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from importlib.resources import files
from typing import Any

from monocontext.records import dataclass

_SHARED_SCRIPTS = ("format", "dom", "chart", "list", "keys")  # in `parts/`; a page's own scripts use them


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page without data."""

    markup: str
    """HTML with the placeholders `<!--POLICY-->`, `/*STYLE*/`, `<!--DATA-->` and `/*SCRIPT*/`, in this order."""
    style: str
    script: str

    def policy(self, *, served: bool) -> str:
        """The Content-Security-Policy. A page in a file may load nothing; a served page, only data from its server."""
        rules = {
            "default-src": "'none'",
            "script-src": _hash(self.script),
            "style-src": _hash(self.style),
            "img-src": "data:",
            "base-uri": "'none'",
            "form-action": "'none'",
            "require-trusted-types-for": "'script'",
            "trusted-types": "'none'",
        }
        if served:
            # Browsers complain about these in a policy inside a file.
            rules |= {"connect-src": "'self'", "frame-ancestors": "'none'"}
        return "; ".join(f"{name} {value}" for name, value in rules.items())

    def for_server(self) -> str:
        """The page for a server, without data; the server sends the policy in a header."""
        return "".join(self._pieces("", ()))

    def for_file(self, data: Iterable[str]) -> Iterator[str]:
        """The page for a file, in pieces, with blocks of data and the policy."""
        policy = f'<meta http-equiv="Content-Security-Policy" content="{self.policy(served=False)}">'
        return self._pieces(policy, data)

    def _pieces(self, meta: str, data: Iterable[str]) -> Iterator[str]:
        # Each split raises `ValueError` unless the placeholder occurs exactly once.
        head, rest = self.markup.split("<!--POLICY-->")
        before_style, rest = rest.split("/*STYLE*/")
        before_data, rest = rest.split("<!--DATA-->")
        before_script, tail = rest.split("/*SCRIPT*/")
        yield from (head, meta, before_style, self.style, before_data)
        yield from data
        yield from (before_script, self.script, tail)


def load_page(package: str, scripts: Iterable[str]) -> WebPage:
    """Load the page in the folder `page` of a package: page.html, page.css, and its scripts in the given order."""
    shared, own = files("monocontext.page") / "parts", files(package) / "page"
    pieces = [shared / f"{name}.js" for name in _SHARED_SCRIPTS] + [own / f"{name}.js" for name in scripts]
    script = "\n".join(piece.read_text("utf-8") for piece in pieces)
    style = (shared / "base.css").read_text("utf-8") + (own / "page.css").read_text("utf-8")
    return WebPage((own / "page.html").read_text("utf-8"), style, f"'use strict';\n(() => {{\n{script}\n}})();\n")


def data_block(name: str, value: Any) -> str:
    """A block of data as JSON in ASCII, with `<`, `>` and `&` escaped, so that a browser finds no markup in it."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="{name}">{text}</script>\n'


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
