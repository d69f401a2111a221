"""The tools without an SDK: what they read, where they cut, what they refuse; the address that HTTP is served at."""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from monocontext import Monocontext, publish
from monocontext.errors import AccessDenied, NotFound, ToolRefusal
from monocontext.mcp import Served, Tools
from monocontext.mcp.http import choose_token, listen, require_token
from monocontext.mcp.progress import begin_call
from monocontext.memory import Memory
from monocontext.shell.process import Child
from monocontext.stores.protocol import Store
from monocontext.text_tools import search_process
from monocontext.text_tools.outputs import Range
from monocontext.text_tools.replies import MAX_REPLY_BYTES, fit_error, list_reply, search_reply, slice_reply
from rlm import ScriptedLM
from rlm.calls.budget import Budget
from rlm.cli.context_argument import UsageError
from rlm.cli.mcp import make_ask_tools, mcp


@dataclass
class Info:
    session_id: str
    agent: str = "claude-code"
    started: str = "2026-02-14T10:00:00Z"
    turns: int = 2
    title: str = "A title\nof two lines"
    first_prompt: str = ""


class FakeSessions:
    """As much of an archive of sessions as the tools touch."""

    def __init__(self, place: Path) -> None:
        self.name = "api"
        self.asked: list[Any] = []
        self.place = place
        publish("[Turn 1 - USER] - text -\nhello\n\n" * 1000, place)

    def projects(self) -> list[str]:
        return ["api"]

    def project(self, name: str) -> FakeSessions:
        assert name == "api"
        return self

    def sessions(self, since: Any, until: Any, **more: Any) -> list[Info]:
        self.asked.append((since, until))
        return [Info("aaa-1"), Info("bbb-2")]

    def find(self, session: str, project: str | None) -> tuple[FakeSessions, str]:
        if not session.startswith("aaa"):
            raise NotFound(f"no session {session!r}")
        return self, "aaa-1"

    def context(self, *, sessions: list[str] | None, cache_bytes: int) -> Monocontext:
        self.asked.append(sessions)
        opened: Monocontext = Monocontext.open(self.place)
        return opened


def test_twelve_tools_at_most_each_with_a_description(tmp_path: Path) -> None:
    served = Served({"a": "x"}, sessions=FakeSessions(tmp_path), memory=Memory.open(tmp_path / "m"))
    offered = {**Tools(served).by_name(uploads=True), **make_ask_tools(served, {})}
    assert len(offered) == 12
    assert {"chat_rlm_query", "upload_context"} <= set(offered)
    for name, work in offered.items():
        told = inspect.getdoc(work) or ""
        for parameter in inspect.signature(work).parameters:
            assert parameter in told, (name, parameter)


def test_a_slice_reads_little_of_a_large_text(any_store: Store) -> None:
    publish(("x" * 99 + "\n") * 100_000, any_store, filters=False, codec="raw", segment_bytes=1 << 20)
    with Monocontext.open(any_store) as text:
        reply = slice_reply(text, 5_000_000, 9_000_000)
        assert len(reply.encode()) <= MAX_REPLY_BYTES
        assert reply.endswith(
            "[cut: characters 5000000 to 5019800 of 10000000; next range: start=5019800 stop=9000000]"
        )
        assert text.stats.bytes_fetched < 3 * (256 << 10)


@pytest.mark.parametrize("letter", ["a", "é", "漢", "🦜"])
def test_a_cut_is_between_characters(letter: str, tmp_path: Path) -> None:
    publish(letter * 30_000, tmp_path)
    with Monocontext.open(tmp_path) as text:
        reply = slice_reply(text, 1, 30_000)
    kept, note = reply.rsplit("\n", 1)
    assert len(reply.encode()) <= MAX_REPLY_BYTES
    assert kept == letter * len(kept)
    assert f"start={1 + len(kept)} " in note


