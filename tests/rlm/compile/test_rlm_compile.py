"""`rlm compile`: one session more costs one session; statements rest on turns; machines neither lose nor pay twice."""

from __future__ import annotations

import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sessions.agents import Claude, session_id, small

from monocontext.errors import DamagedData, NotFound
from monocontext.sessions import Sessions, upload_session
from monocontext.sessions.readers import recognize_session
from monocontext.sessions.spending import CostLedger, today
from monocontext.sessions.turn import Turn
from monocontext.stores import open_store
from monocontext.stores.protocol import Store
from monocontext.testing import CountingStore, Crash, CrashingStore
from rlm import Budget, LLMError, Reply, ScriptedLM
from rlm.compile import BRIEF_CHARACTERS, compile_sessions
from rlm.compile.digest import extract, parse_statements, render, turn_ids_of_session
from rlm.compile.lease import Lease
from rlm.errors import BudgetSpent
from rlm.prompts.examples import conversation

LOOK = "```repl\nfirst = context[:400]\nprint(first)\n```"
ANSWER = """```repl
import re
n = re.search(r"bug number (\\d+)", context)[1]
answer["content"] = f"## Summary\\n- Bug {n} is fixed [1, 4]\\n"
answer["content"] += f"## Decisions\\n- Method {n} is used [turn 4]\\n- no turn\\n"
answer["ready"] = True
```"""


def root(messages: Any) -> str:
    """What a model would do: look, answer; and as the one that keeps the brief, take the newest lines."""
    if isinstance(messages, str):
        lines = re.findall(r"^- .*\[.*\]$", messages.partition("# Digests")[2], re.M)
        return "## Summary\n" + "\n".join(dict.fromkeys(lines[:10])) + "\n- invented [s:1]\n"
    return ANSWER if len(conversation(messages)) > 1 else LOOK


def put(store: Store, folder: Path, numbers: range) -> None:
    for n in numbers:
        day = f"2026-02-{n % 28 + 1:02d}"
        upload_session(store, recognize_session(small(n, day=day).write(folder)), user="dev@here", is_open=True)


def read(store: Store, name: str) -> str:
    return store.get(f"compiled/proj/{name}").data.decode()


@pytest.mark.slow
def test_one_session_more_costs_one_session(tmp_path: Path) -> None:
    store = CountingStore(open_store(tmp_path / "a"))
    put(store, tmp_path, range(1, 51))
    first_lm, second_lm = ScriptedLM(root), ScriptedLM(root)
    first = compile_sessions(store, "proj", lm=first_lm)
    assert (len(first.read), first.sessions, first.generation) == (50, 50, 1)
    put(store, tmp_path, range(51, 52))
    store.reset()
    second = compile_sessions(store, "proj", lm=second_lm)
    assert (second.read, second.reused, second.sessions) == ([session_id(51)], [], 51)
    # What is read: the state, the new session's record and piece, a digest that is not there; nothing of the other 50.
    read_keys = {request.key for request in store.log if request.verb.startswith("get")}
    assert {key for key in read_keys if key.startswith("transcripts/")} == {
        key for key in read_keys if session_id(51) in key
    }
    assert store.gets <= 8
    assert len(second_lm.calls) == 3  # two turns of the root over the session, one for the brief
    assert second.usage.calls == 3
    assert second.usage.input_tokens < first.usage.input_tokens / 15
    store.reset()
    third = compile_sessions(store, "proj", lm=ScriptedLM([]))
    assert (third.read, third.generation, third.usage.calls) == ([], 2, 0)
    assert store.gets == 2


