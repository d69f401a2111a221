"""Model-written code cannot tell a context from its text: value, type, output, error and its words are the same."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from monocontext.text.monocontext import MATERIALIZE_LIMIT
from rlm import ScriptedLM
from rlm.calls.subcalls import SubCalls
from rlm.calls.usage import Usage
from rlm.runners.local import LocalRunner
from tests.budget import examples
from tests.text.namespace.namespace_hosts import sample_text
from tests.text.str_methods.subject import stored

from .idioms import IDIOMS, TEXTS, difference, fill


@pytest.mark.parametrize("limit", [12, MATERIALIZE_LIMIT])
@pytest.mark.parametrize("name", TEXTS)
def test_idioms_on_a_text(name: str, limit: int) -> None:
    """A share of the idioms on each text; the shares together are all."""
    text, number = TEXTS[name], list(TEXTS).index(name)
    context, random = stored(text, 16, limit), Random(f"{name} {limit}")
    codes = [fill(idiom, text, random) for idiom in IDIOMS[number :: len(TEXTS)]]
    assert not [told for code in codes if (told := difference(code, text, context))]


@pytest.mark.slow
def test_every_idiom_in_the_loops_own_runner() -> None:
    """It finds the names on the context, and its own `print` and capture go on working."""
    text, random = sample_text()[-7000:], Random(1)
    subcalls = SubCalls(ScriptedLM(lambda prompt: str(len(prompt))), Usage())
    runners = [LocalRunner(context, subcalls, output_limit=1_000_000) for context in (text, stored(text, 700))]
    try:
        for code in (fill(idiom, text, random) for idiom in IDIOMS if "# TypeError" not in idiom):
            expected, result = (runner.run(f"{code}\nNone") for runner in runners)  # shows no last expression
            assert result.stdout == expected.stdout, code
            assert result.stderr.count("Error") == expected.stderr.count("Error"), code
    finally:
        for runner in runners:
            runner.close()


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(examples(20)))
def test_every_idiom_on_every_text(seed: int) -> None:
    random = Random(seed)
    for text in TEXTS.values():
        context: Any = stored(text, random.choice((1, 5, 16, 100)), random.choice((1, 12, 40, MATERIALIZE_LIMIT)))
        codes = [fill(idiom, text, random) for idiom in IDIOMS]
        assert not [told for code in codes if (told := difference(code, text, context))]
