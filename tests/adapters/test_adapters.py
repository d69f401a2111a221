"""The adapters without their hosts: no import of one, nothing read, and the proxies equal to the text."""

from __future__ import annotations

import builtins
import json
import pickle
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

import monocontext.adapters
from monocontext import Monocontext, publish
from monocontext.adapters import dspy, dspy_remote, rlm_minimal, rlms
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

    def test_ipython_gets_the_names(self, context: Monocontext) -> None:
        names: dict[str, Any] = {"__builtins__": builtins, "get_ipython": None, rlms.NAME: context}
        exec(rlms.arguments(context)["environment_kwargs"]["setup_code"], names)
        exec("import re\nsame = isinstance(context, str), len(re.findall('line 4.. ', context))", names)
        assert names["same"] == (True, 100)

    def test_a_shared_builtins_is_left_alone(self, context: Monocontext) -> None:
        before = dict(vars(builtins))
        names: dict[str, Any] = {"__builtins__": builtins.__dict__, rlms.NAME: context}
        exec(rlms.arguments(context)["environment_kwargs"]["setup_code"], names)
        assert names["context"] is context
        assert dict(vars(builtins)) == before

    def test_functions_that_know_no_lazy_text_get_a_real_str(self, context: Monocontext) -> None:
        """In both environments, of functions that code imports."""
        cell = "import textwrap\nseen = textwrap.dedent(context[:20]), context[:4] in 'line 0'"
        local = LocalRepl(context)
        local.execute_code(cell)
        names: dict[str, Any] = {"__builtins__": builtins, "get_ipython": None, rlms.NAME: context}
        exec(rlms.arguments(context)["environment_kwargs"]["setup_code"], names)
        exec(cell, names)
        for seen in (local.names["seen"], names["seen"]):
            assert seen == (TEXT[:20], TEXT[:4] in "line 0")
            assert type(seen[0]) is str

    def test_a_list_of_documents_is_a_list(self) -> None:
        publish({f"n{i}": f"document {i}" for i in range(50)}, "memory://rlms-documents")
        with Monocontext.open("memory://rlms-documents", shape="list") as texts:
            assert len(rlms.prompt(texts)) == sum(len(f"document {i}") for i in range(50))
            assert "a list of 50 documents" in rlms.arguments(texts)["custom_tools"][rlms.NAME]["description"]
            local = LocalRepl(texts)
            local.execute_code(
                "import json\nfound = [i for i, d in enumerate(context) if 'ment 7' in d], isinstance(context, list), "
                "len(json.loads(json.dumps(context))), context[3]"
            )
            assert local.names["found"] == ([7], True, 50, "document 3")

    @pytest.mark.parametrize("name", ["context", "context_0", "not a name"])
    def test_a_name_that_cannot_be(self, context: Monocontext, name: str) -> None:
        with pytest.raises(ValueError, match="identifier"):
            rlms.arguments(context, name)


class LocalRepl:
    """As the environment of `rlms`: builtins of its own, bound methods among its globals, code to `exec`."""

    def __init__(self, context: Any, *, lazily: bool = True) -> None:
        self.names: dict[str, Any] = {
            "__builtins__": vars(builtins) | {"globals": None, "locals": None, "exec": None},
            "SHOW_VARS": self.show,
            rlms.NAME: context,
        }
        self.names["context"] = context
        if lazily:
            self.execute_code(rlms.arguments(context)["environment_kwargs"]["setup_code"])

    def show(self) -> str:
        return ""

    def execute_code(self, code: Any) -> None:
        exec(code, self.names, self.names)


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


@pytest.mark.parametrize("shape", ["list", "dict"])
def test_rlm_minimal_takes_documents(tmp_path: Path, shape: Any) -> None:
    publish({"a": "one\n", "b": "two zebras\n"}, tmp_path)
    with Monocontext.open(tmp_path, shape=shape) as opened:
        documents: Any = opened
        repl = rlm_minimal.lazy(Repl)()
        repl.setup_context(documents, "why")
        assert repl.repl_env.locals["context"] is documents


def own_re(patch: pytest.MonkeyPatch) -> None:
    """The sandbox changes its own `re`, which is ours here."""
    for name in ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn"):
        patch.setattr(re, name, getattr(re, name))