def test_a_search_that_takes_long_says_how_far_it_came(tmp_path: Path) -> None:
    text = ("word " * 20 + "\n") * 400_000
    publish(text, tmp_path, filters=False)
    ticks = iter(range(0, 10_000, 30))
    with Monocontext.open(tmp_path) as context:
        options: dict[str, Any] = {"ignore_case": False, "fixed": False, "max_hits": 5, "clock": lambda: next(ticks)}
        reply = search_reply(context, "absent", start=7, stop=len(text), **options)
        at = 7 + (16 << 20)
        assert (
            reply == f"[cut: no lines match so far, of {len(text)} characters; next range: start={at} stop={len(text)}]"
        )
        ends = search_reply(context, "absent", start=at, stop=len(text), **{**options, "clock": lambda: 0.0})
    assert ends == f"[no lines match; characters {at} to {len(text)} of {len(text)} are searched]"


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"fixed": True}, {"words": True}, {"ignore_case": True}])
def test_a_pattern_has_a_length(tmp_path: Path, options: dict[str, bool]) -> None:
    """To take a pattern of a million letters apart held the server for a minute and a half."""
    publish("h" * 10_000 + "\n", tmp_path)
    tools = Tools(Served({"t": str(tmp_path)}))
    with pytest.raises(ToolRefusal, match=r"^a query has at most 10,000 characters, this one has 1,000,000$"):
        tools.context_search("h" * 1_000_000, **options)  # type: ignore[arg-type]
    if "words" not in options:
        assert "1 line matches" in tools.context_search("h" * 10_000, **options)  # type: ignore[arg-type]


def test_an_error_quotes_a_part_of_what_it_refuses() -> None:
    assert fit_error("no context\n 'a'") == "no context 'a'"
    long = fit_error(f"no context {'x' * 100_000!r} is served here: context_list lists them")
    assert long.startswith("no context 'xxx")
    assert long.endswith("xxx' is served here: context_list lists them")
    assert len(long) < 900


@pytest.mark.slow
def test_a_pattern_that_backtracks_for_ever_is_ended_and_others_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish("plain\n" + "a" * 60 + "b\n", tmp_path)
    tools = Tools(Served({"t": str(tmp_path)}))
    monkeypatch.setattr(search_process, "END_SECONDS", 3)
    under_way = threading.Event()
    processes: list[subprocess.Popen[bytes]] = []

    class Watched(Child):
        def call(self, *arguments: Any) -> bytes:
            processes.append(self.process)
            under_way.set()
            return super().call(*arguments)

    monkeypatch.setattr(search_process, "Child", Watched)
    with ThreadPoolExecutor(1) as pool:
        hopeless = pool.submit(tools.context_search, "(a+)+$")
        assert under_way.wait(60)
        assert tools.context_search("plain").startswith("0:1:plain\n")  # while the other is searching
        assert not hopeless.done()
        with pytest.raises(ToolRefusal, match=r"the search was stopped after 3 s: the pattern may backtrack for ever"):
            hopeless.result()
    assert [process.poll() is not None for process in processes] == [True]
    monkeypatch.setattr(search_process, "END_SECONDS", 30)
    assert tools.context_search("^pl.in$").startswith("0:1:plain\n")


@pytest.mark.slow
def test_what_was_found_before_a_search_is_ended_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "aa\n" + ("x" * 99 + "\n") * 180_000 + "a" * 60 + "b\n"
    publish(text, tmp_path, filters=False)
    monkeypatch.setattr(search_process, "END_SECONDS", 10)
    reply = Tools(Served({"t": str(tmp_path)})).context_search("(a+)+$")
    assert reply.startswith("0:1:aa\n")
    assert f"next range: start={16 << 20} stop={len(text)}]\n[the search was stopped after 10 s" in reply
    assert len(reply.encode()) <= MAX_REPLY_BYTES


