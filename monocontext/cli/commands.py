"""The commands of `monocontext`, each with the module that defines it. A call imports the module."""

from __future__ import annotations

from monocontext import __version__
from monocontext.cli.help import make_program

app = make_program("monocontext", __version__, "Store, read, search and check texts that live in S3 or in a directory.")
for name, module in (
    ("upload", "writing"),
    ("append", "writing"),
    ("update", "documents"),
    ("sync", "documents"),
    ("index", "writing"),
    ("info", "reading"),
    ("cat", "reading"),
    ("ls-documents", "reading"),
    ("cite", "reading"),
    ("grep", "searching"),
    ("search", "passages"),
    ("outline", "passages"),
    ("view", "view"),
    ("verify", "reading"),
    ("compact", "upkeep"),
    ("gc", "upkeep"),
    ("history", "upkeep"),
    ("restore", "upkeep"),
    ("ls", "volume"),
    ("put", "volume"),
    ("get", "volume"),
    ("rm", "volume"),
    ("mcp", "mcp"),
):
    app.add_place(name, f"monocontext.cli.{module}:{name.replace('-', '_')}")
for name in ("memory", "sessions", "hooks", "volume", "config"):
    app.add_place(name, f"monocontext.cli.{name}:app")
