"""`rlm chat`, and `rlm run` with limits, presets and --resume."""

from __future__ import annotations

import _thread
import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rlm_replies import repl
from sessions.agents import small

from monocontext import publish
from monocontext.sessions import upload_session
from monocontext.sessions.readers import recognize_session
from monocontext.stores import open_store
from rlm import RunnerUnavailable
from rlm.cli.commands import app
from rlm.cli.options import describe_rights
from rlm.context.excerpt import make_printable
from rlm.prompts.system import conversation
from rlm.runners.runner import DEFAULT_RUNNER

RIGHTS = describe_rights(DEFAULT_RUNNER)
cli = CliRunner()


def test_chat_answers_in_a_row_over_one_namespace(endpoint: Any, notes: Path) -> None:
    asked: list[str] = []

    def reply(body: dict[str, Any]) -> str:
        asked.append(body["messages"][-1]["content"])
        return repl("n = globals().get('n', 0) + 1; FINAL(f'{n} {len(context)}')")

    endpoint.reply = reply
    result = cli.invoke(app, ["chat", str(notes)], input="first\n\nsecond\n/new\nthird\n/nonsense\n/help\n")
    assert result.exit_code == 0, result.output
    assert result.stdout == "1 8\n2 8\n1 8\n"
    said = result.stderr
    assert said.splitlines()[0] == RIGHTS
    assert len(re.findall(r"1 turns, 1 calls, 11 tokens in, 7 out, \$0\.000\d", said)) == 3
    assert "There is no command /nonsense" in said
    assert "/quit" in said
    assert len(asked) == 3


def test_a_failed_call_ends_no_chat_and_quit_does(endpoint: Any, notes: Path) -> None:
    replies = iter([(400, "not today"), repl("FINAL('fine')")])
    endpoint.reply = lambda body: next(replies)
    result = cli.invoke(app, ["chat", str(notes)], input="first\nsecond\n/quit\nthird\n")
    assert result.exit_code == 1, "one question has no answer"
    assert result.stdout == "fine\n"
    assert "rlm: model 'gpt-5" in result.stderr


def test_a_piped_run_says_what_it_cost_and_quiet_says_nothing(endpoint: Any, notes: Path) -> None:
    endpoint.reply = lambda body: repl("FINAL('it')")
    result = cli.invoke(app, ["run", str(notes), "q"])
    assert result.stdout == "it\n"
    rights, cost = result.stderr.splitlines()
    assert rights == RIGHTS
    assert re.fullmatch(r"1 turns, 1 calls, 11 tokens in, 7 out, \$0\.\d+, [\d.]+ s", cost)
    quiet = cli.invoke(app, ["run", str(notes), "q", "--quiet"])
    assert (quiet.stdout, quiet.stderr) == ("it\n", "")


@pytest.mark.parametrize("words", [["NOTES", "which of two?"], ["which of two?", "NOTES"], ["which of two?", "-"]])
def test_a_question_may_stand_first(endpoint: Any, notes: Path, words: list[str]) -> None:
    endpoint.reply = lambda body: repl("FINAL(len(context))")
    args = [str(notes) if word == "NOTES" else word for word in words]
    result = cli.invoke(app, ["run", *args, "--runner", "local"], input="one\ntwo\n")
    assert result.stdout == "8\n", result.output
    assert "which of two?" in str(endpoint.requests[0]["messages"])


def test_a_question_may_be_longer_than_the_name_of_a_file(endpoint: Any, notes: Path) -> None:
    endpoint.reply = lambda body: repl("FINAL(len(context))")
    for words in ([str(notes), "why is this " * 25], ["why is this " * 25, str(notes)]):
        result = cli.invoke(app, ["run", *words, "--runner", "local"])
        assert result.stdout == "8\n", result.output
    assert ": no such file" in cli.invoke(app, ["run", "", "q"]).stderr


