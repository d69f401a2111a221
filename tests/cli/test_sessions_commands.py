"""`monocontext sessions` and `monocontext hooks`, as they are typed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import zstandard
from ran import Cli

KEY = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with two sessions, and a working directory; gives the archive."""
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "MONOCONTEXT_URL", "MONOCONTEXT_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MONOCONTEXT_USER", "dev@here")
    folder = home / ".claude" / "projects" / "-x-proj"
    folder.mkdir(parents=True)
    for n, name in enumerate(("aaaa-1", "bbbb-2")):
        record = {
            "type": "user", "uuid": name, "sessionId": name, "cwd": "/x/proj",
            "timestamp": f"2026-02-1{n}T10:00:00.000Z", "message": {"role": "user", "content": f"Hello {name} {KEY}"},
        }  # fmt: skip
        path = folder / f"{name}.jsonl"
        path.write_text(json.dumps(record) + "\n")
        os.utime(path, (1_000_000 + n, 1_000_000 + n))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "archive"


def test_upload_latest_by_id_and_all(cli: Cli, machine: Path) -> None:
    assert cli("sessions", "upload", machine).fine().out.startswith("bbbb-2: uploaded 1 records, 1 turns, ")
    assert "bbbb-2: uploaded 0 records" in cli("sessions", "upload", "--to", machine).fine().out
    assert "aaaa-1: uploaded 1 records" in cli("sessions", "upload", "aaaa", "--to", machine).fine().out
    assert cli("sessions", "upload", "--all", machine).fine().out.count(": uploaded 0 records") == 2
    listed = cli("sessions", "list", machine).fine().out.splitlines()
    assert [line.split()[0] for line in listed] == ["aaaa-1", "bbbb-2"]
    assert "dev@here" in listed[0]


def test_a_damaged_session_stops_no_other(cli: Cli, machine: Path) -> None:
    name = "rollout-2026-02-14T10-00-00-0190a1b2-0000-7000-8000-000000000001.jsonl.zst"
    damaged = machine.parent / "home" / ".codex" / "sessions" / "2026" / "02" / "14" / name
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(zstandard.compress(b"{}\n" * 9)[:-3])
    ran = cli("sessions", "upload", "--all", machine)
    assert (ran.code, ran.out.count(": uploaded 1 records")) == (1, 2)
    assert ran.err == f"monocontext: {damaged}: damaged zstd data: its end is missing\n"


def test_dry_run_and_report(cli: Cli, machine: Path) -> None:
    out = cli("sessions", "upload", "--dry-run", machine).fine().out
    assert "would upload 1 records" in out
    assert "redacted: 1 github" in out
    assert "line 1: github (40 characters) in message.content" in out
    assert KEY not in out
    assert not machine.exists()
    told = cli("sessions", "upload", "--json", machine).fine().json
    assert told["redacted"] == {"github": 1}
    assert KEY.encode() not in b"".join(path.read_bytes() for path in machine.rglob("*") if path.is_file())


def test_show_and_search(cli: Cli, machine: Path) -> None:
    cli("sessions", "upload", "--all", machine)
    assert cli("sessions", "show", "aaaa", machine).fine().out == (
        "[Turn 1 - USER] 2026-02-10T10:00:00.000Z text -\nHello aaaa-1 [REDACTED:github]\n\n"
    )
    assert cli("sessions", "show", "aaaa", machine, "--turn", "1", "--json").fine().json["turn_number"] == 1
    said = cli("sessions", "search", "HELLO BBBB", machine).fine().out
    assert said == "bbbb-2:1 user: Hello bbbb-2 [REDACTED:github]\n"
    assert cli("sessions", "search", "--ranked", "bbbb greeting", machine).fine().out.startswith("bbbb-2 (")
    ranked = cli("sessions", "search", "--ranked", "hello", machine, "--json").out.splitlines()
    assert {json.loads(row)["session_id"] for row in ranked} == {"aaaa-1", "bbbb-2"}
    assert cli("sessions", "search", "--ranked", "?!", machine).code == 2
    assert cli("sessions", "search", "--ranked", "unsaid", machine).code == 1
    nothing = cli("sessions", "search", "unsaid", machine)
    assert (nothing.code, nothing.out) == (1, "")
    late = cli("sessions", "list", machine, "--since", "2026-02-11", "--json").fine().out.splitlines()
    assert [json.loads(row)["session_id"] for row in late] == ["bbbb-2"]
    assert "no sessions of that project" in cli("sessions", "list", machine, "--project", "none").err
    cli("sessions", "upload", "--all", machine, "--pattern", "(").refused("not a regular expression: '('")


