"""`rlms`: its local environment, with children of `rlm_query` too, and ipython in this process and in another."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from typing import Any

from contract import ANSWER, CELLS, LOOK, QUESTION, Turns, measure, measure_documents, served, tell
from openai_server import answering
from rlm import RLM

from monocontext.adapters import rlms


def cell(code: str) -> str:
    return f"```repl\n{code}```"


def final(expression: str) -> str:
    return cell(f'answer["content"] = {expression}\nanswer["ready"] = True\n')


def run(context: Any, model: Turns, environment: str = "local", **options: Any) -> str:
    with answering(model) as url:
        backend = {"model_name": "scripted", "base_url": url, "api_key": "none"}
        arguments: dict[str, Any] = {}
        prompt = context
        if not isinstance(context, str):
            arguments = rlms.arguments(context)
            prompt = rlms.prompt(context)
            arguments["environment_kwargs"] |= options.pop("environment_kwargs", {})
        lm = RLM(backend="openai", backend_kwargs=backend, environment=environment, **arguments | options)
        return lm.completion(prompt, root_prompt=QUESTION).response


def run_with_children() -> None:
    """Depth 2: the child has what it was asked as its `context`, and the text stays the parent's."""
    ask = 'at = context.find("zebra", 1000)\nfound = rlm_query("Password? " + context[at:at + 40])\nprint(found)\n'
    child = 'answer["content"] = context.split("password is ")[1].split()[0]\nanswer["ready"] = True\n'
    after = "import re\nprint(re.findall('zebra', context), len(context))\n"
    with served() as text:
        model = Turns([cell(LOOK.format(name="context")), cell(ask), cell(child), cell(after), final("found")])
        assert run(text.context, model, max_depth=2) == ANSWER
        assert "['zebra'] 4294967296" in str(model.asked[4]), "re of the kit, and the parent's own text"
        assert text.sent() < 100_000, f"{text.sent():,} characters were read"


def run_in_ipython(**options: Any) -> None:
    with served() as text:
        model = Turns([*(cell(code.format(name="context")) for code in CELLS), final("found")])
        assert run(text.context, model, "ipython", **options) == ANSWER, options
        assert text.sent() < 100_000, f"{text.sent():,} characters were read"


def run_as_a_str(environment: str, **options: Any) -> None:
    """Code that asks what the text is gets the answers of a `str`, and so does what it leads to."""
    ask = (
        'joined = context if isinstance(context, str) else "\\n".join(context)\n'
        "import re\n"
        'print(joined is context, type(context) is str, re.search("quic.", context[:60])[0])\n'
    )
    with served() as text:
        model = Turns([cell(ask), final(repr(ANSWER))])
        assert run(text.context, model, environment, **options) == ANSWER
        assert "True True quick" in str(model.asked[1]), str(model.asked[1])[-500:]


def run_as_in_a_container() -> None:
    """The script that rlms runs for each cell in a container or cloud, where setup code opens the text itself."""
    from rlm.environments.docker_repl import _build_exec_script

    with served() as text, tempfile.TemporaryDirectory() as folder:
        where = f"{text.server.url()!r}, endpoint={text.server.endpoint!r}, anonymous=True"
        setup = f"from monocontext import Monocontext\ncontext = context_0 = Monocontext.open({where})\n"
        for code in (setup, *(code.format(name="context") for code in CELLS), "print(found)"):
            script = _build_exec_script(code, 1).replace("/workspace", folder)
            done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
            told = json.loads(done.stdout)
            assert not told["stderr"], told["stderr"]
        assert told["stdout"].strip() == ANSWER
        assert text.sent() < 100_000, f"{text.sent():,} characters were read"


if __name__ == "__main__":
    run_as_in_a_container()
    run_as_a_str("local")
    run_as_a_str("ipython")
    run_as_a_str("ipython", environment_kwargs={"kernel_mode": "subprocess"})
    run_with_children()
    run_in_ipython()
    run_in_ipython(environment_kwargs={"kernel_mode": "subprocess"})
    assert measure_documents(run, cell=cell, final=final, given=lambda texts: texts) < 4_000_000
    tell(measure("rlms", run, cell=cell, final=final))
