"""A process that is killed at any step leaves all that it paid for; the run goes on from there to the same answer."""

from __future__ import annotations

import functools
import json
import operator
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import rlm_resumable as resumable

from monocontext import Monocontext, publish
from monocontext.stores.memory import MemoryStore
from rlm import RLM, LLMError, ReplayLM, Reply, ScriptedLM, ScriptExhausted, TrajectoryError
from rlm.prompts.system import conversation
from rlm.runners.local import LocalRunner
from rlm.trajectory.trajectory import Trajectory, partial_of

real_add = Trajectory.add


def start(path: Path, log: Path, kill_at: int, way: str) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parents[3]
    command = [sys.executable, resumable.__file__, str(path), str(log), str(kill_at), way]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=60, check=False)


def whole(tmp_path: Path) -> tuple[str, Counter[str]]:
    log = tmp_path / "whole.log"
    answer = resumable.rlm(log).completion("What is it?", resumable.CONTEXT).answer
    return answer, Counter(log.read_text().splitlines())


def recorded(path: Path) -> int:
    """How many answered calls the files of a run hold, replies of roots included. A call that was under way when the
    process was killed is not among them: the model may have answered, and nobody knows what."""
    partial = partial_of(path).read_text().splitlines() if partial_of(path).exists() else []
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = 0
    for line in lines[1:]:
        done += 1
        for block in line["code_blocks"]:
            for call in block["result"]["rlm_calls"]:
                done += sum(used["total_calls"] for used in call["usage_summary"]["model_usage_summaries"].values())
    ahead = [json.loads(line) for line in partial]
    return done + sum(record["type"] != "child" and record["iteration"] == len(lines) for record in ahead)


@pytest.mark.slow
@pytest.mark.parametrize("kill_at", range(1, resumable.CALLS + 1, 6))
def test_kill_9_at_any_call_then_resume(tmp_path: Path, kill_at: int) -> None:
    answer, calls = whole(tmp_path)
    path, log = tmp_path / "run.jsonl", tmp_path / "calls.log"
    assert start(path, log, kill_at, "begin").returncode == -9
    paid = recorded(path)
    asked_before = len(log.read_text().splitlines()) if log.exists() else 0
    assert asked_before - 15 <= paid <= asked_before  # 16 calls of a batch may be under way, one was never answered
    again = tmp_path / "again.log"
    completion = resumable.rlm(again).resume(path, resumable.CONTEXT)
    assert completion.answer == answer
    asked = Counter(again.read_text().splitlines())
    assert sum(asked.values()) == resumable.CALLS - paid  # what is recorded is not asked again
    assert asked <= calls
    assert completion.usage.calls == resumable.CALLS
    assert not partial_of(path).exists()
    assert [json.loads(line)["type"] for line in path.read_text().splitlines()][:2] == ["metadata", "iteration"]
    assert completion.notes == ("no price is known for noted: the cost is not known (see `prices`)",)


def test_torn_lines_are_dropped(tmp_path: Path) -> None:
    answer, _ = whole(tmp_path)
    path, log = tmp_path / "run.jsonl", tmp_path / "calls.log"
    start(path, log, 8, "begin")
    paid = recorded(path)
    for file in (path, partial_of(path)):
        with file.open("a") as lines:
            lines.write('{"type": "iteration", "pro')
    again = tmp_path / "again.log"
    assert resumable.rlm(again).resume(path, resumable.CONTEXT).answer == answer
    assert len(again.read_text().splitlines()) == resumable.CALLS - paid
    assert [json.loads(line) for line in path.read_text().splitlines()]


def test_a_run_that_has_ended_is_given_again_for_nothing(tmp_path: Path) -> None:
    path, log = tmp_path / "run.jsonl", tmp_path / "calls.log"
    first = resumable.rlm(log, trajectory=path).completion("What is it?", resumable.CONTEXT)
    before = path.read_bytes()
    again = RLM.resume_run(path, lm=ScriptedLM([]))
    assert (again.answer, again.iterations, again.usage.calls) == (first.answer, 5, resumable.CALLS)
    assert again.trajectory == json.loads(json.dumps(first.trajectory))
    assert path.read_bytes() == before