def test_a_budget_is_one_for_all_sessions_and_the_brief(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    put(store, tmp_path, range(1, 6))
    lm = ScriptedLM(root)
    with pytest.raises(BudgetSpent, match="max_calls is reached; the digests made so far are kept"):
        compile_sessions(store, "proj", lm=lm, max_calls=5)
    assert len(lm.calls) == 5  # two sessions of two turns, and one of a third
    with pytest.raises(BudgetSpent) as brief:  # three sessions more, and nothing left for the brief
        compile_sessions(store, "proj", lm=lm, budget=Budget(calls=6))
    assert (brief.value.reason, len(lm.calls)) == ("max_calls", 11)
    done = compile_sessions(store, "proj", lm=lm, max_calls=2)
    assert (done.read, len(done.reused), done.usage.calls) == ([], 5, 1)


def test_what_a_brief_costs_counts_even_when_nobody_tells(tmp_path: Path) -> None:
    class Silent(ScriptedLM):
        def complete(self, *asked: Any, **options: Any) -> Reply:
            return replace(super().complete(*asked, **options), input_tokens=float("nan"), output_tokens=-1)

    store = open_store(tmp_path / "a")
    put(store, tmp_path, range(1, 3))
    prices = {"scripted": (1.0, 1.0)}
    result = compile_sessions(store, "proj", lm=Silent(root), prices=prices)
    used = result.usage.models["scripted"]
    assert (used.calls, used.estimated_calls) == (5, 5)
    assert used.dollars == pytest.approx((used.input_tokens + used.output_tokens) / 1e6)
    other = open_store(tmp_path / "b")
    put(other, tmp_path, range(1, 3))
    with pytest.raises(BudgetSpent, match="max_dollars"):
        compile_sessions(other, "proj", lm=Silent(root), prices=prices, max_dollars=0.000_001)


def test_every_statement_rests_on_turns(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    put(store, tmp_path, range(1, 4))
    result = compile_sessions(store, "proj", lm=ScriptedLM(root))
    assert result.dropped == 3 + 1
    project = Sessions(store).project("proj")
    for name in ("brief.md", "decisions.md", "summary.md", "compiled_context.txt"):
        lines = [line for line in read(store, name).splitlines() if line.startswith("- ")]
        assert lines, name
        for line in lines:
            cited = re.findall(r"\[([^\[\]]+):(\d+)\]", line)
            assert cited, line
            for session, n in cited:
                assert int(n) in project.list_turns(session)
    assert "Method 2 is used" in read(store, "decisions.md")
    assert "no turn" not in read(store, "compiled_context.txt")
    rows = [json.loads(line) for line in read(store, "index.jsonl").splitlines()]
    assert [row["session_id"] for row in rows] == [session_id(n) for n in (1, 2, 3)]
    for row in rows:
        assert row["session_id"] in read(store, f"digests/{row['digest']}.md")


def test_without_a_model_it_says_so(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    session = Claude()
    session.user("Please fix the login")
    session.calls("Edit", {"file_path": "/x/login.py", "new_string": "y"})
    session.calls("Bash", {"command": 'git commit -m "Fix the login race"'})
    session.result("[error]\nTraceback\nValueError: no such user")
    session.says("Fixed. We decided to retry instead of locking.")
    upload_session(store, recognize_session(session.write(tmp_path)))
    result = compile_sessions(store, "proj")
    brief = read(store, "brief.md")
    assert brief.splitlines()[0] == "# Brief. No language model made this: lines were picked by rules."
    for expected in ("Asked: Please fix the login", "Committed: Fix the login race", "Changed: /x/login.py"):
        assert expected in brief
    assert "We decided to retry instead of locking" in read(store, "decisions.md")
    assert "ValueError: no such user" in brief
    assert result.usage.calls == 0
    # A model that comes later reads what only rules have seen.
    session.records.clear()
    later = compile_sessions(
        store, "proj", lm=ScriptedLM(lambda m: "## Summary\n- x [1]" if isinstance(m, list) else "")
    )
    assert later.read == [session.session_id]
    assert "No language model" not in read(store, "brief.md")


def test_the_brief_has_a_size(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    put(store, tmp_path, range(1, 60))
    compile_sessions(store, "proj")
    assert 1000 < len(read(store, "brief.md")) <= BRIEF_CHARACTERS


def test_what_a_model_writes(tmp_path: Path) -> None:
    known = turn_ids_of_session("s", 9)
    text = """Here it is:
## Summary:
- plain [1]
* two [2, 3]; more [4].
- out of range [12]
- none
### decisions
- words [turn 5] and a list [x]
- full id [s:6], other's [t:6]
## Patterns
- nothing [] [0] [-1]
"""
    assert [(each.section, each.text, each.turns) for each in parse_statements(text, known)] == [
        ("Summary", "plain", ("s:1",)),
        ("Summary", "two ; more", ("s:2", "s:3", "s:4")),
        ("Decisions", "words and a list [x]", ("s:5",)),
        ("Decisions", "full id , other's [t:6]", ("s:6",)),
    ]
    found = parse_statements(text, known)
    assert parse_statements(render(found), known) == found


def test_a_model_that_gives_nothing_is_replaced_by_rules(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    put(store, tmp_path, range(1, 2))
    result = compile_sessions(store, "proj", lm=ScriptedLM(lambda m: "I cannot."), max_iterations=1)
    assert result.fell_back == [session_id(1)]
    assert "Asked: Please fix bug number 1" in read(store, "brief.md")


def test_a_run_that_fails_has_paid_for_what_it_has(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    put(store, tmp_path, range(1, 4))
    script: list[str | BaseException] = [LOOK, ANSWER, LOOK, ANSWER, LLMError("quota")]
    with pytest.raises(LLMError):
        compile_sessions(store, "proj", lm=ScriptedLM(script))
    again = compile_sessions(store, "proj", lm=ScriptedLM(root))
    assert again.reused == [session_id(1), session_id(2)]
    assert again.read == [session_id(3)]


def test_a_session_that_grows_is_read_again(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    put(store, tmp_path, range(1, 3))
    compile_sessions(store, "proj", lm=ScriptedLM(root))
    session = small(1, day="2026-02-02")
    session.user("And another thing")
    upload_session(store, recognize_session(session.write(tmp_path)))
    result = compile_sessions(store, "proj", lm=ScriptedLM(root))
    assert result.read == [session_id(1)]
    assert read(store, "decisions.md").count("Method 1 is used") == 1


def test_two_machines_one_pays(any_store: Store, tmp_path: Path) -> None:
    put(any_store, tmp_path, range(1, 3))
    lms = [ScriptedLM(root), ScriptedLM(root)]
    barrier = threading.Barrier(2)

    def machine(n: int) -> Any:
        barrier.wait()
        return compile_sessions(any_store, "proj", lm=lms[n], owner=f"machine {n}")

    with ThreadPoolExecutor(2) as threads:
        results = list(threads.map(machine, range(2)))
    assert sorted(len(result.read) for result in results) == [0, 2]
    assert sum(len(lm.calls) for lm in lms) == 2 * 2 + 1
    assert compile_sessions(any_store, "proj", lm=ScriptedLM([])).sessions == 2


@pytest.mark.slow
def test_a_lease_ends(any_store: Store) -> None:
    with Lease(any_store, "locks/x", "a", 60) as first:
        assert first.is_held
        assert first.renew()
        with Lease(any_store, "locks/x", "b", 60) as second:
            assert not second.is_held
            assert second.holder == "a"
    with Lease(any_store, "locks/x", "b", 0.05) as third:
        assert third.is_held
        time.sleep(0.1)
        with Lease(any_store, "locks/x", "c", 60) as fourth:
            assert fourth.is_held
            assert not third.renew()
    any_store.put("locks/x", b"damaged")
    with Lease(any_store, "locks/x", "d", 60) as fifth:
        assert fifth.is_held


def test_who_loses_the_commit_redoes_only_what_is_missing(tmp_path: Path) -> None:
    """Two machines that both believe to hold the lease."""
    store = open_store(tmp_path / "a")
    put(store, tmp_path, range(1, 3))
    other = ScriptedLM(root)

    class Meddling(CountingStore):
        """Lets another machine compile just before the first commit."""

        meddled = False

        def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
            if key.endswith("state.json") and not self.meddled:
                self.meddled = True
                store.delete("locks/compile-proj")
                assert compile_sessions(store, "proj", lm=other).generation == 1
            return super().put(key, data, if_absent=if_absent, if_match=if_match)

    mine = ScriptedLM(root)
    result = compile_sessions(Meddling(store), "proj", lm=mine)
    assert len(mine.calls) == 2 * 2 + 1
    assert len(other.calls) == 1  # the digests were there
    assert (result.sessions, result.generation) == (2, 1)


@pytest.mark.slow
def test_a_run_that_dies_anywhere_is_finished_by_the_next(tmp_path: Path) -> None:
    for writes in range(14):
        store = open_store(tmp_path / f"a{writes}")
        put(store, tmp_path, range(1, 3))
        crashing = CrashingStore(store, writes)
        try:
            compile_sessions(crashing, "proj", lease_seconds=0.0)
        except Crash:
            pass
        time.sleep(0.01)
        assert compile_sessions(store, "proj").sessions == 2
        assert "bug number 2" in read(store, "brief.md"), writes


def test_a_brief_that_was_lost_is_written_again(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    put(store, tmp_path, range(1, 2))
    compile_sessions(store, "proj")
    before = read(store, "brief.md")
    store.put("compiled/proj/brief.md", b"of somebody who lost")
    compile_sessions(store, "proj")
    assert read(store, "brief.md") == before


def test_nothing_to_compile_and_damage(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    with pytest.raises(NotFound, match="no sessions of project 'proj'"):
        compile_sessions(store, "proj")
    put(store, tmp_path, range(1, 2))
    store.put("compiled/proj/state.json", b"{}")
    with pytest.raises(DamagedData, match=r"state\.json"):
        compile_sessions(store, "proj")


class Bills(ScriptedLM):
    """Says what each call costs, as an endpoint does."""

    def complete(self, *asked: Any, **options: Any) -> Reply:
        return replace(super().complete(*asked, **options), dollars=0.02)


def spent(store: Store) -> float:
    return CostLedger(store, "proj").load().dollars(today())


def test_a_limit_of_a_day_is_one_for_all_runs_and_the_brief_says_so(tmp_path: Path) -> None:
    store, lm = open_store(tmp_path / "a"), Bills(root)
    put(store, tmp_path, range(1, 6))
    for _ in range(4):  # whoever tries, as often as they like
        with pytest.raises(BudgetSpent) as told:
            compile_sessions(store, "proj", lm=lm, max_dollars_per_day=0.05)
        assert told.value.reason == "max_dollars_per_day"
        assert len(lm.calls) == 3  # 0.06: one call over
        assert spent(store) == pytest.approx(0.06)
        brief = read(store, "brief.md")
        assert f"The limit of $0.05 a day was reached on {today()}; 4 sessions wait" in brief
        assert "Bug 1 is fixed" in brief
    done = compile_sessions(store, "proj", lm=lm, max_dollars_per_day=1.0)
    assert (len(done.read), done.reused, done.usage.calls) == (4, [session_id(1)], 4 * 2 + 1)
    assert "wait" not in read(store, "brief.md")
    assert compile_sessions(store, "proj", lm=lm).generation == done.generation


def test_calls_in_parallel_go_over_a_limit_by_one_at_most(tmp_path: Path) -> None:
    """A cell that asks for sixteen sub-calls at once."""
    store = open_store(tmp_path / "a")
    put(store, tmp_path, range(1, 3))
    lm, sub = Bills(lambda m: "```repl\nprint(llm_query_batched(['read'] * 16))\n```"), Bills(str.upper)
    for limit in ({"max_dollars": 0.05}, {"max_dollars_per_day": 0.11}):
        before = spent(store)
        with pytest.raises(BudgetSpent):
            compile_sessions(store, "proj", lm=lm, sub_lm=sub, runner="local", **limit)
        assert spent(store) - before <= 0.06 + 1e-9
    assert spent(store) == pytest.approx(0.12)


def test_a_price_that_nobody_knows_ends_a_run_with_a_limit(tmp_path: Path) -> None:
    store, lm = open_store(tmp_path / "a"), ScriptedLM(root)
    put(store, tmp_path, range(1, 3))
    with pytest.raises(BudgetSpent):
        compile_sessions(store, "proj", lm=lm, max_dollars_per_day=0.05)
    assert len(lm.calls) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Thanks.", False),
        ("Thank you so much!", False),
        ("continue", False),
        ("Go on.", False),
        ("👍", False),
        ("You’re welcome!", False),
        ("Looks good to me", False),
        ("Great, now fix the docs", True),
        ("Yes, use postgres instead", True),
        ("Is this it?", True),
        ("Next to the lock", True),
        ("5", True),
    ],
)
def test_a_brief_by_rules_leaves_out_thanks(text: str, said: bool) -> None:
    turns = [Turn("s", 1, "user", "text", "Fix the lock"), Turn("s", 2, "assistant", "text", "It is fixed.")]
    more = [Turn("s", 3, "user", "text", text), Turn("s", 4, "assistant", "text", text)]
    found = [each.text for each in extract([*turns, *more], "")]
    assert found == ["Asked: Fix the lock", *([f"Asked: {text}"] if said else []),
                     f"Last answer: {text if said else 'It is fixed.'}"]  # fmt: skip
