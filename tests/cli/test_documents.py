"""Documents on the command line: tables as documents, lists of them, one of them, searches in some of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ran import Cli

ROWS = [
    {"id": "a", "text": "alpha\n", "year": 2001},
    {"id": 7, "text": "seven\nneedle"},
    {"id": "é", "text": "", "tags": ["x", None]},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in" / "src").mkdir(parents=True)
    (tmp_path / "in" / "a.txt").write_text("=== FILE: forged ===\nneedle one\n")
    (tmp_path / "in" / "src" / "b.py").write_text("needle two\nplain")
    (tmp_path / "in" / "src" / "c.py").write_text("no hit here\n")
    return tmp_path / "in"


def listed(cli: Cli, place: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in cli("ls-documents", place, "--json").fine().out.splitlines()]


def test_documents_are_removed_and_updated(cli: Cli, folder: Path, tmp_path: Path) -> None:
    context, rows = tmp_path / "ctx", tmp_path / "rows.jsonl"
    cli("upload", folder, context).fine()
    removed = cli("rm", "--document", "src/*", context).fine()
    assert "version 2 without 2 documents; `gc` removes the versions before it" in removed.out + removed.err
    rows.write_text('{"name": "a.txt", "text": "new"}\n{"name": "[a].txt", "text": "last", "by": "me"}\n')
    cli("update", rows, context).fine()
    assert [row["name"] for row in listed(cli, context)] == ["a.txt", "[a].txt"]
    assert cli("cat", context).fine().out == "=== FILE: a.txt ===\nnew\nlast\n"
    cli("rm", "--document", "*", context).misused("would remove all 2 documents", "--yes")
    cli("rm", "--document", "x*", context).refused("no document is named 'x*'")
    cli("rm", "-r", "--document", "a.txt", context).misused("cannot be combined")
    cli("rm", "-r", "--yes", context).misused("--yes is for --document")
    assert [json.loads(row)["documents"] for row in cli("history", "--json", context).out.splitlines()[:2]] == [3, 1]
    assert cli("history", context).fine().out.splitlines()[1].endswith("-2 documents")
    assert cli("verify", "--forgotten", "last", context).code == 1
    assert cli("verify", "--forgotten", "last", context, "--json").json["objects"]
    for option in ("--generation=1", "--allow=s3://b"):
        cli("verify", "--forgotten", "last", context, option).misused("leave out --generation and --allow")
    cli("verify", "--forgotten", "last", f"{context}-typo").refused("no object below")
    cli("rm", "--forget", "--document", "no such name", context).refused("forget without a name removes what is left")
    cli("rm", "--document", "[a].txt", context).fine()
    cli("rm", "--forget", "--document", "[a].txt", context).fine()  # an earlier version has it: a.txt stays
    assert "no object with a forgotten text" in cli("verify", "--forgotten", "last", context).fine().out
    cli("rm", "--forget", context).fine()
    cli("rm", "--yes", "--document", "*", context).fine()
    cli("restore", context, "1").refused("no version 1")
    assert listed(cli, context) == []


def test_a_removed_folder_is_forgotten_by_its_name(cli: Cli, tmp_path: Path) -> None:
    source, context = tmp_path / "source", str(tmp_path / "context")
    (source / "docs").mkdir(parents=True)
    for name in ("docs/a.md", "c.md"):
        (source / name).write_text(f"text of {name}\n")
    cli("upload", source, context).fine()
    cli("rm", "--document", "docs", context).fine()
    assert cli("verify", "--forgotten", "docs/a.md", context).code == 1
    cli("rm", "--forget", "--document", "docs", context).fine()
    assert cli("verify", "--forgotten", "docs/a.md", context).code == 0


def test_rows_come_from_files_with_a_known_encoding(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"name": "a", "text": "x"}\n')
    for encoding in ("foo", "base64"):
        command = ["update", "--encoding", encoding, tmp_path / "rows.jsonl", tmp_path / "ctx"]
        cli(*command).misused(f"unknown encoding '{encoding}'")
    cli("upload", "--documents", "jsonl", "-", tmp_path / "ctx").misused("--documents reads files, not stdin")
    cli("upload", "--documents", "jsonl", "x", tmp_path / "ctx", "--include", "*").misused("only --encoding goes")
    for command in ("update", "sync"):
        assert "stdin" not in cli(command, "-h").fine().out
    assert not (tmp_path / "ctx").exists()


def test_a_folder_is_synced(cli: Cli, folder: Path, tmp_path: Path) -> None:
    context = tmp_path / "ctx"
    assert cli("sync", folder, context).fine().out.endswith("3 added, 0 changed, 0 deleted, 0 unchanged\n")
    (folder / "a.txt").unlink()
    assert cli("sync", "--dry-run", "--delete", folder, context).fine().out.startswith("- a.txt\n")
    assert cli("sync", "--delete", "--json", folder, context).fine().json["deleted"] == ["a.txt"]
    assert [row["name"] for row in listed(cli, context)] == ["src/b.py", "src/c.py"]


def test_json_lines(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n\n" for row in ROWS))
    cli("upload", tmp_path / "d.jsonl", tmp_path / "ctx", "--documents", "jsonl", "--name-field", "id").fine()
    rows = listed(cli, tmp_path / "ctx")
    assert [row["name"] for row in rows] == ["a", "7", "é"]
    assert [row["metadata"] for row in rows] == [{"year": 2001}, {}, {"tags": ["x", None]}]
    assert cli("cat", tmp_path / "ctx", "--document", "7").fine().out == "seven\nneedle"
    assert cli("ls-documents", tmp_path / "ctx", "a*").fine().out.split() == ["6", "1", "a"]
    assert cli("info", tmp_path / "ctx", "--json").json["documents"] == 3
    cli("cat", tmp_path / "ctx", "--document", "none").refused("no document 'none'")
    (tmp_path / "more.jsonl").write_text('{"text": "more"}\n')
    cli("append", tmp_path / "more.jsonl", tmp_path / "ctx", "--documents", "jsonl").fine()
    assert [row["name"] for row in listed(cli, tmp_path / "ctx")] == ["a", "7", "é", "0"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"text": "a"}\n{"words": "b"}\n', "in:2: no field 'text'; the fields of this row are: words"),
        ('{"text": "a"}\n{"text": 5}\n', "in:2: the field 'text' must be text, not 5"),
        ('{"text": "a"}\n\n[1]\n', "in:3: a row must be a JSON object, not [1]"),
        ('{"text": "a"}\n{"text', "in:2: not JSON"),
        ('{"text": "a\\ud800"}\n', "document '0': a lone surrogate U+D800"),
    ],
)
def test_bad_rows_are_one_line_and_publish_nothing(cli: Cli, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "in").write_text(text)
    cli("upload", tmp_path / "in", tmp_path / "ctx", "--documents", "jsonl").refused(said)
    cli("info", tmp_path / "ctx").refused("no context")


def test_doubled_names_stay_and_sources_are_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "in").write_text('{"text": "a", "id": "x"}\n{"text": "b", "id": "x"}\n')
    options = ("--documents", "jsonl", "--name-field", "id")
    cli("upload", tmp_path / "in", tmp_path / "ctx", *options).fine()
    cli("upload", tmp_path / "none", tmp_path / "no", *options).refused("none: no such file")
    cli("upload", tmp_path / "in", tmp_path / "no", "--documents", "xml").misused("'xml' is not")
    cli("upload", tmp_path / "in", tmp_path / "no", "--name-field", "id").misused("need --documents")
