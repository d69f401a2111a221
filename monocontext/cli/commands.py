"""The commands of `monocontext`: the place of each, and its line in the list. Calling one imports its module."""

from __future__ import annotations

from monocontext import __version__
from monocontext.cli.help import make_program

app = make_program("monocontext", __version__, "Texts that live in S3: put them there, look at them, check them.")
for name, module, about in (
    ("upload", "writing", "Store texts as a new context at URL."),
    ("append", "writing", "Add texts at the end of the context at URL, as a new version of it."),
    ("update", "writing", "Replace the documents of the context at URL that rows of SRC name, and append those with "
     "new names."),
    ("sync", "writing", "Make the context at URL hold the files of SRC: read and store only what is new or has "
     "changed."),
    ("index", "writing", "Make a context at DEST of plain text objects that already lie in S3 (or a directory), "
     "without copying them."),
    ("info", "reading", "Describe the context at URL (1 GET; of one above 150 GB 1 more for each directory, 1 TB of "
     "text)."),
    ("cat", "reading", "Print the text of the context at URL, or a part of it; streams."),
    ("ls-documents", "reading", "List the documents of the context at URL: characters, lines, name (1 GET for 4,096 "
     "documents)."),
    ("cite", "citing", "Print what a source of an answer names, and whether it still stands in the newest version "
     "of URL."),
    ("grep", "searching", "Print the lines of the context at URL that match PATTERN, reading as little as search "
     "filters allow."),
    ("search", "passages", "Print the passages that speak of WORDS, best first, reading as little as search filters "
     "allow."),
    ("outline", "passages", "Print what the context at URL is: its size, its documents, and headings out of seven "
     "places of it."),
    ("view", "view", "Look at the context at URL in a browser: documents, text, searches, versions, and what was "
     "read."),
    ("verify", "reading", "Read the whole context at URL and check every checksum, length and count; exit 1 and a "
     "list on damage."),
    ("compact", "upkeep", "Store the text of the context at URL in fewer, full objects, as a new version; do nothing "
     "if none are saved."),
    ("gc", "upkeep", "Remove earlier versions of the context at URL, and what no other one names, after a grace "
     "period."),
    ("history", "upkeep", "List the versions of the context at URL: time, characters, documents, and the change of "
     "each."),
    ("restore", "upkeep", "Make an earlier version of the context at URL the newest one; the versions in between "
     "stay."),
    ("ls", "volume", "List the objects below URL: size in bytes, time, name (1 LIST a thousand)."),
    ("put", "volume", "Store files below URL as they are."),
    ("get", "volume", "Fetch the object at URL, or with a / at its end all objects below it (1 GET each)."),
    ("rm", "volume", "Remove the object at URL, with -r everything below it, or with --document documents of a "
     "context."),
    ("mcp", "mcp", "Serve texts to programs that speak the Model Context Protocol."),
):  # fmt: skip
    app.add_place(name, f"monocontext.cli.{module}:{name.replace('-', '_')}", about)
for name, about in (
    ("memory", "Keys and values in a store, shared by agents."),
    ("sessions", "Sessions of coding agents: upload them without their secrets, list, show and search them."),
    ("hooks", "Let a coding agent upload its sessions and begin with the team's brief."),
    ("volume", "Volumes: places for files below MONOCONTEXT_VOLUMES, by the names that an Interpreter takes."),
    ("config", "Defaults of the commands, from a file of yours; `help config` says what it may hold."),
):
    app.add_place(name, f"monocontext.cli.{name}:app", about)
