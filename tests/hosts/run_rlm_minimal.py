"""rlm-minimal, which is not on PyPI: a class of its documented shape."""

from __future__ import annotations

import contextlib
import io
import json
import re
import tempfile
from typing import Any

from contract import QUESTION, Turns, lines_for, measure, measure_documents, tell


def cell(code: str) -> str:
    return f"```repl\n{code}```"


def final(expression: str) -> str:
    """The value has to be in a variable: text that is no code names it."""
    return cell(f"final = {expression}\n") + "\nFINAL_VAR(final)"


def run(context: Any, model: Turns) -> str:
    kind = Shape if isinstance(context, str) else lines_for("rlm-minimal", context)["lazy"](Shape)
    return str(kind(model).completion(context, QUESTION))


class ShapeOfEnvironment:
    """`REPLEnv`: names in `globals` and `locals`; a context that is no `str` goes through a file as JSON."""

    def __init__(self, context: Any) -> None:
        kept = {
            name: getattr(__builtins__, name)
            for name in ("print", "len", "str", "next", "open", "enumerate", "__import__")
        }
        self.globals: dict[str, Any] = {"__builtins__": kept}
        self.locals: dict[str, Any] = {}
        with tempfile.TemporaryFile("w+") as file:
            file.write(context) if isinstance(context, str) else json.dump(context, file)
            file.seek(0)
            self.locals["context"] = file.read() if isinstance(context, str) else json.load(file)

    def code_execution(self, code: str) -> str:
        out = io.StringIO()
        names = {**self.globals, **self.locals}
        with contextlib.redirect_stdout(out):
            exec(code, names, names)
        self.locals |= {name: value for name, value in names.items() if name not in self.globals}
        return out.getvalue()


class Shape:
    """`RLM_REPL`: `setup_context` makes `repl_env`, `completion` runs the loop."""

    def __init__(self, model: Turns) -> None:
        self.model = model
        self.repl_env: Any = None

    def setup_context(self, context: Any, query: str | None = None) -> list[dict[str, str]]:
        self.repl_env = ShapeOfEnvironment(context)
        return [{"role": "user", "content": query or ""}]

    def completion(self, context: Any, query: str | None = None) -> Any:
        messages = self.setup_context(context, query)
        while True:
            reply = self.model(messages)
            for code in re.findall(r"```repl\n(.*?)```", reply, re.DOTALL):
                messages.append({"role": "user", "content": self.repl_env.code_execution(code)})
            if named := re.search(r"^FINAL_VAR\((\w+)\)", reply, re.MULTILINE):
                return str(self.repl_env.locals[named[1]])


if __name__ == "__main__":
    assert measure_documents(run, cell=cell, final=final) < 4_000_000
    tell(measure("rlm-minimal", run, cell=cell, final=final))
