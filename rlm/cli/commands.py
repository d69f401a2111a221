"""The commands of `rlm`, each with the module that defines it. A call imports the module."""

from __future__ import annotations

from monocontext.cli.help import CommandModule, Program
from rlm import __version__

_PLACES = {
    "Commands": {
        "run": CommandModule("questions", "Answer a question.", "run s3://bucket/logs 'Which disk failed first?'"),
        "chat": CommandModule("chat", "Answer one question after another.", "chat s3://bucket/logs"),
        "batch": CommandModule(
            "batch", "Answer the questions of a file.", "batch questions.jsonl s3://b/logs --out out.jsonl"
        ),
        "view": CommandModule("questions", "Show a recorded run in a browser.", "view runs/run.jsonl"),
        "compile": CommandModule(
            "compile:compile_command", "Make a brief of the team's sessions.", "compile s3://team/agents"
        ),
        "mcp": CommandModule("mcp", "Serve texts and answers to MCP clients.", "mcp s3://bucket/logs"),
        "demo": CommandModule("demo", "Answer questions without a key.", "demo"),
    }
}

app = Program("rlm", __version__, "Answer questions about texts far larger than a model can read.", "rlm.cli", _PLACES)
