"""`ls`, `get`, `rm` and `index` of keys that no file or verb can have, and settings that cannot be sent."""

from __future__ import annotations

import json
import os
from pathlib import Path

import boto3
import pytest
from ran import Cli

from monocontext import publish
from monocontext.errors import AccessDenied
from monocontext.stores import open_store

ODD = ["p//x", "p/a//b", "p/./c", "p/d/../e", "p/f/.", "p/g/.."]


@pytest.fixture
def bucket(moto_s3: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A bucket with two plain objects, six that no other verb takes, and a folder as a console marks it."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    client = boto3.session.Session().client("s3")
    for key in ["p/one.txt", "p/two/three.txt", "p/two/", *ODD]:
        client.put_object(Bucket=moto_s3, Key=key, Body=b"" if key.endswith("two/") else b"text\n")
    return moto_s3


@pytest.mark.slow
def test_keys_that_no_verb_takes_are_named(bucket: str, cli: Cli, tmp_path: Path) -> None:
    place = f"s3://{bucket}/p"
    named = "left out 6 objects whose keys have an empty part, '.' or '..': '"
    listed = cli("ls", place)
    assert listed.code == 0
    assert [line.split()[-1] for line in listed.out.splitlines()] == ["one.txt", "two/three.txt"]
    assert named in listed.err
    assert listed.err.count("\n") == 1
    fetched = cli("get", f"{place}/", tmp_path / "there")
    assert fetched.code == 0
    assert named in fetched.err
    assert sorted(path.name for path in (tmp_path / "there").rglob("*.txt")) == ["one.txt", "three.txt"]
    indexed = cli("index", place, tmp_path / "context")
    assert indexed.code == 0
    assert named in indexed.err
    synced = cli("sync", place, tmp_path / "synced")
    assert synced.code == 0
    assert named in synced.err
    removed = cli("rm", "-r", place)
    assert (removed.code, removed.out) == (1, f"{place}: removed 2\n")
    assert "left out 7 objects" in removed.err
    assert "left out 1 object whose key has an empty part, '.' or '..': '../e'" in cli("ls", f"{place}/d").err
    cli("rm", "-r", f"s3://{bucket}/nothing").fine()


def test_no_link_in_a_directory_leads_out_of_it(cli: Cli, tmp_path: Path) -> None:
    store, folder, outside = tmp_path / "store", tmp_path / "folder", tmp_path / "outside"
    for place in (store, folder):
        place.mkdir()
    outside.write_text("kept")
    (store / "name").write_text("written")
    (folder / "name").symlink_to(outside)
    for source in (f"{store}/name", f"{store}/"):
        cli("get", source, folder, "--force").refused("leads outside")
        assert outside.read_text() == "kept"
    (folder / "name").unlink()
    (folder / "name").symlink_to(folder / "other")
    cli("get", f"{store}/name", folder, "--force").fine()
    assert (folder / "other").read_text() == "written"
    cli("get", f"{store}/name", outside, "--force").fine()


def test_a_key_that_no_file_can_have_does_not_end_the_rest(moto_s3: str, cli: Cli, tmp_path: Path) -> None:
    store = open_store(f"s3://{moto_s3}/long")
    for key in ("a", "a/below", "m" * 300, "n/" + "m" * 300 + "/o", "z"):
        store.put(key, b"text")
    done = cli("get", f"s3://{moto_s3}/long/", tmp_path / "there")
    assert done.code == 1
    assert done.err.count("cannot be a file name") == 3
    assert done.err.splitlines()[-1].endswith("3 not fetched")
    assert sorted(path.name for path in (tmp_path / "there").iterdir() if path.is_file()) == ["a", "z"]


NAMES = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL"]
BREAKS = ["{}\n", "{}\r", "{}\r\nx-evil: 1", "\x00{}".replace("\x00", "\x01"), "{}\x7f", "{}\t", "{}\x85"]
VERBS = [["ls", "s3://bucket/x"], ["cat", "s3://bucket/x"], ["rm", "s3://bucket/x"]]


@pytest.mark.parametrize("name", NAMES)
def test_a_line_break_in_the_environment(name: str, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    for number, form in enumerate(BREAKS):
        monkeypatch.setenv(name, form.format(os.environ.get(name, "hush-1") + "hush-2"))
        done = cli(*VERBS[number % 3])
        assert done.code == 2
        assert f"the variable {name} contains a line break or another control character" in done.err
        assert done.err.count("\n") == 1
        assert "hush" not in done.err
        monkeypatch.setenv(name, "hush-1")


@pytest.mark.parametrize("name", ["aws_access_key_id", "aws_secret_access_key", "aws_session_token", "region"])
def test_a_line_break_in_a_profile(name: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region": "r-1", name: "c\n  d"}
    rows = "".join(f"{key} = {value}\n" for key, value in values.items())
    (tmp_path / "credentials").write_text(f"[mine]\n{rows}")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    for verb in VERBS:
        done = cli(*verb, "--profile", "mine", "--endpoint", "http://127.0.0.1:1")
        assert done.code == 2
        assert f"{name} in the profile mine contains a line break" in done.err
        assert done.err.count("\n") == 1


def test_the_same_as_an_option_and_in_the_api(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("ls", "s3://bucket/x", "--region", "eu\n").refused("region must be a name such as eu-west-1, not 'eu\\n'")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "t\n")
    store = open_store("s3://bucket/x", endpoint="http://127.0.0.1:1")
    for act in (lambda: store.get("a"), lambda: store.put("a", b""), lambda: list(store.list())):
        with pytest.raises(AccessDenied, match="AWS_SESSION_TOKEN contains a line break"):
            act()


@pytest.mark.slow
def test_removing_a_text_by_its_url_names_it_and_asks_for_r(bucket: str, cli: Cli) -> None:
    publish("words", f"s3://{bucket}/code")
    assert "code/" in cli("ls", f"s3://{bucket}/").out.split()
    cli("rm", f"s3://{bucket}/code").refused(f"s3://{bucket}/code is a text: -r removes everything")
    cli("rm", f"s3://{bucket}/p").refused("is a folder: -r removes everything")
    cli("rm", f"s3://{bucket}/none").refused(f"nothing at s3://{bucket}/none")
    cli("rm", "-r", f"s3://{bucket}/code").fine()
    cli("info", f"s3://{bucket}/code").refused("no context")
    cli("sync", f"s3://{bucket}/p/one.txt", f"s3://{bucket}/synced").fine()
    assert cli("cat", f"s3://{bucket}/synced").fine().out == "text\n"


def test_a_text_in_a_folder_is_one_row(cli: Cli, tmp_path: Path) -> None:
    publish("one\n" * 1000, tmp_path / "team" / "logs")
    (tmp_path / "notes.txt").write_text("x")
    rows = [json.loads(row) for row in cli("ls", tmp_path, "--json").fine().out.splitlines()]
    objects = [json.loads(row) for row in cli("ls", tmp_path / "team" / "logs", "--json").fine().out.splitlines()]
    total = sum(row["bytes"] for row in objects)
    assert [(row["key"], row["bytes"]) for row in rows] == [("notes.txt", 1), ("team/logs/", total)]


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["info", "gs://bucket/x", "--region", "eu"], "--region is not an option for gs://bucket/x"),
        (["ls", ".", "--endpoint", "http://127.0.0.1:9"], "--endpoint is not an option for ."),
        (["sync", "src", "dest", "--anonymous"], "--anonymous is not an option for dest"),
    ],
)
def test_an_option_that_no_place_has_is_refused(cli: Cli, words: list[str], refusal: str) -> None:
    cli(*words).refused(refusal)
