"""The commands of `monocontext`, each with the module that defines it. A call imports the module."""

from __future__ import annotations

from monocontext import __version__
from monocontext.cli.help import Place, Program

PLACES = {
    "Texts": {
        "upload": Place("writing", "Store texts as a new context.", "upload logs/ s3://bucket/logs"),
        "append": Place(
            "writing", "Add texts at the end, or replace and add documents.", "append today.log s3://b/logs"
        ),
        "update": Place("upkeep", "", "update rows.jsonl s3://bucket/rows"),
        "sync": Place("upkeep", "Store what is new or has changed in files.", "sync --delete src/ s3://bucket/src"),
        "index": Place("writing", "Refer to plain objects, without a copy.", "index s3://bucket/plain/ s3://b/logs"),
        "info": Place("reading", "Describe a context, or print its headings.", "info s3://bucket/logs"),
        "outline": Place("reading", "", "outline s3://bucket/src"),
        "cat": Place("reading", "Print a text, or the passage that an answer names.", "cat s3://b/logs --lines 1:20"),
        "cite": Place("reading", "", "cite s3://bucket/logs 120-180@3#1a2b3c4d"),
        "grep": Place("searching", "Print lines that match a pattern.", "grep -n 'ERROR.*disk' s3://bucket/logs"),
        "search": Place("reading", "Print passages that match words best.", "search s3://bucket/logs 'disk full'"),
        "mount": Place("mount", "Show documents as files of a folder.", "mount s3://bucket/src ./src"),
        "view": Place("serving", "Show a context in a browser.", "view s3://bucket/logs"),
    },
    "Versions": {
        "history": Place("upkeep", "List versions, or make one the newest.", "history s3://bucket/src"),
        "restore": Place("upkeep", "", "restore s3://bucket/src 3"),
        "verify": Place("reading", "Check every checksum.", "verify s3://bucket/logs"),
        "compact": Place(
            "upkeep", "Store a text in fewer objects, or remove old versions.", "compact s3://bucket/logs"
        ),
        "gc": Place("upkeep", "", "gc s3://bucket/logs --older-than 30d"),
    },
    "Objects": {
        "ls": Place("volume", "List objects and texts, or the documents of one.", "ls s3://bucket/"),
        "ls-documents": Place("reading", "", "ls-documents s3://bucket/src 'lib/**'"),
        "put": Place("volume", "Store or fetch files as they are.", "put report.pdf s3://bucket/files/"),
        "get": Place("volume", "", "get s3://bucket/files/report.pdf ."),
        "rm": Place("volume", "Remove objects, or documents of a context.", "rm --document 'old/**' s3://bucket/src"),
        "volume": Place("volume:app", "List, create and remove volumes.", "volume list"),
    },
    "Agents": {
        "sessions": Place("sessions:app", "Store sessions, also when they end.", "sessions list s3://team/agents"),
        "hooks": Place("hooks:app", "", "hooks install s3://team/agents"),
        "memory": Place("memory:app", "Keys and values that agents share.", "memory get milestone s3://team/memory"),
        "mcp": Place("mcp", "Serve texts to MCP clients.", "mcp s3://bucket/logs notes=s3://bucket/notes"),
    },
}

app = Program(
    "monocontext",
    __version__,
    "Store, read, search and check texts that live in S3 or in a directory.",
    "monocontext.cli",
    PLACES,
)