def test_resume_of_the_class_takes_models_limits_and_a_small_context_from_the_file(
    tmp_path: Path, endpoint: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-test")
    path = tmp_path / "run.jsonl"
    failed = []

    def reply(body: dict[str, Any]) -> Any:
        if len(body["messages"]) == 1:
            return f"{body['model']} said {body['messages'][0]['content']}"
        if len(conversation(body["messages"])) > 1:
            failed.append(1)
            return (400, "out of order") if len(failed) == 1 else "```repl\nFINAL(x + context)\n```"
        return "```repl\nx = llm_query('hi')\n```"

    endpoint.reply = reply
    with pytest.raises(LLMError, match="out of order"):
        RLM("big", "small", base_url=endpoint.url, trajectory=path, max_calls=7).completion("q", " and context")
    asked = len(endpoint.requests)
    completion = RLM.resume_run(path)
    assert completion.answer == "small said hi and context"
    assert len(endpoint.requests) == asked + 1
    assert {name: used.calls for name, used in completion.usage.models.items()} == {"big": 2, "small": 1}
    assert completion.trajectory[0]["budget"]["calls"] == 7


def test_what_cannot_be_resumed_says_so_in_one_line(tmp_path: Path, lazy: Any) -> None:
    missing, empty, foreign, run = (tmp_path / name for name in ("no", "empty", "foreign", "run.jsonl"))
    empty.write_text("")
    foreign.write_text('{"type": "metadata", "root_model": "m"}\n')
    RLM(lm=ScriptedLM(["FINAL(1)"]), trajectory=run).completion("q", lazy)
    for path, told in [(missing, "there is no trajectory"), (empty, "its first line"), (foreign, "another program")]:
        with pytest.raises(TrajectoryError, match=told):
            RLM.resume_run(path)
    with pytest.raises(TrajectoryError, match="a LazyText at memory://double, is missing: pass it as `context`"):
        RLM.resume_run(run, lm=ScriptedLM([]))
    with pytest.raises(TrajectoryError, match="8890"):
        RLM.resume_run(run, "another text", lm=ScriptedLM([]))
    newer = json.loads(run.read_text().splitlines()[0]) | {"trajectory_version": 99}
    run.write_text(json.dumps(newer) + "\n")
    with pytest.raises(TrajectoryError, match="version 99"):
        RLM.resume_run(run, lazy)


@pytest.mark.parametrize("text", ["5\n", "[]\n", "null\n", '{"type": "metadata", "trajectory_version": "x"}\n',
                                  "[" * 100_000 + "\n"])  # fmt: skip
def test_json_of_another_shape_is_a_trajectory_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.jsonl"
    RLM(lm=ScriptedLM(["FINAL(1)"]), trajectory=path).completion("q", "text")
    for damaged in (partial_of(path), path):
        damaged.write_text(text)
        with pytest.raises(TrajectoryError, match=f"{damaged.name}[: ].*not a trajectory"):
            RLM.resume_run(path)


def test_a_cell_that_prints_something_else_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    turn = "```repl\nimport os, time\nstamp = time.perf_counter_ns()\nprint(stamp)\n```"
    with pytest.raises(ScriptExhausted):
        RLM(lm=ScriptedLM([turn]), trajectory=path).completion("q", "text")
    completion = RLM(lm=ScriptedLM(["```repl\nFINAL(stamp > 0)\n```"])).resume(path)
    assert completion.answer == "True"
    assert "block 1 of turn 1 printed something else when it ran again" in completion.notes


def test_replay_gives_a_run_again_from_a_file_and_from_lines(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    answers = ScriptedLM(lambda prompt: prompt.upper())
    root = [turn.replace("rlm_query('a child', context='abc')", "'no child'") for turn in resumable.TURNS]
    first = RLM(lm=ScriptedLM(root), sub_lm=answers, trajectory=path).completion("q", "text")
    for trajectory in (path, str(path), first.trajectory):
        replayed = RLM(lm=ReplayLM(trajectory)).completion("q", "text")
        assert replayed.answer == first.answer
        assert replayed.usage.tokens == first.usage.tokens
    with pytest.raises(ScriptExhausted, match="no answer to the prompt 'never asked'"):
        ReplayLM(path).complete([{"role": "user", "content": "never asked"}])
    replay = ReplayLM(path)
    for _ in root:
        replay.complete([{"role": "system", "content": ""}, {"role": "user", "content": ""}])
    with pytest.raises(ScriptExhausted, match="no turn 6"):
        replay.complete([{"role": "system", "content": ""}, {"role": "user", "content": ""}])


def test_a_question_that_was_broken_off_is_left_and_the_next_one_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    repl = "```repl\n{}\n```".format
    lm = ScriptedLM([repl("kept = 41"), KeyboardInterrupt(), repl("n = kept"), LLMError("down"), repl("FINAL(n + 1)")])
    with RLM(lm=lm, trajectory=path) as rlm, rlm.session("text") as session:
        with pytest.raises(KeyboardInterrupt):
            session.ask("first?")
        with pytest.raises(LLMError):
            session.ask("second?")
    told = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line.get("iteration"), line.get("question")) for line in told[1:]] == [(1, None), (2, "second?")]
    completion = RLM(lm=lm).resume(path, "text")
    assert (completion.answer, completion.iterations) == ("42", 1 + 1)


