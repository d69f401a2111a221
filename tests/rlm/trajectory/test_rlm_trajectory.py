"""The trajectory, against what the rlms visualizer reads."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from rlm import RLM, LLMError, ScriptedLM
from rlm.prompts.system import conversation
from rlm.trajectory.trajectory import Trajectory

ROOT = [
    "```repl\nbig = 'x' * 10**6\nprint(llm_query('sub'))\n```",
    "```repl\nllm_query('bad')\n```",
    "FINAL(done)",
]


def sub(prompt: str) -> str:
    if prompt == "bad":
        raise LLMError("no luck")
    return "reply"


def lines_of(path: Path | None) -> list[dict[str, Any]]:
    assert path is not None
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def lines(tmp_path: Path, lazy: Any) -> list[dict[str, Any]]:
    rlm = RLM(lm=ScriptedLM(ROOT), sub_lm=ScriptedLM(sub, model="small"), trajectory=tmp_path / "runs")
    completion = rlm.completion("the question", lazy)
    found = lines_of(completion.trajectory_path)
    assert found == json.loads(json.dumps(completion.trajectory))
    return found


def test_one_metadata_line_then_iterations(lines: list[dict[str, Any]]) -> None:
    assert [line["type"] for line in lines] == ["metadata", "iteration", "iteration", "iteration"]
    assert [line["iteration"] for line in lines[1:]] == [1, 2, 3]
    head = lines[0]
    assert head["trajectory_version"] == 1
    assert (head["root_model"], head["max_depth"], head["max_iterations"]) == ("scripted", 1, 30)
    assert (head["environment_type"], head["other_backends"]) == ("local", None)
    assert head["environment_kwargs"] == {"cell_timeout": 120.0, "output_limit": 20_000}
    assert head["backend_kwargs"] == {"model_name": "scripted"}
    assert head["context"] == {
        "uri": "memory://double", "type": "LazyText", "chars": 8890, "lines": 1000, "length": 8890,
    }  # fmt: skip


def test_what_the_viewer_reads_without_a_check_is_there(lines: list[dict[str, Any]]) -> None:
    def check(value: dict[str, Any], **kinds: type) -> None:
        assert {name: type(value[name]) for name in kinds} == kinds

    for line in lines[1:]:
        check(line, response=str, iteration_time=float)
        for message in line["prompt"]:
            check(message, role=str, content=str)
        for block in line["code_blocks"]:
            check(block, code=str)
            check(block["result"], stdout=str, stderr=str, execution_time=float, locals=dict)
            for call in block["result"]["rlm_calls"]:
                check(call, prompt=str, response=str, execution_time=float, prompt_tokens=int, completion_tokens=int)
    assert [line["final_answer"] for line in lines[1:]] == [None, None, "done"]
    failed = lines[2]["code_blocks"][0]["result"]
    assert failed["stderr"]
    assert [(call["response"], call["error"]) for call in failed["rlm_calls"]] == [("", "no luck")]
    call = lines[1]["code_blocks"][0]["result"]["rlm_calls"][0]  # has its usage in both spellings
    assert (call["prompt_tokens"], call["completion_tokens"], call["root_model"]) == (1, 2, "small")
    summary = call["usage_summary"]["model_usage_summaries"]["small"]
    assert summary == {"total_calls": 1, "total_input_tokens": 1, "total_output_tokens": 2}


def test_the_viewer_finds_the_question(lines: list[dict[str, Any]]) -> None:
    for message in lines[1]["prompt"]:
        if message["role"] == "user":  # by the rule of the visualizer of rlms
            found = re.search(r'original query: "([^"]+)"', message["content"])
            if found or ("answer the prompt" not in message["content"] and 50 < len(message["content"]) < 500):
                break
    assert found is not None
    assert found[1] == "the question"


def test_a_directory_gets_a_file_per_run_and_a_file_is_replaced(tmp_path: Path) -> None:
    answer = "```repl\nFINAL(1)\n```"
    for _ in range(2):
        RLM(lm=ScriptedLM([answer]), trajectory=tmp_path / "runs").completion("q", "text")
        RLM(lm=ScriptedLM([answer]), trajectory=str(tmp_path / "deep" / "one.jsonl")).completion("q", "text")
    RLM(lm=ScriptedLM([answer])).completion("q", "text", trajectory=tmp_path / "runs")
    names = [path.name for path in (tmp_path / "runs").iterdir()]
    assert len(names) == 3
    assert all(re.fullmatch(r"rlm_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_[0-9a-f]{8}\.jsonl", name) for name in names)
    assert len(lines_of(tmp_path / "deep" / "one.jsonl")) == 2


def test_the_key_is_never_written(tmp_path: Path, endpoint: Any) -> None:
    key = 'sk-zzz"secret-key'
    endpoint.reply = lambda body: (
        "FINAL(1)" if len(conversation(body["messages"])) > 1 else f"```repl\nprint({key!r})\n```"
    )
    path = tmp_path / "run.jsonl"
    base_url = endpoint.url.replace("127.0.0.1", "user:password@127.0.0.1") + "?token=abc"
    completion = RLM("m", base_url=base_url, api_key=key, trajectory=path).completion("q", "text")
    assert completion.answer == "1"
    written = path.read_text()
    assert "[secret]" in written
    assert not [secret for secret in ("zzz", "password", "abc") if secret in written]
    assert lines_of(path)[0]["backend"] == "openai"


def test_a_secret_is_hidden_in_texts_and_the_line_stays_readable(tmp_path: Path) -> None:
    secrets, path = ["", "key", "key to all", "query", "metadata", '"', "23"], tmp_path / "run.jsonl"
    Trajectory(path, secrets=lambda: secrets).begin({"query": ['the key to all, "23"'], "locals": {"key": 9}, "n": 123})
    (line,) = lines_of(path)
    assert (line["query"], line["locals"], line["n"]) == (["the [secret], " + "[secret]" * 3], {"[secret]": 9}, 123)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS], ids=errno.errorcode.get)
@pytest.mark.parametrize("after", [1, 2, 3, 4])
def test_a_disk_that_fails_costs_the_record_and_not_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, after: int
) -> None:
    """The metadata line is written; the disk fails at a later write, of a call or of a turn."""
    opened, real = [], Path.open

    def failing(self: Path, mode: str = "r", *rest: Any, **options: Any) -> Any:
        if mode in ("ab", "wb"):
            opened.append(self)
            if len(opened) > after:
                raise OSError(code, os.strerror(code), str(self))
        return real(self, mode, *rest, **options)

    def make(**options: Any) -> RLM:
        lm = ScriptedLM(["```repl\nx = llm_query('one')\n```", "```repl\nFINAL(x)\n```"][-options.pop("turns", 2) :])
        return RLM(lm=lm, sub_lm=ScriptedLM(str.upper), runner="local", **options)

    monkeypatch.setattr(Path, "open", failing)
    path = tmp_path / "run.jsonl"
    done = make(trajectory=path).completion("q", "text")
    assert (done.answer, done.finished, len(done.trajectory)) == ("ONE", True, 3)
    (warning,) = [note for note in done.notes if "trajectory" in note]
    assert os.strerror(code) in warning
    monkeypatch.undo()
    assert make(turns=2 if after < 2 else 1).resume(path, "text").answer == "ONE"


def test_a_trajectory_that_cannot_begin_is_an_error_before_a_call(tmp_path: Path) -> None:
    lm = ScriptedLM(["FINAL(1)"])
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        RLM(lm=lm, trajectory=tmp_path / "file" / "run.jsonl", runner="local").completion("q", "text")
    assert lm.calls == []
