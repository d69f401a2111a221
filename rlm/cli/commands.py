"""The commands of `rlm`, each with the module that defines it. A call imports the module."""

from __future__ import annotations

from monocontext.cli.help import make_program
from rlm import __version__

app = make_program("rlm", __version__, "Answer questions about texts far larger than a model can read.")
for name in ("run", "chat", "view", "demo", "mcp"):
    app.add_place(name, f"rlm.cli.questions:{name}")
app.add_place("batch", "rlm.cli.batch:batch")
app.add_place("compile", "rlm.cli.compile:compile_command")
