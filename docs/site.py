"""Finish the site while it is built: its search has a name for screen readers, and models can read it as one text.

`llms.txt` lists the pages; `llms-full.txt` holds the text of all that is in the menu, reference left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

_PAGES: dict[str, tuple[str, str]] = {}
"""Path of a page in the site -> its title and its Markdown."""


def on_page_content(html: str, *, page: Any, **_: Any) -> str:
    """Called by MkDocs for each page, in the order of the menu."""
    if not page.file.src_uri.startswith("reference/"):
        _PAGES[page.url] = (page.title, page.markdown)
    return html


def on_post_page(output: str, **_: Any) -> str:
    """Called by MkDocs with each finished page."""
    return output.replace(
        'data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"'
    )


def on_post_build(config: Any) -> None:
    """Called by MkDocs at the end."""
    shown = {name: page for name, page in _PAGES.items() if not name.startswith("decisions/0")}
    lines = [f"- [{title}]({name})" for name, (title, _) in shown.items()]
    folder = Path(config["site_dir"])
    (folder / "llms.txt").write_text(
        f"# {config['site_name']}\n\n> {config['site_description']}\n\n" + "\n".join(lines) + "\n"
    )
    (folder / "llms-full.txt").write_text("\n\n".join(text for _, text in shown.values()) + "\n")
