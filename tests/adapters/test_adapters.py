"""The adapters without their hosts: no import of one, and nothing read."""

from __future__ import annotations

import builtins
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import monocontext.adapters
from monocontext import Monocontext, publish
from monocontext.adapters import rlms
from monocontext.stores.memory import forget

TEXT = "".join(f"line {i} äöü 💬\n" for i in range(500))


@pytest.fixture
def context() -> Iterator[Monocontext]:
    publish(TEXT, "memory://adapters", frame_bytes=500)
    with Monocontext.open("memory://adapters") as text:
        yield text
    forget("adapters")


def test_importing_adapters_imports_no_host() -> None:
    """But `deepagents`, whose backends extend its class."""
    modules = {path.stem for path in Path(monocontext.adapters.__file__).parent.glob("*.py")}
    names = sorted(modules - {"__init__", "deepagents"})
    code = (
        f"import sys\n{chr(10).join(f'import monocontext.adapters.{name}' for name in names)}\n"
        "found = {name.partition('.')[0] for name in sys.modules}\n"
        "print(found & {'rlm', 'dspy', 'pydantic_ai', 'pydantic_ai_rlm', 'minrlm', 'predict_rlm', 'boto3'})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_text_is_what_it_says_and_shows_itself_for_nothing(context: Monocontext) -> None:
    """Hosts sort by type: callables go elsewhere. Loggers and REPLs take a repr after every cell."""
    assert (isinstance(context, str), isinstance(context, Sequence), callable(context)) == (False, True, False)
    gets = context.stats.gets
    assert f"{len(TEXT):,}" in repr(context)
    assert len(repr(context)) < 200
    assert context.stats.gets == gets


class TestRlms:
    def test_the_prompt_has_the_length_and_not_the_text(self, context: Monocontext) -> None:
        prompt = rlms.prompt(context)
        assert isinstance(prompt, str)
        assert len(prompt) == len(TEXT)
        assert f"{prompt}" == "(see the variable context)"
        assert len(pickle.loads(pickle.dumps(prompt))) == len(TEXT)

    def test_a_local_environment_gets_the_names(self, context: Monocontext) -> None:
        repl = LocalRepl(context)
        assert repl.names["context"] is repl.names["context_0"] is context
        repl.execute_code("import re\nfound = re.findall('line 4.. ', context)")
        assert len(repl.names["found"]) == 100
        repl.execute_code(
            'joined = context if isinstance(context, str) else "\\n".join(context)\n'
            "same = joined is context, type(context) is str, type(str(context)).__name__"
        )
        assert repl.names["same"] == (True, True, "str")
        with pytest.raises(SyntaxError):
            repl.execute_code("for")
        other = LocalRepl(context, lazily=False)
        other.execute_code("same = isinstance(context, str)")
        assert other.names["same"] is False, "only the environment that was entered"

    def test_a_shared_builtins_is_left_alone(self, context: Monocontext) -> None:
        before = dict(vars(builtins))
        names: dict[str, Any] = {"__builtins__": builtins.__dict__, rlms._NAME: context}
        exec(rlms.arguments(context)["environment_kwargs"]["setup_code"], names)
        assert names["context"] is context
        assert dict(vars(builtins)) == before

    def test_functions_that_know_no_lazy_text_get_a_real_str(self, context: Monocontext) -> None:
        """In both environments, of functions that code imports."""
        cell = "import textwrap\nseen = textwrap.dedent(context[:20]), context[:4] in 'line 0'"
        local = LocalRepl(context)
        local.execute_code(cell)
        names: dict[str, Any] = {"__builtins__": builtins, "get_ipython": None, rlms._NAME: context}
        exec(rlms.arguments(context)["environment_kwargs"]["setup_code"], names)
        exec(cell, names)
        exec("import re\nsame = isinstance(context, str), len(re.findall('line 4.. ', context))", names)
        assert names["same"] == (True, 100)
        for seen in (local.names["seen"], names["seen"]):
            assert seen == (TEXT[:20], TEXT[:4] in "line 0")
            assert type(seen[0]) is str

    def test_a_list_of_documents_is_a_list(self) -> None:
        publish({f"n{i}": f"document {i}" for i in range(50)}, "memory://rlms-documents")
        with Monocontext.open("memory://rlms-documents", shape="list") as texts:
            assert len(rlms.prompt(texts)) == sum(len(f"document {i}") for i in range(50))
            assert "a list of 50 documents" in rlms.arguments(texts)["custom_tools"][rlms._NAME]["description"]
            local = LocalRepl(texts)
            local.execute_code(
                "import json\nfound = [i for i, d in enumerate(context) if 'ment 7' in d], isinstance(context, list), "
                "len(json.loads(json.dumps(context))), context[3]"
            )
            assert local.names["found"] == ([7], True, 50, "document 3")


class LocalRepl:
    """As the environment of `rlms`: builtins of its own, bound methods among its globals, code to `exec`."""

    def __init__(self, context: Any, *, lazily: bool = True) -> None:
        self.names: dict[str, Any] = {
            "__builtins__": vars(builtins) | {"globals": None, "locals": None, "exec": None},
            "SHOW_VARS": self.show,
            rlms._NAME: context,
        }
        self.names["context"] = context
        if lazily:
            self.execute_code(rlms.arguments(context)["environment_kwargs"]["setup_code"])

    def show(self) -> str:
        return ""

    def execute_code(self, code: Any) -> None:
        exec(code, self.names, self.names)
