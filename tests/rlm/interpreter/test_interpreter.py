"""`Interpreter`: the published patterns as they are, volumes on every store, code that misbehaves."""

from __future__ import annotations

import importlib
import inspect
import os
import subprocess
import sys
from contextvars import ContextVar
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from monocontext import Monocontext, publish
from monocontext.stores import open_store
from monocontext.stores.protocol import Store
from monocontext.stores.volumes import volume_url
from rlm import FinalOutput, Interpreter, RunnerUnavailable, ScriptedLM, create_interpreter, sanitize_key
from rlm.interpreter.interpreter import get_default_volume_name
from rlm.runners.confine import bubblewrap
from rlm.runners.confine.limits import Limits

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the confined runner is Linux's")

EXAMPLES = Path(__file__).parents[3] / "examples" / "volume"
SAID = {
    "pattern_1_store_and_recall": "Value: my-important-result\n",
    "pattern_2_direct_file_operations": "{'timeout': 300, 'retries': 3}\n",
    "pattern_3_list_all_memories": "  analysis: 57 bytes\n  config: 30 bytes\n  old_result: 9 bytes\n",
    "pattern_4_search_memories": "Keys matching: ['old_result']\n",
    "pattern_5_delete_a_memory": "",
    "checkpoint": "Total: 200\n",
}


@pytest.mark.slow
def test_the_published_patterns(tmp_path: Path) -> None:
    volume = open_store(tmp_path / "rlm-volume-dspy")
    volume.put("memory/old_result.json", b'"error 5"')
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES.parents[1]), "MONOCONTEXT_VOLUMES": str(tmp_path)}
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SAID)
    for name, said in SAID.items():
        command = [sys.executable, str(EXAMPLES / f"{name}.py")]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
        assert (done.returncode, done.stderr, done.stdout) == (0, "", said), name
    kept = ["checkpoints/batch_1.json", "checkpoints/batch_2.json", "memory/analysis.json", "memory/config.json"]
    assert [info.key for info in volume.list()] == kept


@pytest.mark.slow
def test_a_volume_persists_on_every_store(any_store: Store) -> None:
    with Interpreter(volume_name=any_store, timeout=30) as interp:
        assert interp.execute("print(save_to_volume('a/ä b.txt', 'Grüße\\r\\n'))") == "/data/a/ä b.txt"
        assert interp.execute("with open('/data/raw.bin', 'wb') as f: f.write(bytes(range(256)))") == ""
        interp.execute("open('/data/late.txt', 'w').write('kept'); raise ValueError('later')")
    assert any_store.get("raw.bin").data == bytes(range(256))
    assert any_store.get("late.txt").data == b"kept"
    with Interpreter(volume_name=any_store, timeout=30) as interp:
        code = "import os; os.remove('/data/raw.bin'); SUBMIT(text=load_from_volume('/data/a/ä b.txt'))"
        result = interp.execute(code)
        assert isinstance(result, FinalOutput)
        assert result.text == "Grüße\r\n"
    assert sorted(info.key for info in any_store.list()) == ["a/ä b.txt", "late.txt"]


def test_landlock_alone_refuses_a_volume(tmp_path: Path) -> None:
    with pytest.raises(RunnerUnavailable, match="landlock: it does not let cells write to /data"):
        Interpreter(volume_name=str(tmp_path / "v"), runner="subprocess", mechanisms=["landlock"]).start()


