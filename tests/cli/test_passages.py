"""`monocontext search`."""

from __future__ import annotations

import json
from pathlib import Path

from ran import Cli


def test_it_prints_passages_best_first(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"line {n} of a quiet text\n" for n in range(2000)) + "keys are rotated\n")
    cli("upload", tmp_path / "a.txt", tmp_path / "ctx").fine()
    said = cli("search", tmp_path / "ctx", "rotate", "keys").fine().out
    assert "keys are rotated" in said
    (row,) = [json.loads(line) for line in cli("search", "--json", tmp_path / "ctx", "rotates").fine().out.splitlines()]
    assert row["line"] > 1900
    assert row["text"].endswith("keys are rotated\n")
    assert cli("search", tmp_path / "ctx", "absent").code == 1
    wrong = cli("search", tmp_path / "ctx", "the")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)


def test_of_each_document_the_best(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text(f"keys are rotated\n{'x' * 900}\nkeys\n")
    (tmp_path / "in" / "b.txt").write_text("other keys\n")
    cli("upload", tmp_path / "in", tmp_path / "ctx").fine()
    said = cli("search", "--per-document", "--json", tmp_path / "ctx", "rotate", "keys").fine().out
    assert next(json.loads(row)["text"] for row in said.splitlines()).startswith("keys are rotated")
    assert [json.loads(row)["document"] for row in said.splitlines()] == ["a.txt", "b.txt"]
