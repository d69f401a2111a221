"""Build the page: markup, style and script in one piece, under a policy that allows nothing else.

The Content-Security-Policy names style and script by their hashes, so that markup which gets into the page by mistake
can neither run nor load anything. Data is in blocks that no browser executes, with every `<` escaped.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from rlm.errors import RLMError
from rlm.view.feed import RowFeed

SCRIPTS = ("format", "dom", "python", "source", "run", "list", "timeline", "coverage", "detail", "page")
"""Concatenated in this order into one script."""


@cache
def _parts() -> tuple[str, str, str]:
    """Markup, style, script."""
    folder = files("rlm.view") / "page"
    script = "\n".join((folder / f"{name}.js").read_text("utf-8") for name in SCRIPTS)
    style = (folder / "page.css").read_text("utf-8")
    return (folder / "page.html").read_text("utf-8"), style, f"'use strict';\n(() => {{\n{script}\n}})();\n"


def policy(*, served: bool) -> str:
    """The Content-Security-Policy. A served page loads data from its own server, a file loads nothing."""
    _, style, script = _parts()
    rules = {
        "default-src": "'none'",
        "script-src": _hash(script),
        "style-src": _hash(style),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    if served:
        # A policy inside a file may not say who frames it: browsers complain.
        rules |= {"connect-src": "'self'", "frame-ancestors": "'none'"}
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def served_page() -> str:
    """The page without data."""
    return "".join(_page("", ""))


def export(feed: RowFeed, target: Path) -> None:
    """Write a file that needs no server, with all turns so far.

    It has the first prompt only, since each later one repeats the turns before it. Raises OSError, and RLMError where
    the target is the trajectory itself.
    """
    if target.exists() and target.samefile(feed.path):
        raise RLMError(f"{target} is the trajectory itself: give another file to export to")
    state = feed.state()
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy(served=False)}">'

    def data() -> Iterator[str]:
        yield _block("state", state)
        if state["rows"]:
            yield _block("prompt-0", feed.prompt(0))
        for number in range(len(state["rows"]) + (state["live"]["status"] != "ended")):
            yield _block(f"turn-{number}", feed.turn(number))

    with target.open("w", encoding="ascii", newline="\n") as file:
        file.writelines(_page(meta, data()))


def _page(meta: str, data: Iterator[str] | str) -> Iterator[str]:
    markup, style, script = _parts()
    head, rest = markup.split("<!--POLICY-->")
    before_style, rest = rest.split("/*STYLE*/")
    before_data, rest = rest.split("<!--DATA-->")
    before_script, tail = rest.split("/*SCRIPT*/")
    yield from (head, meta, before_style, style, before_data)
    yield from data
    yield from (before_script, script, tail)


def _block(name: str, value: Any) -> str:
    """Data that no browser takes for markup: JSON in ASCII without angle brackets."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="{name}">{text}</script>\n'


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
