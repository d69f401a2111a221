"""The tools without an SDK: what they read, where they cut, what they refuse; the token and address of HTTP."""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from monocontext import Monocontext, append, publish
from monocontext.errors import AccessDenied, NotFound, ToolRefusal
from monocontext.mcp import Served, Tools
from monocontext.mcp.http import choose_token, listen, require_token
from monocontext.memory import Memory
from monocontext.shell.process import Child
from monocontext.stores.protocol import Store
from monocontext.text_tools import search_process
from monocontext.text_tools.arguments import check_arguments
from monocontext.text_tools.outputs import Range
from monocontext.text_tools.replies import MAX_REPLY_BYTES, fit_error, list_reply, search_replies, slice_reply
from rlm import ScriptedLM
from rlm.calls.budget import Budget
from rlm.cli.context_argument import UsageError
from rlm.cli.mcp import make_ask_tools, mcp
from tests.mcp.conftest import SESSION

TEXT = "".join(f"line {n} of the log, with some words\n" for n in range(6_000)) + "the NEEDLE, ein Wörtchen\n"
SIZE, NEEDLE, LINE_9, LINE_11 = len(TEXT), *map(TEXT.index, ("NEEDLE", "line 9 ", "line 11 "))
FILES = {"a.txt": "x\nFILE one\n", "b/c.txt": "y\nz FILE", "d.txt": "", "rotated.md": "Keys are rotated each month.\n"}
LONG = "x" * 100_000


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    """Over a text, a folder of files, a folder of texts, and a memory."""
    place, folder = tmp_path_factory.mktemp("contexts"), tmp_path_factory.mktemp("files")
    publish(TEXT, place / "logs")
    publish("tiny", place / "deep" / "tiny")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    memory = Memory.open("memory://mcp-tools")
    memory.put("note", "to be kept")
    served = Served({"all": str(place), "logs": str(place / "logs"), "files": str(folder)}, memory=memory)
    yield Tools(served)
    served.close()


def call(tools: Tools, tool: str, **given: Any) -> Any:
    """The reply as a client gets it."""
    method = getattr(tools, tool)
    reply = method(**check_arguments(tool, method, given))
    assert len(reply.encode()) <= MAX_REPLY_BYTES
    return reply


