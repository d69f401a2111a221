"""List the commands of `rlm`: the module of each, a line of help, and an example."""

from __future__ import annotations

from monocontext.cli.help import HelpRow, Program
from rlm import __version__

_ENTRIES = {
    "Commands": {
        "run": HelpRow("questions", "Answer a question.", "run s3://bucket/logs 'Which disk failed first?'"),
        "chat": HelpRow("chat", "Answer one question after another.", "chat s3://bucket/logs"),
        "batch": HelpRow("batch", "Answer the questions of a file.", "batch ask.jsonl s3://b/logs --out out.jsonl"),
        "view": HelpRow("questions", "Show a recorded run in a browser.", "view runs/run.jsonl"),
        "compile": HelpRow("compile:compile_command", "Make a brief of the team's sessions.", "compile s3://b/agents"),
        "mcp": HelpRow("mcp", "Serve texts and answers to MCP clients.", "mcp s3://bucket/logs"),
        "demo": HelpRow("demo", "Answer questions without a key.", "demo"),
    }
}

app = Program("rlm", __version__, "Answer questions about texts far larger than a model can read.", "rlm.cli", _ENTRIES)
