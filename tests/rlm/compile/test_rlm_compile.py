"""`rlm compile`: one session more costs one session; statements rest on turns; nothing is lost to a kill or a race."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from sessions.agents import Claude, session_id, small

from monocontext.errors import NotFound
from monocontext.sessions import Sessions, upload_session
from monocontext.sessions.readers import recognize_session
from monocontext.sessions.turn import Turn
from monocontext.stores import open_store
from monocontext.stores.protocol import Store
from monocontext.testing import CountingStore, Crash, CrashingStore
from rlm import RLM, LLMError, ScriptedLM
from rlm.compile.compiling import compile_sessions
from rlm.compile.digest import extract, parse_statements, render, turn_finder
from rlm.errors import BudgetSpent
from rlm.prompts.system import conversation

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
        return "## Summary\n" + "\n".join(dict.fromkeys(lines[:10])) + "\n+ invented [s:1]\n"
    return ANSWER if len(conversation(messages)) > 1 else LOOK


def asking(lm: ScriptedLM, **options: Any) -> RLM:
    return RLM(lm=lm, runner="local", **options)


def put(store: Store, folder: Path, numbers: range) -> None:
    for n in numbers:
        day = f"2026-02-{n % 28 + 1:02d}"
        upload_session(store, recognize_session(small(n, day=day).write(folder)), user="dev@here", is_open=True)


def read(store: Store) -> str:
    return store.get("compiled/proj/brief.md").data.decode()


def digests(store: Store) -> list[str]:
    return [info.key for info in store.list("compiled/proj/digests/")]


@pytest.mark.slow
def test_one_session_more_costs_one_session(tmp_path: Path) -> None:
    store = CountingStore(open_store(tmp_path / "a"))
    put(store, tmp_path, range(1, 21))
    first_lm, second_lm = ScriptedLM(root), ScriptedLM(root)
    first = compile_sessions(store, "proj", asking(first_lm))
    assert (len(first.read), first.sessions) == (20, 20)
    put(store, tmp_path, range(21, 22))
    store.reset()
    second = compile_sessions(store, "proj", asking(second_lm))
    assert (second.read, second.sessions) == ([session_id(21)], 21)
    read_keys = {request.key for request in store.log if request.verb.startswith("get")}
    assert {key for key in read_keys if key.startswith("sessions/")} == {f"sessions/proj/{session_id(21)}.jsonl.zst"}
    assert len(second_lm.calls) == second.usage.calls == 3  # two turns of the root, one for the brief
    before = read(store)
    store.reset()
    third = compile_sessions(store, "proj", asking(ScriptedLM([])))
    assert (third.read, third.usage.calls, store.gets, read(store)) == ([], 0, 1, before)


def test_a_budget_is_one_for_all_sessions_and_the_brief(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    put(store, tmp_path, range(1, 6))
    lm = ScriptedLM(root)
    with pytest.raises(BudgetSpent, match="max_calls is reached; the digests made so far are kept"):
        compile_sessions(store, "proj", asking(lm, max_calls=5))
    assert len(lm.calls) == 5  # two sessions of two turns, and one of a third
    assert "The limit of max_calls was reached; 3 sessions wait" in read(store)
    assert "Bug 1 is fixed" in read(store)
    with pytest.raises(BudgetSpent) as brief:  # three sessions more, and nothing left for the brief
        compile_sessions(store, "proj", asking(lm, max_calls=6))
    assert (brief.value.reason, len(lm.calls), len(digests(store))) == ("max_calls", 11, 5)
    done = compile_sessions(store, "proj", asking(lm, max_calls=2))
    assert (done.read, done.usage.calls) == ([], 1)
    assert "sessions wait" not in read(store)
    assert all(f"Bug {n} is fixed" in read(store) for n in range(1, 6))


def test_every_statement_rests_on_turns(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    put(store, tmp_path, range(1, 4))
    result = compile_sessions(store, "proj", asking(ScriptedLM(root)))
    assert result.dropped == 3 + 1
    project = Sessions(store).project("proj")
    lines = [line for line in read(store).splitlines() if line.startswith("- ")]
    assert any("Method 2 is used" in line for line in lines)
    for line in lines:
        cited = re.findall(r"\[([^\[\]]+):(\d+)\]", line)
        assert cited, line
        for session, n in cited:
            assert int(n) in project.list_turns(session)
    assert "no turn" not in read(store)
    assert "invented" not in read(store)


def test_without_a_model_it_says_so(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    session = Claude()
    session.user("Please fix the login")
    session.calls("Edit", {"file_path": "/x/login.py", "new_string": "y"})
    session.calls("Bash", {"command": 'git commit -m "Fix the login race"'})
    session.result("[error]\nTraceback\nValueError: no such user")
    session.says("Fixed, by a retry.")
    session.user("Thanks!")
    upload_session(store, recognize_session(session.write(tmp_path)))
    result = compile_sessions(store, "proj")
    assert read(store).splitlines()[0] == "# Brief. No language model made this: lines were picked by rules."
    for expected in ("Asked: Please fix the login", "Committed: Fix the login race", "Changed: /x/login.py",
                     "ValueError: no such user", "Last answer: Fixed, by a retry"):  # fmt: skip
        assert expected in read(store)
    assert "Thanks" not in read(store)
    assert result.usage.calls == 0
    # A model that comes later reads what only rules have seen.
    later = compile_sessions(
        store, "proj", asking(ScriptedLM(lambda m: "FINAL(## Summary\n- x [1])" if isinstance(m, list) else ""))
    )
    assert later.read == [session.session_id]
    assert "No language model" not in read(store)
    assert [key.rsplit(".", 2)[1] for key in digests(store)] == ["model"]


def test_the_file_changed_last_is_listed_last() -> None:
    paths = ["main.py", *(f"f{number}.py" for number in range(12)), "main.py"]
    calls = [json.dumps({"path": path}) for path in paths]
    turns = [Turn("s", number, "assistant", "tool_use", call, tool="Edit") for number, call in enumerate(calls)]
    changed = [item.text for item in extract(turns) if item.section == "Patterns"]
    assert changed == [f"Changed: f{number}.py" for number in range(1, 12)] + ["Changed: main.py"]


def test_what_a_model_writes() -> None:
    known = turn_finder("s", 9)
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
    found = parse_statements(text, known)
    assert [(each.section, each.text, each.turns) for each in found] == [
        ("Summary", "plain", ("s:1",)),
        ("Summary", "two ; more", ("s:2", "s:3", "s:4")),
        ("Decisions", "words and a list [x]", ("s:5",)),
        ("Decisions", "full id , other's [t:6]", ("s:6",)),
    ]
    assert parse_statements(render(found), known) == found


def test_a_model_that_gives_nothing_is_replaced_by_rules(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    put(store, tmp_path, range(1, 2))
    compile_sessions(store, "proj", asking(ScriptedLM(lambda m: "I cannot."), max_iterations=1))
    assert "Asked: Please fix bug number 1" in read(store)


def test_a_run_that_fails_has_paid_for_what_it_has(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    put(store, tmp_path, range(1, 4))
    script: list[str | BaseException] = [LOOK, ANSWER, LOOK, ANSWER, LLMError("quota")]
    with pytest.raises(LLMError):
        compile_sessions(store, "proj", asking(ScriptedLM(script)))
    again = compile_sessions(store, "proj", asking(ScriptedLM(root)))
    assert again.read == [session_id(3)]


def test_sessions_that_grow_are_read_again_and_removed_ones_are_forgotten(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    put(store, tmp_path, range(1, 3))
    compile_sessions(store, "proj", asking(ScriptedLM(root)))
    session = small(1, day="2026-02-02")
    session.user("And another thing")
    upload_session(store, recognize_session(session.write(tmp_path)))
    result = compile_sessions(store, "proj", asking(ScriptedLM(root)))
    assert result.read == [session_id(1)]
    assert len(digests(store)) == 2
    for info in list(store.list()):
        if session_id(1) in info.key and not info.key.startswith("compiled/"):
            store.delete(info.key)
    compile_sessions(store, "proj", asking(ScriptedLM(root)))
    assert session_id(1) not in read(store)
    assert session_id(1) not in str(digests(store))


def test_who_loses_the_put_starts_from_the_brief_of_the_winner(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    put(store, tmp_path, range(1, 3))

    class Meddling(CountingStore):
        """Lets another machine compile, with one session more, just before the first brief is stored."""

        meddled = False

        def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
            if key.endswith("brief.md") and not self.meddled:
                self.meddled = True
                put(store, tmp_path, range(3, 4))
                assert compile_sessions(store, "proj").read == [session_id(3)]
            return super().put(key, data, if_absent=if_absent, if_match=if_match)

    compile_sessions(Meddling(store), "proj")
    assert all(session_id(n) in read(store) for n in (1, 2, 3))


@pytest.mark.slow
def test_a_run_that_dies_anywhere_is_finished_by_the_next(tmp_path: Path) -> None:
    for writes in range(5):
        store = open_store(tmp_path / f"a{writes}")
        put(store, tmp_path, range(1, 3))
        try:
            compile_sessions(CrashingStore(store, writes), "proj")
        except Crash:
            pass
        assert compile_sessions(store, "proj").sessions == 2
        assert all(f"bug number {n}" in read(store) for n in (1, 2)), writes


def test_a_brief_that_was_lost_is_written_again_and_no_session_is_an_error(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    with pytest.raises(NotFound, match="no sessions of 'proj'"):
        compile_sessions(store, "proj")
    put(store, tmp_path, range(1, 2))
    compile_sessions(store, "proj")
    before = read(store)
    store.put("compiled/proj/brief.md", b"of somebody who lost")
    compile_sessions(store, "proj")
    assert read(store) == before