@pytest.mark.slow
def test_a_search_elsewhere_says_what_is_wrong_with_it(tmp_path: Path) -> None:
    publish("one\n", tmp_path)
    tools = Tools(Served({"t": str(tmp_path)}))
    for wrong in ("(", "a{2,1}", "*", "(?P<1>x)", "(?<=a+)b"):
        with pytest.raises(ToolRefusal, match="not a regular expression"):
            tools.context_search(wrong)
    with pytest.raises(ToolRefusal, match="needs a newline, but grep matches within a line"):
        tools.context_search(r"one\ntwo")


def test_a_long_line_is_shown_around_its_match(tmp_path: Path) -> None:
    publish("x" * 5_000 + "NEEDLE" + "y" * 5_000 + "\n", tmp_path)
    reply = Tools(Served({"t": str(tmp_path)})).context_search("NEEDLE")
    row = reply.split("\n")[0]
    assert row.startswith("5000:1:...xxx")
    assert "NEEDLE" in row
    assert len(row) < 330


def test_lists_are_cut_and_go_on() -> None:
    rows = [f"name-{n:04d}  {'x' * 40}" for n in range(900)]
    first = list_reply(rows, nothing="-").split("\n")
    assert first[-1] == f"[cut after {len(first) - 1}; next range: after={rows[len(first) - 2].split()[0]}]"
    assert list_reply([], nothing="[none]") == "[none]"


def test_contexts_are_named_never_placed(tmp_path: Path) -> None:
    publish("inside", tmp_path / "served" / "a")
    publish("outside", tmp_path / "secret")
    tools = Tools(Served({"served": str(tmp_path / "served")}))
    assert tools.context_list() == "served/a"
    assert tools.context_slice("served/a") == "inside"
    for name in ("served/../secret", "../secret", str(tmp_path / "secret"), f"file://{tmp_path}/secret", "served/a/.."):
        with pytest.raises(NotFound):
            tools.context_slice(name)


def test_a_context_stays_until_it_is_described_again(tmp_path: Path) -> None:
    from monocontext import append

    publish("one\n", tmp_path)
    tools = Tools(Served({"t": str(tmp_path)}))
    assert tools.context_slice() == "one\n"
    append("two\n", str(tmp_path))
    assert tools.context_slice() == "one\n"
    assert json.loads(tools.context_info())["characters"] == 8
    assert tools.context_slice() == "one\ntwo\n"


def test_sessions(tmp_path: Path) -> None:
    sessions = FakeSessions(tmp_path)
    tools = Tools(Served(sessions=sessions))
    assert tools.context_list() == "sessions/api"
    rows = tools.session_list(since="2026-02-14").split("\n")
    assert rows[0] == "aaa-1  claude-code  2026-02-14T10:00:00Z  2 turns  A title of two lines"
    assert sessions.asked == [("2026-02-14", None)]
    assert tools.session_list(after="aaa-1").startswith("bbb-2")
    assert tools.session_read("aaa", stop=40).startswith("[Turn 1 - USER]")
    assert sessions.asked[-1] == ["aaa-1"]
    assert "next range: start=" in tools.session_read("aaa")
    with pytest.raises(NotFound):
        tools.session_read("ccc")
    with pytest.raises(NotFound):
        Tools(Served()).session_list()


def test_a_memory_of_many_keys_is_cut(tmp_path: Path) -> None:
    memory = Memory.open("memory://many-keys")
    for n in range(300):
        memory.put(f"{n:03d}-{'k' * 90}", "v")
    reply = Tools(Served(memory=memory)).memory("L")
    told = json.loads(reply)
    assert len(reply.encode()) <= MAX_REPLY_BYTES
    assert told["metadata"]["keys"] == 300
    assert 0 < len(told["output"]["keys"]) < 300