def test_results(tmp_path: Path) -> None:
    with Interpreter(timeout=30, sub_lm=ScriptedLM(str.upper)) as interp:
        assert interp.execute("x = 1\nprint('said')") == "said"
        assert interp.execute("SUBMIT(x)").output == {"output": 1}  # type: ignore[union-attr]
        assert interp.execute("SUBMIT(1, 'b')").output == {"output": [1, "b"]}  # type: ignore[union-attr]
        done = interp.execute("SUBMIT(n=y, of=kind)", {"y": [1, 2], "kind": Path("/p")})
        assert isinstance(done, FinalOutput)
        assert (done.n, done.of) == ([1, 2], "/p")
        with pytest.raises(AttributeError, match="the code submitted no 'm'; it submitted 'n', 'of'"):
            _ = done.m
        assert interp.execute("print('after')") == "after"
        try_hard = "try:\n    SUBMIT(a=1)\nexcept Exception:\n    print('caught')"
        assert interp.execute(try_hard).output == {"a": 1}  # type: ignore[union-attr]
        failed = interp.execute("print('before')\nopen('/data/none')")
        assert isinstance(failed, str)
        lines = failed.splitlines()
        assert lines[0] == "before"
        assert "mount" not in failed
        assert lines[-1].startswith("FileNotFoundError")
        assert interp.execute("print('x' * 10_001)") == ('[Output: 10,002 chars, 1 lines]\nPrefix: "' + "x" * 200 + '"')
        assert interp.execute("print(llm_query('ask'))") == "ASK"
        assert "takes values or name=value, not both" in str(interp.execute("SUBMIT(1, a=2)"))
        with pytest.raises(ValueError, match="must be a Python identifier"):
            interp.execute("", {"not a name": 1})


def test_a_lazy_text_comes_by_itself(tmp_path: Path) -> None:
    publish("x" * 5_000_000 + "needle", tmp_path / "text")
    with Monocontext.open(tmp_path / "text") as text:
        with Interpreter(context=text, timeout=30) as interp:
            assert interp.execute("SUBMIT(at=context.find('needle'), n=len(context))").at == 5_000_000  # type: ignore[union-attr]
        with Interpreter() as interp, pytest.raises(TypeError, match="is a lazy text"):
            interp.execute("", {"t": text})


def test_without_a_volume_and_a_model() -> None:
    with Interpreter(timeout=30) as interp:
        assert "no language model: pass Interpreter(sub_lm=" in str(interp.execute("llm_query('a')"))
        problem = "this interpreter has no volume: pass Interpreter(volume_name=...)"
        assert interp.execute("print(load_from_volume('a'))") == f"[error: {problem}]"
        interp.reload()
        with pytest.raises(ValueError, match="this interpreter has no volume"):
            interp.upload_to_volume(local_files={})


def test_helpers_of_the_volume(tmp_path: Path) -> None:
    with Interpreter(volume_name=open_store(tmp_path / "v"), timeout=30) as interp:
        for call, said in (
            ("load_from_volume('none')", "[error: file not found: /data/none]"),
            ("load_from_volume('none', default='d')", "d"),
            ("load_from_volume('')", "[error: the path of a file must not be empty: name a file such as notes/a.txt]"),
            ("load_from_volume('../etc/x')", "[error: the path ../etc/x is outside /data: name a file in it]"),
            ("save_to_volume('/etc/x', '')", "[error: the path /etc/x is outside /data: name a file in it]"),
            ("load_from_volume('none', strict=True)", "FileNotFoundError: file not found: /data/none"),
        ):
            assert str(interp.execute(f"print({call})")).splitlines()[-1] == said


@pytest.mark.slow
def test_code_that_is_ended_loses_only_what_it_had_not_saved(tmp_path: Path) -> None:
    with Interpreter(volume_name=str(tmp_path / "v"), timeout=1) as interp:
        interp.execute("save_to_volume('before', 'x')")
        assert "CellTimeout" in str(interp.execute("while True: pass"))
        assert interp.execute("print(load_from_volume('before'))") == "x"
        died = interp.execute("import os\nos._exit(3)")
        assert "WorkerDied" in str(died)
        assert interp.execute("print(load_from_volume('before'))") == "x"


def test_files_that_code_cannot_read_any_more_stay_on_the_volume(tmp_path: Path) -> None:
    volume = open_store(tmp_path / "v")
    volume.put("sub/a", b"kept")
    with Interpreter(volume_name=volume, timeout=30) as interp:
        assert "PermissionError" in str(interp.execute("import os; os.chmod('/data/sub', 0)"))
    assert volume.get("sub/a").data == b"kept"


