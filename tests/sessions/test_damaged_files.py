"""Files that a crash, a killed agent or a shell has damaged: the records in them are read as records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from monocontext.sessions import records
from monocontext.sessions.records import read_lines

A = {"type": "user", "uuid": "a", "timestamp": "2026-02-14T10:00:00Z", "message": {"role": "user", "content": "é {}"}}
B = {"type": "assistant", "uuid": "b", "timestamp": "2026-02-14T10:00:01Z", "message": {"content": [{"type": "text"}]}}
a, b = (json.dumps(each, ensure_ascii=False).encode() for each in (A, B))
NULS = b"\0" * 143_000
TORN = a[: len(a) // 2]


def utf16(data: bytes, encoding: str = "utf-16") -> bytes:
    return data.decode().encode(encoding)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(a + NULS + b"\n" + b + b"\n", [A, B], id="padded behind"),
        pytest.param(a + b"\n" + NULS + b + b"\n", [A, B], id="padded before"),
        pytest.param(a + NULS + b + b"\n", [A, B], id="NULs for the newline"),
        pytest.param(a + b + b"\n", [A, B], id="no newline between"),
        pytest.param(TORN + b + b"\n", [TORN.decode(), B], id="a record behind one that broke off"),
        pytest.param(TORN + NULS + b + b"\n" + a, [TORN.decode(), B, A], id="NULs in the place of the rest"),
        pytest.param(a + TORN + b"\n", [A, TORN.decode()], id="the second broke off"),
        pytest.param(b'{"type": "x", "message": ' + b + b"\n", ['{"type": "x", "message": ', B], id="within one"),
        pytest.param(b'{"x": {"type": "y", "z": {}}\n', ['{"x": {"type": "y", "z": {}}'], id="an object of one"),
        pytest.param(b'{"x": "a' + b"\0" * 3 + b'b"}\n', ['{"x": "a[3 NULs]b"}'], id="NULs in a string"),
        pytest.param(b"[1]\n" + a, ["[1]", A], id="JSON of another kind"),
        pytest.param(utf16(a + b"\r\n" + b + b"\r\n"), [A, B], id="UTF-16 with a mark"),
        pytest.param(utf16(a + b"\r\n" + b + b"\r\n", "utf-16-le"), [A, B], id="UTF-16 without a mark"),
        pytest.param(a + b"\n" + utf16(b + b"\r\n" + a + b"\r\n", "utf-16-le"), [A, B, A], id="appended by a shell"),
        pytest.param(b"\xef\xbb\xbf" + a + b"\n\xef\xbb\xbf" + b + b"\n", [A, B], id="UTF-8 with marks"),
    ],
)
def test_records_in_damaged_lines(data: bytes, expected: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(data)
    found = [line.record["text"] if line.problem else line.record for line in read_lines(path)]
    assert found == expected


def test_a_line_of_garbage_ends_soon(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"' * 200_000 + b"\n" + (b'{"a": ' * 30_000) + b"\n" + a)
    lines = list(read_lines(path))
    assert [bool(line.problem) for line in lines] == [True, True, False]


def test_records_in_a_huge_damaged_line_are_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_MOST_CHARACTERS", 100)
    path = tmp_path / "x.jsonl"
    path.write_bytes(TORN + b"\n" + TORN + b"x" * 100 + b + b"\n")
    assert [bool(line.problem) for line in read_lines(path)] == [True, True]
