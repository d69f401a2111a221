"""Directories of Windows as places of stores: read right there, refused in one line elsewhere."""

from __future__ import annotations

import ntpath
import os
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace

import pytest

from monocontext.errors import InvalidUrl
from monocontext.stores import address

PLACES = ["C:\\data\\ctx", "C:/data/ctx", "c:\\", "file:///C:/data", "file:///C:/a%20b/ctx", "\\\\server\\share\\ctx"]


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """As much of `os` as it is there; paths are compared with those of `PureWindowsPath`."""
    fake = SimpleNamespace(name="nt", path=ntpath, sep="\\", altsep="/", PathLike=os.PathLike, fspath=os.fspath,
                           fsdecode=os.fsdecode)  # fmt: skip
    monkeypatch.setattr(address, "os", fake)


@pytest.mark.parametrize("text", ["C:\\data\\ctx", "C:/data/ctx", "c:\\", "\\\\server\\share\\ctx", "D:/a b/ü"])
def test_a_drive_and_a_share_are_directories(windows: None, text: str) -> None:
    for given in (text, PureWindowsPath(text)):
        assert address.parse(given) == address.Address("file", "", str(PureWindowsPath(text)))


@pytest.mark.parametrize("text", ["C:\\data\\ctx", "D:/a b/ü", "c:\\"])
def test_a_file_url_names_a_drive(windows: None, text: str) -> None:
    path = PureWindowsPath(text)
    assert address.parse(path.as_uri()).path == str(path)


def test_two_dots_lead_up(windows: None) -> None:
    assert address.parse("C:/data/x/../ctx").path == "C:\\data\\ctx"
    assert address.parse("C:\\data\\x\\..\\ctx").path == "C:\\data\\ctx"


def test_other_urls_are_what_they_were(windows: None) -> None:
    assert address.parse("s3://bucket/a/b") == address.Address("s3", "bucket", "a/b")
    with pytest.raises(InvalidUrl, match="must not name a host"):
        address.parse("file://server/share")


@pytest.mark.skipif(os.name == "nt", reason="they are directories there")
@pytest.mark.parametrize("text", PLACES)
def test_elsewhere_they_are_refused_in_one_line(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidUrl, match="is a Windows path, and this system is not Windows") as error:
        address.parse(text)
    assert "\n" not in str(error.value)
    assert address.parse("./C:\\data").path == f"{tmp_path}/C:\\data"