@pytest.fixture
def proxy(context: Monocontext, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The sandbox's side, with tools called as JSON would have it."""
    own_re(monkeypatch)
    names: dict[str, Any] = {tool.__name__: tool for tool in dspy._tools(context, "_left")}
    exec(f"{dspy._proxy_source('dspy_proxy')}\nleft = ContextProxy({len(context)}, {', '.join(names)})", names)
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
    with pytest.raises(AttributeError):
        proxy.nothing_of_str()


LARGE: list[str] = [
    "x.split('\\n')",
    "x.split('line', 3)",
    "x.split()[5:9]",
    "x.splitlines(keepends=True)",
    "len(x.split('\\n'))",
    "x.split('\\n')[-3]",
    "x.lower()",
    "x.upper().lower()[20:90]",
    "x.lower().split('LINE'.lower())[7]",
    "x.replace('line', 'LINE')",
    "x.replace('line', 'LINE').count('LINE 1')",
    "x.strip(), x.lstrip('line '), x.rstrip()",
    "x.casefold()",
    "x.partition('line 7'), x.rpartition('line 7')",
    "x.removeprefix('line'), x.removesuffix('\\n')",
    "x.startswith('line', 0), x.startswith(('a', 'l')), x.endswith('\\n', 5)",
    "x.rfind('line'), x.rindex('line'), x.find('zz'), x.count('é')",
    "x == 'a', x != 'a', x < 'm', x >= 'm', x == x",
    "x.rindex('zz')",
    "x.split('')",
    "x.find(5)",
    "x + 5",
    "bytes(x)",
    "[m.span() for m in re.finditer('line (.)', x)]",
    "[(m.group(), m[1], m.groups(), m.start('n')) for m in re.finditer('line (?P<n>7.)', x)]",
    "re.search('nothing', x), re.search('line 7+', x).group(), re.match('LINE', x, re.I).span()",
    "re.findall('line 49.', x), re.findall(re.compile('LINE 7(.)', re.I), x)",
    "re.split(' ', x, maxsplit=2)",
    "re.finditer('(', x)",
    "[1 for _ in re.finditer('', x)]",
]


REFUSED: list[str] = [
    "x.split(maxsplit=2)",
    "x.rsplit(' ', 2)",
    "x.translate({108: 'L', 105: None})",
    "x.translate(str.maketrans('abc', 'xyz'))",
    "x.title()",
    "x.swapcase()",
    "x.capitalize()",
    "x.isalpha()",
    "x.isascii()",
    "x.isupper()",
    "x.istitle()",
    "x.isprintable()",
    "x.expandtabs(3)",
    "x.zfill(5)",
    "x.center(3)",
    "x.ljust(len(x) + 3)",
    "x.rjust(len(x) + 2, '*')",
    "x + 'a'",
    "'a' + x",
    "x + x",
    "re.split('\\n(?=line 4)', x)",
    "re.sub('[aeiou]', '-', x)",
    "re.subn(r'(\\d)', r'<\\1>', x, count=5)",
]
"""What no lazy text has above the limit; see docs/semantics.md."""


@pytest.mark.slow
@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("operation", LARGE + REFUSED)
def test_the_proxy_of_dspy_has_every_method(
    context: Monocontext, operation: str, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the text crosses whole, and where every operation is carried out by the host, on lazy results."""
    own_re(monkeypatch)
    text = context if small else context.view(materialize_limit=300)
    tools = {
        tool.__name__: lambda t=tool, **k: json.loads(json.dumps(t(**json.loads(json.dumps(k)))))
        for tool in dspy._tools(text, "")
    }
    real = {"x": TEXT, "re": types.SimpleNamespace(**vars(re))}
    names: dict[str, Any] = dict(tools)
    exec(f"{dspy._proxy_source('dspy_proxy')}\nx = ContextProxy({len(context)}, {', '.join(tools)})", names)
    names["PROXY_SMALL"] = 1 << 20 if small else 100
    expected, found = outcome(operation, real), outcome(operation, names)
    assert found == (expected if small or operation not in REFUSED else MemoryError)


def outcome(operation: str, names: dict[str, Any]) -> Any:
    try:
        return read(eval(operation, names))
    except Exception as error:
        return type(error)


def read(value: Any) -> Any:
    """A proxy of any kind as what it stands for."""
    if isinstance(value, tuple):
        return tuple(map(read, value))
    kind = type(value).__name__
    if kind == "DerivedProxy":
        return "".join(value)
    return [*map(read, value)] if kind == "ListProxy" else value


def test_every_method_of_str_is_tried() -> None:
    text = "".join(LARGE + REFUSED) + ".index( .isalnum .isdecimal .isdigit .isidentifier .islower .isnumeric .isspace"
    whole = {"encode", "format", "format_map", "join", "maketrans"}  # one real str, or a MemoryError
    assert {name for name in dir(str) if not name.startswith("_")} - whole - set(re.findall(r"\.(\w+)", text)) == set()


def test_many_sandboxes_of_dspy_search_one_text(context: Monocontext, monkeypatch: pytest.MonkeyPatch) -> None:
    """`dspy.RLM.batch` calls the tools of one text in many threads: each gets all matches, in order."""
    remote, matches = dspy.Remote(context, 1 << 20), [["re.finditer", ["l.ne (.)", [], {}]]]
    expected = [[*map(list, found.regs)] for found in re.finditer("l.ne (.)", TEXT)]
    monkeypatch.setattr(dspy_remote, "_MAX_REMEMBERED", 3)
    interval, together = sys.getswitchinterval(), Barrier(8, timeout=60)

    def search(_: int) -> bool:
        found: list[Any] = []
        together.wait()
        remote.call(matches, "batch", [0, 0])
        while len(told := remote.call(matches, "batch", [len(found), 40])["value"]) == 40:
            found += told
        placed = [remote.call([["replace", [f"ne {n} ", "", -1]]], "find", ["line 0", 0, 9]) for n in range(1, 9)]
        return [[*map(list, item["value"][0])] for item in found + told] == expected and placed == [{"value": 0}] * 8

    try:
        sys.setswitchinterval(1e-6)
        with ThreadPoolExecutor(8) as threads:
            assert all(threads.map(search, range(80)))
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("name", ["close", "refresh", "__reduce__", "__class__", "url", "re.compile"])
def test_the_sandbox_of_dspy_calls_nothing_else(context: Monocontext, name: str) -> None:
    assert dspy.Remote(context, 100).call([], name, [])["error"] == "AttributeError"
    assert context[:4] == "line"
