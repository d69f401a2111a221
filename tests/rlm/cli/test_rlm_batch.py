"""`rlm batch`: each question answered once, whatever ends the driver, within one budget."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from filelock import FileLock
from rlm_replies import repl

from monocontext import publish
from rlm import RLM, Budget, LLMError, ScriptedLM
from rlm.batch import BadQuestions, answer_question, read_questions, run_batch
from rlm.cli.commands import app
from rlm.prompts.system import conversation

cli = CliRunner()


def query_of(messages: Any) -> str:
    return str(conversation(messages)[0]["content"]).split('"')[1]


def echo(messages: Any) -> str:
    """A root that answers with the question and the first word of the context."""
    return f"```repl\nFINAL('{query_of(messages)}: ' + context.split()[0])\n```"


def make(script: Any = echo, **options: Any) -> RLM:
    return RLM(lm=ScriptedLM(script), runner="local", **options)


def questions(count: int) -> dict[str, str]:
    return {f"q{i}": f"what is {i}" for i in range(1, count + 1)}


def rows(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_each_question_is_answered_once_and_not_again(tmp_path: Path) -> None:
    out, lms = tmp_path / "out.jsonl", [ScriptedLM(echo), ScriptedLM(echo)]
    run_batch(questions(20), out, RLM(lm=lms[0], runner="local"), "some text")
    assert {row["id"]: row["answer"] for row in rows(out)} == {f"q{i}": f"what is {i}: some" for i in range(1, 21)}
    results, spent = run_batch(questions(25), out, RLM(lm=lms[1], runner="local"), "some text")
    assert [len(lm.calls) for lm in lms] == [20, 5]
    assert [row["id"] for row in results] == [*questions(25)]
    assert spent["calls"] == 25
    assert not list((tmp_path / "out.jsonl.runs").glob("*.jsonl"))


def test_a_hundred_runs_at_once_over_one_endpoint_share_one_budget(tmp_path: Path, endpoint: Any) -> None:
    """Each takes a call of the root and a sub-call."""

    def reply(body: dict[str, Any]) -> str:
        messages = body["messages"]
        is_sub = messages[-1]["content"].startswith("sub ")
        return messages[-1]["content"].upper() if is_sub else repl(f"FINAL(llm_query('sub {query_of(messages)}'))")

    endpoint.reply = reply
    out = tmp_path / "out.jsonl"
    with RLM("m", base_url=endpoint.url, api_key="k", runner="local") as rlm:
        results, spent = run_batch(questions(100), out, rlm, "text", at_once=100, budget=Budget(calls=200))
    assert [row["answer"] for row in results] == [f"SUB WHAT IS {i}" for i in range(1, 101)]
    assert len(endpoint.requests) == spent["calls"] == 200


def test_a_torn_line_is_asked_again_and_other_results_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    run_batch(questions(3), out, make(), "text")
    out.write_bytes(out.read_bytes()[:-20])
    run_batch(questions(3), out, make(), "text")
    assert Counter(row["id"] for row in rows(out)) == {"q1": 1, "q2": 1, "q3": 1}
    with pytest.raises(BadQuestions, match=r"line 1 of .*out.jsonl is not a result"):
        run_batch({"q1": "another"}, out, make(), "text")


def test_two_batches_do_not_write_one_file(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    run_batch(questions(1), out, make(), "text")
    with FileLock(tmp_path / "out.jsonl.runs" / "lock"), pytest.raises(BadQuestions, match="another batch is writing"):
        run_batch(questions(2), out, make(), "text")
    assert len(run_batch(questions(2), out, make(), "text")[0]) == 2


@pytest.mark.parametrize("end", [LLMError("down"), KeyboardInterrupt()])
def test_a_question_that_failed_or_was_broken_off_pays_nothing_twice(tmp_path: Path, end: Any) -> None:
    """Its first turn is asked once, and counts once in what the batch has spent."""
    turns, out = list[int](), tmp_path / "out.jsonl"

    def script(messages: Any) -> str:
        turns.append(len(conversation(messages)))
        if len(turns) == 2:
            raise end
        return "```repl\nx = 1\n```" if turns[-1] == 1 else "```repl\nFINAL(x)\n```"

    run = partial(run_batch, questions(1), out, make(script, max_retries=0), "text", at_once=1)
    with suppress(KeyboardInterrupt):
        [row], spent = run(budget=Budget(calls=9))
        assert (row["error"], spent["calls"]) == (str(end), 1)
    [row], spent = run(budget=Budget(calls=2))
    assert (row["answer"], row["iterations"], spent["calls"], turns.count(1)) == ("1", 2, 2, 1)
    assert run()[1] == spent
    assert len(rows(out)) == (1 if isinstance(end, KeyboardInterrupt) else 2)


def test_a_question_that_met_a_limit_begins_anew_without_the_refused_call(tmp_path: Path) -> None:
    """Its cell makes two sub-calls, and the limit refuses the second one at first."""
    code = "```repl\nx = llm_query('a') + llm_query('b')\nFINAL(x)\n```"
    lm, out = ScriptedLM(lambda messages: code if len(messages) > 1 else "part"), tmp_path / "out.jsonl"
    run = partial(run_batch, questions(1), out, RLM(lm=lm, runner="local"), "text", at_once=1)
    [row], spent = run(budget=Budget(calls=2))
    assert (row["reason"], spent["calls"]) == ("max_calls", 2)
    [row], spent = run(budget=Budget(calls=9))
    assert (row["answer"], row["continued"], spent["calls"]) == ("partpart", False, 5)
    assert not list((tmp_path / "out.jsonl.runs").glob("*.jsonl"))


@pytest.mark.parametrize("at_once", [1, 16])
def test_the_budget_is_for_all_and_is_kept(tmp_path: Path, at_once: int) -> None:
    """Each question takes two calls; 41 are allowed."""

    def script(messages: Any) -> str:
        return "```repl\nx = 1\n```" if len(conversation(messages)) == 1 else echo(messages)

    out = tmp_path / "out.jsonl"
    run = partial(run_batch, questions(60), out, make(script), "text", at_once=at_once)
    for _ in range(2):
        results, spent = run(budget=Budget(calls=41))
        assert spent["calls"] <= 41
        assert [row["reason"] for row in results].count("answer") >= 16
    assert [row["reason"] for row in run(budget=Budget())[0]] == ["answer"] * 60


@pytest.mark.parametrize(
    "line", ['{"question": 7}', "{broken", "[1]", '{"query": "q", "id": "a"}', '{"id": "b"}', '" "']
)
def test_a_broken_line_is_named_before_any_question(tmp_path: Path, line: str) -> None:
    asked = tmp_path / "questions.jsonl"
    asked.write_text('"plain"\n{"question": "with an id", "id": "a"}\n\n{"query": "last"}\n')
    assert read_questions(asked) == {"1": "plain", "a": "with an id", "4": "last"}
    asked.write_text(asked.read_text() + line)
    with pytest.raises(BadQuestions, match=r"questions.jsonl, line 5: "):
        read_questions(asked)


def test_the_command_answers_and_says_what_it_did(tmp_path: Path, endpoint: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-test")
    endpoint.reply = lambda body: "FINAL(fine)"
    asked, out = tmp_path / "questions.jsonl", tmp_path / "out.jsonl"
    asked.write_text('"one"\n"two"\n"three"\n')
    (tmp_path / "text.txt").write_text("the text")
    args = [str(tmp_path / "text.txt"), "--out", str(out), "--base-url", endpoint.url, "--runner", "local"]
    early = cli.invoke(app, ["batch", str(asked), *args, "--max-calls", "1", "--quiet"])
    assert early.exit_code == 1
    assert "1 of 3 questions answered; 0 ended at a limit, 0 failed, 2 not reached within the budget" in early.stderr
    assert cli.invoke(app, ["batch", str(asked), *args]).exit_code == 0
    assert [row["answer"] for row in rows(out)] == ["fine"] * 3
    nothing = cli.invoke(app, ["batch", os.devnull, *args])
    assert (nothing.exit_code, f"rlm: {os.devnull} contains no question: " in nothing.stderr) == (2, True)


def test_a_question_that_a_thread_of_a_broken_off_batch_still_answers_is_paid_once(tmp_path: Path) -> None:
    asked, replies, out = threading.Event(), threading.Event(), tmp_path / "out.jsonl"
    calls: list[Any] = []

    def script(messages: Any) -> str:
        calls.append(messages)
        asked.set()
        replies.wait(20)
        return echo(messages)

    def break_off(question: str, path: Path, share: Budget) -> dict[str, Any]:
        if question == "what is 2":
            asked.wait(20)
            raise KeyboardInterrupt
        return answer_question(rlm, "text", question, path, share)

    rlm = make(script)
    with pytest.raises(KeyboardInterrupt):
        run_batch(questions(2), out, rlm, "text", answer_elsewhere=break_off)
    threading.Timer(0.5, replies.set).start()
    assert run_batch(questions(1), out, rlm, "text")[0][0]["answer"] == "what is 1: text"
    assert len(calls) == 1


@pytest.mark.slow
def test_questions_killed_are_paid_once(tmp_path: Path, endpoint: Any) -> None:
    publish("needle in a text\n" * 5_000, tmp_path / "context")
    asked, out = tmp_path / "questions.jsonl", tmp_path / "out.jsonl"
    asked.write_text("".join(json.dumps({"question": f"what is {i}", "id": i}) + "\n" for i in range(24)))
    answered = Counter[str]()
    lock = threading.Lock()

    def reply(body: dict[str, Any]) -> str:
        time.sleep(0.2)
        with lock:
            answered[query_of(body["messages"])] += 1
        return echo(body["messages"])

    endpoint.reply = reply
    command = [
        sys.executable, "-m", "rlm", "batch", str(asked), str(tmp_path / "context"), "--out", str(out),
        "--base-url", endpoint.url, "--runner", "local", "--max-calls", "30",
    ]  # fmt: skip
    driver = subprocess.Popen(command, stderr=subprocess.DEVNULL, env={**os.environ, "OPENAI_API_KEY": "k"})
    while driver.poll() is None and not (out.exists() and out.read_bytes().count(b"\n") >= 8):
        time.sleep(0.05)
    driver.kill()
    driver.wait()
    last = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OPENAI_API_KEY": "k"})
    assert last.returncode == 0, last.stderr
    assert Counter(str(row["id"]) for row in rows(out)) == {str(i): 1 for i in range(24)}
    assert all(row["answer"] == f"{row['question']}: needle" for row in rows(out))
    assert sum(row["spent"]["calls"] for row in rows(out)) == 24
    assert max(answered.values()) <= 2  # asked again where the kill came between reply and record


@pytest.mark.slow
def test_workers_of_a_cluster_answer(tmp_path: Path, endpoint: Any) -> None:
    distributed = pytest.importorskip("distributed")
    endpoint.reply = lambda body: echo(body["messages"])
    asked, out = tmp_path / "questions.jsonl", tmp_path / "out.jsonl"
    asked.write_text("".join(json.dumps(f"what is {i}") + "\n" for i in range(16)))
    (tmp_path / "text").write_text("needle in a text")
    with distributed.LocalCluster(n_workers=2, processes=False, protocol="tcp", dashboard_address=None) as cluster:
        command = [
            sys.executable, "-m", "rlm", "batch", str(asked), str(tmp_path / "text"), "--out", str(out),
            "--base-url", endpoint.url, "--runner", "local", "--dask", cluster.scheduler_address,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OPENAI_API_KEY": "k"})
    assert done.returncode == 0, done.stderr
    assert {row["answer"] for row in rows(out)} == {f"what is {i}: needle" for i in range(16)}
