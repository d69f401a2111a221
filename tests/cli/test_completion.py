"""Completion of words in a shell: click's protocol, and bash itself."""

from __future__ import annotations

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
        ("monocontext hooks install --agent cl", ["claude-code"]),
        ("monocontext cat --verb", ["--verbose"]),
        ("rlm comp", ["compile"]),
        ("rlm run --preset a", ["anthropic"]),
        ("rlm run --shape d", ["dict"]),
        ("rlm run --no-such", []),
    ],
)
def test_commands_and_choices(words: str, offered: list[str]) -> None:
    assert complete(*words.split()) == offered
