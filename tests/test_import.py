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


def loaded_by(program: str) -> list[str]:
    """Which heavy packages a fresh interpreter has loaded after a program."""
    code = textwrap.dedent(program) + f"\nimport sys; print('loaded', *(m for m in {HEAVY} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()[1:]


def test_the_probe_sees_what_is_loaded() -> None:
    assert loaded_by("import numpy") == ["numpy"]


@pytest.mark.parametrize(
    "program",
    [
        "import monocontext",
        "from monocontext import errors",
        "from monocontext import Monocontext, publish, append, MonocontextError, ContextTooLarge, Manifest",
        "import monocontext; dir(monocontext); monocontext.__version__",
        "from monocontext.stores import open_store; open_store('memory://x'); open_store('/tmp')",
        "import monocontext.writing.index_in_place, monocontext.text.deeprecurse, monocontext.memory",
    ],
)
def test_importing_loads_nothing_heavy(program: str) -> None:
    assert loaded_by(program) == []


def test_reading_and_writing_ascii_loads_nothing_heavy() -> None:
    program = """
        from monocontext.writing.publish import append, publish
        from monocontext import Monocontext
        publish("some text\\n" * 1000, "memory://x", frame_bytes=500)
        append("and more\\n", "memory://x")
        context = Monocontext.open("memory://x")
        assert context[10:20] == "some text\\n"
        assert "and more" in context and len(context.lines) == 1001 and len(str(context)) == 10009
    """
    assert loaded_by(program) == []


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


def loaded_anew(program: str, *modules: str) -> list[str]:
    """Which of these modules a program loads; those that the interpreter loads before it do not count."""
    code = f"import sys\nbefore = set(sys.modules)\n{textwrap.dedent(program)}\nloaded = set(sys.modules) - before\n"
    code += f"print('loaded', *(each for each in {modules} if each in loaded))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()[1:]


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


def test_the_first_bytes_from_s3_load_no_boto3() -> None:
    """Reads go by our own transport, with keys of our own finding; writing takes boto3."""
    program = """
        import os
        from monocontext.testing import S3StandIn
        from monocontext import publish
        from monocontext.stores import open_store
        os.environ |= {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
        publish("some text " * 1000, "memory://x/ctx")
        with S3StandIn(open_store("memory://x")) as server:
            before = set(sys.modules)
            from monocontext import Monocontext
            with Monocontext.open(server.url("ctx"), endpoint=server.endpoint) as text:
                assert text[:9] == "some text" and text.find("text some") == 5
            print(*sorted(set(sys.modules) - before))
            if WRITES:
                open_store(server.url("ctx"), endpoint=server.endpoint).put("a", b"x")
    """
    modules = ("boto3", "botocore", "email", "logging", "urllib.request")
    assert "boto3" in loaded_anew(f"WRITES = True\n{textwrap.dedent(program)}", *modules)
    assert {"boto3", "botocore"} & set(loaded_anew(f"WRITES = False\n{textwrap.dedent(program)}", *modules)) == set()


def test_a_first_slice_compiles_no_classes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each class of `dataclasses` costs 0.5 ms, and its import 9 (docs/decisions/022-records.md)."""
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
            modules = ("dataclasses", "inspect", "monocontext.engine.reader")
            assert loaded_anew(program, *modules) == ["monocontext.engine.reader"], place


def test_importing_prints_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", "import monocontext"], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [
        "from monocontext import Monocontext, publish, append",
        "from monocontext import append, publish",
        "from monocontext import append; from monocontext import publish",
        "import monocontext.writing.publish; from monocontext import publish",
        "from monocontext.writing.upkeep.verify import verify; from monocontext import publish",
        "from monocontext.writing.index_in_place import index; import monocontext; publish = monocontext.publish",
        "import monocontext.testing; from monocontext import publish",
        "from monocontext import *",
    ],
)
def test_the_function_publish_is_not_hidden_by_its_module(program: str) -> None:
    code = f"{program}\npublish('x', 'memory://x')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr.splitlines()[-1]


def test_a_name_that_is_none() -> None:
    import monocontext

    with pytest.raises(AttributeError, match="has no attribute 'publisch'"):
        _ = monocontext.publisch
