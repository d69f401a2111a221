"""Names of documents from several files and folders, and files that are not text."""

from __future__ import annotations

from pathlib import Path

import pytest

from monocontext import Monocontext, publish
from monocontext.cli.json_lines import read_json_lines
from monocontext.errors import InvalidText


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


def test_names_that_meet_get_their_folder(files: Path) -> None:
    assert stored("memory://n", files / "fa", files / "fb") == {"fa/x.txt": "1\n", "fb/x.txt": "2\n", "fb/y.txt": "3\n"}
    assert stored("memory://n", files / "fa/x.txt", files / "fb/x.txt") == {"fa/x.txt": "1\n", "fb/x.txt": "2\n"}
    assert stored("memory://n", files / "fa", files / "fb/y.txt") == {"x.txt": "1\n", "y.txt": "3\n"}


def test_names_that_no_folder_tells_apart_are_refused(files: Path) -> None:
    with pytest.raises(InvalidText, match=r"'fa/x\.txt': rename one"):
        stored("memory://n", files / "fa", files / "up/fa")


def test_a_path_above_the_folder_is_no_name(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files / "fa")
    assert [*stored("memory://n", Path("../fb/y.txt"))] == ["y.txt"]
    assert [*stored("memory://n", Path("../fb/x.txt"), Path("x.txt"))] == ["fb/x.txt", "x.txt"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_tables_in_other_encodings(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "t.jsonl").write_text('{"text": "café", "who": "é"}\n', encoding)
    rows = read_json_lines(tmp_path / "t.jsonl", encoding=encoding.removesuffix("-sig"))
    assert [*rows] == [(None, "café", {"who": "é"})]
    with pytest.raises(InvalidText, match=r"t\.jsonl:1"):
        [*read_json_lines(tmp_path / "t.jsonl", encoding="ascii")]
