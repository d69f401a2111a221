"""Each record once: twice, growing, cut, copied, from many machines at once, with some of them killed."""

from __future__ import annotations

import json
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, permutations
from pathlib import Path

import pytest
import zstandard

from monocontext.errors import MonocontextError, UnsupportedFormat
from monocontext.sessions import Sessions, records, upload_session
from monocontext.sessions.reader import SessionFile
from monocontext.sessions.readers import recognize_session
from monocontext.stores import open_store
from monocontext.stores.protocol import Store
from monocontext.testing import CountingStore, Crash, CrashingStore
from sessions.agents import Claude, as_lines, everything, session_id, small


def uuids(store: Store) -> Counter[str]:
    """Every uuid that the sessions of the project hold, and how often."""
    project = Sessions(store).project("proj")
    records = chain.from_iterable(project.records(name)[1] for name in project.list_sessions())
    return Counter(record.get("uuid", "none") for record in records)


def texts(store: Store, session: Claude) -> list[str]:
    return [turn.text for turn in Sessions(store).project("proj").turns(session.session_id)]


def test_twice_is_once(any_store: Store, tmp_path: Path) -> None:
    session = small()
    file = recognize_session(session.write(tmp_path))
    first = upload_session(any_store, file, user="me@here")
    before = everything(any_store)
    counted = CountingStore(any_store)
    again = upload_session(counted, file, user="you@there")
    assert (first.records, first.turns, again.records, again.turns) == (4, 4, 0, 0)
    assert everything(any_store) == before
    assert (counted.counts["put"], counted.gets, counted.requests) == (0, 1, 2)


def test_a_session_is_one_small_object_and_goes_on_under_its_key(tmp_path: Path) -> None:
    """Of 16 KB: at most 3 objects, at most 1.3 times the compressed records; what goes on costs no read of the rest."""
    chance = random.Random(16)
    session, store = Claude(), CountingStore(open_store(tmp_path / "a"))
    for _ in range(25):
        session.user(" ".join(f"{chance.getrandbits(32):x}" for _ in range(30)))
    path = session.write(tmp_path)
    assert 12_000 < path.stat().st_size < 20_000
    upload_session(store, recognize_session(path))
    whole = len(zstandard.ZstdCompressor(level=9).compress(path.read_bytes()))
    (info,) = store.list()
    assert info.size_bytes <= 1.3 * whole
    session.user("One more thing")
    store.reset()
    report = upload_session(store, recognize_session(session.write(tmp_path)), is_open=True)
    assert (report.records, report.turns) == (1, 1)
    assert store.counts == {"head": 1, "get_range": 1, "put": 1}
    assert store.bytes_read <= 4096
    project = Sessions(store).project("proj")
    assert project.read_turn(session.session_id, 26)["content"] == "One more thing"
    assert [info.key for info in store.list()] == [f"sessions/proj/{session.session_id}.jsonl.zst"]


def test_a_cut_line_is_kept_once_and_then_whole(tmp_path: Path) -> None:
    session, store = small(), open_store(tmp_path / "a")
    whole = as_lines([Claude(1).user("not yet said")])
    cut = recognize_session(session.write(tmp_path, whole[:40]))
    assert upload_session(store, cut, is_open=True).problems == ("line 5: incomplete; left for the next upload",)
    assert upload_session(store, cut).records == 1
    assert upload_session(store, cut).records == 0
    session.user("not yet said")
    assert texts(store, session)[-1].startswith("[unreadable line: not JSON")
    assert upload_session(store, recognize_session(session.write(tmp_path))).bytes
    assert texts(store, session)[4:] == ["not yet said"]


@pytest.mark.parametrize("tail", ["", "no record\n"])
def test_a_last_line_whose_newline_comes_and_goes(tail: str, tmp_path: Path) -> None:
    session, store = small(), open_store(tmp_path / "a")
    path = session.write(tmp_path, tail)
    whole = path.read_bytes()
    for data, count in ((whole.rstrip(b"\n"), 5 if tail else 4), (whole, 0), (whole[:-1], 0)):
        path.write_bytes(data)
        assert upload_session(store, recognize_session(path)).records == count


