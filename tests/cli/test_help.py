"""What `--help` and `-h` print, and that errors of a command speak of its flags."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from ran import Cli

import rlm.cli.commands
from monocontext.cli.commands import app
from monocontext.cli.printing import as_flags
from monocontext.testing import S3StandIn

GROUPS = [(app, []), (app, ["memory"]), (app, ["sessions"]), (app, ["hooks"]), (rlm.cli.commands.app, [])]


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize(("of", "words"), GROUPS)
def test_help_of_a_group_is_not_cut(of: object, words: list[str], flag: str) -> None:
    told = CliRunner(env={"COLUMNS": "80"}).invoke(of, [*words, flag])  # type: ignore[arg-type]
    assert told.exit_code == 0, told.output
    assert "..." not in told.stdout.partition("Commands:")[2]
    assert max(map(len, told.stdout.splitlines())) <= 80
    assert "-h, --help" in told.stdout


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("public buckets open with anonymous=True", "public buckets open with --anonymous"),
        ("open it with region='eu-west-9': HTTP", "open it with --region eu-west-9: HTTP"),
        ("give region=: HTTP 301", "give --region: HTTP 301"),
        ("open it with allow=['s3://b/x'] or", "open it with --allow s3://b/x or"),
        ("not text (errors='replace')", "not text (--errors replace)"),
        ("max_bytes= and max_seconds= allow more", "--max-bytes and --max-seconds allow more"),
        ("set A_KEY, or pass api_key= or base_url=", "set A_KEY, or give --base-url"),
        ("its text (replace=True)", "its text (--replace)"),
        ("follow_links=True takes them", "--follow-links takes them"),
        ("generation=x, keyregion=True", "generation=x, keyregion=True"),
    ],
)
def test_keywords_become_flags(said: str, told: str) -> None:
    assert as_flags(said) == told


def test_errors_of_commands_speak_of_flags(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    with S3StandIn() as server:
        refused = cli("info", "s3://bucket/a", "--endpoint", server.endpoint).refused("open with --anonymous")
    for ran in (refused, cli("upload", tmp_path / "latin.txt", tmp_path / "x").refused("(--errors replace)")):
        assert not re.search(r"\b[a-z_]+=", ran.err)
