"""Defaults from `config.toml`: what goes before what, what is refused, and what `config show` tells."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from ran import Cli

from monocontext.cli import settings
from monocontext.cli.settings import SETTINGS, config_path, setting_from_file
from monocontext.cli.topics import TOPICS
from monocontext.testing import S3StandIn

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder of their own, and none of the variables that go before the file."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("APPDATA", str(tmp_path / "xdg"))
    for setting in SETTINGS.values():
        for name in setting.variables:
            monkeypatch.delenv(name, raising=False)
    return tmp_path


def write(text: str) -> None:
    config_path().parent.mkdir(parents=True, exist_ok=True)
    config_path().write_text(text, "utf-8")


def test_lies_in_the_users_folder(cli: Cli, home: Path) -> None:
    assert cli("config", "path").fine().out == f"{config_path()}\n"
    assert config_path().is_relative_to(home)
    if os.name == "posix" and os.uname().sysname == "Linux":
        assert config_path() == home / "xdg" / "monocontext" / "config.toml"


@pytest.mark.skipif(os.name != "posix", reason="XDG")
@pytest.mark.parametrize("folder", ["", ".", "sub"])
def test_no_file_of_the_working_directory(folder: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (home / "clone" / "sub", home / "clone", home / "clone" / ".config"):
        (place / "monocontext").mkdir(parents=True)
        (place / "monocontext" / "config.toml").write_text('[s3]\nregion = "thief"\n', "utf-8")
    monkeypatch.chdir(home / "clone")
    monkeypatch.setenv("XDG_CONFIG_HOME", folder)
    assert config_path().is_relative_to(home)
    assert setting_from_file("s3.region") is None
    monkeypatch.setenv("HOME", ".")
    assert setting_from_file("s3.region") is None


def test_flag_then_variable_then_file(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "devaccess")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "devsecret123")
    with S3StandIn() as server:
        write(f'[s3]\nendpoint = "{server.endpoint}"\n')
        cli("put", __file__, "s3://bucket/file/a.py").fine()
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        write('[s3]\nendpoint = "http://127.0.0.1:9/none"\n')
        cli("put", __file__, "s3://bucket/variable/a.py").fine()
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9/none")
        cli("put", __file__, "s3://bucket/flag/a.py", "--endpoint", server.endpoint).fine()
        listed = cli("ls", "s3://bucket", "--endpoint", server.endpoint).fine().out
    assert [place in listed for place in ("file/a.py", "variable/a.py", "flag/a.py")] == [True] * 3


@pytest.mark.parametrize("variable", ["AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE"])
def test_a_profile_of_the_file_hides_no_identity_of_the_environment(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write('[s3]\nprofile = "mine"\n')
    assert setting_from_file("s3.profile") == "mine"
    monkeypatch.setenv(variable, "x")
    assert setting_from_file("s3.profile") is None


def test_archive_and_volumes(cli: Cli, home: Path) -> None:
    cli("sessions", "list").refused("which archive?")
    (home / "archive").mkdir()
    write(f"[sessions]\nurl = '{home / 'archive'}'\n[volumes]\nurl = '{home / 'vols'}'\n")
    cli("sessions", "list").fine()
    cli("volume", "create", "notes").fine()
    assert (home / "vols" / ".volumes" / "notes").exists()
    printed = cli("hooks", "install", "--print", "--settings", home / "s.json").fine().out
    assert str(home / "archive") in printed  # hooks read no file: what it says goes into their command


def test_show_says_where_each_value_comes_from(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    write('[s3]\nregion = "eu-west-1"\nprofile = "mine"\n')
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://user:hunter2@s3.example.com/?token=hunter3")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAHUNTER4")
    told = cli("config", "show", "--json").fine().out
    rows = {row["key"]: row for row in map(json.loads, told.splitlines())}
    assert list(rows) == list(SETTINGS)
    file = str(config_path())
    assert rows["s3.region"] == {"key": "s3.region", "value": "eu-west-1", "from": file}
    assert rows["s3.endpoint"]["from"] == "AWS_ENDPOINT_URL"
    assert rows["s3.endpoint"]["value"] == "https://s3.example.com/"
    assert rows["s3.profile"] == {"key": "s3.profile", "value": None, "from": "AWS_ACCESS_KEY_ID"}
    assert rows["volumes.url"] == {"key": "volumes.url", "value": None, "from": None}
    plain = cli("config", "show").fine().out
    assert not re.search("hunter", told + plain, re.IGNORECASE)
    assert f"eu-west-1  ({file})" in plain


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[openai]\napi_key = "sk-hunter2"\n', ["openai.api_key: this file must not contain API keys"]),
        ('api_key = "sk-hunter2"\n', ["api_key: this file must not contain API keys"]),
        ('[s3]\naws_secret_access_key = "hunter2"\n', ["this file must not contain API keys"]),
        ('[mcp]\ntoken = "hunter2"\n', ["this file must not contain API keys"]),
        (
            '[sessions]\nurl = "https://me:hunter2@x/v1"\n',
            ["sessions.url: a URL in this file must not contain a password"],
        ),
        (
            '[sessions]\nurl = "me:hunter2@x/v1"\n',
            ["sessions.url: a URL in this file must not contain a password"],
        ),
        (
            '[s3]\nendpoint = "https://x/?token=hunter2"\n',
            ["s3.endpoint: a URL in this file must not contain a password"],
        ),
        ('[sessions]\nurl = "http://[::1"\n', ["sessions.url is not a URL: Invalid IPv6 URL"]),
        ('[s3]\nendpoint = ["hunter2"]\n', ["s3.endpoint must be a text in quotes, not list"]),
        ('[s3]\nendpiont = "x"\n', ["unknown setting s3.endpiont: did you mean s3.endpoint?"]),
        ('endpoint = "x"\n', ["unknown setting endpoint: did you mean s3.endpoint?"]),
        ('[colours]\nshade = "x"\n', ["unknown setting colours.shade: settings are s3.endpoint, "]),
        ("[s3]\nregion = 1\n", ["s3.region must be a text in quotes, not int"]),
        ('[s3]\nregion = ""\n', ["s3.region is empty"]),
        ("[s3\n", ["is not TOML"]),
    ],
)
def test_a_wrong_file_is_one_line(cli: Cli, text: str, told: list[str]) -> None:
    write(text)
    for words in (["config", "show"], ["info", "s3://bucket/a"]):
        refused = cli(*words).refused(str(config_path()), *told)
        assert "hunter" not in refused.err


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:hunter2@x/v1?token=hunter3#hunter4", "https://x/v1"),
        ("me:hunter2@x/v1", "x/v1"),
        ("//me:hunter2@x", "//x"),
        ("https:/me:hunter2@x", "x"),
        ("s3://bucket/a@b", "s3://bucket/a@b"),
        ("me@work/archive", "me@work/archive"),
        ("C:\\me@work", "C:\\me@work"),
        ("http://[::1", "http://[::1"),
    ],
)
def test_secrets_of_urls_are_hidden(url: str, shown: str) -> None:
    assert settings.hide_secrets(url) == shown


def test_a_file_that_cannot_be_read(cli: Cli, home: Path) -> None:
    config_path().mkdir(parents=True)
    told = cli("config", "show").refused(f"monocontext: {config_path()} cannot be read: ")
    assert told.err.count("\n") == 1
    config_path().rmdir()
    config_path().parent.rmdir()
    config_path().parent.write_text("no folder")
    cli("config", "show").fine()


def test_a_cloned_repository_redirects_nothing(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file of the working directory is read, under any likely name."""
    repository = tmp_path / "clone"
    for name in (
        "config.toml",
        "monocontext.toml",
        ".monocontext.toml",
        "monocontext/config.toml",
        ".config/config.toml",
    ):
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text('[s3]\nendpoint = "http://127.0.0.1:9/thief"\n', "utf-8")
    monkeypatch.chdir(repository)
    rows = [json.loads(row) for row in cli("config", "show", "--json").fine().out.splitlines()]
    assert [row["value"] for row in rows] == [None] * len(SETTINGS)


