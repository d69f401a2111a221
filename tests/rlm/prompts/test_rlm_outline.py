"""`RLM(outline=True)`: the opening message says what a lazy text is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from monocontext import Monocontext, publish
from monocontext.stores.memory import forget
from rlm import RLM, ScriptedLM
from rlm.prompts.examples import conversation

TEXT = "# Guide\n\nwords\n\n## Install\n\nwords\n"
PLACE = "memory://rlm-outline"


@pytest.fixture
def context() -> Iterator[Monocontext]:
    publish(TEXT, PLACE)
    yield Monocontext.open(PLACE)
    forget("rlm-outline")


def opening(context: object, **options: bool) -> str:
    lm = ScriptedLM(["FINAL(none)"])
    with RLM(lm=lm, runner="local", **options) as rlm:  # type: ignore[arg-type]
        done = rlm.completion("What is this?", context)
    return str(conversation(done.trajectory[1]["prompt"])[0]["content"]).partition("\n\nTurn 1")[0]


def test_the_opening_message_has_the_outline(context: Monocontext) -> None:
    told = opening(context, outline=True)
    assert told.endswith(str(context.outline()))
    assert "line 5, character 16: ## Install" in told
    assert opening(context) == told[: told.index("\n\nA few places of it")]
