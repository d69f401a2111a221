"""The commands of `monocontext`, each with the module that defines it. A call imports the module."""

from __future__ import annotations

from monocontext import __version__
from monocontext.cli.help import Place, make_program

PLACES = {
    "Texts": {
        "upload": Place("writing", "Store texts as a new context.", "upload logs/ s3://bucket/logs"),
        "append": Place("writing", "Add texts at the end of a context.", "append today.log s3://bucket/logs"),
        "update": Place("documents", "Replace and add documents.", "update rows.jsonl s3://bucket/rows"),
        "sync": Place("documents", "Store what is new or has changed in files.", "sync --delete src/ s3://bucket/src"),
        "index": Place(
            "writing", "Refer to plain objects, without a copy.", "index s3://bucket/plain/ s3://bucket/logs"
        ),
        "info": Place("reading", "Describe a context.", "info s3://bucket/logs"),
        "cat": Place("reading", "Print a text or a part of it.", "cat s3://bucket/logs --lines 1:20"),
        "ls-documents": Place("reading", "List documents.", "ls-documents s3://bucket/src 'lib/**'"),
        "cite": Place("reading", "Print the passage that an answer names.", "cite s3://bucket/logs 120-180@3#1a2b3c4d"),
        "grep": Place("searching", "Print lines that match a pattern.", "grep -n 'ERROR.*disk' s3://bucket/logs"),
        "search": Place("passages", "Print passages that match words best.", "search s3://bucket/logs 'disk full'"),
        "outline": Place("passages", "Print headings from seven places.", "outline s3://bucket/src"),
        "mount": Place("mount", "Show documents as files of a folder.", "mount s3://bucket/src ./src"),
        "view": Place("view", "Show a context in a browser.", "view s3://bucket/logs"),
    },
    "Versions": {
        "history": Place("upkeep", "List versions.", "history s3://bucket/src"),
        "restore": Place("upkeep", "Make an earlier version the newest.", "restore s3://bucket/src 3"),
        "verify": Place("reading", "Check every checksum.", "verify s3://bucket/logs"),
        "compact": Place("upkeep", "Store a text in fewer, larger objects.", "compact s3://bucket/logs"),
        "gc": Place("upkeep", "Remove earlier versions.", "gc s3://bucket/logs --older-than 30d"),
    },
    "Objects": {
        "ls": Place("volume", "List objects, texts or volumes.", "ls s3://bucket/"),
        "put": Place("volume", "Store files as they are.", "put report.pdf s3://bucket/files/"),
        "get": Place("volume", "Fetch objects.", "get s3://bucket/files/report.pdf ."),
        "rm": Place("volume", "Remove objects, or documents of a context.", "rm --document 'old/**' s3://bucket/src"),
        "volume": Place("volume:app", "List, create and remove volumes.", "volume list"),
    },
    "Agents": {
        "sessions": Place("sessions:app", "Upload, search and go on with sessions.", "sessions list s3://team/agents"),
        "hooks": Place("hooks:app", "Let an agent upload its sessions.", "hooks install s3://team/agents"),
        "memory": Place("memory:app", "Keys and values that agents share.", "memory get milestone s3://team/memory"),
        "mcp": Place("mcp", "Serve texts to MCP clients.", "mcp s3://bucket/logs notes=s3://bucket/notes"),
    },
}

app = make_program(
    "monocontext",
    __version__,
    "Store, read, search and check texts that live in S3 or in a directory.",
    "monocontext.cli",
    PLACES,
)