def test_a_call_whose_code_was_interrupted_runs_unpaid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Calling(ScriptedLM):
        def complete(self, messages: Any, *, model: Any = None, on_delta: Any = None) -> Any:
            code = super().complete(messages, model=model).text
            return Reply("", 5, 3, "m", called="python", call_arguments=json.dumps({"code": code}))

    def interrupt(runner: LocalRunner, code: str) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "run.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr(LocalRunner, "run", interrupt)
        with pytest.raises(KeyboardInterrupt):
            RLM(lm=Calling(["FINAL(6 * 7)"]), trajectory=path).completion("q", "text")
    assert RLM(lm=ScriptedLM([])).resume(path).answer == "42"


@pytest.mark.parametrize(
    ("number", "place", "value"),
    [
        (0, ("query",), 1), (0, ("budget",), None), (0, ("budget", "calls"), "x"), (0, ("max_depth",), 0),
        (0, ("environment_kwargs",), {}), (0, ("environment_kwargs", "output_limit"), "x"), (0, ("context",), {}),
        (0, ("backend",), []), (0, ("sampling",), "x"), (1, ("prompt",), []), (1, ("prompt", 0), None),
        (1, ("prompt", 0, "content"), []), (1, ("code_blocks", 0, "code"), None), (1, ("notice",), 1),
        (1, ("code_blocks", 0, "result", "stdout"), None), (1, ("code_blocks", 0, "result", "stderr"), 1),
        (1, ("code_blocks", 0, "result", "locals"), [1]), (1, ("iteration_time",), "x"), (1, ("model",), 1),
        (1, ("code_blocks", 0, "result", "rlm_calls", 0, "usage_summary"), {}), (1, ("response",), []),
        (1, ("response",), ...), (1, ("code_blocks",), ...), (1, ("final_answer",), ...), (1, ("iteration",), ...),
        (1, ("code_blocks", 0, "result", "rlm_calls", 0, "iterations"), [1]), (1, ("start_seconds",), "x"),
    ],
)  # fmt: skip
def test_a_field_that_is_missing_or_of_another_type_is_a_trajectory_error(
    tmp_path: Path, number: int, place: tuple[Any, ...], value: object
) -> None:
    run, sub = tmp_path / "run.jsonl", ScriptedLM(str.upper)
    with pytest.raises(ScriptExhausted):
        RLM(lm=ScriptedLM(["```repl\nx = llm_query('a')\n```"]), sub_lm=sub, runner="local", trajectory=run).completion(
            "q", "text"
        )
    lines = [json.loads(line) for line in run.read_text().splitlines()]
    *path, last = place
    functools.reduce(operator.getitem, path, lines[number])[last] = value
    if value is ...:  # the field is missing
        del lines[number][last]
    run.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with pytest.raises(TrajectoryError, match=r"run\.jsonl"):
        RLM.resume_run(run, lm=ScriptedLM(["FINAL(3)"]), sub_lm=sub)


def kill_before_first_line(rlm: RLM, monkeypatch: pytest.MonkeyPatch, context: object = "text") -> None:
    """Ask a question, and end with KeyboardInterrupt when the first turn is to be recorded."""

    def add(trajectory: Trajectory, *args: Any) -> None:
        if trajectory.path:  # not of a child run
            raise KeyboardInterrupt
        real_add(trajectory, *args)

    with monkeypatch.context() as patch:
        patch.setattr(Trajectory, "add", add)
        with pytest.raises(KeyboardInterrupt):
            rlm.completion("q", context)


@pytest.mark.parametrize("has_line", [True, False])
def test_what_a_failed_child_run_took_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_line: bool) -> None:
    """Killed before or after the line of its turn is written."""
    path = tmp_path / "run.jsonl"
    ask = "```repl\ntry: rlm_query('a', context='b')\nexcept LLMError as error: print(error)\n```"
    script: list[Any] = [ask, "```repl\nx = 1\n```", "```repl\nx = 2\n```", LLMError("down"), LLMError("down too")]
    rlm = RLM(lm=ScriptedLM(script), max_depth=2, trajectory=path)
    if not has_line:
        kill_before_first_line(rlm, monkeypatch)
    else:
        with pytest.raises(LLMError):
            rlm.completion("q", "text")
    lm = ScriptedLM(["no code", "none", "nor here"])
    completion = RLM(lm=lm, max_depth=2, max_iterations=4).resume(path, "text")
    assert (completion.reason, completion.usage.calls) == ("max_iterations", 3 + 2)
    assert len(lm.calls) == 1 + 1  # the fourth turn, and the forced answer
    call = completion.trajectory[1]["code_blocks"][0]["result"]["rlm_calls"][0]
    assert (len(call["iterations"]), call["error"], call["response"]) == (2, "down", "")
    again = RLM(lm=ScriptedLM([]), max_depth=2, max_iterations=4).resume(path, "text")  # at its limit still
    assert (again.answer, again.iterations, again.usage.calls) == (completion.answer, completion.iterations, 3 + 2)