def test_several_sessions_go_to_the_archive_of_the_environment(
    cli: Cli, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MONOCONTEXT_URL", str(machine))
    assert cli("sessions", "upload", "aaaa", "bbbb").fine().out.count(": uploaded 1 records") == 2
    assert os.listdir() == []
    for words in (["list"], ["show", "aaaa"], ["search", "hello"], ["pull", "--latest"], ["status"]):
        cli("sessions", *words, machine, "--to", "./other").refused("the archive is named twice")
    cli("sessions", "pull", "--latest", "aaaa", "--to", machine).refused("name one session by its id, or take the last")


def test_mistakes_are_one_line(cli: Cli, machine: Path, tmp_path: Path) -> None:
    cli("sessions", "upload").refused("no archive")
    cli("sessions", "upload", "zzzz", machine).refused("no session 'zzzz'")
    cli("sessions", "show", "zzzz", machine).refused("no session 'zzzz'")
    cli("sessions", "upload", "nope.jsonl", machine).refused("no such file: nope.jsonl")
    cli("sessions", "upload", tmp_path / "typo.jsonl").refused("no archive")  # not an archive of this name
    bad = tmp_path / "bad.jsonl"
    bad.write_text("no JSON\n")
    cli("sessions", "upload", bad, machine).refused("not JSON lines: line 1")
    cli("sessions", "list", "memory://x").refused("memory")
    cli("hooks", "install", machine, "--agent", "emacs").misused("'emacs' is not one of 'claude-code', 'codex'")
    cli("hooks", "install", machine, "--max-dollars", "2").misused("--max-dollars limits --compile")


def test_hooks(cli: Cli, machine: Path, tmp_path: Path) -> None:
    for agent, file in (("claude-code", ".claude/settings.local.json"), ("codex", ".codex/hooks.json")):
        path = tmp_path / "work" / file
        path.parent.mkdir()
        path.write_text('{"mine": 1}')
        cli("hooks", "install", machine, "--agent", agent).fine()
        written = json.loads(path.read_text())
        assert written["mine"] == 1
        assert agent == "codex" or set(written["hooks"]) == {"SessionStart", "PreCompact", "SessionEnd", "Stop"}
        assert str(machine) in path.read_text()
        skill = path.parent / "skills" / "upload-context" / "SKILL.md"
        assert skill.read_text().startswith("---\nname: upload-context")
        cli("hooks", "uninstall", "--agent", agent).fine()
        assert json.loads(path.read_text()) == {"mine": 1}
        assert not skill.parent.exists()
        assert len(list(path.parent.glob("*.bak"))) == 2


def test_pull(cli: Cli, machine: Path, tmp_path: Path) -> None:
    cli("sessions", "upload", "--all", machine)
    cli("sessions", "pull", "bbbb", machine).refused("belongs to project proj, but ")
    said = cli("sessions", "pull", "bbbb", machine, "--project", "proj").fine().out
    path = tmp_path / "home" / ".claude" / "projects" / str(tmp_path / "work").replace("/", "-").replace("_", "-")
    assert f"bbbb-2: 1 records in {path}/bbbb-2.jsonl" in said
    assert "redacted secrets: 1; the agent sees" in said
    assert said.endswith("continue it with: claude --resume bbbb-2\n")
    assert "is here already" in cli("sessions", "pull", "--latest", machine, "-p", "proj").fine().out
    told = cli("sessions", "pull", "aaaa", machine, "-p", "proj", "--json").fine().json
    assert (told["session_id"], told["redacted"], told["new"]) == ("aaaa-1", 1, True)
    cli("sessions", "pull", machine).refused("name one session by its id, or take the last session")


HOSTILE = "\x1b]52;c;aGk=\x07\x9b2J\u202eeman\x00 \ud800 needle"


def test_transcripts_steer_no_terminal(cli: Cli, machine: Path, tmp_path: Path) -> None:
    path = next((tmp_path / "home").rglob("aaaa-1.jsonl"))
    record = json.loads(path.read_text())
    record["message"]["content"] = HOSTILE
    path.write_text(json.dumps(record) + "\n")
    cli("sessions", "upload", path, machine, "--project", "p\x1b[2Jq").fine()
    for words in (["list"], ["search", "needle"], ["show", "aaaa"]):
        ran = cli("sessions", *words, machine).fine()
        assert "needle" in ran.out
        assert "\\x1b]52;c;aGk=\\x07\\x9b2J\\u202eeman\\x00" in ran.out
        assert not set(ran.out) & set(map(chr, [*range(10), *range(11, 32), *range(0x7F, 0xA0), 0x202E]))
    cli("sessions", "show", "\x1b[2J", machine).refused("\\x1b[2J")


def test_a_line_end_in_a_name_makes_no_second_row(cli: Cli, machine: Path, tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    (volume / "a\nforged\x1b[2J").write_text("x")
    out = cli("ls", volume).fine().out
    assert out.count("\n") == 1
    assert out.endswith("  a\\nforged\\x1b[2J\n")


def test_hooks_say_what_happens_and_what_is_missing(cli: Cli, machine: Path, tmp_path: Path) -> None:
    cli("sessions", "upload", "--all", machine).fine()
    said = cli("sessions", "status", machine).fine().out
    assert "no hooks for this directory: `monocontext hooks install`" in said
    assert "Claude Code deletes its own copy of a session after 30 days (cleanupPeriodDays, its default)" in said
    assert "proj: 2 sessions" in said
    (tmp_path / "home" / ".claude" / "settings.json").write_text('{"cleanupPeriodDays": 7}')
    said = cli("hooks", "install", machine).fine().out
    assert "after 7 days (cleanupPeriodDays, " in said
    assert "without its secrets; so are other sessions of this project that the archive lacks" in said
    assert f'to try it: claude -p "Say hello", and look with: monocontext sessions list {machine}' in said
    assert said.rstrip().endswith("to undo it: monocontext hooks uninstall")
    said = cli("hooks", "install", "--user", "--agent", "codex", machine).fine().out
    assert "so are your other sessions that the archive lacks" in said
    assert said.rstrip().endswith("to undo it: monocontext hooks uninstall --agent codex --user")
    cli("hooks", "install", "--agent", "codex", machine).fine()
    told = cli("sessions", "status", machine).fine().out
    assert ("hooks of claude-code in " in told, told.count("Codex runs only hooks that you trust")) == (True, 1)
    said = cli("hooks", "install", "--endpoint", "http://127.0.0.1:9", "s3://bucket/agents").fine().out
    assert "look with: monocontext sessions list s3://bucket/agents --endpoint http://127.0.0.1:9\n" in said
    for flags in ([], ["--agent", "codex"], ["--user", "--agent", "codex"]):
        cli("hooks", "uninstall", *flags).fine()
    assert "no hooks for this directory: `monocontext hooks install`" in cli("sessions", "status", machine).fine().out


def test_status_asks_the_archive_of_the_hooks(cli: Cli, machine: Path) -> None:
    """Only our hook says where it is."""
    path = Path.cwd() / ".claude" / "settings.local.json"
    path.parent.mkdir(exist_ok=True)
    theirs = {"type": "command", "command": f"notify --url {machine.parent / 'elsewhere'}"}
    path.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [theirs]}]}}))
    alone = cli("sessions", "status").fine().out
    assert "no hooks for this directory" in alone
    assert "no archive is named" in alone
    told = cli("sessions", "status", "--json").fine().json
    assert (told["project"], told["sessions"], told["hooks"]) == (None, 0, [])
    cli("sessions", "upload", machine).fine()
    cli("hooks", "install", machine).fine()
    assert cli("sessions", "status").fine().out.endswith("proj: 1 sessions\n")