def test_the_library_reads_no_file() -> None:
    """Only commands import what reads it: style of the house, rule 7."""
    importing = {
        path.relative_to(CHECKOUT).parts[1]
        for package in ("monocontext", "rlm")
        for path in (CHECKOUT / package).rglob("*.py")
        if "build" not in path.parts and settings.__name__ in path.read_text("utf-8")
    }
    assert importing == {"cli"}


def test_topics_name_each_setting_and_variable() -> None:
    assert [key for key in SETTINGS if f"`{key}`" not in TOPICS["config"]] == []
    used = {
        name
        for package in ("monocontext", "rlm")
        for path in (CHECKOUT / package).rglob("*.py")
        for name in re.findall(r"\b(?:MONOCONTEXT|RLM)_(?!REPL\b)[A-Z_]+\b", path.read_text("utf-8"))
    }
    assert len(used) > 5
    assert sorted(name for name in used if f"`{name}`" not in TOPICS["environment"]) == []
    listed = (CHECKOUT / "docs" / "stores.md").read_text("utf-8")
    schemes = re.findall(r"`([a-z0-9]+(?:\+PROTOCOL)?://)", TOPICS["stores"])
    assert len(schemes) == 7
    assert [scheme for scheme in schemes if scheme not in listed] == []


def test_help_of_topics_and_commands(cli: Cli) -> None:
    for name, text in TOPICS.items():
        assert cli("help", name).fine().out == f"{text}\n"
    assert cli("help", "memory", "put").fine().out == cli("memory", "put", "--help").fine().out
    assert cli("help").fine().out == cli("--help").fine().out
    cli("help", "credentails").misused("no command or topic 'credentails': did you mean credentials?")
    cli("help", "grep", "more").misused("no command or topic 'grep more'")
