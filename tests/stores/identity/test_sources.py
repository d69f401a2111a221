"""Sources of keys that are broken, silent or renewed: one line that names the source, and no secret in it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from monocontext import Monocontext, publish
from monocontext.errors import AccessDenied
from monocontext.stores import open_store
from monocontext.testing import S3StandIn

from .conftest import Write
from .source_server import SourceServer

URL = "s3://bucket/ctx"


def refusal(**options: str) -> str:
    """The error of a read; it never reaches a server."""
    with pytest.raises(AccessDenied) as caught:
        open_store(URL, region="eu-west-1", **options).get("a")
    said = str(caught.value)
    assert said.startswith(f"no credentials for {URL}/a: ")
    assert "\n" not in said
    assert "hunter2" not in said
    return said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[default]\naws_access_key_id = a\naws_secret_access_key = hunter2\naws_ses hunter2", "credentials cannot be parsed: line 4"),
        ("aws_access_key_id = hunter2", "credentials cannot be parsed: line 1"),
        ("[default]\naws_access_key_id = hunter2\n", "profile default has aws_access_key_id but no aws_secret_access_key"),
        ("[default]\na = 1\na = hunter2\n", "credentials cannot be parsed: line 3"),
        ("", "tried: the environment, the profile default in .*credentials, metadata of"),
    ],
    ids=["cut in a line", "no section", "cut after a line", "twice", "empty"],
)  # fmt: skip
def test_a_credentials_file_that_is_half_written(text: str, expected: str, write: Write) -> None:
    path = write("credentials", text)
    said = refusal()
    assert re.search(expected, said), said
    assert str(path) in said


def test_a_credentials_file_that_is_no_text(write: Write) -> None:
    path = write("credentials", "")
    path.write_bytes(b"[default]\xff\xfe\x00")
    assert f"{path} cannot be parsed: it is not text" in refusal()


def test_a_file_that_may_not_be_read(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """botocore takes it for empty; so do we, and say so where no keys are found."""
    path = write("credentials", "[default]\naws_access_key_id = a\naws_secret_access_key = b\n")

    def refuse(given: object, *more: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("monocontext.stores.s3.settings.open", refuse, raising=False)
    monkeypatch.setattr("botocore.session.Session.get_credentials", lambda session: None)
    assert f"{path} (Permission denied)" in refusal()
    assert "could not be found; unreadable: " in refusal(profile="work")


@pytest.mark.slow
def test_metadata_that_hangs(sources: SourceServer, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", sources.url)
    sources.hanging.add("")
    assert "metadata of a container or of the instance" in refusal()
    assert sources.asked[0] == "PUT /latest/api/token"


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [(500, "oops"), (200, "hunter2"), (200, "[]"), (200, json.dumps({"AccessKeyId": "hunter2"}))],
)
def test_a_container_that_errs(
    answer: tuple[int, str], sources: SourceServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{sources.url}/container?token=hunter2")
    sources.answers["/container"] = answer
    assert "botocore, because the shared files have no keys: " in refusal()


def test_sts_that_refuses(sources: SourceServer, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(write("token", "hunter2")))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sources.url)
    sources.answers["/"] = (
        400,
        "<E><Error><Code>ExpiredTokenException</Code><Message>Token\nexpired</Message></Error></E>",
    )
    said = refusal()
    assert "AWS_WEB_IDENTITY_TOKEN_FILE is set" in said
    assert "ExpiredTokenException" in said
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere/at/all")
    assert "/nowhere/at/all" in refusal()


def test_what_a_process_says_of_its_failure(write: Write) -> None:
    write("config", f"[default]\ncredential_process = {sys.executable} -c \"exit('log in\\n first')\"\n")
    assert "has credential_process: " in refusal()
    assert "log in first" in refusal()


def test_stats_say_whose_keys_sign(
    write: Write, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "monocontext")
    path = write("credentials", "[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
    with S3StandIn({"a": b"x"}) as server:
        store = open_store(server.url(), endpoint=server.endpoint)
        assert store.credentials_source == ""  # type: ignore[attr-defined]
        store.get("a")
        assert store.credentials_source == f"{path}, profile default"  # type: ignore[attr-defined]
        assert caplog.messages == []
        monkeypatch.setenv("AWS_USE_FIPS_ENDPOINT", "false")
        other = open_store(server.url(), endpoint=server.endpoint)
        other.get("a")
        assert other.credentials_source == "botocore, because AWS_USE_FIPS_ENDPOINT is set"  # type: ignore[attr-defined]
        assert [each for each in caplog.messages if "AWS_USE_FIPS_ENDPOINT is set" in each]
        store.close()
        other.close()
        publish("some text", server.store.url + "/ctx")
        with Monocontext.open(server.url("ctx"), endpoint=server.endpoint) as text:
            assert text.stats.credentials_source == "botocore, because AWS_USE_FIPS_ENDPOINT is set"
            assert str(text.stats).endswith("; keys of botocore, because AWS_USE_FIPS_ENDPOINT is set")


def test_stores_share_keys(sources: SourceServer, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{sources.url}/container")
    with S3StandIn({"a": b"x"}) as server:
        for _ in range(5):
            store = open_store(server.url(), endpoint=server.endpoint)
            store.get("a")
            store.close()
    assert sources.asked == ["GET /container"]