REPLIES: list[tuple[str, dict[str, Any], str]] = [
    ("context_list", {}, "all/deep/tiny\nall/logs\nfiles\nlogs\nmemory"),
    ("context_list", {"after": "all/logs"}, "files\nlogs\nmemory"),
    ("context_slice", {"context": "logs", "start": "70", "stop": 200.0}, TEXT[70:200]),
    ("context_slice", {"context": "logs", "start": -8}, TEXT[-8:]),
    ("context_slice", {"context": "logs", "start": 9, "stop": 11, "unit": "lines"}, TEXT[LINE_9:LINE_11]),
    ("context_slice", {"context": "logs", "start": 10**12, "stop": 10**13},
     f"[nothing there: characters {SIZE} to {SIZE} of {SIZE}]"),
    ("context_slice", {"context": "all/deep/tiny"}, "tiny"),
    ("context_slice", {"context": "files", "document": "b/c.txt", "start": 2}, "z FILE"),
    ("context_slice", {"context": "memory"}, "=== KEY: note ===\nto be kept\n"),
    ("context_slice", {"context": "memory/note", "stop": 5}, "to be"),
    ("context_search", {"context": "logs", "pattern": "needle", "ignore_case": True},
     f"{NEEDLE}:6001:the NEEDLE, ein Wörtchen\n[1 line matches; characters 0 to {SIZE} of {SIZE} are searched]"),
    ("context_search", {"context": "logs", "pattern": r"line \d7 ", "max_hits": 2},
     f"{TEXT.index('line 17 ')}:18:line 17 of the log, with some words\n"
     f"{TEXT.index('line 27 ')}:28:line 27 of the log, with some words\n"
     f"[cut: 2 lines match so far; next range: start={TEXT.index('line 27 ') + 1} stop={SIZE}]"),
    ("context_search", {"context": "logs", "pattern": ".*", "fixed": True},
     f"[no lines match; characters 0 to {SIZE} of {SIZE} are searched]"),
    ("context_search", {"context": "memory", "pattern": "kept"},
     "24:2:to be kept\n[1 line matches; characters 0 to 29 of 29 are searched]"),
    ("context_search", {"context": "memory", "pattern": "kept", "words": True},
     "[line 2, characters 18 to 28]\nto be kept\n[passages: 1; no other scores higher]"),
    *(("context_search", {"context": "files", "pattern": pattern},  # the second in a process of its own
       "a.txt:2:22:FILE one\nb/c.txt:2:131:z FILE\n[2 lines match; characters 0 to 135 of 135 are searched]")
      for pattern in ("FILE", "FIL[E]")),
    ("context_search", {"context": "files", "pattern": "==="},
     "[no lines match; characters 0 to 135 of 135 are searched]"),
    ("context_search", {"context": "files", "pattern": "^", "max_hits": 3},
     "a.txt:1:20:x\na.txt:2:22:FILE one\nrotated.md:1:76:Keys are rotated each month.\n"
     "[cut: 3 lines match so far; next range: start=77 stop=135]"),
    ("context_search", {"context": "files", "pattern": "rotate", "words": True},
     "[rotated.md:1, characters 76 to 105]\nKeys are rotated each month.\n[passages: 1; no other scores higher]"),
    ("context_documents", {"context": "files", "glob": "*.txt"},
     "a.txt  characters 20 to 31\nd.txt  characters 51 to 51\nb/c.txt  characters 127 to 135"),
    ("context_documents", {"context": "files", "after": "b/c.txt"}, "[no documents]"),
    ("context_documents", {"context": "files", "glob": "*.py"}, "[no document matches '*.py']"),
    ("memory", {"command": "G none"}, '{"success": false, "output": null, "error": "ERR:NOT_FOUND", "metadata": {}}'),
    ("memory", {"command": "G note"},
     '{"success": true, "output": {"value": "to be kept"}, "error": null, "metadata": {}}'),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "given", "reply"), REPLIES)
def test_a_call_has_its_reply(tools: Tools, tool: str, given: dict[str, Any], reply: str) -> None:
    assert call(tools, tool, **given) == reply


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    *(("context_slice", {"context": name}, f"no context {name.strip('/')!r} is served here: context_list lists them")
      for name in ("nope", "all/../../etc", "all/deep/tiny/..", "/tmp", "file:///tmp", "../logs")),
    ("context_slice", {}, "name a context: context_list lists them"),
    ("context_slice", {"contxt": "x"}, "context_slice has no argument 'contxt': did you mean context?"),
    ("context_slice", {"q": 1}, "context_slice has no argument 'q': it takes context, start, stop, unit, document"),
    ("context_slice", {"start": "5.5"}, 'start must be an integer, not "5.5"'),
    ("context_slice", {"start": float("inf")}, "start must be an integer, not Infinity"),
    ("context_slice", {"start": "٣"}, 'start must be an integer, not "\\u0663"'),
    ("context_slice", {"start": True}, "start must be an integer, not true"),
    ("context_slice", {"stop": [1]}, "stop must be an integer or null, not [1]"),
    ("context_slice", {"context": None}, "context must be a string, not null"),
    ("context_slice", {"context": "\ud800"}, "context contains half a surrogate pair, which is not a character"),
    ("context_slice", {"context": "logs", "unit": "pages"}, "unit must be \"characters\" or \"lines\", not 'pages'"),
    ("context_slice", {"context": "logs", "document": "a"}, "this text is not divided into documents"),
    ("context_documents", {"context": "files", "after": "none"}, "after='none' is not the name of a document"),
    ("context_list", {"after": "none"}, "after='none' is not in the list"),
    ("context_search", {}, "context_search needs the argument pattern"),
    ("context_search", {"pattern": "x", "words": 2}, "words must be true or false, not 2"),
    ("context_search", {"context": "logs", "pattern": "x", "max_hits": 0}, "max_hits must be 1 to 1000, not 0"),
    *(("context_search", {"context": "logs", "pattern": "h" * 1_000_000, **options},
       "the query must have at most 10,000 characters, not 1,000,000")
      for options in ({}, {"fixed": True}, {"words": True})),
    ("context_search", {"context": "logs", "pattern": "x", "words": True, "start": 5},
     "words=true searches all text in any case: leave out ignore_case, fixed, start and stop"),
    *(("context_search", {"context": "files", "pattern": words, "words": True}, "a query ")
      for words in ("", "?!")),
    *(("context_search", {"context": "logs", "pattern": pattern}, "not a regular expression: ")
      for pattern in ("(", "a{2,1}", "*", "(?P<1>x)", "(?<=a+)b", "a{99999999999}", "(" * 3000)),
    ("context_search", {"context": "logs", "pattern": r"one\ntwo"}, "the pattern needs a newline, but grep matches"),
    ("memory", {"command": "G k", "if_absent": "maybe"}, 'if_absent must be true or false or null, not "maybe"'),
    ("session_list", {}, "no sessions are served here: set MONOCONTEXT_URL, or start the server with --sessions URL"),
    ("keep", {"text": "x", "name": "y"}, "nothing can be kept here: start the server with --keep URL"),
    ("context_slice", {"context": LONG}, "no context 'xxx"),
    ("context_slice", {"context": "logs", "unit": LONG}, 'unit must be "characters" or "lines", not \'xxx'),
    ("context_slice", {LONG: 1}, "context_slice has no argument 'xxx"),
    ("context_info", {"context": "https://host/x?sig=S3"}, "no context 'https://host/x?sig=***"),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "given", "said"), REFUSED)
