"""An environment of the library verifiers: rollouts side by side over one open text, each call in the trace."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from monocontext import publish
from tests.rlm.compat.model_endpoint import serve_model

vf = pytest.importorskip("verifiers.v1", reason="verifiers is not installed: make test-tools")
from rlm.compat.verifiers import open_shared  # noqa: E402

ENVIRONMENT = 'from rlm.compat.verifiers import Questions, RLMHarness\n\n__all__ = ["Questions", "RLMHarness"]\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a module `my_questions`, as a user writes it, and a published text."""
    (tmp_path / "my_questions.py").write_text(ENVIRONMENT)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_questions", raising=False)
    publish("head of a text\n" + "a line\n" * 300_000 + "the needle\n", tmp_path / "text")
    return tmp_path


def write(folder: Path, rows: list[Any]) -> None:
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def make_environment(folder: Path, **options: Any) -> Any:
    where = {"questions": str(folder / "questions.jsonl"), "context": str(folder / "text")}
    harness = {"id": "my_questions", "options": {"runner": "local", **options}}
    agent = {"runtime": {"type": "subprocess"}, "harness": harness}
    config = vf.SingleAgentEnvConfig.model_validate({"taskset": {"id": "my_questions", **where}, "agent": agent})
    return vf.load_environment(config)


def roll(environment: Any, url: str) -> list[Any]:
    """The trace of each question; all go on at once."""
    client = vf.EvalClientConfig(base_url=url, api_key_var="MONOCONTEXT_NO_SUCH_KEY")
    ctx = vf.ModelContext(model="stand-in", client=client)

    async def run() -> list[Any]:
        async with environment.serving():
            slots = [environment.slots(task)[0] for task in environment.taskset]
            return await asyncio.gather(*(environment.run_slot(slot, ctx) for slot in slots))

    episodes = asyncio.run(run())
    assert [episode.errors for episode in episodes] == [[]] * len(episodes)
    return [episode.traces[0] for episode in episodes]


def test_rollouts_are_rewarded_and_traced_and_share_one_cache(folder: Path) -> None:
    write(folder, [{"question": f"What comes first? ({i})", "answer": " HEAD" if i % 2 else "tail"} for i in range(8)])
    with serve_model(8, 0.01) as url:
        traces = roll(make_environment(folder, max_iterations=4), url)
    assert [trace.info for trace in traces] == [{"answer": "head", "reason": "answer"}] * 8
    assert [trace.rewards["is_right"].score for trace in traces] == [0.0, 1.0] * 4
    assert {trace.metrics["turns"] for trace in traces} == {2.0}
    for number, trace in enumerate(traces):
        said = [node.message.content for node in trace.nodes if node.message.role == "assistant"]
        assert "find('needle')" in said[-2]  # before these the prompt may hold an example
        assert "FINAL(context[:4])" in said[-1]
        assert len(trace.branches) == 1
        assert any(f"({number})" in str(node.message.content) for node in trace.nodes)
    context = open_shared(str(folder / "text"))
    assert context.stats.bytes_fetched <= sum(path.stat().st_size for path in (folder / "text").rglob("*"))


def test_a_rollout_that_fails_says_why(folder: Path) -> None:
    write(folder, [{"question": "What comes first?", "answer": "head"}])
    (trace,) = roll(make_environment(folder, max_iteration=4), "http://127.0.0.1:9/v1")
    assert not trace.ok
    assert "did you mean max_iterations?" in trace.errors[0].message


@pytest.mark.parametrize("row", [{"question": "What?"}, "What?", {"question": "What?", "answer": 3}])
def test_a_broken_row_is_named(folder: Path, row: Any) -> None:
    write(folder, [{"question": "What?", "answer": "that", "id": "a"}, row])
    with pytest.raises(ValueError, match=r"questions\.jsonl, line 2: "):
        list(make_environment(folder).taskset)
