"""What importing costs: `monocontext` loads nothing heavy until it is needed, and its names are what they seem."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

HEAVY = ["boto3", "botocore", "numpy", "openai", "rlm"]


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
        "import monocontext.verify, monocontext.virtual, monocontext.legacy",
    ],
)
def test_importing_loads_nothing_heavy(program: str) -> None:
    assert loaded_by(program) == []


def test_reading_and_writing_ascii_loads_nothing_heavy() -> None:
    program = """
        from monocontext.writer import append, publish
        from monocontext import Monocontext
        publish("some text\\n" * 1000, "memory://x", frame_bytes=500)
        append("and more\\n", "memory://x")
        context = Monocontext.open("memory://x")
        assert context[10:20] == "some text\\n"
        assert "and more" in context and len(context.lines) == 1001 and len(str(context)) == 10009
    """
    assert loaded_by(program) == []


def test_importing_prints_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", "import monocontext"], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


@pytest.mark.parametrize(
    "program",
    [
        "from monocontext import Monocontext, publish, append",
        "from monocontext import append, publish",
        "from monocontext import append; from monocontext import publish",
        "import monocontext.writer; from monocontext import publish",
        "from monocontext.verify import verify; from monocontext import publish",
        "from monocontext.virtual import index; import monocontext; publish = monocontext.publish",
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
