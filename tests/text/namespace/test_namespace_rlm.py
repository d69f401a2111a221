"""The kit in `rlm`: its runner finds it on the context, and its own `print` and capture go on working."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from monocontext import Monocontext
from monocontext.errors import ContextTooLarge
from rlm import RLM, ScriptedLM
from rlm.calls.subcalls import SubCalls
from rlm.calls.usage import Usage
from rlm.runners import make_runner
from rlm.runners.local import LocalRunner
from rlm.runners.runner import CellResult

pytestmark = pytest.mark.usefixtures("kitted")


@pytest.fixture
def runner_of() -> Iterator[Callable[..., LocalRunner]]:
    made: list[LocalRunner] = []

    def make(context: object) -> LocalRunner:
        made.append(LocalRunner(context, SubCalls(ScriptedLM(str.upper), Usage())))
        return made[-1]

    yield make
    for runner in made:
        runner.close()


def test_names_of_the_kit_are_not_shown_and_survive_cells(
    runner_of: Callable[..., LocalRunner], contexts: dict[str, Monocontext]
) -> None:
    runner = runner_of(contexts["small"])
    result = runner.run("import re\nm = re.search('secret', context)\nkind = type(context)")
    assert not result.stderr
    assert set(result.variables) == {"context", "m", "kind"}
    assert runner.run("del print\nprint(kind, isinstance(context, str), m.start())").stderr  # del of a builtin fails
    assert runner.run("str = 5\ntype(context)").stdout == "<class 'str'>\n"
    assert runner.run("del str\nstr(context) is context").stdout == "True\n"


@pytest.mark.parametrize("shape", ["print({})", "{}", "x = {}\nprint(x)", "print(f'{{{}}}')"])
def test_printing_a_grep_shows_the_first_hits_and_keeps_them(
    runner_of: Callable[..., LocalRunner], contexts: dict[str, Monocontext], text: str, shape: str
) -> None:
    runner = runner_of(contexts["small"])
    shown = runner.run(shape.format('context.grep("e")')).stdout
    assert shown.startswith("Hit(offset=")
    assert "generator" not in shown
    assert shown.count("Hit(") == 20
    assert "there are more" in shown
    kept = runner.run("hits = context.grep('e')\nprint(hits)\nprint(len(list(hits)))\nprint(hits)").stdout
    assert f"\n{sum('e' in line for line in text.splitlines())}\n" in kept
    assert kept.endswith("<no more hits: each is given once>\n")


def test_print_goes_where_rlm_wants_it(
    runner_of: Callable[..., LocalRunner], contexts: dict[str, Monocontext], text: str
) -> None:
    runner = runner_of(contexts["small"])
    cut = runner.run("print(context)").stdout
    assert cut.startswith(text[:20_000] + "\n[")  # nothing is lost to the note
    assert cut.endswith(f"{len(text) - 20_000:,} more characters omitted; slice to see more: context[20000:40000]]\n")
    assert "slice to see more: low[20000:40000]]" in runner.run("low = context.lower()\nprint(low)").stdout
    assert "slice to see more: name = ...; name[20000:40000]]" in runner.run("print(context.upper())").stdout
    assert "slice to see more: context[20000:40000]]" in runner.run("def f(t): print(t)\nf(context)").stdout
    redirected = """
import contextlib, io
buffer = io.StringIO()
with contextlib.redirect_stdout(buffer):
    print(context[:4000], "inside")
print(len(buffer.getvalue()))
"""
    assert runner.run(redirected).stdout == "4008\n"
    threaded = "import threading\nt = threading.Thread(target=print, args=(context[:3500], '!'))\nt.start(); t.join()"
    assert runner.run(threaded).stdout == f"{text[:3500]} !\n"


def test_two_runs_at_once_do_not_see_each_other(
    runner_of: Callable[..., LocalRunner], contexts: dict[str, Monocontext]
) -> None:
    runners = [runner_of(contexts["small"]), runner_of("a plain text")]
    code = "import json\nfor i in range(200): print(type(context).__name__, type(json).__name__)\njson.mine = 1"
    results: list[str] = ["", ""]

    def work(i: int) -> None:
        results[i] = runners[i].run(code).stdout

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["str module\n" * 200] * 2
    runners[1].run("import json\ndel json.mine")  # a plain str has no kit, and so sets on the real module


def test_errors_show_the_line_of_the_cell(
    runner_of: Callable[..., LocalRunner], contexts: dict[str, Monocontext]
) -> None:
    stderr = runner_of(contexts["small"]).run("x = 1\n\nprint(isinstance(context, str), str(context) + 1)").stderr
    assert "line 3, in <module>" in stderr
    assert "TypeError" in stderr
    assert "monocontext/namespace" not in stderr
    stderr = runner_of(contexts["small"]).run("import json\njson.loads(context)").stderr
    assert "line 2" in stderr
    assert "for line in context.lines: json.loads(line)" in stderr
    assert "namespace" not in stderr


def test_a_whole_run(contexts: dict[str, Monocontext], text: str) -> None:
    replies = [
        "```repl\nprint(type(context), len(context), context[:200])\n```",
        "```repl\nimport re\nm = re.search(r'secret code is (\\S+)\\.', context)\n"
        "print(m.group(1), m.string[m.start()-50:m.end()+50])\n```",
        "```repl\nFINAL(m.group(1))\n```",
    ]
    runs = [RLM(lm=ScriptedLM(list(replies)), sub_lm=ScriptedLM(str.upper)) for _ in range(2)]
    lazy, real = (
        run.completion("What is the code?", context=context)
        for run, context in zip(runs, (contexts["small"], text), strict=True)
    )
    assert lazy.answer == real.answer == "7291-KX"


PROMPTS = """
print(llm_query(context), rlm_query(context), rlm_query("q", context=context))
print(llm_query_batched([context, "two"]))
try:
    llm_query_batched(context)
except TypeError as error:
    print(error)
"""


@pytest.mark.parametrize("runner", ["local", "subprocess"])
def test_context_is_a_prompt_as_a_str_is(runner: str, open_text: Callable[..., Monocontext]) -> None:
    text = "Wie geht’s?\nGut 😀"

    def ran(context: object, asked: list[str]) -> CellResult:
        calls = SubCalls(ScriptedLM(lambda prompt: asked.append(prompt) or f"{len(prompt)}"), Usage())
        functions = {"rlm_query": calls.rlm_query}
        cells = make_runner(runner, context, calls, cell_timeout=60, output_limit=10_000, functions=functions)
        try:
            return cells.run(PROMPTS)
        finally:
            cells.close()

    asked: list[str] = []
    expected = ran(text, asked)
    assert expected.stdout.endswith("takes a list of prompts, not one str\n"), expected.stderr
    assert asked[:2] == [text, text]
    asked_lazily: list[str] = []
    result = ran(open_text(text, frame_bytes=5), asked_lazily)
    assert (result.stdout, result.stderr) == (expected.stdout, expected.stderr)
    assert sorted(asked_lazily) == sorted(asked)


def test_a_prompt_above_the_limit_says_what_to_write(contexts: dict[str, Monocontext]) -> None:
    calls = SubCalls(ScriptedLM(str.upper), Usage())
    with pytest.raises(ContextTooLarge, match=r"context\[a:b\]"):
        calls.llm_query(contexts["small"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a prompt must be a str, not LineView"):
        calls.llm_query(contexts["default"].lines)  # type: ignore[arg-type]
