"""Folders that are opened as they are: never the objects of a stored text, or of one that is being stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from monocontext import Monocontext, publish
from monocontext.errors import NotFound
from monocontext.writing import plain


def test_an_upload_that_has_begun_is_no_folder_of_files(tmp_path: Path) -> None:
    (tmp_path / "segments").mkdir()
    (tmp_path / "segments" / "0.seg").write_text("half of an upload\n")
    with pytest.raises(NotFound):
        Monocontext.open(tmp_path)


def test_nor_is_one_that_begins_while_the_folder_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def publish_late(path: Path, *arguments: Any, **options: Any) -> object:
        (path / "segments").mkdir()
        (path / "segments" / "0.seg").write_text("half of an upload\n")
        return publish(path, *arguments, **options)

    (tmp_path / "note").write_text("what was there before\n")
    monkeypatch.setattr(plain, "publish", publish_late)
    with pytest.raises(NotFound):
        Monocontext.open(tmp_path)


def test_a_folder_with_stored_texts_names_one(tmp_path: Path) -> None:
    publish("text\n", tmp_path / "below" / "text")
    with pytest.raises(NotFound, match=r"contains stored texts but is not one itself: open one, such as .*below/text"):
        Monocontext.open(tmp_path)
