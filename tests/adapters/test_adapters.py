"""The adapters without their hosts: no import of one, nothing read, and the proxies equal to the text."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import monocontext.adapters
from monocontext import Monocontext, publish
from monocontext.adapters import dspy, minrlm, predict_rlm, recursive_llm, rlm_minimal, rlms
from monocontext.errors import NotPicklable
from monocontext.stores.memory import forget

TEXT = "".join(f"line {i} äöü 💬\n" for i in range(500))


@pytest.fixture
def context() -> Iterator[Monocontext]:
    publish(TEXT, "memory://adapters", frame_bytes=500)
    with Monocontext.open("memory://adapters") as text:
        yield text
    forget("adapters")


def test_importing_adapters_imports_no_host() -> None:
    names = sorted(
        path.stem for path in Path(monocontext.adapters.__file__).parent.glob("*.py") if path.stem != "__init__"
    )
    code = (
        f"import sys\n{chr(10).join(f'import monocontext.adapters.{name}' for name in names)}\n"
        "found = {name.partition('.')[0] for name in sys.modules}\n"
        "print(found & {'rlm', 'dspy', 'pydantic_ai', 'pydantic_ai_rlm', 'minrlm', 'predict_rlm', 'boto3'})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


class TestRlms:
    def test_the_prompt_has_the_length_and_not_the_text(self, context: Monocontext) -> None:
        prompt = rlms.prompt(context)
        assert isinstance(prompt, str)
        assert len(prompt) == len(TEXT)
        assert f"{prompt}" == "(see the variable context)"
        assert len(pickle.loads(pickle.dumps(prompt))) == len(TEXT)

    def test_setup_code_gives_the_names(self, context: Monocontext) -> None:
        arguments = rlms.arguments(context)
        names: dict[str, Any] = {"__builtins__": {"__import__": __import__, "print": print, "type": type, "dict": dict}}
        names["__builtins__"]["vars"] = vars
        names[rlms.NAME] = arguments["custom_tools"][rlms.NAME]["tool"]
        exec(arguments["environment_kwargs"]["setup_code"], names)
        assert names["context"] is names["context_0"] is context
        exec("import re\nfound = re.findall('line 4.. ', context)", names)
        assert len(names["found"]) == 100

    def test_a_shared_builtins_is_left_alone(self, context: Monocontext) -> None:
        import builtins

        names: dict[str, Any] = {"__builtins__": builtins.__dict__, rlms.NAME: context}
        exec(rlms.arguments(context)["environment_kwargs"]["setup_code"], names)
        assert names["context"] is context
        assert builtins.print is print is not context.repl_namespace().names["print"]

    @pytest.mark.parametrize("name", ["context", "context_0", "not a name"])
    def test_a_name_that_cannot_be(self, context: Monocontext, name: str) -> None:
        with pytest.raises(ValueError, match="identifier"):
            rlms.arguments(context, name)


class Environment:
    def __init__(self, context: Any) -> None:
        self.globals: dict[str, Any] = {"__builtins__": {"__import__": __import__}}
        self.locals = {"context": context}


class Repl:
    repl_env: Environment

    def setup_context(self, context: Any, query: str | None = None) -> list[str]:
        self.repl_env = Environment(context)
        return [query or ""]


def test_rlm_minimal_gets_the_object(context: Monocontext) -> None:
    repl = rlm_minimal.lazy(Repl)()
    assert repl.setup_context(context, "why") == ["why"]
    assert repl.repl_env.locals["context"] is context
    assert "print" in repl.repl_env.globals["__builtins__"]
    repl.setup_context("plain")
    assert repl.repl_env.locals["context"] == "plain"


class MinimalRepl:
    def __init__(self) -> None:
        self.names: dict[str, Any] = {}

    def set_variable(self, name: str, value: Any, allow_override: bool = False) -> None:
        self.names[name] = value


class MinimalRlm:
    def __init__(self) -> None:
        self._repl = MinimalRepl()

    def completion(self, task: str, context: str = "") -> str:
        self._repl.set_variable("input_0", context or "", allow_override=True)
        return context


def test_minrlm_prompts_with_a_note_and_holds_the_text(context: Monocontext) -> None:
    rlm = minrlm.lazy(MinimalRlm)()
    told = rlm.completion("why", context)  # type: ignore[arg-type]
    assert type(told) is str
    assert f"{len(TEXT):,} characters" in told
    assert rlm._repl.names["input_0"] == TEXT
    assert rlm.completion("why", "plain") == rlm._repl.names["input_0"] == "plain"
    assert "set_variable" not in vars(rlm._repl), "the method is the class's own again"


def test_what_cannot_be_pickled_is_said(context: Monocontext, tmp_path: Path) -> None:
    with pytest.raises(NotPicklable):
        recursive_llm.prepared(context)
    publish(TEXT, tmp_path)
    with Monocontext.open(tmp_path) as text:
        assert recursive_llm.prepared(text) is text
        with predict_rlm.open_context(predict_rlm.handle(text)) as again:
            assert again == TEXT


def test_tools_of_predict_rlm(context: Monocontext) -> None:
    tools = predict_rlm.tools(context)
    assert asyncio.run(tools["ctx_read"](start=5, stop=50)) == TEXT[5:50]
    assert asyncio.run(tools["ctx_find"](sub="line 300")) == TEXT.find("line 300")
    assert asyncio.run(tools["ctx_grep"]("line 49[89]")) == [
        [TEXT.find("line 498"), 499, "line 498 äöü 💬"],
        [TEXT.find("line 499"), 500, "line 499 äöü 💬"],
    ]


@pytest.fixture
def proxy(context: Monocontext) -> Any:
    """The sandbox's side, with tools called as JSON would have it."""
    names: dict[str, Any] = {tool.__name__: tool for tool in dspy._tools(context, "_left")}
    exec(f"{dspy._proxy()}\nleft = LazyText({len(context)}, {', '.join(names)})", names)
    return names["left"]


@pytest.mark.parametrize(
    "operation",
    [
        "len(x)",
        "x[:20]",
        "x[-20:]",
        "x[3]",
        "x[-1]",
        "x[5:100:3]",
        "x[100:5:-3]",
        "x[::-1]",
        "x[20:10]",
        "x[::2]",
        "x.find('line 77')",
        "x.find('line', 30, 90)",
        "x.find('nothing of it')",
        "x.index('line 9')",
        "x.count('line')",
        "x.count('line', 100)",
        "'line 400 ' in x",
        "x.startswith('line 0')",
        "x.endswith('\\n')",
        "str(x)",
        "''.join(x)",
        "list(x.splitlines())",
        "bool(x)",
    ],
)
def test_the_proxy_of_dspy_is_equal_to_str(proxy: Any, operation: str) -> None:
    assert eval(operation, {"x": proxy}) == eval(operation, {"x": TEXT})


def test_the_proxy_of_dspy_has_lines_and_grep(proxy: Any) -> None:
    lines = TEXT.splitlines(keepends=True)
    assert proxy.lines[3:7] == "".join(lines[3:7])
    assert proxy.lines[12] == lines[12]
    assert list(proxy.lines) == lines
    hits = list(proxy.grep("line .*7"))
    assert [hit.line + "\n" for hit in hits] == [line for line in lines if "7" in line]
    assert len(list(proxy.grep("line", max_hits=3))) == 3
    with pytest.raises(IndexError):
        proxy.lines[500]
    with pytest.raises(IndexError):
        proxy[len(TEXT)]
    with pytest.raises(AttributeError, match="take a slice first"):
        proxy.upper()
