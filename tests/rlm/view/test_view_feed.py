"""Following a trajectory: whole, growing, replaced, of another writer, broken."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from view_lines import head, line, write

from rlm import TrajectoryError
from rlm.trajectory.trajectory import partial_of
from rlm.view.feed import RowFeed


def test_a_run_of_ours(recorded: Path) -> None:
    state = RowFeed(recorded).state()
    assert state["metadata"]["query"] == "What stands there?"
    assert state["metadata"]["context"] == {"uri": "memory://told", "type": "Told", "chars": 10_400, "lines": 1}
    first, second, third, last = state["rows"]
    assert [len(row["cells"]) for row in state["rows"]] == [1, 2, 1, 1]
    assert first["cells"][0]["ranges"] == [(0, 40)]
    assert first["cells"][0]["io"] == [1, 40, 0]
    assert first["cells"][0]["wait_storage"] == 0.25
    assert first["ahead"] == [3, 3_000_000]
    assert second["cells"][0]["ranges"] == [(100, 200), (4000, 4100)]
    assert second["cells"][1]["calls"] == 2
    assert len(second["cells"][1]["spans"]) in (1, 2)  # they may have overlapped
    assert second["cells"][1]["ahead"] == [3, 3_000_000]
    assert third["cells"][0]["error"]
    assert last["answer"] == ("all the text " * 800)[100:111].upper()
    assert state["live"] == {"status": "ended"}
    assert state["read"] == 240
    assert all(a["end"] <= b["start"] + 0.01 for a, b in zip(state["rows"], state["rows"][1:], strict=False))


def test_a_run_of_rlms_has_times_in_a_row(tmp_path: Path) -> None:
    sums = {"total_calls": 1, "total_input_tokens": 7, "total_output_tokens": 3}
    sub = {"root_model": "gpt-5-mini", "prompt": {"a": 1}, "response": "r", "execution_time": 0.2,
           "usage_summary": {"model_usage_summaries": {"gpt-5-mini": sums}}}  # fmt: skip
    second = line(2, final_answer="42")
    second["code_blocks"][0]["result"]["rlm_calls"] = [sub]
    state = RowFeed(write(tmp_path / "theirs.jsonl", head(), line(1), second)).state()
    one, two = state["rows"]
    assert (one["start"], one["think"], one["end"]) == (0.0, 1.5, 2.0)
    assert (two["start"], two["cells"][0]["start"], two["end"]) == (2.0, 3.5, 4.0)
    assert two["cells"][0]["tokens"] == [7, 3]
    assert two["cells"][0]["wait_storage"] is None
    assert two["dollars"] is None
    assert (state["read"], state["live"]["status"]) == (None, "ended")


def test_new_lines_alone_are_given_and_a_torn_one_waits(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl", head(), line(1))
    feed = RowFeed(path)
    assert feed.state()["live"]["status"] == "running"
    whole = json.dumps(line(2))
    with path.open("a") as file:
        file.write(whole[:50])
        file.flush()
        assert len(feed.state()["rows"]) == 1
        file.write(whole[50:] + "\n")
    state = feed.state(1, 0)
    assert [row["turn"] for row in state["rows"]] == [2]
    assert state["first"] == 1


def test_another_run_in_the_same_file_begins_anew(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl", head(), line(1), line(2))
    feed = RowFeed(path)
    before = feed.state()
    write(path, head(timestamp="2026-11-23", query="a longer first line"), line(1, response="new"), line(2), line(3))
    assert (feed.turn(0)["response"], feed.turn(2)["turn"]) == ("new", 3)
    for read in (feed.turn, feed.prompt):
        with pytest.raises(TrajectoryError, match="was replaced by another run"):
            read(1, before["generation"])
    state = feed.state(2, before["generation"])
    assert state["generation"] != before["generation"]
    assert (state["first"], len(state["rows"])) == (0, 3)


def test_what_is_under_way_comes_from_the_file_beside(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl", head(), line(1))
    call = {"type": "call", "root_model": "m", "prompt": "p", "response": "r", "start_seconds": 3, "execution_time": 1}
    reply = {"type": "reply", "iteration": 2, "response": "said"}
    write(partial_of(path), reply, {**call, "iteration": 2}, {**call, "iteration": 1})
    feed = RowFeed(path)
    live = feed.state()["live"]
    assert (live["status"], live["replied"], live["calls"]) == ("running", True, 1)
    turn = feed.turn(1)
    assert (turn["response"], [each["response"] for each in turn["calls"]]) == ("said", ["r"])
    past = time.time() - 3600
    os.utime(path, (past, past))
    os.utime(partial_of(path), (past, past))
    assert feed.state()["live"]["status"] == "quiet"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("no json\n", "line 1 is not JSON"),
        ('{"type": "iteration"}\n', "its first line is not of type 'metadata'"),
        ('{"type": "metadata"}\n[1]\n', "line 2 is not an object"),
        ('{"type": "metadata"}\n' + "[" * 100_000 + "\n", "line 2 is not JSON"),
    ],
)
def test_what_is_no_trajectory_is_an_error(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(content)
    with pytest.raises(TrajectoryError, match=says):
        RowFeed(path)
    with pytest.raises(TrajectoryError, match="there is no trajectory"):
        RowFeed(tmp_path / "none.jsonl")


def test_long_lists_of_sources_and_ranges_are_cut_with_a_count_of_the_rest(tmp_path: Path) -> None:
    long = line(1, sources=[{"start": 1}] * 203)
    long["code_blocks"][0]["result"]["ranges"] = [[2 * i, 2 * i + 1] for i in range(1_002)]
    details = RowFeed(write(tmp_path / "run.jsonl", head(), long)).turn(0)
    assert (len(details["sources"]), details["sources_left_out"]) == (200, 3)
    assert (len(details["cells"][0]["ranges"]), details["cells"][0]["ranges_left_out"]) == (1_000, 2)


WRONG: list[Any] = [None, 7, -1, 1e400, float("nan"), True, "text", [], [1], {}, {"a": {"b": []}}, 10**400]


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_values_of_any_type_give_rows_that_are_json(tmp_path: Path, wrong: Any) -> None:
    path = tmp_path / "run.jsonl"
    whole = line(1, final_answer="x", start_seconds=1, thinking_seconds=1, io={}, ranges=[[1, 2]])
    call = {"root_model": "m", "prompt": "p", "response": "r", "execution_time": 1, "start_seconds": 1,
            "usage_summary": {}, "iterations": []}  # fmt: skip
    result = whole["code_blocks"][0]["result"] | {
        "seconds": {},
        "io": {"ms": wrong, "gets": wrong},
        "ranges": [[wrong, 5], wrong],
    }
    cases = [head(**{name: wrong for name in head() if name != "type"}, context=wrong, query=wrong, budget=wrong)]
    cases += [whole | {name: wrong} for name in whole if name != "type"]
    cases += [whole | {"code_blocks": [{"code": wrong, "result": result | {name: wrong}}]} for name in result]
    cases += [
        whole | {"code_blocks": [{"code": "c", "result": result | {"rlm_calls": [call | {name: wrong}]}}]}
        for name in call
    ]
    feed = RowFeed(write(path, *cases))
    json.dumps(feed.state(), allow_nan=False)
    for number in range(len(cases) - 1):
        json.dumps([feed.turn(number), feed.prompt(number)], allow_nan=False)