def test_a_memory_is_read_as_it_is_now() -> None:
    memory = Memory.open("memory://read-as-it-is-now")
    tools = Tools(Served(memory=memory))
    memory.put("one", "1")
    assert tools.context_slice() == "=== KEY: one ===\n1\n"
    tools.memory("P two 2")
    assert tools.context_search("^2$").startswith("36:4:2\n")
    memory.put("one", "changed")
    assert tools.context_slice("memory/one") == "changed"
    memory.put("one", "again")
    assert tools.context_slice("memory/one") == "again"


def test_ask(tmp_path: Path) -> None:
    publish("the answer is 42", tmp_path)
    served = Served({"t": str(tmp_path)})
    lm = ScriptedLM(["```repl\nFINAL(context[-2:])\n```"] * 2)
    tools = make_ask_tools(served, {"lm": lm, "runner": "local"})
    told = asyncio.run(tools["ask"]("What is it?"))
    assert told == "42"
    assert asyncio.run(tools["chat_rlm_query"]("What is it?", thread_id="t")) == told
    with pytest.raises(ToolRefusal):
        asyncio.run(tools["ask"]("  "))
    found = ScriptedLM(["```repl\nprint(context[:])\nFINAL('It is 42.', sources=['answer is 42'])\n```"])
    shown = asyncio.run(make_ask_tools(served, {"lm": found, "runner": "local"})["ask"]("What is it?"))
    assert shown.startswith("It is 42.\n\nSources:\nline:1  4-16@1#")
    assert (shown.data.answer, len(shown.data.sources), shown.data.unfinished) == ("It is 42.", 1, None)


def test_ask_tells_of_a_run_that_did_not_finish(tmp_path: Path) -> None:
    publish("the answer is 42", tmp_path)
    served = Served({"t": str(tmp_path)})
    forced = {"lm": ScriptedLM(["```repl\n1\n```", "maybe 42"]), "runner": "local", "max_iterations": 1}
    assert asyncio.run(make_ask_tools(served, forced)["ask"]("q")) == (
        "maybe 42\n\n[The model did not finish: this answer was forced after its last turn.]"
    )
    nothing = {"lm": ScriptedLM(["```repl\n1\n```"]), "runner": "local", "max_calls": 1}
    with pytest.raises(ToolRefusal, match="max_calls is reached; it had no answer yet"):
        asyncio.run(make_ask_tools(served, nothing)["ask"]("q"))