def test_upload(tmp_path: Path) -> None:
    (tmp_path / "docs" / "deep").mkdir(parents=True)
    (tmp_path / "docs" / "a.md").write_text("A")
    (tmp_path / "docs" / "deep" / "b.md").write_text("B")
    (tmp_path / "one.yaml").write_text("1")
    volume = str(tmp_path / "v")
    interp = Interpreter(volume_name=volume, timeout=30)
    interp.start()
    given = ({str(tmp_path / "docs"): "/docs"}, {str(tmp_path / "one.yaml"): "/one.yaml"})
    assert interp.upload_to_volume(*given) == ["/data/one.yaml", "/data/docs/a.md", "/data/docs/deep/b.md"]
    assert interp.upload_to_volume(*given) == []
    (tmp_path / "one.yaml").write_text("2")
    assert interp.upload_to_volume(*given) == ["/data/one.yaml"]
    result = interp.execute("import os\nSUBMIT(files=os.listdir('/data/docs'), one=open('/data/one.yaml').read())")
    assert isinstance(result, FinalOutput)
    assert (sorted(result.files), result.one) == (["a.md", "deep"], "2")
    with pytest.raises(NotADirectoryError):
        interp.upload_to_volume({str(tmp_path / "none"): "/x"})
    interp.shutdown()
    interp.shutdown()


def test_an_upload_leaves_out_links_that_lead_out_and_waits_for_no_pipe(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "secret").write_text("SECRET")
    (tmp_path / "docs" / "a.md").write_text("A")
    (tmp_path / "docs" / "notes").symlink_to("../secret")
    (tmp_path / "docs" / "same").symlink_to("a.md")
    with Interpreter(volume_name=str(tmp_path / "v"), timeout=30) as interp:
        given = {str(tmp_path / "docs"): "/docs"}
        with pytest.warns(UserWarning, match=r"left out 1 entry: notes \(leads out, to "):
            assert interp.upload_to_volume(given) == ["/data/docs/a.md", "/data/docs/same"]
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(PermissionError, match="pipe is a named pipe, not a file"):
            interp.upload_to_volume(local_files={str(tmp_path / "pipe"): "/pipe"})


def test_two_interpreters_share_a_volume(tmp_path: Path) -> None:
    volume = str(tmp_path / "v")
    with Interpreter(volume_name=volume, timeout=30) as one, Interpreter(volume_name=volume, timeout=30) as two:
        two.execute("pass")
        one.execute("save_to_volume('from/one', '1')")
        two.execute("save_to_volume('from/two', '2')")
        two.reload()
        assert two.execute("print(load_from_volume('from/one') + load_from_volume('from/two'))") == "12"


def test_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert sanitize_key("a/b c:ä-_.json") == "a_b_c_ä-_.json"
    assert sanitize_key("") == "unnamed"
    (tmp_path / "My Project").mkdir()
    monkeypatch.chdir(tmp_path / "My Project")
    monkeypatch.setattr("getpass.getuser", lambda: "Ann.B")
    assert get_default_volume_name() == "rlm-data-ann-b-my-project"
    monkeypatch.setenv("MONOCONTEXT_VOLUMES", "s3://bucket/volumes/")
    assert volume_url("notes") == "s3://bucket/volumes/notes"
    assert volume_url("s3://other/place") == "s3://other/place"
    assert volume_url("notes", "/elsewhere") == "/elsewhere/notes"
    for wrong in ("", "..", "a b", "a:b"):
        with pytest.raises(ValueError, match="is not a volume name"):
            volume_url(wrong)
    assert create_interpreter(volumes=str(tmp_path)).volume_name == "rlm-data-ann-b-my-project"
    assert create_interpreter(auto_volume=False).volume is None
    with pytest.raises(RunnerUnavailable):
        Interpreter(runner="local")


