"""The commands of `rlm`: the place of each, and its line in the list. Calling one imports its module."""

from __future__ import annotations

from monocontext.cli.help import make_program
from rlm import __version__

app = make_program("rlm", __version__, "Answer questions about texts far larger than a model can read.")
for name, about in (
    ("run", "Answer QUESTION from CONTEXT."),
    ("chat", "Ask questions in a row over CONTEXT."),
    ("summarize", "Summarize a text."),
    ("view", "Look at a recorded run, also while it goes on."),
    ("demo", "Answer questions about a log of 10 GB, a text in an S3 server here, and a plain folder."),
    ("mcp", "Serve texts and answers to clients of MCP."),
    ("batch", "Answer many questions over CONTEXT."),
):
    app.add_place(name, f"rlm.cli.questions:{name}", about)
app.add_place("compile", "rlm.cli.compile:compile_command", "Compile new sessions into a brief for the next ones.")
app.add_place(
    "config",
    "monocontext.cli.config:app",
    "Defaults of the commands, from a file of yours; `help config` says what it may hold.",
)
