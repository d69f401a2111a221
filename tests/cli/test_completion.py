"""Completion of words in a shell: click's protocol, and bash itself."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import rlm.cli.commands
from monocontext.cli.commands import app

PROGRAMS = {"monocontext": app, "rlm": rlm.cli.commands.app}


def complete(program: str, *words: str) -> list[str]:
    """What is offered for the last word."""
    asked = {
        f"_{program.upper()}_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join((program, *words)),
        "COMP_CWORD": str(len(words)),
    }
    told = CliRunner(env=asked).invoke(PROGRAMS[program], prog_name=program)
    assert told.exit_code == 0, told.output
    return [line.partition(",")[2] for line in told.stdout.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("monocontext comp", ["compact"]),
        ("monocontext memory pu", ["put", "purge"]),
        ("monocontext upload --codec r", ["raw"]),
        ("monocontext upload --errors s", ["strict"]),
        ("monocontext upload --documents c", ["csv"]),
        ("monocontext hooks install --agent cl", ["claude-code"]),
        ("monocontext cat --verb", ["--verbose"]),
        ("rlm comp", ["compile"]),
        ("rlm run --preset a", ["anthropic"]),
        ("rlm run --backend an", ["anthropic"]),
        ("rlm run --runner doc", ["docker"]),
        ("rlm run --shape d", ["dict"]),
        ("rlm run --no-such", []),
    ],
)
def test_commands_and_choices(words: str, offered: list[str]) -> None:
    assert complete(*words.split()) == offered


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_completes_by_clicks_script(tmp_path: Path) -> None:
    """Sourced by a real bash."""
    program = tmp_path / "monocontext"
    program.write_text(f"#!{sys.executable}\nfrom monocontext.cli import main\nmain()\n")
    program.chmod(0o755)
    script = """
        PATH=$1:$PATH
        source <(_MONOCONTEXT_COMPLETE=bash_source monocontext)
        complete -p monocontext
        COMP_WORDS=(monocontext comp) COMP_CWORD=1
        _monocontext_completion monocontext comp monocontext
        echo "${COMPREPLY[@]}"
    """
    done = subprocess.run(["bash", "-c", script, "bash", str(tmp_path)], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1:] == ["compact"], (done.stdout, done.stderr)
    assert "_monocontext_completion" in done.stdout