@pytest.mark.parametrize(
    ("given", "models", "dollars"),
    [
        ([], ["gpt-5.6", "gpt-5.4-mini"], 1.0),
        (["--max-dollars", "3"], ["gpt-5.6", "gpt-5.4-mini"], 3.0),
        (["--model", "gpt-5"], ["gpt-5", "gpt-5"], 1.0),
        (["--model", "mine"], ["mine", "mine"], None),
        (["--preset", "openai", "--sub-model", "gpt-5-nano"], ["gpt-5.6", "gpt-5-nano"], 1.0),
    ],
)
def test_sub_calls_are_cheaper_by_default_and_a_run_ends_at_a_dollar(
    endpoint: Any, notes: Path, tmp_path: Path, given: list[str], models: list[str], dollars: float | None
) -> None:
    """Where nobody knows a price, there is nothing to count."""
    endpoint.reply = lambda body: repl("FINAL(llm_query('x'))") if len(body["messages"]) > 1 else "yes"
    record = tmp_path / "run.jsonl"
    result = cli.invoke(app, ["run", str(notes), "q", "--runner", "local", "--trajectory", str(record), *given])
    assert result.stdout == "yes\n", result.output
    assert [body["model"] for body in endpoint.requests] == models
    assert json.loads(record.read_text().splitlines()[0])["budget"]["dollars"] == dollars


def test_an_interrupted_run_says_how_to_go_on_and_goes_on(endpoint: Any, notes: Path, tmp_path: Path) -> None:
    record = tmp_path / "run.jsonl"
    replies = iter([repl("n = 41"), KeyboardInterrupt, repl("FINAL(n + 1)")])

    def reply(body: dict[str, Any]) -> str:
        if (now := next(replies)) is KeyboardInterrupt:
            _thread.interrupt_main()
            now = ""
        return str(now)

    endpoint.reply = reply
    result = cli.invoke(app, ["run", str(notes), "q", "--trajectory", str(record), "--region", "r 1"])
    assert result.exit_code == 130, result.output
    told = f"rlm: interrupted (resume it with: rlm run --resume {record} --region 'r 1')"
    assert result.stderr.splitlines()[-1] == told
    assert list(tmp_path.glob("*.partial")) == []
    result = cli.invoke(app, ["run", "--resume", str(record)])
    assert (result.exit_code, result.stdout) == (0, "42\n"), result.output


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["run"], "needs a CONTEXT and a QUESTION"),
        (["run", "NOTES"], "needs a CONTEXT and a QUESTION"),
        (["run", "NOTES", "q", "--runner", "nonsense"], "no runner 'nonsense'"),
        (["run", "NOTES", "q", "--preset", "nonsense"], "no preset 'nonsense'"),
        (["run", "NOTES", "q", "--backend", "nonsense"], "no backend 'nonsense'"),
        (["run", "--resume", "nowhere.jsonl"], "there is no trajectory at nowhere.jsonl"),
        (["run", "--resume", "THEIRS"], "as if another program had written it"),
        (["run", "memory://x", "q"], "use a directory or S3"),
        (["run", "file:///nowhere/to/be/found", "q"], "no context at file:///nowhere/to/be/found"),
        (["run", "ftp://x/y", "q"], "unknown scheme in the URL"),
        (["run", "BINARY", "q"], "is not UTF-8: byte 0xff at offset 3"),
        (["chat", "no-such-place"], "no-such-place"),
        (["chat", "-"], "chat reads its questions from stdin"),
        (["compile", ".", "--region", "eu"], "--region is not an option for ."),
    ],
)
def test_what_a_user_can_mend_is_one_line(args: list[str], told: str, notes: Path) -> None:
    places = {"NOTES": str(notes)} | {name: str(notes.with_name(name)) for name in ("BINARY", "THEIRS")}
    Path(places["BINARY"]).write_bytes(b"abc\xff")
    theirs = '{"type": "metadata", "root_model": "m", "query": "q", "context": {}}\n'  # another program's
    Path(places["THEIRS"]).write_text(theirs)
    result = cli.invoke(app, [places.get(arg, arg) for arg in args])
    assert result.exit_code == 2, result.output
    lines = [line for line in result.output.splitlines() if line != RIGHTS]
    assert len(lines) == 1, result.output
    assert told in lines[0]
    assert lines[0].startswith("rlm: ")


