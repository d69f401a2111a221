"""A real small model behind a real endpoint: `make demo-local` fetches it, `pytest -m local_llm` runs these."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from examples import local_model
from rlm import OpenAILM

pytestmark = [pytest.mark.local_llm, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def lm() -> Iterator[OpenAILM]:
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed: make demo-local installs it")
    if not (local_model.folder() / local_model.FILE).exists():
        pytest.skip("no weights on this machine: make demo-local fetches them")
    with local_model.serve_model() as base_url, local_model.model_at(base_url) as lm:
        yield lm


def test_a_scripted_root_with_real_sub_calls(lm: OpenAILM) -> None:
    completion = local_model.scripted_root(lm)
    assert completion.usage.models[local_model.NAME].calls == 4
    assert completion.cost is None
    assert sum(city in completion.answer for city in local_model.CITIES.values()) >= 3


def test_a_real_root_keeps_the_invariants_whatever_its_wit(lm: OpenAILM) -> None:
    completion = local_model.real_root(lm)
    assert completion.reason in ("answer", "max_iterations", "max_seconds")
    assert 1 <= completion.iterations <= 4
    assert completion.trajectory[-1]["final_answer"] == completion.answer
