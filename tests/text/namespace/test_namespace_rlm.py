"""The kit in `rlm`: its runner finds it on the context, and its own `print` and capture go on working."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from monocontext import Monocontext
from rlm import ScriptedLM
from rlm.calls.subcalls import SubCalls
from rlm.calls.usage import Usage
from rlm.runners.local import LocalRunner


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
    assert shown.count("Hit(") == 20
    assert "there are more" in shown
    kept = runner.run("hits = context.grep('e')\nprint(hits)\nprint(len(list(hits)))\nprint(hits)").stdout
    assert f"\n{sum('e' in line for line in text.splitlines())}\n" in kept
    assert kept.endswith("<no more hits: each is yielded once>\n")
