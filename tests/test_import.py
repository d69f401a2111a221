"""What importing costs: nothing heavy is loaded until it is needed, and names are what they seem."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from monocontext import publish
from monocontext.stores import open_store
from monocontext.testing import S3StandIn

HEAVY = ["boto3", "botocore", "langgraph", "numpy", "openai", "rlm"]


def loaded_anew(program: str, *modules: str) -> list[str]:
    """Which of these modules a program loads; those that the interpreter loads before it do not count."""
    code = f"import sys\nbefore = set(sys.modules)\n{textwrap.dedent(program)}\nloaded = set(sys.modules) - before\n"
    code += f"print('loaded', *(each for each in {modules} if each in loaded))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()[1:]


@pytest.mark.parametrize(
    "program",
    [
        "from monocontext import Monocontext, publish, append, MonocontextError, ContextTooLarge, Manifest",
        "import monocontext; dir(monocontext); monocontext.__version__",
        "from monocontext.stores import open_store; open_store('memory://x'); open_store('/tmp')",
        "import monocontext.writing.index_in_place, monocontext.text.deeprecurse, monocontext.memory",
        """
            from monocontext import Monocontext, append, publish
            publish("some text\\n" * 1000, "memory://x", frame_bytes=500)
            append("and more\\n", "memory://x")
            context = Monocontext.open("memory://x")
            assert "and more" in context and len(context.lines) == 1001 and len(str(context)) == 10009
        """,
    ],
)
def test_importing_and_work_on_ascii_load_nothing_heavy(program: str) -> None:
    assert loaded_anew(program, *HEAVY) == []


LIBRARIES = [
    *("boto3", "botocore", "numpy", "openai", "typer", "rich"),
    *("asyncio", "concurrent.futures", "email", "http.client", "importlib.metadata", "logging", "ssl", "subprocess"),
]
NOT_TO_LOOK = [
    "monocontext.engine.hints",
    "monocontext.stores.disk.cache",
    "monocontext.stores.http",
    "monocontext.text.context_file",
    "monocontext.text.deeprecurse",
    "monocontext.text.namespace",
    "monocontext.writing",
]
"""What who opens a text, and looks at it, has no use for."""


def test_the_import_of_a_text_type_loads_what_it_needs() -> None:
    """60 ms of CPU: where this fails, import what is named where it is used."""
    program = "from monocontext import Monocontext"
    assert loaded_anew(program, *LIBRARIES, *NOT_TO_LOOK, "shutil", "hashlib") == []
    assert loaded_anew(program, "monocontext.engine.reader") == ["monocontext.engine.reader"]


def test_the_import_of_rlm_loads_no_run() -> None:
    assert loaded_anew("import rlm", *LIBRARIES, "json", "dataclasses", "inspect", "rlm.rlm") == []
    program = "import rlm; rlm.RLMError; rlm.RLM"
    used_later = ("lzma", "secrets", "shutil")
    assert loaded_anew(program, "asyncio", "email", "openai", "rlm.rlm", *used_later) == ["rlm.rlm"]


@pytest.mark.parametrize("command", ["rlm", "monocontext"])
def test_help_loads_no_text_and_no_run(command: str) -> None:
    """150 ms of CPU, of which typer takes 40."""
    program = f"""
        import contextlib, io, sys
        from {command}.cli import main
        sys.argv = ["{command}", "--help"]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            main()
    """
    heavy = [each for each in LIBRARIES if each not in ("typer", "logging", "subprocess")]  # typer takes the other two
    assert loaded_anew(program, *heavy, "zstandard", "monocontext.engine", "monocontext.format", "rlm.rlm") == []


def test_grep_in_a_small_directory_loads_what_it_needs(texts_in_roots: None, tmp_path: Path) -> None:
    """Click takes 20 ms of CPU, and the text 50; what is named here took 60 more."""
    publish("some text\n" * 500_000, f"{tmp_path}/ctx")
    program = f"""
        import contextlib, sys
        from monocontext.cli import main
        sys.argv = ["monocontext", "grep", "-c", "absent", "{tmp_path}/ctx"]
        with contextlib.suppress(SystemExit):
            main()
    """
    unused = ("dataclasses", "html", "pathspec", "traceback", "monocontext.cli.reading", "monocontext.writing")
    assert loaded_anew(program, *LIBRARIES, *unused, "monocontext.shell.lines") == ["monocontext.shell.lines"]


def test_a_first_slice_compiles_no_classes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each class of `dataclasses` costs 0.5 ms (docs/decisions/022-records.md). S3 is read by our own transport."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    publish("some text " * 100_000, f"{tmp_path}/ctx")
    with S3StandIn(open_store(f"{tmp_path}")) as server:
        for place in (f"{tmp_path}/ctx", f"{server.url('ctx')}', endpoint='{server.endpoint}"):
            program = f"""
                from monocontext import Monocontext
                with Monocontext.open('{place}') as text:
                    assert text[500_000:500_009] == "some text"
            """
            modules = ("boto3", "botocore", "dataclasses", "inspect", "monocontext.engine.reader")
            assert loaded_anew(program, *modules) == ["monocontext.engine.reader"], place


def test_a_name_that_is_none() -> None:
    import monocontext

    with pytest.raises(AttributeError, match="has no attribute 'publisch'"):
        _ = monocontext.publisch