def test_two_machines_go_on_with_one_session(tmp_path: Path) -> None:
    """Each has a copy and adds its own: the longer one has the id, the other one is the second of that id."""
    store = open_store(tmp_path / "a")
    project, machines = Sessions(store).project("proj"), {user: small() for user in ("a@here", "b@there", "c@third")}

    def say(user: str, *said: str) -> None:
        for text in said:
            machines[user].add("user", uuid=text, message={"role": "user", "content": text})

    def uploads() -> dict[str, list[str]]:
        for user, each in machines.items():
            upload_session(store, recognize_session(each.write(tmp_path / user)), user=user)
        return {name: [turn.text for turn in project.turns(name)][4:] for name in project.list_sessions()}

    say("a@here", "said here")
    say("b@there", "said there", "and more")
    say("c@third", "third")

    one = session_id(1)
    expected = {one: ["said there", "and more"], f"{one}.2": ["said here"], f"{one}.3": ["third"]}
    assert uploads() == uploads() == expected
    assert project.info(f"{one}.2").users == ("a@here",)
    say("a@here", "more here", "and again", "and once more")
    for _ in range(2):  # it is the longer one now
        found = uploads()
        assert found.pop(one) == ["said here", "more here", "and again", "and once more"]
        assert sorted(found.values()) == [["said there", "and more"], ["third"]]
    assert set(uuids(store).values()) <= {1, 3}, "what they have in common is in each"


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("seed", [52, 106, *range(4)])
def test_machines_that_go_on_and_copy_each_other(seed: int, is_killed: bool, tmp_path: Path) -> None:
    """At no time is what was uploaded lost, and no session is stored that is a part of another one, or equal to it."""
    chance, store, names = random.Random(seed), open_store(tmp_path / "a"), [f"shared-{n}" for n in range(3)]
    machines, uploaded = [names[: chance.randrange(1, 4)] for _ in range(4)], list[set[str]]()
    stored, project = list[set[str]](), Sessions(store).project("proj")
    session = Claude(1)
    for step in range(16):
        machine = chance.randrange(4)
        what = chance.random()
        if what < 0.5:
            machines[machine] += [f"{machine}-{step}-{n}" for n in range(chance.randrange(1, 4))]
        elif what < 0.65:
            machines[machine] = list(chance.choice(machines))
        elif what < 0.75:
            machines[machine] = machines[machine][: max(1, len(machines[machine]) - chance.randrange(3))]
        session.records = []
        for name in machines[machine]:
            session.user("x", uuid=name)
        garbage = "no JSON\n" * chance.randrange(3)  # lines that count, and tell nothing apart
        file = recognize_session(session.write(tmp_path / str(machine), garbage))
        if is_killed and chance.random() < 0.4:
            with suppress(Crash):
                upload_session(CrashingStore(store, chance.randrange(4)), file)
            continue
        upload_session(store, file)
        uploaded.append(set(machines[machine]))
        stored = [{r["uuid"] for r in project.records(name)[1] if "uuid" in r} for name in project.list_sessions()]
        assert [one for one in uploaded if not any(one <= other for other in stored)] == []
    assert is_killed or [(a, b) for a, b in permutations(stored, 2) if a <= b] == []


def test_threads_that_upload_one_session(any_store: Store, tmp_path: Path) -> None:
    file = recognize_session(small(turns=8).write(tmp_path))
    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(lambda n: upload_session(any_store, file, user=f"{n}").records, range(4))) == 8
    assert set(uuids(any_store).values()) == {1}
    assert len(list(any_store.list())) == 1


def test_a_line_that_is_too_long_is_kept_as_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MOST_LINE_BYTES", 1 << 20)
    session = small()
    giant = json.dumps({"type": "user", "uuid": "giant", "x": "y" * (3 << 20)})
    path = session.write(tmp_path, giant + "\n" + as_lines([{"type": "summary", "summary": "after it"}]))
    store = open_store(tmp_path / "a")
    report = upload_session(store, recognize_session(path))
    assert report.records == 6
    (problem,) = report.problems
    assert problem.startswith(f"line 5: {len(giant) + 1:,} bytes long, more than 1,048,576")
    assert Sessions(store).project("proj").info(session.session_id).title == "after it"
    assert upload_session(store, recognize_session(path)).records == 0


@pytest.mark.parametrize(
    "line",
    [
        "not JSON", "[1, 2]", "12", "{" * 5000, '{"a":' * 900 + "1" + "}" * 900, '{"x": "\udcff"}',
        '{"n": ' + "9" * 5000 + "}",
    ],
)  # fmt: skip
def test_lines_that_are_no_records_are_kept(tmp_path: Path, line: str) -> None:
    session, store = small(), open_store(tmp_path / "a")
    path = session.write(tmp_path)
    more = line.encode("utf-8", "surrogateescape") + b"\n" + as_lines([{"type": "x"}]).encode()
    path.write_bytes(path.read_bytes() + more)
    report = upload_session(store, recognize_session(path))
    assert (report.records, len(report.problems)) == (6, 1)
    kept = line[:40].encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace").encode()
    assert kept in everything(store).replace(b"\\\\", b"\\").replace(b'\\"', b'"')