def test_a_reply_that_was_paid_and_failed_counts_after_each_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, ask = tmp_path / "run.jsonl", "```repl\nllm_query_batched(['a'], return_exceptions=True)\n```"
    sub_lm: Any = SimpleNamespace(model="m", complete=lambda *_, **__: Reply("half of", 5, 3, "m", cut=True))
    kill_before_first_line(RLM(lm=ScriptedLM([ask]), sub_lm=sub_lm, trajectory=path), monkeypatch)
    with pytest.raises(LLMError):
        RLM(lm=ScriptedLM([LLMError("down")]), sub_lm=sub_lm).resume(path, "text")
    models = RLM(lm=ScriptedLM(["```repl\nFINAL(1)\n```"]), sub_lm=sub_lm).resume(path, "text").usage.models
    assert models["m"].input_tokens == 5


def test_child_runs_with_equal_questions_get_their_own_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A view has its range in its key; copies in lower case, which only reading could tell apart, are asked again."""
    publish("A" * 100 + "B" * 100, text := MemoryStore("letters"))
    path = tmp_path / "run.jsonl"
    root = """```repl
views = [context.view(0, 100), context.view(100, 200)]
contexts = ["[1]", [1], "[2]", *views, *(view.lower() for view in views)]
FINAL(repr([eval(answer) for answer in rlm_query_batched(["child"] * 7, contexts=contexts)]))
```"""

    def script(messages: Any) -> str:
        is_child = "child" in conversation(messages)[0]["content"]
        return "```repl\nFINAL(repr(context if len(context) < 9 else context[0]))\n```" if is_child else root

    with Monocontext.open(text, materialize_limit=10) as context:
        rlm = RLM(lm=ScriptedLM(script), runner="local", max_depth=2, trajectory=path)
        kill_before_first_line(rlm, monkeypatch, context)
        records = [json.loads(line) for line in partial_of(path).read_text().splitlines()]
        kept = [record for record in records if record["response"] not in ("'[1]'", "'A'", "'a'")]  # killed in these
        partial_of(path).write_text("".join(f"{json.dumps(record)}\n" for record in kept))
        rlm = RLM(lm=(lm := ScriptedLM(script)), runner="local", max_depth=2, max_iterations=50)
        assert rlm.resume(path, context).answer == str(["[1]", [1], "[2]", "A", "B", "a", "b"])
    assert not lm.calls  # the children that ran again go on from their recorded calls


def test_a_run_resumed_after_its_limit_counts_all_its_calls_when_it_is_resumed_again(tmp_path: Path) -> None:
    path, code = tmp_path / "run.jsonl", "```repl\nx = 1\n```"
    RLM(lm=ScriptedLM([code]), max_calls=1, trajectory=path).completion("q", "text")
    with pytest.raises(LLMError):
        RLM(lm=ScriptedLM([code, LLMError("down")]), max_retries=0).resume(path, "text")
    completion = RLM(lm=ScriptedLM(["```repl\nFINAL(x)\n```"])).resume(path, "text")
    assert (completion.answer, completion.usage.calls) == ("1", 3)


def test_seconds_between_turns_count(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    RLM(lm=ScriptedLM(["```repl\nx = 1\n```", "none"]), max_iterations=1, trajectory=path).completion("q", "text")
    *before, last = path.read_text().splitlines()
    ended = json.loads(last) | {"reason": "max_seconds", "start_seconds": 59.9, "iteration_time": 0.2}
    path.write_text("\n".join([*before, json.dumps(ended), ""]))
    assert RLM(lm=ScriptedLM([]), max_seconds=60).resume(path, "text").answer == "none"


def test_turns_of_child_runs_count_at_each_depth(tmp_path: Path) -> None:
    path, ask = tmp_path / "run.jsonl", "```repl\nprint(rlm_query('a', context='b'))\n```"
    root = ScriptedLM([ask, ask, "```repl\nFINAL(1)\n```", "```repl\nFINAL(2)\n```", LLMError("down")])
    with pytest.raises(LLMError):
        RLM(lm=root, max_depth=3, trajectory=path).completion("q", "text")
    lm = ScriptedLM(["no code", "none", "nor here"])
    assert RLM(lm=lm, max_depth=3, max_iterations=5).resume(path, "text").reason == "max_iterations"
    assert len(lm.calls) == 1 + 1  # the fifth turn, and the forced answer
    for trajectory, told in [(path, "cannot be replayed"), ([{"type": "metadata", "root_model": "m"}, {}], "missing")]:
        with pytest.raises(TrajectoryError, match=told):
            ReplayLM(trajectory)
