"""A model of DSPy that follows a script: the engine of a `dspy.LM`, and Deno's sandbox without deno.land."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dspy
from dspy.lm15 import Message, Request, Response, Usage
from dspy.primitives.python_interpreter import PythonInterpreter, _find_deno_executable

warnings.simplefilter("error", DeprecationWarning)  # what the next version drops
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "true"  # prices of this version, else they come from GitHub


class Engine:
    """Answers with what `reply` makes of the text of a request."""

    def __init__(self, reply: Callable[[str], str]) -> None:
        self.reply = reply

    def complete(self, request: Request) -> Response:
        system = [str(request.system)] if request.system else []
        said = self.reply("\n".join([*system, *(str(message.text) for message in request.messages)]))
        return Response(None, request.model, Message.assistant(said), "stop", Usage(10, 2))


class AsyncEngine(Engine):
    async def complete(self, request: Request) -> Response:  # type: ignore[override]
        return super().complete(request)


def model(reply: Callable[[str], str], name: str = "scripted", **options: Any) -> dspy.LM:
    return dspy.LM(name, engine=Engine(reply), async_engine=AsyncEngine(reply), cache=False, **options)


def step(code: str) -> str:
    """A reply of the root: one cell."""
    return f"[[ ## reasoning ## ]]\nlook\n\n[[ ## code ## ]]\n```python\n{code}\n```\n\n[[ ## completed ## ]]"


@contextmanager
def raises(kind: type[Exception], said: str = "") -> Iterator[list[Exception]]:
    """An error of this kind, which says this; what is given holds it afterwards."""
    raised: list[Exception] = []
    try:
        yield raised
    except kind as error:
        if said not in str(error):
            raise
        raised.append(error)
    else:
        raise AssertionError(f"no {kind.__name__}")


PLACE = Path(sys.prefix) / "deno"
"""What Deno keeps: Pyodide, which comes from npm when the environment is made."""
LINES = """
export async function* readLines(reader) {
  const decoder = new TextDecoder(), chunk = new Uint8Array(65536);
  let rest = "";
  for (let n; (n = await reader.read(chunk)) !== null; ) {
    const lines = (rest + decoder.decode(chunk.subarray(0, n), { stream: true })).split("\\n");
    rest = lines.pop();
    yield* lines;
  }
  if (rest) yield rest;
}
"""
"""DSPy's runner takes this function, and only this, from deno.land: a registry has it not."""
FROM = "https://deno.land/std@0.186.0/io/mod.ts"


def deno() -> PythonInterpreter:
    """DSPy's own sandbox, which loads nothing from the network."""
    os.environ["DENO_DIR"] = str(PLACE)
    one = PythonInterpreter()
    one.deno_command[2:2] = ["--cached-only", f"--import-map={PLACE / 'map.json'}"]
    one.deno_command = [f"{each},{PLACE}" if each.startswith("--allow-read=") else each for each in one.deno_command]
    return one


def fetch_pyodide() -> None:
    """Have Deno keep what `deno` needs; once for an environment."""
    PLACE.mkdir(exist_ok=True)
    (PLACE / "lines.mjs").write_text(LINES)
    (PLACE / "map.json").write_text(f'{{"imports": {{"{FROM}": "./lines.mjs"}}}}')
    command = [_find_deno_executable(), "cache", "--quiet", "--no-config", "--no-lock", "--node-modules-dir=none"]
    runner = Path(dspy.__file__).parent / "primitives" / "runner.js"
    environment = os.environ | {"DENO_DIR": str(PLACE), "DENO_NO_PACKAGE_JSON": "1"}
    subprocess.run([*command, f"--import-map={PLACE / 'map.json'}", runner], check=True, env=environment)
    (PLACE / "ready").touch()


if __name__ == "__main__":
    fetch_pyodide()