@pytest.mark.parametrize("way", ["namespaces", "bubblewrap"])
def test_code_in_c_opens_files_of_the_volume_within_the_limit_of_the_disk(tmp_path: Path, way: str) -> None:
    if way == "bubblewrap" and bubblewrap.find() is None:
        pytest.skip("no bwrap here")
    volume, limits = open_store(tmp_path / "volume"), Limits(disk_bytes=4 << 20)
    with Interpreter(volume_name=volume, mechanisms=[way], limits=limits, timeout=60) as interp:
        said = interp.execute(
            "import sqlite3\n"
            "db = sqlite3.connect('/data/x.db')\n"
            "db.execute('create table t (b)'); db.commit()\n"
            "try:\n"
            "    db.execute('insert into t values (zeroblob(16000000))')\n"
            "except sqlite3.OperationalError as error:\n"
            "    db.rollback(); print(error)\n"
        )
        assert "full" in str(said)
        assert interp.execute("print(db.execute('select count(*) from t').fetchone())") == "(0,)"
        assert interp.execute("db.execute('insert into t values (5000)'); db.commit(); db.close()") == ""
    with Interpreter(volume_name=volume, mechanisms=[way], timeout=60) as interp:
        again = "import sqlite3\nprint(sqlite3.connect('/data/x.db').execute('select * from t').fetchall())"
        assert interp.execute(again) == "[(5000,)]"


def test_tools_and_names_of_the_host() -> None:
    publish("needle in a text\n" * 9_000, "memory://interpreter-names")
    with Monocontext.open("memory://interpreter-names") as text:
        names = {"text": text, "context": 5, "few": [1]}
        with Interpreter(names=names, tools={"twice": lambda x: 2 * x}) as interp:
            assert interp.execute("SUBMIT(twice(x=4), text.count('needle'), context, few)") == FinalOutput(
                {"output": [8, 9_000, 5, [1]]}
            )
            interp.tools["later"] = str.upper
            assert interp.execute("print(later('a'))") == "A"
            failed = interp.execute("twice([1], 2)")
    assert isinstance(failed, str)
    assert failed.splitlines()[-1].startswith("TypeError: ")
    assert "worker.py" not in failed, "only the frames of the code"


def test_tools_of_dspy_take_any_kind_of_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """By keyword where that is possible: DSPy wraps its tools in functions without positional parameters."""
    host = SimpleNamespace(SandboxSerializable=object, CodeExecutionError=RuntimeError, FinalOutput=FinalOutput)
    for name in ("dspy", "dspy.primitives", "dspy.primitives.code_interpreter"):
        monkeypatch.setitem(sys.modules, name, host)
    monkeypatch.delitem(sys.modules, "rlm.interpreter.dspy", raising=False)
    lm = ContextVar("lm", default="none")

    async def later(word: str) -> str:
        return f"{word} {lm.get()}"

    def wrapped(**named: Any) -> Any:
        return named

    wrapped.__signature__ = inspect.signature(lambda first, second=2, *, third=3: 0)  # type: ignore[attr-defined]
    tools: dict[str, Any] = {
        "wrapped": wrapped, "options": lambda word="", **options: (word, options), "words": lambda *words: words,
        "positional": lambda word, /, more=0, **options: (word, more, options), "later": later,
    }  # fmt: skip
    code = (
        "print(wrapped(1, third=0), options(a=1), options('w', b=2), words(), words('x', 'y'),"
        " positional('p', more=5, word=7), later('said'), sep='; ')"
    )
    said = "{'first': 1, 'third': 0}; ('', {'a': 1}); ('w', {'b': 2}); (); ('x', 'y'); ('p', 5, {'word': 7}); said sub"
    lm.set("sub")
    with importlib.import_module("rlm.interpreter.dspy").DspyInterpreter(tools=tools, timeout=30) as interp:
        assert interp.execute(code).strip() == said
    del sys.modules["rlm.interpreter.dspy"]
