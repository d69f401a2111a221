"""The greps of agents: what each way must print, and the whole comparison at its quick size."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import agents_grep, corpora
from benchmarks import agents_grep_client as client
from benchmarks.__main__ import main
from benchmarks.processes import run_client

FILES = {"a/one.c": b"int x;\nreturn x; return x;\n", "b.c": b"no\nRETURN", "c.c": b"return\n"}


def answer(kind: client.Kind, pattern: str = "return", *, ignore_case: bool = False) -> list[str]:
    grep = client.Grep("", kind, pattern, ignore_case)
    return client.answer(kind, client.search(FILES.items(), grep))


def test_the_reference_is_what_grep_prints() -> None:
    assert answer("lines") == ["a/one.c:2:return x; return x;", "c.c:1:return"]
    assert answer("lines", ignore_case=True) == ["a/one.c:2:return x; return x;", "b.c:2:RETURN", "c.c:1:return"]
    head = ["a/one.c:1:int x;", "a/one.c:2:return x; return x;", "b.c:1:no", "b.c:2:RETURN", "c.c:1:return"]
    assert answer("head", ".") == head
    assert (answer("count"), answer("files"), answer("sum")) == (["a/one.c:1", "c.c:1"], ["2"], ["2"])
    assert answer("lines", "absent") == []
    for name, lines in (("one.c", ["int x;", "return x; return x;"]), ("c.c", ["return"])):  # `c.c` is no end of a name
        assert agents_grep._output(FILES, client.Grep("", "find", path=name)) == lines


def test_only_a_package_of_others_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONOCONTEXT_PEERS", str(tmp_path))
    script = tmp_path / "client.py"
    script.write_text("import sys\n__import__(sys.argv[1])")
    assert run_client(str(script), "no_such_library", endpoint="") is None
    with pytest.raises(AssertionError, match=r"'monocontext\.no_such'"):
        run_client(str(script), "monocontext.no_such", endpoint="")


def test_files_of_the_source_are_whole_and_the_same_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONOCONTEXT_CORPORA", str(tmp_path))
    pieces = [b"==== top/%s\n%s\n" % item for item in ((b"a.c", b"one\n==="), (b"odd,name", b"x"), (b"b.c", b"z" * 99))]
    monkeypatch.setitem(corpora._SOURCES, "code", lambda: iter(pieces))
    assert corpora.code_files(9, 50) == {"top/a.c": b"one\n===\n"}
    assert list(corpora.code_files(9, 100)) == ["top/a.c", "top/b.c"]


@pytest.mark.slow
def test_every_way_here_prints_the_same(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It raises where one prints something else."""
    pytest.importorskip("bashkit")
    monkeypatch.setattr("sys.argv", ["benchmarks", "agents_grep", "--quick"])
    assert main() == 0
    said = capsys.readouterr().out
    assert "## 200 files" in said
