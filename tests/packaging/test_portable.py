"""Modules import, and texts are stored, where POSIX's own modules and calls are missing, as on Windows."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

BLOCK = """
import os, sys
MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty")
CALLS = ("fork", "forkpty", "register_at_fork", "posix_spawn", "getuid", "geteuid", "setsid", "pread", "pidfd_open",
         "sched_getaffinity", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_DIRECTORY", "O_PATH", "POSIX_SPAWN_DUP2")
for name in MODULES:
    sys.modules[name] = None
for name in CALLS:
    delattr(os, name) if hasattr(os, name) else None
for name in ("supports_dir_fd", "supports_fd"):
    setattr(os, name, set())
"""


def run(program: str, *arguments: object) -> list[str]:
    """The lines that a program prints in a process without these modules and calls."""
    code = BLOCK + textwrap.dedent(program)
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_every_module_imports() -> None:
    """All but those whose extra is not installed."""
    lines = run(
        """
        import importlib, pkgutil
        import monocontext, rlm

        extras = {"aioboto3", "anthropic", "claude_agent_sdk", "deepagents", "distributed", "dspy", "fsspec",
                  "langgraph", "mcp", "modal", "obstore", "verifiers", "xllamacpp"}
        count = 0
        for package in (monocontext, rlm):
            for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
                if found.name.endswith("__main__"):
                    continue
                try:
                    importlib.import_module(found.name)
                except ImportError as error:
                    if (error.name or "").partition(".")[0] not in extras:
                        raise
                except monocontext.MonocontextError as error:
                    if "pip install" not in str(error):
                        raise
                count += 1
        print(count)
        """
    )
    assert int(lines[-1]) > 300


@pytest.mark.parametrize("kind", ["directory", "memory"])
def test_a_text_is_written_and_read(kind: str, tmp_path: Path) -> None:
    """Publish, append, replace and read; a directory's conditional writes hold a lock."""
    assert run(
        """
        from contextlib import closing

        from monocontext import Monocontext, append, publish
        from monocontext.errors import AlreadyExists
        from monocontext.stores import open_store

        url = sys.argv[1]
        with closing(open_store(url)) as store:
            publish("ä line\\n" * 100_000, store)
            append("one more\\n", store)
            with Monocontext.open(store) as text:
                print(len(text), text.count("line"), text[-9:].strip())
            etag = store.put("a", b"x")
            print(store.put("a", b"yy", if_match=etag) != etag)
            try:
                store.put("a", b"z", if_match=etag)
            except AlreadyExists:
                print("conflict")
            store.delete("a")
            print([info.key for info in store.list("a")])
        """,
        f"memory://{tmp_path.name}" if kind == "memory" else tmp_path / "text",
    ) == ["700009 100000 one more", "True", "conflict", "[]"]


def test_a_folder_is_published(tmp_path: Path) -> None:
    (tmp_path / "in/deep").mkdir(parents=True)
    (tmp_path / "in/deep/a.txt").write_text("inside")
    assert run(
        """
        from monocontext.writing.folder import Folder

        folder = Folder(sys.argv[1])
        print(*((name, folder.open(name).read()) for name in folder.files()))
        """,
        tmp_path / "in",
    ) == ["('deep/a.txt', b'inside')"]


def test_the_default_runner_says_what_is_missing() -> None:
    (line,) = run(
        """
        from rlm import RunnerUnavailable
        from rlm.runners import check_runner

        check_runner("docker"), check_runner("local")
        try:
            check_runner("subprocess")
        except RunnerUnavailable as error:
            print(error)
        """
    )
    assert "needs Linux" in line
    assert "--runner docker" in line
    assert "--runner local" in line
