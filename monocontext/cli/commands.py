"""The commands of `monocontext`: module, description and an example. One without a description joins the row above."""

from __future__ import annotations

from monocontext import __version__
from monocontext.cli.help import Program

_COMMANDS = {
    "Texts": {
        "upload": ("writing", "Store texts as a new context.", "upload logs/ s3://bucket/logs"),
        "append": ("writing", "Add texts at the end, or replace and add documents.", "append today.log s3://b/logs"),
        "update": ("upkeep", "", "update rows.jsonl s3://bucket/rows"),
        "sync": ("upkeep", "Store what is new or has changed in files.", "sync --delete src/ s3://bucket/src"),
        "index": ("writing", "Refer to plain objects, without a copy.", "index s3://bucket/plain/ s3://b/logs"),
        "info": ("reading", "Describe a context, or print its headings.", "info s3://bucket/logs"),
        "outline": ("reading", "", "outline s3://bucket/src"),
        "cat": ("reading", "Print a text, or the passage that an answer names.", "cat s3://b/logs --lines 1:20"),
        "cite": ("reading", "", "cite s3://bucket/logs 120-180@3#1a2b3c4d"),
        "grep": ("searching", "Print lines that match a pattern.", "grep -n 'ERROR.*disk' s3://bucket/logs"),
        "search": ("reading", "Print passages that match words best.", "search s3://bucket/logs 'disk full'"),
        "mount": ("mount", "Show documents as files of a folder.", "mount s3://bucket/src ./src"),
        "view": ("serving", "Show a context in a browser.", "view s3://bucket/logs"),
    },
    "Versions": {
        "history": ("upkeep", "List versions, or make one the newest.", "history s3://bucket/src"),
        "restore": ("upkeep", "", "restore s3://bucket/src 3"),
        "verify": ("upkeep", "Check every checksum.", "verify s3://bucket/logs"),
        "compact": ("upkeep", "Store a text in fewer objects, or remove old versions.", "compact s3://bucket/logs"),
        "gc": ("upkeep", "", "gc s3://bucket/logs --older-than 30d"),
    },
    "Objects": {
        "ls": ("volume", "List objects and texts, or the documents of one.", "ls s3://bucket/"),
        "ls-documents": ("reading", "", "ls-documents s3://bucket/src 'lib/**'"),
        "put": ("volume", "Store or fetch files as they are.", "put report.pdf s3://bucket/files/"),
        "get": ("volume", "", "get s3://bucket/files/report.pdf ."),
        "rm": ("volume", "Remove objects, or documents of a context.", "rm --document 'old/**' s3://bucket/src"),
        "volume": ("volume:app", "List, create and remove volumes.", "volume list"),
    },
    "Agents": {
        "sessions": ("sessions:app", "List, show and upload sessions of agents.", "sessions list s3://team/agents"),
        "hooks": ("hooks:app", "", "hooks install s3://team/agents"),
        "memory": ("memory:app", "Store keys and values that agents share.", "memory get milestone s3://team/memory"),
        "mcp": ("mcp", "Serve texts to MCP clients.", "mcp s3://bucket/logs notes=s3://bucket/notes"),
    },
}

app = Program(
    "monocontext", __version__, "Store, read, search and check texts that live in S3 or in a directory.",
    "monocontext.cli", _COMMANDS,
)  # fmt: skip
