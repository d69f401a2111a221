"""The shell over a text against bash over the same files: output and exit code of each line of `commands.txt`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from monocontext import Monocontext, publish
from tests.shell.tree import make_tree

pytest.importorskip("bashkit")
from monocontext.text_tools.shell import Shell

COMMANDS = [line for line in (Path(__file__).parent / "commands.txt").read_text().splitlines() if line]
KNOWN = {
    "file README.md",  # bashkit knows fewer kinds of text
    "grep -c import src",  # a folder has no count of 0, since it is not searched
}
"""The lines that differ; `docs/shell.md` lists them."""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_command_lines_are_as_in_bash(tmp_path: Path) -> None:
    files, scratch = tmp_path / "tree", tmp_path / "scratch"
    tree = make_tree()
    for name, text in tree.items():
        (files / name).parent.mkdir(parents=True, exist_ok=True)
        (files / name).write_text(text)
    scratch.mkdir()
    publish(tree, tmp_path / "text")
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/root"}
    differ = []
    with Monocontext.open(tmp_path / "text") as text:
        shell = Shell({"/tree": lambda: text})
        for command in COMMANDS:
            real = subprocess.run(
                ["bash", "-c", command.replace("/tmp/", f"{scratch}/")],
                cwd=files, env=environment, capture_output=True, stdin=subprocess.DEVNULL, timeout=60,
            )  # fmt: skip
            expected = real.stdout.decode(errors="replace").replace(f"{scratch}/", "/tmp/"), real.returncode
            ran = shell.run(command, 1 << 20)
            if (ran.stdout, ran.exit_code) != expected:
                differ.append((command, ran, expected))
        shell.close()
    told = [f"$ {command}\n{ran}\nbash: {expected}" for command, ran, expected in differ]
    assert {command for command, *_ in differ} == KNOWN, "\n\n".join(told)