@pytest.mark.parametrize("strange", [["x"], {"x": []}, None, 5, True])
def test_any_json_anywhere_breaks_nothing(tmp_path: Path, strange: object) -> None:
    session, store = small(), open_store(tmp_path / "archive")
    for value in (strange, {"content": strange}, {"role": strange, "content": [strange, {"type": strange}]}):
        for kind in ("user", "assistant", "system", "summary", "queue-operation", "unreadable", strange):
            session.bare(type=kind, message=value, content=value, timestamp=value, text=value, uuid=[value], cwd=value)
    result = {"content": [{"type": "tool_result", "content": strange}]}
    session.bare(type="user", uuid="half", message=result, text="\ud83d half")
    path = session.write(tmp_path)
    assert upload_session(store, recognize_session(path)).records == len(session.records)
    assert upload_session(store, recognize_session(path)).records == 0
    items = [{"type": "response_item", "payload": {"type": strange, "role": strange, "name": strange}}]
    rollout = tmp_path / f"rollout-{session_id(2)}.jsonl"
    rollout.write_text("".join(json.dumps(each) + "\n" for each in [{"type": "session_meta", "payload": {}}, *items]))
    assert upload_session(store, recognize_session(rollout), project="proj").records == 2
    assert "bug number 1" in str(Sessions.open(store).project("proj").context())


@pytest.mark.parametrize(
    "name", ["../x", "..", ".", "/etc/passwd", "a/../../b", "a\\b", ".hidden", "%2e%2e", "ünï 文", "a\nb"]
)
def test_hostile_names_stay_inside(tmp_path: Path, name: str) -> None:
    path = small().write(tmp_path)
    store = open_store(tmp_path / "archive" / "inner")
    upload_session(store, SessionFile(path, name, "claude-code", 0.0), project=name)
    upload_session(store, SessionFile(path, f"x/subagents/{name.lstrip('/')}", "claude-code", 0.0), project="p")
    assert not [each for each in (tmp_path / "archive").rglob("*") if "inner" not in each.parts]
    assert {info.key.split("/")[0] for info in store.list()} == {"sessions"}
    assert Sessions(store).projects() == sorted(["p", name])
    assert Sessions(store).project(name).list_sessions() == [name]
    assert len(Sessions(store).project(name).turns(name)) == 4


def test_damaged_and_newer_objects_are_one_line(tmp_path: Path) -> None:
    store, file = open_store(tmp_path / "a"), recognize_session(small().write(tmp_path))
    upload_session(store, file)
    key = f"sessions/proj/{file.session_id}.jsonl.zst"
    whole = store.get(key).data
    project = Sessions(store).project("proj")
    heads = [b'{"format": 3}', b"{}", b"no JSON", b'{"format": 2, "x": [']
    for damage in (*map(zstandard.compress, heads), whole[:-9], whole[:200], whole + zstandard.compress(b"{}\n"), b"x"):
        store.put(key, damage)
        with pytest.raises(MonocontextError, match=key) as raised:
            project.turns(file.session_id)
        assert "\n" not in str(raised.value)
    with pytest.raises(MonocontextError, match=key):
        upload_session(store, file)
    store.put(key, zstandard.compress(b'{"format": 3}'))
    with pytest.raises(UnsupportedFormat, match="has format 3, but this version reads formats up to 2"):
        project.turns(file.session_id)


@pytest.mark.parametrize("why", ["(is not a session|damaged zstd data)", "its metadata has"])
def test_a_session_that_is_damaged_or_fits_no_document_is_named_and_hides_no_other(why: str, tmp_path: Path) -> None:
    store, hostile = open_store(tmp_path / "a"), small(1)
    for number in range(2000 * ("metadata" in why)):
        hostile.calls(f"tool{number:0100}", {})
    for session in (hostile, small(2)):
        upload_session(store, recognize_session(session.write(tmp_path)))
    if "metadata" not in why:
        store.put(f"sessions/proj/{session_id(1)}.jsonl.zst", b"nothing of the kind")
    with pytest.warns(UserWarning, match=f"left out: .*{session_id(1)}.*{why}"):
        found = Sessions(store).project("proj").search_transcripts("instead of a lock")
    assert [turn["session_id"] for turn in found] == [session_id(2)]


def test_a_file_whose_name_is_no_text_is_a_session(tmp_path: Path) -> None:
    store, path = open_store(tmp_path / "a"), small(1).write(tmp_path).rename(tmp_path / "\udcff.jsonl")
    upload_session(store, recognize_session(path))
    assert "instead of a lock" in Sessions(store).project("proj").context()


def test_what_follows_a_cut_line_is_taken_once(tmp_path: Path) -> None:
    """An agent that is killed in a record, and resumed: it goes on in the same line."""
    session = Claude()
    session.user("Hello")
    path = session.write(tmp_path, tail='{"type":"assist')
    store = open_store(tmp_path / "a")
    assert upload_session(store, recognize_session(path)).records == 2
    with path.open("ab") as file:
        file.write(json.dumps(session.says("Hi")).encode() + b"\n")
    assert upload_session(store, recognize_session(path)).records == 1
    assert upload_session(store, recognize_session(path)).records == 0
    turns = [turn.text for turn in Sessions(store).project("proj").turns(session.session_id)]
    assert (turns[0], turns[-1], len(turns)) == ("Hello", "Hi", 3)
