"""List the commands of `monocontext` by section: the module of each, a line of help, and an example."""

from __future__ import annotations

from monocontext import __version__
from monocontext.cli.help import HelpRow, Program

_COMMANDS = {
    "Texts": {
        "upload": HelpRow("writing", "Store texts as a new context.", "upload logs/ s3://bucket/logs"),
        "append": HelpRow("writing", "Add texts at the end, or replace and add documents.", "append a.log s3://b/logs"),
        "update": HelpRow("upkeep", "", "update rows.jsonl s3://bucket/rows"),
        "sync": HelpRow("upkeep", "Store what is new or has changed in files.", "sync --delete src/ s3://bucket/src"),
        "index": HelpRow("writing", "Refer to plain objects, without a copy.", "index s3://bucket/plain/ s3://b/logs"),
        "info": HelpRow("reading", "Describe a context, or print its headings.", "info s3://bucket/logs"),
        "outline": HelpRow("reading", "", "outline s3://bucket/src"),
        "cat": HelpRow("reading", "Print a text, or the passage that an answer names.", "cat s3://b/logs --lines 1:20"),
        "cite": HelpRow("passages", "", "cite s3://bucket/logs 120-180@3#1a2b3c4d"),
        "grep": HelpRow("searching", "Print lines that match a pattern.", "grep -n 'ERROR.*disk' s3://bucket/logs"),
        "search": HelpRow("passages", "Print passages that match words best.", "search s3://bucket/logs 'disk full'"),
        "mount": HelpRow("mount", "Show documents as files of a folder.", "mount s3://bucket/src ./src"),
        "view": HelpRow("serving", "Show a context in a browser.", "view s3://bucket/logs"),
    },
    "Versions": {
        "history": HelpRow("upkeep", "List versions, or make one the newest.", "history s3://bucket/src"),
        "restore": HelpRow("upkeep", "", "restore s3://bucket/src 3"),
        "verify": HelpRow("upkeep", "Check every checksum.", "verify s3://bucket/logs"),
        "compact": HelpRow("upkeep", "Store a text in fewer objects, or remove old versions.", "compact s3://b/logs"),
        "gc": HelpRow("upkeep", "", "gc s3://bucket/logs --older-than 30d"),
    },
    "Objects": {
        "ls": HelpRow("objects", "List objects and texts, or the documents of one.", "ls s3://bucket/"),
        "ls-documents": HelpRow("reading", "", "ls-documents s3://bucket/src 'lib/**'"),
        "put": HelpRow("objects", "Store or fetch files as they are.", "put report.pdf s3://bucket/files/"),
        "get": HelpRow("objects", "", "get s3://bucket/files/report.pdf ."),
        "rm": HelpRow("objects", "Remove objects, or documents of a context.", "rm --document 'old/**' s3://b/src"),
        "volume": HelpRow("volumes:app", "List, create and remove volumes.", "volume list"),
    },
    "Agents": {
        "sessions": HelpRow("sessions:app", "List, show and upload sessions of agents.", "sessions list s3://b/agents"),
        "hooks": HelpRow("hooks:app", "", "hooks install s3://team/agents"),
        "memory": HelpRow("memory:app", "Store keys and values that agents share.", "memory get step s3://b/memory"),
        "mcp": HelpRow("mcp", "Serve texts to MCP clients.", "mcp s3://bucket/logs notes=s3://bucket/notes"),
    },
}

app = Program(
    "monocontext", __version__, "Store, read, search and check texts that live in S3 or in a directory.",
    "monocontext.cli", _COMMANDS,
)  # fmt: skip