def test_an_endpoint_that_is_down_is_one_line(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm.calls.gateway.time.sleep", lambda seconds: None)
    result = cli.invoke(app, ["run", str(notes), "q", "--base-url", "http://127.0.0.1:9/v1"])
    assert result.exit_code == 2
    _, *retries, last = result.output.splitlines()
    assert last.startswith("rlm: cannot reach http://127.0.0.1:9/v1")
    assert len(retries) == 5
    assert re.fullmatch(
        r"rlm: \S+: LLMError; asked again in [\d.]+ s \(try 2 of 6\): cannot reach http://127.0.0.1:9/v1.*", retries[0]
    )
    hushed = cli.invoke(app, ["run", str(notes), "q", "--base-url", "http://127.0.0.1:9/v1", "--quiet"])
    assert "asked again" not in hushed.stderr


@pytest.fixture
def model(endpoint: Any) -> Any:
    first = "```repl\nprint(repr(context))\n```"
    endpoint.reply = lambda body: "FINAL(it is two)" if len(conversation(body["messages"])) > 1 else first
    return endpoint


def test_a_text_file_and_its_first_line_and_its_answer(model: Any, notes: Path) -> None:
    notes.write_bytes(b"\xef\xbb\xbfone\r\ntwo\n")
    result = cli.invoke(app, ["run", str(notes), "which?", "--verbose"])
    assert result.exit_code == 0, result.output
    assert "confined" in describe_rights("confined")
    assert "with your rights" in describe_rights("local")
    assert result.stdout == "it is two\n"
    assert "turn 1" in result.stderr
    assert r"'one\r\ntwo\n'" in result.stderr
    assert "2 turns, 2 calls, 22 tokens in" in result.stderr


def test_a_context_in_storage_and_what_it_cost(model: Any, tmp_path: Path) -> None:
    publish("needle in a text\n" * 1000, str(tmp_path / "context"))
    first = "```repl\nprint(type(context).__name__, context[:6], len(context))\n```"
    model.reply = lambda body: "FINAL(found)" if len(conversation(body["messages"])) > 1 else first
    for place in (tmp_path / "context", (tmp_path / "context").as_uri()):
        result = cli.invoke(app, ["run", str(place), "q", "--json", "--verbose"])
        assert result.exit_code == 0, result.output
        assert "str needle 17000" in result.stderr  # the namespace kit answers for the text
        assert set(json.loads(result.stdout)["io"]) == {"gets", "bytes", "hits", "ms"}


@pytest.mark.parametrize("runner", ["nonsense", DEFAULT_RUNNER])
def test_a_demo_whose_runner_is_not_here_says_so_before_it_stores_anything(
    runner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm.runners.process._last_working", {})
    monkeypatch.setattr("rlm.runners.process._start_worker", _refuse)
    monkeypatch.setattr("rlm.cli.demo.SeaweedServer", lambda: pytest.fail("a server was started"))
    result = cli.invoke(app, ["demo", "--runner", runner])
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("rlm: no runner 'nonsense'" if runner == "nonsense" else "rlm: nothing can confine")
    assert line.endswith("(with make: `make demo RUNNER=local`)")


def _refuse(way: str, *_: object) -> None:
    raise RunnerUnavailable(f"{way} is not permitted")


def test_an_answer_that_no_encoding_holds_is_printed_all_the_same(endpoint: Any, notes: Path) -> None:
    endpoint.reply = lambda body: repl("print('\\ud800')\nFINAL('an \\ud800 answer')")
    result = cli.invoke(app, ["run", str(notes), "q", "--verbose"])
    assert result.exit_code == 0, result.output
    assert result.stdout == "an \\ud800 answer\n"


def test_what_steers_a_terminal_is_spelled_out_there() -> None:
    hostile = "a\x1b]52;c;aGk=\x07b\x1b[2Jc\rd\x9be\r\n\tplain é 🎉\n\ud800"
    shown = "a\\x1b]52;c;aGk=\\x07b\\x1b[2Jc\\rd\\x9be\r\n\tplain é 🎉\n\\ud800"
    assert make_printable(hostile, terminal=True) == shown
    assert make_printable(hostile, terminal=False) == hostile.replace("\ud800", "\\ud800")


def test_compile_says_where_the_brief_is(tmp_path: Path) -> None:
    place = tmp_path / "a"
    for n, said in ((1, "sessions: 1, new: 1"), (2, "sessions: 2, new: 1"), (2, "sessions: 2, new: 0")):
        with closing(open_store(place)) as store:
            upload_session(store, recognize_session(small(n).write(tmp_path / "sessions")))
        told = cli.invoke(app, ["compile", str(place), "--extractive"])
        brief = place / "compiled" / "proj" / "brief.md"
        assert told.stdout == (
            f"proj: {said}; 0 calls, $0.0000\nthe brief is {brief}; the next session with hooks begins with it\n"
        )
        assert brief.is_file()
    asked = cli.invoke(app, ["compile", str(place), "--extractive", "--json"])
    assert json.loads(asked.stdout)["brief"] == str(brief)


def test_a_run_over_documents(endpoint: Any, tmp_path: Path, notes: Path) -> None:
    publish({"a": "x", "b": "yy"}, tmp_path / "ctx")
    endpoint.reply = lambda body: repl("FINAL([len(context), type(context).__name__, max(context.values(), key=len)])")
    result = cli.invoke(app, ["run", str(tmp_path / "ctx"), "q", "--shape", "dict", "--runner", "local"])
    assert result.stdout == "[2, 'dict', 'yy']\n"
    for place, shape, said in (
        (notes, "list", "needs a stored context"),
        (tmp_path / "ctx", "set", "--shape must be text, list or dict, not 'set'"),
    ):
        result = cli.invoke(app, ["run", str(place), "q", "--shape", shape])
        assert (result.exit_code, result.stdout) == (2, "")
        assert said in result.stderr
        assert "Traceback" not in result.stderr


def test_run_over_the_sessions_of_this_machine(endpoint: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert "no agent has sessions on this machine" in cli.invoke(app, ["run", "--sessions", "q"]).stderr
    small(1).write(tmp_path / ".claude" / "projects" / "-home-dev-proj")
    code = "FINAL(str([list_sessions(), len(context.documents), 'method 1' in context]))"
    endpoint.reply = lambda body: repl(code)
    record = tmp_path / "t.jsonl"
    options = ["--runner", "local", "--trajectory", str(record)]
    done = cli.invoke(app, ["run", "--sessions", "What did we decide?", *options])
    assert done.exit_code == 0, done.output
    assert done.stdout == f"[['{small(1).session_id}'], 1, True]\n"
    assert "1 session on this machine (1 of claude-code), 1 new; secrets are taken out; kept in" in done.stderr
    folder = str(tmp_path / ".claude" / "projects")
    assert cli.invoke(app, ["run", folder, "q", "--runner", "local"]).stdout == done.stdout
    assert "leave it out" in cli.invoke(app, ["run", "--sessions", "q", "--shape", "list"]).stderr
    refused = cli.invoke(app, ["run", "--sessions", folder, "q"])
    assert (refused.exit_code, "leave CONTEXT out" in refused.stderr) == (2, True)


def test_several_texts_by_name(endpoint: Any, tmp_path: Path, notes: Path) -> None:
    publish("def f(): pass\n" * 9_000, str(tmp_path / "code"))
    record = tmp_path / "run.jsonl"
    cell = "FINAL((type(context) is dict, context['code'].find('f():'), context['logs'], len(context['code'])))"
    endpoint.reply = lambda body: repl(cell)
    texts = [f"code={tmp_path / 'code'}", f"logs={notes}"]
    result = cli.invoke(app, ["run", *texts, "Which?", "--trajectory", str(record)])
    assert result.stdout == "(True, 4, 'one\\ntwo\\n', 126000)\n", result.output
    assert json.loads(record.read_text().splitlines()[0])["source"] == " ".join(texts)
    assert cli.invoke(app, ["run", "Which?", *texts]).stdout == result.stdout
    for words in (["run", texts[0], "one", "two"], ["run", str(notes), texts[1], "Which?"], ["run", "a", "b", "c"]):
        refused = cli.invoke(app, words)
        assert "unexpected " in refused.output
    for one, other, told in ((texts[0], texts[0], "the same name"), ("a=-", "b=-", "only one text")):
        refused = cli.invoke(app, ["run", one, other, "Which?"], input="the text")
        assert (refused.exit_code, told in refused.stderr) == (2, True), refused.output
