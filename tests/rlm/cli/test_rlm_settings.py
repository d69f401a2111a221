"""What the file of settings says to commands that ask models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from monocontext.cli.settings import config_path
from rlm.cli.commands import app
from rlm.cli.compile import _has_model
from rlm.cli.options import choose_models, complete_model_flags, limits, with_settings

cli = CliRunner()
NONE = dict.fromkeys(("model", "sub_model", "preset", "backend", "base_url", "temperature"))


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CONFIG_HOME", "HOME", "APPDATA"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-ant")


def write(text: str) -> None:
    config_path().parent.mkdir(parents=True, exist_ok=True)
    config_path().write_text(text, "utf-8")


def choice(**given: str) -> tuple[Any, ...]:
    """Model, sub-model, and the endpoints of both, of a command line with these flags."""
    who = complete_model_flags(**{**NONE, **given})  # type: ignore[arg-type]
    return tuple(who[name] for name in ("model", "sub_model", "base_url", "sub_base_url"))


FILE = """
[models]
model = "anthropic:claude-a"
sub_model = "claude-b"
[openai]
base_url = "http://openai.example/v1"
[anthropic]
base_url = "http://anthropic.example"
"""
OPENAI, ANTHROPIC = "http://openai.example/v1", "http://anthropic.example"


@pytest.mark.parametrize(
    ("flags", "chosen"),
    [
        ({}, ("anthropic:claude-a", "claude-b", ANTHROPIC, ANTHROPIC)),
        ({"model": "anthropic:claude-c"}, ("anthropic:claude-c", "claude-b", ANTHROPIC, ANTHROPIC)),
        ({"model": "claude-c", "backend": "anthropic"}, ("claude-c", "claude-b", ANTHROPIC, ANTHROPIC)),
        ({"backend": "anthropic"}, ("anthropic:claude-a", "claude-b", ANTHROPIC, ANTHROPIC)),
        ({"sub_model": "openai:small"}, ("anthropic:claude-a", "openai:small", ANTHROPIC, OPENAI)),
        ({"model": "gpt-x"}, ("gpt-x", None, OPENAI, OPENAI)),  # a bare name is OpenAI's
        ({"backend": "openai"}, (None, None, OPENAI, OPENAI)),
        ({"preset": "openai"}, (None, None, OPENAI, OPENAI)),
        ({"preset": "anthropic"}, (None, None, ANTHROPIC, ANTHROPIC)),
        ({"backend": "claude-agent"}, (None, None, None, None)),
        ({"base_url": "http://flag"}, (None, None, "http://flag", OPENAI)),
        ({"base_url": "http://flag", "model": "anthropic:c"}, ("anthropic:c", None, "http://flag", ANTHROPIC)),
    ],
)
def test_an_endpoint_goes_with_its_maker_alone(flags: dict[str, str], chosen: tuple[Any, ...]) -> None:
    write(FILE)
    assert choice(**flags) == chosen


def test_a_variable_goes_before_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    write(FILE)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://variable")
    assert choice() == ("anthropic:claude-a", "claude-b", None, None)  # the SDK reads the variable
    assert choice(model="gpt-x")[2] == OPENAI


@pytest.mark.parametrize(
    ("keys", "file", "chosen"),
    [
        (["ANTHROPIC_API_KEY"], FILE.partition("[openai]")[2], ("anthropic", None, None, ANTHROPIC)),
        (["ANTHROPIC_API_KEY"], '[models]\nsub_model = "small"', ("anthropic", None, None, None)),
        (["OPENAI_API_KEY", "OPENAI_MODEL"], FILE.partition("[openai]")[2], (None, "gpt-y", None, OPENAI)),
        (["OPENAI_API_KEY"], '[models]\nsub_model = "small"', (None, None, "small", None)),
        (["OPENAI_API_KEY"], FILE, (None, "anthropic:claude-a", "claude-b", ANTHROPIC)),
        ([], FILE.partition("[openai]")[2], None),
    ],
)
def test_compile_takes_the_maker_whose_key_is_there(
    keys: list[str], file: str, chosen: tuple[Any, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A base URL of the file names no model."""
    write(file if "[models]" in file else f"[openai]{file}")
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_MODEL"):
        monkeypatch.delenv(name, raising=False)
    for name in keys:
        monkeypatch.setenv(name, "gpt-y")
    who: dict[str, Any] = {**NONE}
    assert _has_model(who, extractive=False) == (chosen is not None)
    if chosen:
        who = with_settings(who)
        assert tuple(who[name] for name in ("preset", "model", "sub_model", "base_url")) == chosen


def test_without_a_file_nothing_changes() -> None:
    assert choice() == (None, None, None, None)
    assert choice(model="gpt-x", base_url="http://flag") == ("gpt-x", None, "http://flag", None)


def test_a_run_asks_whom_the_file_names(endpoint: Any, anthropic_endpoint: Any, tmp_path: Path) -> None:
    """Root and sub-call each at the endpoint that the file gives their maker."""
    write(f"""
        [models]
        model = "anthropic:claude-a"
        sub_model = "openai:small"
        [anthropic]
        base_url = "{anthropic_endpoint.url}"
        [openai]
        base_url = "{endpoint.url}"
    """)
    anthropic_endpoint.reply = lambda body: "```repl\nFINAL(llm_query('x'))\n```"
    endpoint.reply = lambda body: "yes"
    notes = tmp_path / "notes.txt"
    notes.write_text("one\n")
    result = cli.invoke(app, ["run", str(notes), "q", "--runner", "local"])
    assert (result.exit_code, result.stdout) == (0, "yes\n"), result.output
    assert [each[-1]["model"] for each in anthropic_endpoint.requests] == ["claude-a"]
    assert [each["model"] for each in endpoint.requests] == ["small"]
    with_preset = choose_models(complete_model_flags(**{**NONE, "preset": "openai"}))  # type: ignore[arg-type]
    assert with_preset["sub_model"] == "gpt-5.4-mini"


def test_limits() -> None:
    write("[limits]\nmax_calls = 7\nmax_dollars = 2\nmax_seconds = 90\n[models]\ncache_dir = 'answers'\n")
    found = limits()
    budget = found["budget"]
    assert (budget.calls, budget.tokens, budget.dollars, budget.seconds) == (7, None, 2.0, 90.0)
    assert found["cache_dir"] == "answers"
    assert limits(max_calls=9)["budget"].calls == 9


def test_a_cache_below_the_home(tmp_path: Path) -> None:
    write("[models]\ncache_dir = '~/answers'\n")
    assert limits()["cache_dir"] == str(Path.home() / "answers") != "~/answers"
    assert limits(cache_dir="here")["cache_dir"] == "here"


def test_a_wrong_file_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    write('[openai]\napi_key = "sk-hunter2"\n')
    monkeypatch.setattr("sys.argv", ["rlm", "run", str(tmp_path), "q"])
    from rlm.cli import main

    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr()
    assert (ended.value.code, told.out, told.err.count("\n")) == (2, "", 1)
    assert told.err.startswith(f"rlm: {config_path()}: openai.api_key: this file must not contain API keys")
    assert "hunter2" not in told.err