def test_a_call_is_refused_in_one_short_line(tools: Tools, tool: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises((ToolRefusal, NotFound)) as refused:
        call(tools, tool, **given)
    line = fit_error(str(refused.value))
    assert line.startswith(said)
    assert "\n" not in line
    assert len(line) < 900
    assert ("characters ...]" in line) == (LONG in str(given))


def test_arguments_are_taken_in_other_forms(tools: Tools) -> None:
    for given, start in (({"start": 5}, 5), ({"start": " -7"}, -7), ({"start": 5.0}, 5)):
        found = check_arguments("context_slice", tools.context_slice, given | {"context": "5", "stop": None})
        assert (found["start"], type(found["start"]), found["context"], found["stop"]) == (start, int, "5", None)
    ask = make_ask_tools(Served({}), {})["ask"]
    assert check_arguments("ask", ask, {"query": "x", "max_dollars": "1" * 120})["max_dollars"] == float("1" * 120)
    for yes in ("true", "True", "1", 1, True, "yes"):
        assert check_arguments("context_search", tools.context_search, {"pattern": "x", "fixed": yes})["fixed"] is True
    for given in ({"command": "P", "key": "k", "value": '{"a": [1]}', "ttl": "1h"}, {"command": "P", "ttl": 5}):
        assert check_arguments("memory", tools.memory, given) == given  # a value of the memory stays as it is


def test_twelve_tools_at_most_each_with_a_description(archive: Tools) -> None:
    served = Served({"a": "x"}, sessions=archive._served.sessions, memory=Memory.open("memory://twelve"))
    offered = {**Tools(served).by_name(uploads=True), **make_ask_tools(served, {})}
    assert len(offered) == 12
    assert {"chat_rlm_query", "upload_context"} <= set(offered)
    for name, work in offered.items():
        told = inspect.getdoc(work) or ""
        for parameter in inspect.signature(work).parameters:
            assert parameter in told, (name, parameter)


def test_replies_have_fields(tools: Tools) -> None:
    facts = call(tools, "context_info", context="logs")
    assert json.loads(facts) == asdict(facts.data)
    assert (facts.data.characters, facts.data.lines) == (SIZE, 6_001)
    assert (facts.data.head, facts.data.tail) == (TEXT[:500], TEXT[-500:])
    assert asdict(call(tools, "context_list").data) == {
        "rows": ["all/deep/tiny", "all/logs", "files", "logs", "memory"], "after": None,
    }  # fmt: skip
    found = call(tools, "context_search", context="files", pattern="FILE").data
    assert [asdict(hit) for hit in found.hits] == [
        {"document": "a.txt", "line": 2, "offset": 22, "text": "FILE one"},
        {"document": "b/c.txt", "line": 2, "offset": 131, "text": "z FILE"},
    ]
    assert found.next is None
    (hit,) = call(tools, "context_search", context="files", pattern="rotate", words=True).data.hits
    assert (hit.document, hit.line, hit.text) == ("rotated.md", 1, "Keys are rotated each month.\n")


def test_cut_replies_go_on_where_they_ended(tools: Tools) -> None:
    pieces, following = list[str](), Range(0, 50_000)
    while following:
        part = call(tools, "context_slice", context="logs", start=following.start, stop=following.stop)
        pieces.append(part.data.text)
        following = part.data.next
        if following:
            assert part.endswith(f"of {SIZE}; next range: start={following.start} stop={following.stop}]")
    assert ("".join(pieces), len(pieces)) == (TEXT[:50_000], 3)
    cut = call(tools, "context_search", context="files", pattern="FILE", max_hits=1).data.next
    again = call(tools, "context_search", context="files", pattern="FILE", start=cut.start, stop=cut.stop)
    assert [hit.document for hit in again.data.hits] == ["b/c.txt"]
    rows = [(f"name-{n:04d}", f"name-{n:04d}  {'x' * 40}") for n in range(900)]
    first = list_reply(rows, nothing="-")
    count = len(first.data.rows)
    assert first.split("\n")[-1] == f"[cut after {count}; next: after={rows[count - 1][0]}]"
    assert list_reply([], nothing="[none]") == "[none]"


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
        *_, reply = search_replies(context, "absent", start=7, stop=len(text), **options)
        at, size = 7 + (16 << 20), len(text)
        assert reply == f"[cut: no lines match so far; next range: start={at} stop={size}]"
        *_, end = search_replies(context, "absent", start=at, stop=size, **{**options, "clock": lambda: 0.0})
    assert end == f"[no lines match; characters {at} to {len(text)} of {len(text)} are searched]"


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
    monkeypatch.setattr(search_process, "END_SECONDS", 20)
    reply = Tools(Served({"t": str(tmp_path)})).context_search("(a+)+$")
    assert reply.startswith("0:1:aa\n")
    assert f"next range: start={16 << 20} stop={len(text)}]\n[the search was stopped after 20 s" in reply
    assert len(reply.encode()) <= MAX_REPLY_BYTES


def test_a_long_line_is_shown_around_its_match(tmp_path: Path) -> None:
    publish("x" * 5_000 + "NEEDLE" + "y" * 5_000 + "\n", tmp_path)
    reply = Tools(Served({"t": str(tmp_path)})).context_search("NEEDLE")
    row = reply.split("\n")[0]
    assert row.startswith("5000:1:...xxx")
    assert "NEEDLE" in row
    assert len(row) < 330


def test_a_context_stays_until_it_is_described_again(tmp_path: Path) -> None:
    publish("one\n", tmp_path)
    tools = Tools(Served({"t": str(tmp_path)}))
    assert tools.context_slice() == "one\n"
    append("two\n", str(tmp_path))
    assert tools.context_slice() == "one\n"
    assert json.loads(tools.context_info())["characters"] == 8
    assert tools.context_slice() == "one\ntwo\n"


def test_a_memory_is_read_as_it_is_now() -> None:
    memory = Memory.open("memory://read-as-it-is-now")
    tools = Tools(Served(memory=memory))
    memory.put("one", "1")
    assert tools.context_slice() == "=== KEY: one ===\n1\n"
    tools.memory("P two 2")
    assert tools.context_search("^2$").startswith("36:4:2\n")
    for value in ("changed", "again"):
        memory.put("one", value)
        assert tools.context_slice("memory/one") == value


def test_a_memory_of_much_is_cut_and_goes_on() -> None:
    memory = Memory.open("memory://cut")
    memory.put("abs", "another")
    for key in ("long", "/abs/"):
        memory.put(key, "ä" * 50_000)
        reply = json.loads(call(Tools(Served(memory=memory)), "memory", command=f"G {key}"))
        value, goes_on = reply["output"]["value"], reply["metadata"]["next"]
        assert (goes_on["tool"], goes_on["start"], goes_on["stop"]) == ("context_slice", len(value), 50_000)
        assert Tools(Served(memory=memory)).context_slice(goes_on["context"], start=49_990) == "ä" * 10
    for n in range(300):
        memory.put(f"{n:03d}-{'k' * 90}", "v")
    told = json.loads(call(Tools(Served(memory=memory)), "memory", command="L"))
    assert told["metadata"]["keys"] == 303
    assert 0 < len(told["output"]["keys"]) < 300


def test_a_name_is_needed_where_there_are_several(archive: Tools, tmp_path: Path) -> None:
    publish("one", tmp_path / "a")
    publish("two", tmp_path / "folder" / "b")
    archive.upload_context(thread_id="team")
    memory, sessions = Memory.open("memory://several"), archive._served.sessions
    a, folder = {"a": str(tmp_path / "a")}, {"folder": str(tmp_path / "folder")}
    assert Tools(Served(a)).context_slice() == "one"
    assert Tools(Served(folder)).context_slice() == "two"
    assert SESSION in Tools(Served(sessions=sessions)).context_slice()
    several = [Served(a | folder), Served(a, memory=memory), Served(a, sessions=sessions)]
    several.append(Served(sessions=sessions, memory=memory))
    publish("three", tmp_path / "folder" / "c")
    for served in [*several, Served(folder)]:
        with pytest.raises(ToolRefusal, match=r"^name a context: context_list lists them$"):
            Tools(served).context_slice()


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
    found = ScriptedLM(["```repl\nprint(context[:])\nFINAL('It is 42\\ud800.', sources=['answer is 42'])\n```"])
    shown = asyncio.run(make_ask_tools(served, {"lm": found, "runner": "local"})["ask"]("What is it?"))
    assert shown.startswith("It is 42\\ud800.\n\nSources:\nline:1  4-16@1#")
    assert (shown.data.answer, len(shown.data.sources), shown.data.unfinished) == ("It is 42\\ud800.", 1, None)


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
    outside = str(tmp_path / "outside.txt")
    for name in ("../outside.txt", outside, "link", ".env", "docs/../.env", "docs/none", "s3://b"):
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


def test_a_token_can_be_sent_and_an_address_is_free() -> None:
    for wrong in ("", "line\nbreak", "ü"):
        with pytest.raises(AccessDenied):
            choose_token(wrong)
    assert choose_token("given") == "given"
    assert len({choose_token(None), choose_token(None)}) == 2
    first, url = listen("127.0.0.1", 0)
    with first:
        port = first.getsockname()[1]
        assert url == f"http://127.0.0.1:{port}/mcp"
        with pytest.raises(OSError, match="in use"):
            listen("127.0.0.1", port)


@pytest.mark.parametrize(("header", "passes"), [
    (None, False), (b"Bearer right", True), (b"bearer right", True), (b"Basic right", False), (b"Bearer wrong", False),
])  # fmt: skip
def test_the_token_guards_every_path(header: bytes | None, passes: bool) -> None:
    sent: list[Any] = []

    async def app(*_: Any) -> None:
        sent.append("passed")

    async def send(message: Any) -> None:
        sent.append(message["type"])

    scope = {"type": "http", "path": "/anything", "headers": [(b"authorization", header)] if header else []}
    asyncio.run(require_token(app, "right")(scope, None, send))  # type: ignore[arg-type]
    assert sent == (["passed"] if passes else ["http.response.start", "http.response.body"])
