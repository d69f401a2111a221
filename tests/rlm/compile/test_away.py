"""Compiling where nobody sits: hooks with a limit, and the recipes of `examples/compile_away`."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
import types
from pathlib import Path
from typing import Any

import pytest
from sessions.agents import session_id, small
from sessions.test_hooks import run_cli
from test_watching import compiled, upload

from monocontext.cli.settings import config_path
from monocontext.sessions import spool, worker
from monocontext.sessions.brief import get_brief
from monocontext.sessions.hook import parse_arguments, queue_upload
from monocontext.stores import open_store

RECIPES = Path(__file__).parents[3] / "examples" / "compile_away"


# -- a hook with a limit -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_hook_keeps_to_its_limit_of_a_day(endpoint: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four sessions end, each calls `rlm compile`; a call costs $0.02 by what the endpoint says."""
    monkeypatch.setattr(spool, "start_worker", lambda: None)
    for name, value in (("BASE_URL", endpoint.url), ("API_KEY", "k"), ("MODEL", "bills")):
        monkeypatch.setenv(f"OPENAI_{name}", value)
    endpoint.usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18, "cost": 0.02}
    endpoint.reply = lambda body: "FINAL(## Summary\n- It is so [1])" if len(body["messages"]) > 1 else "## Summary\n"
    settings = tmp_path / "settings.json"
    archive = str(tmp_path / "a")
    limits = ["--compile", "--max-dollars", "1", "--max-dollars-per-day", "0.05"]
    done = run_cli("hooks", "install", archive, "--settings", str(settings), "--project", "proj", *limits)
    assert done.returncode == 0, done.stderr
    entry = json.loads(settings.read_text())["hooks"]["SessionEnd"][0]["hooks"][0]
    _, options = parse_arguments(entry["args"])
    said: list[str] = []
    for n in range(4):
        path = small(n).write(tmp_path / "transcripts")
        queue_upload({"transcript_path": str(path), "session_id": path.stem, "cwd": "/x/proj"}, options)
        assert worker.work(0.0, said.append) == 0
    assert len(endpoint.requests) == 3, said  # $0.06: one call over, whoever asks
    assert any("--max-dollars-per-day is reached" in line for line in said), said
    brief, _ = get_brief(archive, "proj", {})
    assert brief is not None
    assert "The limit of $0.05 a day was reached on " in brief
    shown = run_cli("sessions", "status", archive)
    assert "proj: $0.0600 spent today, $0.0600 in 1 days, 3 calls" in shown.stdout
    rows = json.loads(run_cli("sessions", "status", archive, "--json").stdout)
    assert (rows["dollars_today"], rows["waiting"]) == (pytest.approx(0.06), 0)


@pytest.mark.skipif(os.name != "posix", reason="XDG")
def test_the_log_of_a_hook_tells_of_a_broken_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    config_path().parent.mkdir()
    config_path().write_text("[s3\n", "utf-8")
    said: list[str] = []
    worker._compile({"url": str(tmp_path / "a")}, "proj", said.append)
    monkeypatch.setattr("subprocess.run", lambda *a, **b: subprocess.CompletedProcess(a, -9, "", ""))
    worker._compile({"url": str(tmp_path / "a")}, "proj", said.append)
    assert len(said) == 2
    assert said[0].startswith(f"rlm: {config_path()} is not TOML")
    assert said[1] == "rlm compile ended with -9"


# -- recipes -----------------------------------------------------------------------------------------------------------


def run_recipe(command: str, archive: Path) -> None:
    """Run a recipe's command as it stands, in a shell; one that goes on is told to look once."""
    if "--once" not in command:
        command += " --once"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("OPENAI", "ANTHROPIC"))},
        "MONOCONTEXT_URL": str(archive),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    (Path(os.environ["HOME"]) / ".config").mkdir(exist_ok=True)
    (Path(os.environ["HOME"]) / ".config" / "rlm-watch.env").write_text(f"export MONOCONTEXT_URL={archive}\n")
    done = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert compiled(open_store(archive)) == {session_id(1)}


def command_of(recipe: str) -> str:
    text = (RECIPES / recipe).read_text("utf-8")
    match recipe:
        case "Containerfile":
            return shlex.join(json.loads(re.findall(r"^CMD (.*)$", text, re.M)[0]))
        case "rlm-watch.service":
            return re.findall(r"^ExecStart=(.*)$", text, re.M)[0]
        case "crontab":
            return next(line for line in text.splitlines() if not line.startswith("#")).split(" ", 5)[5]
        case "github-workflow.yml":
            return re.findall(r"^ *- run: (rlm .*)$", text, re.M)[0]
    raise AssertionError(recipe)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["Containerfile", "rlm-watch.service", "crontab", "github-workflow.yml"])
def test_the_command_of_a_recipe_compiles(recipe: str, tmp_path: Path) -> None:
    upload(open_store(tmp_path / "a"), tmp_path, 1)
    run_recipe(command_of(recipe), tmp_path / "a")


@pytest.mark.slow
def test_the_function_for_modal_runs_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Anything:
        """Stands for the SDK: takes every call; a decorator gives the function back."""

        def __getattr__(self, name: str) -> Any:
            return Anything()

        def __call__(self, *given: Any, **named: Any) -> Any:
            return Anything()

    class App(Anything):
        def __init__(self, *given: Any, **named: Any) -> None:
            pass

        def function(self, **options: Any) -> Any:
            return lambda function: function

    sdk = types.ModuleType("modal")
    for name in ("Image", "Period", "Secret"):
        setattr(sdk, name, Anything())
    sdk.App = App  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "modal", sdk)
    recipe = runpy.run_path(str(RECIPES / "modal_app.py"))
    upload(open_store(tmp_path / "a"), tmp_path, 1)
    run_recipe(shlex.join(recipe["COMMAND"]), tmp_path / "a")
    monkeypatch.setenv("MONOCONTEXT_URL", str(tmp_path / "a"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    recipe["look"]()


def test_recipes_are_files_of_their_kinds() -> None:
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load((RECIPES / "github-workflow.yml").read_text())
    assert workflow["jobs"]["compile"]["permissions"] == {}
    assert workflow[True]["schedule"][0]["cron"].split()[1:] == ["*"] * 4  # YAML reads `on` as true
    project = tomllib.loads((RECIPES.parents[1] / "pyproject.toml").read_text())["project"]
    name = "monocontext-rlm"
    for recipe in ("Containerfile", "github-workflow.yml", "modal_app.py"):
        assert name in (RECIPES / recipe).read_text(), project["name"]
