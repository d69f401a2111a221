"""Names of documents from several files and folders, and files that are not text."""

from __future__ import annotations

from pathlib import Path

import pytest

from monocontext import Monocontext, publish
from monocontext.errors import InvalidText
from monocontext.writing.tables import table_documents
from monocontext.writing.upkeep.sync import sync


def stored(place: str, *paths: Path, **options: object) -> dict[str, str]:
    publish(list(paths), place, replace=True, note=lambda _: None, **options)  # type: ignore[arg-type]
    with Monocontext.open(place) as text:
        assert text.documents.count == len(text.documents), "no name twice"
        return {name: str(one) for name, one in text.documents.items()}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in {"fa/x.txt": "1\n", "fb/x.txt": "2\n", "fb/y.txt": "3\n", "up/fa/x.txt": "4\n"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_names_do_not_depend_on_other_paths(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stored("memory://n", files / "fa", files / "fb/y.txt") == {"x.txt": "1\n", "y.txt": "3\n"}
    assert [*stored("memory://n", files / "up")] == ["fa/x.txt"]
    monkeypatch.chdir(files / "fa")
    assert [*stored("memory://n", Path("../fb/y.txt"), Path("x.txt"))] == ["y.txt", "x.txt"]


def test_paths_with_names_that_meet_are_refused_before_anything_is_read(files: Path) -> None:
    for first, second in (("fa", "fb"), ("fa/x.txt", "fb/x.txt"), ("fa", "fb/x.txt")):
        with pytest.raises(InvalidText, match=r"fa.* and .*fb.* both give a document named 'x\.txt': name a folder"):
            stored("memory://n", files / first, files / second)
        with pytest.raises(InvalidText, match=r"both give a document named 'x\.txt'"):
            sync([files / first, files / second], "memory://n")
    assert len(stored("memory://n", files / "fa", files / "fb", exclude=("x.txt",))) == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_tables_in_other_encodings(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "t.csv").write_text("text,who\ncafé,é\n", encoding)
    (tmp_path / "t.jsonl").write_text('{"text": "café", "who": "é"}\n', encoding)
    for kind in ("csv", "jsonl"):
        rows = table_documents(tmp_path / f"t.{kind}", kind, encoding=encoding.removesuffix("-sig"))  # type: ignore[arg-type]
        assert [*rows] == [(None, "café", {"who": "é"})]
    with pytest.raises(InvalidText, match=r"t\.jsonl:1"):
        [*table_documents(tmp_path / "t.jsonl", "jsonl", encoding="ascii")]