def test_ask_about_files_below_a_folder(tmp_path: Path) -> None:
    work = tmp_path / "work"
    for name in ("work/docs/a.md", "work/.env", "outside.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"this is {name}\n")
    (work / "link").symlink_to(tmp_path / "outside.txt")
    publish("the answer is 42", tmp_path / "stored")
    lm = ScriptedLM(["```repl\nFINAL(str(context[:]).strip())\n```"] * 9)
    options = {"lm": lm, "runner": "local"}
    ask = make_ask_tools(Served({"stored": str(tmp_path / "stored")}), options, work)["ask"]
    assert asyncio.run(ask("q", "docs/a.md")) == "this is work/docs/a.md"
    assert "this is work/docs/a.md" in asyncio.run(ask("q", "docs"))
    assert (everything := asyncio.run(ask("q"))).count("this is") == 1
    assert "a.md" in everything
    assert asyncio.run(ask("q", "stored")) == "the answer is 42"
    (work / "docs" / "a.md").write_text("changed\n")
    assert asyncio.run(ask("q", "docs/a.md")) == "changed"
    for name in (
        "../outside.txt",
        str(tmp_path / "outside.txt"),
        "link",
        ".env",
        "docs/../.env",
        "docs/none",
        "s3://b",
    ):
        with pytest.raises(NotFound, match="that is not hidden"):
            asyncio.run(ask("q", name))
    assert list(make_ask_tools(Served(), options, work)) == ["ask"]


def test_files_of_this_machine_are_not_served_over_http() -> None:
    with pytest.raises(UsageError, match="cannot be served over HTTP"):
        inspect.unwrap(mcp)({"http": True}, {}, {"runner": "local"}, {}, folder=".")


def test_a_question_may_lower_the_limit_of_the_server_and_not_raise_it(tmp_path: Path) -> None:
    publish("the answer is 42", tmp_path)
    served, lm = Served({"t": str(tmp_path)}), ScriptedLM(lambda _: "```repl\n1\n```", model="gpt-5.6")
    for asked, limit in ((0.0, 1.0), (5.0, 0.0)):
        options = {"lm": lm, "runner": "local", "budget": Budget(dollars=limit)}
        with pytest.raises(ToolRefusal, match="max_dollars is reached"):
            asyncio.run(make_ask_tools(served, options)["ask"]("q", max_dollars=asked))


def test_a_turn_is_the_message_of_the_next_report(tmp_path: Path) -> None:
    publish("the answer is 42", tmp_path)
    tool = make_ask_tools(
        Served({"t": str(tmp_path)}), {"lm": ScriptedLM(["```repl\nFINAL(1)\n```"]), "runner": "local"}
    )

    async def call() -> str:
        message = begin_call()
        await tool["ask"]("q")
        return message[0]

    assert asyncio.run(call()) == "turn 1 took 0 s"


def test_no_token_only_on_this_machine() -> None:
    with pytest.raises(AccessDenied):
        choose_token("", "0.0.0.0")
    with pytest.raises(AccessDenied):
        choose_token("line\nbreak", "localhost")
    assert choose_token("", "127.0.0.1") == ""
    assert len({choose_token(None, "0.0.0.0"), choose_token(None, "0.0.0.0")}) == 2
    first, url = listen("127.0.0.1", 0)
    with first:
        port = first.getsockname()[1]
        assert url == f"http://127.0.0.1:{port}/mcp"
        with pytest.raises(OSError, match="in use"):
            listen("127.0.0.1", port)


@pytest.mark.parametrize(
    ("header", "passes"),
    [
        (None, False),
        (b"Bearer right", True),
        (b"bearer right", True),
        (b"Basic right", False),
        (b"Bearer wrong", False),
    ],
)
def test_the_token_guards_every_path(header: bytes | None, passes: bool) -> None:
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        sent.append("passed")

    async def send(message: Any) -> None:
        sent.append(message["type"])

    headers = [(b"authorization", header)] if header else []
    scope = {"type": "http", "path": "/anything", "headers": headers}
    asyncio.run(require_token(app, "right")(scope, None, send))  # type: ignore[arg-type]
    assert sent == (["passed"] if passes else ["http.response.start", "http.response.body"])


def test_passages_by_words(tmp_path: Path) -> None:
    publish({"a.txt": "Keys are rotated each month.\n", "b.txt": "Nothing here.\n"}, tmp_path)
    tools = Tools(Served({"t": str(tmp_path)}))
    reply = tools.context_search("rotate", words=True)
    assert reply.startswith("[a.txt:1, characters 0 to ")
    assert "Keys are rotated" in reply
    for wrong in ("", "of the"):
        with pytest.raises(ToolRefusal):
            tools.context_search(wrong, words=True)
    with pytest.raises(ToolRefusal, match="whole text"):
        tools.context_search("rotate", words=True, start=5)
    assert "[passages: 1;" in tools.context_search("keys nothing", words=True, max_hits=1)


@pytest.mark.parametrize("pattern", ["FILE", "FIL[E]"])
def test_lines_are_those_of_the_document(tmp_path: Path, pattern: str) -> None:
    """The second pattern is searched for in a process of its own."""
    files = {"a.txt": "x\nFILE one\n", "b/c.txt": "y\nz FILE", "d.txt": ""}
    tools = Tools(Served({"t": write_folder(files, tmp_path)}))
    reply = tools.context_search(pattern)
    first, second = tools.context_slice().index("FILE one"), tools.context_slice().index("z FILE") + 2
    assert reply.startswith(f"a.txt:2:{first}:FILE one\nb/c.txt:2:{second}:z FILE\n[2 lines match;")
    assert asdict(reply.data)["hits"] == [
        {"document": "a.txt", "line": 2, "offset": first, "text": "FILE one"},
        {"document": "b/c.txt", "line": 2, "offset": second, "text": "z FILE"},
    ]
    cut = tools.context_search(pattern, max_hits=1)
    assert cut.data.next is not None
    again = tools.context_search(pattern, start=cut.data.next.start, stop=cut.data.next.stop)
    assert [hit.document for hit in again.data.hits] == ["b/c.txt"]


def test_lines_between_documents_are_not_searched(tmp_path: Path) -> None:
    tools = Tools(Served({"t": write_folder({"a.txt": "x\n", "b.txt": "y"}, tmp_path)}))
    for pattern in ("===", "^", "$", ""):
        hits = tools.context_search(pattern).data.hits
        assert [(hit.document, hit.line, hit.text) for hit in hits] == [
            ("a.txt", 1, "x"), ("b.txt", 1, "y")
        ][: 0 if pattern == "===" else 2]  # fmt: skip
    assert tools.context_search("file", words=True).data.hits == []
    [found] = tools.context_search("y", words=True).data.hits
    assert (found.document, found.line, found.text) == ("b.txt", 1, "y")


def write_folder(files: dict[str, str], place: Path) -> str:
    """A folder of files, which is read as a text in which each stands after a header line."""
    for name, text in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    return str(place)


def test_a_name_is_needed_where_there_are_several(tmp_path: Path) -> None:
    publish("one", tmp_path / "a")
    publish("two", tmp_path / "folder" / "b")
    memory = Memory.open("memory://several")
    a, folder = str(tmp_path / "a"), str(tmp_path / "folder")
    assert Tools(Served({"a": a})).context_slice() == "one"
    assert Tools(Served({"folder": folder})).context_slice() == "two"
    assert Tools(Served(sessions=FakeSessions(tmp_path / "s"))).context_slice(stop=7) == "[Turn 1"
    several = [
        Served({"a": a, "b": folder}),
        Served({"a": a}, memory=memory),
        Served({"a": a}, sessions=FakeSessions(tmp_path / "s2")),
        Served(sessions=FakeSessions(tmp_path / "s3"), memory=memory),
    ]
    publish("three", tmp_path / "folder" / "c")
    several.append(Served({"folder": folder}))
    for served in several:
        tools = Tools(served)
        for call in (tools.context_slice, tools.context_info, lambda: tools.context_search("x")):  # noqa: B023
            with pytest.raises(ToolRefusal, match=r"^name a context: context_list lists them$"):
                call()


def test_fields(tmp_path: Path) -> None:
    publish("one two\n" * 5_000, tmp_path / "t")
    tools = Tools(Served({"t": str(tmp_path / "t")}, sessions=FakeSessions(tmp_path / "s")))
    assert asdict(tools.context_list().data) == {"names": ["t", "sessions/api"], "after": None}
    info = tools.context_info("t")
    assert json.loads(info) == asdict(info.data)
    part = tools.context_slice("t", 8, 30_000).data
    assert part.next == Range(8 + len(part.text), 30_000)
    assert part.text + tools.context_slice("t", part.next.start, part.next.stop) == ("one two\n" * 5_000)[8:30_000]
    assert asdict(tools.session_list().data)["sessions"][1]["id"] == "bbb-2"
    assert tools.session_list("api", after="aaa-1").data.sessions[0].title == "A title of two lines"


def test_keys_of_a_memory_by_words(tmp_path: Path) -> None:
    memory = Memory.open(str(tmp_path))
    memory.put("plan", "Keys are rotated each month.")
    memory.put("other", "Nothing here.")
    reply = Tools(Served(memory=memory)).context_search("rotating keys", words=True)
    assert reply.startswith("[line 4, characters 51 to 79]\nKeys are rotated each month.\n")
