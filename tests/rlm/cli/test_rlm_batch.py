"""`rlm batch`: each question answered once, whatever ends the driver, within one budget."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from filelock import FileLock

from monocontext import publish
from rlm import RLM, Budget, LLMError, ScriptedLM
from rlm.batch import BadQuestions, Question, _path, answer_question, read_questions, run_batch
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


def questions(count: int) -> list[Question]:
    return [Question(f"q{i}", f"what is {i}", i) for i in range(1, count + 1)]


def rows(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_each_question_is_answered_once_and_not_again(tmp_path: Path) -> None:
    out, lms = tmp_path / "out.jsonl", [ScriptedLM(echo), ScriptedLM(echo)]
    run_batch(questions(20), out, RLM(lm=lms[0], runner="local"), "some text")
    assert {row["id"]: row["answer"] for row in rows(out)} == {f"q{i}": f"what is {i}: some" for i in range(1, 21)}
    result = run_batch(questions(25), out, RLM(lm=lms[1], runner="local"), "some text")
    assert [len(lm.calls) for lm in lms] == [20, 5]
    assert [row["line"] for row in result.rows] == list(range(1, 26))
    assert result.spent["calls"] == 25
    assert not list((tmp_path / "out.jsonl.runs").glob("*.jsonl"))


def test_a_torn_line_is_asked_again_and_other_results_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    run_batch(questions(3), out, make(), "text")
    out.write_bytes(out.read_bytes()[:-20])
    run_batch(questions(3), out, make(), "text")
    assert Counter(row["id"] for row in rows(out)) == {"q1": 1, "q2": 1, "q3": 1}
    with pytest.raises(BadQuestions, match=r"out.jsonl already exists, and its line 1 is not a result"):
        run_batch([Question("q1", "another", 1)], out, make(), "text")


def test_two_batches_do_not_write_one_file(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    run_batch(questions(1), out, make(), "text")
    with FileLock(tmp_path / "out.jsonl.runs" / "lock"), pytest.raises(BadQuestions, match="another batch is writing"):
        run_batch(questions(2), out, make(), "text")
    assert len(run_batch(questions(2), out, make(), "text").rows) == 2


def test_what_fails_is_said_and_asked_again_on_demand(tmp_path: Path) -> None:
    failures = Counter[str]()

    def script(messages: Any) -> str:
        query = query_of(messages)
        failures[query] += 1
        if query.endswith("3"):
            raise LLMError("no such model")
        return echo(messages)

    out = tmp_path / "out.jsonl"
    run = partial(run_batch, questions(4), out, make(script, max_retries=0), "text")
    result = run()
    assert [row.get("error") for row in result.rows] == [None, None, "no such model", None]
    assert failures == {"what is 1": 1, "what is 2": 1, "what is 3": 1, "what is 4": 1}
    run()
    assert failures["what is 3"] == 1
    run(again=True)
    assert failures["what is 3"] == 2
    assert len(rows(out)) == 5


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [1, 4, 16])
def test_the_budget_is_for_all_and_is_kept(tmp_path: Path, at_once: int) -> None:
    """Each question takes two calls; 41 are allowed."""

    def script(messages: Any) -> str:
        return "```repl\nx = 1\n```" if len(conversation(messages)) == 1 else echo(messages)

    out = tmp_path / "out.jsonl"
    limit = Budget(calls=41)
    result = run_batch(questions(60), out, make(script), "text", budget=limit, at_once=at_once)
    assert result.spent["calls"] <= 41
    answered = [row for row in result.rows if row["reason"] == "answer"]
    assert len(answered) >= 16
    more = run_batch(questions(60), out, make(script), "text", budget=Budget(), again=True)
    assert [row["reason"] for row in more.rows] == ["answer"] * 60


def test_broken_rows_are_named_and_the_rest_runs(tmp_path: Path, endpoint: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-test")
    endpoint.reply = lambda body: "FINAL(fine)"
    asked = tmp_path / "questions.jsonl"
    asked.write_text(
        '"plain"\n{"question": "with an id", "id": "a"}\n{"question": 7}\n\n{broken\n{"query": "q", "id": "a"}\n[1]\n'
        '{"question": "last"}\n'
    )
    found, broken = read_questions(asked)
    assert [(each.id, each.query) for each in found] == [("1", "plain"), ("a", "with an id"), ("8", "last")]
    assert [line.split(": ")[0].rpartition(" ")[2] for line in broken] == ["3", "5", "6", "7"]
    (tmp_path / "text.txt").write_text("the text")
    out = tmp_path / "out.jsonl"
    args = ["batch", str(asked), str(tmp_path / "text.txt"), "--out", str(out), "--base-url", endpoint.url]
    result = cli.invoke(app, [*args, "--runner", "local"])
    assert result.exit_code == 1, result.output
    assert "line 6: the id 'a' is that of line 2 too" in result.stderr
    said = "3 of 3 questions answered, 0 of them at a limit; 0 failed, 0 not reached within the budget, 4 lines broken"
    assert said in result.stderr
    assert [row["answer"] for row in rows(out)] == ["fine"] * 3
    hushed = cli.invoke(app, [*args, "--runner", "local", "--quiet"])
    assert hushed.exit_code == 1
    assert "4 lines broken" in hushed.stderr
    nothing = cli.invoke(app, ["batch", os.devnull, *args[2:]])
    assert (nothing.exit_code, nothing.stderr.splitlines()[-1]) == (2, f"rlm: {os.devnull} contains no question")


def test_a_question_that_was_broken_off_pays_nothing_twice(tmp_path: Path) -> None:
    out, went_on, calls = tmp_path / "out.jsonl", threading.Event(), []

    def script(messages: Any) -> str:
        calls.append(len(conversation(messages)))
        if len(conversation(messages)) == 1:
            return "```repl\nx = 1\n```"
        if not went_on.is_set():
            raise LLMError("killed here")
        return echo(messages)

    batch = questions(1)
    rlm = make(script)
    runs = tmp_path / "out.jsonl.runs"
    runs.mkdir()
    with pytest.raises(LLMError):
        rlm.completion(batch[0].query, "text", trajectory=_path(runs, batch[0]))
    went_on.set()
    result = run_batch(batch, out, rlm, "text")
    assert calls.count(1) == 1
    assert (result.rows[0]["answer"], result.rows[0]["iterations"]) == ("what is 1: text", 2)


def test_a_question_that_a_thread_of_a_broken_off_batch_still_answers_is_paid_once(tmp_path: Path) -> None:
    asked, replies, out = threading.Event(), threading.Event(), tmp_path / "out.jsonl"
    calls: list[Any] = []

    def script(messages: Any) -> str:
        calls.append(messages)
        asked.set()
        replies.wait(20)
        return echo(messages)

    def break_off(question: Question, share: Budget, path: Path) -> dict[str, Any]:
        if question.id == "q2":
            asked.wait(20)
            raise KeyboardInterrupt
        return answer_question(rlm, "text", question, share, path)

    rlm = make(script)
    with pytest.raises(KeyboardInterrupt):
        run_batch(questions(2), out, rlm, "text", answer_elsewhere=break_off)
    threading.Timer(0.5, replies.set).start()
    assert run_batch(questions(1), out, rlm, "text").rows[0]["answer"] == "what is 1: text"
    assert len(calls) == 1


@pytest.mark.slow
def test_questions_killed_twice_are_paid_once(tmp_path: Path, endpoint: Any) -> None:
    publish("needle in a text\n" * 5_000, tmp_path / "context")
    asked, out = tmp_path / "questions.jsonl", tmp_path / "out.jsonl"
    asked.write_text("".join(json.dumps({"question": f"what is {i}", "id": i}) + "\n" for i in range(60)))
    answered = Counter[str]()
    lock = threading.Lock()

    def reply(body: dict[str, Any]) -> str:
        time.sleep(0.3)
        with lock:
            answered[query_of(body["messages"])] += 1
        return echo(body["messages"])

    endpoint.reply = reply
    command = [
        sys.executable, "-m", "rlm", "batch", str(asked), str(tmp_path / "context"), "--out", str(out),
        "--base-url", endpoint.url, "--runner", "local", "--max-calls", "70",
    ]  # fmt: skip
    for until in (10, 30):
        driver = subprocess.Popen(command, stderr=subprocess.DEVNULL, env={**os.environ, "OPENAI_API_KEY": "k"})
        while driver.poll() is None and not (out.exists() and out.read_bytes().count(b"\n") >= until):
            time.sleep(0.05)
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    last = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OPENAI_API_KEY": "k"})
    assert last.returncode == 0, last.stderr
    assert Counter(str(row["id"]) for row in rows(out)) == {str(i): 1 for i in range(60)}
    assert all(row["answer"] == f"{row['question']}: needle" for row in rows(out))
    assert sum(row["spent"]["calls"] for row in rows(out)) == 60
    assert max(answered.values()) <= 2  # asked again where the kill came between reply and record


@pytest.mark.slow
def test_workers_of_a_cluster_answer(tmp_path: Path, endpoint: Any) -> None:
    distributed = pytest.importorskip("distributed")
    endpoint.reply = lambda body: echo(body["messages"])
    asked, out = tmp_path / "questions.jsonl", tmp_path / "out.jsonl"
    asked.write_text("".join(json.dumps(f"what is {i}") + "\n" for i in range(16)))
    (tmp_path / "text").write_text("needle in a text")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=4, dashboard_address="127.0.0.1:0") as cluster:
        command = [
            sys.executable, "-m", "rlm", "batch", str(asked), str(tmp_path / "text"), "--out", str(out),
            "--base-url", endpoint.url, "--runner", "local", "--dask", cluster.scheduler_address,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OPENAI_API_KEY": "k"})
    assert done.returncode == 0, done.stderr
    assert {row["answer"] for row in rows(out)} == {f"what is {i}: needle" for i in range(16)}
