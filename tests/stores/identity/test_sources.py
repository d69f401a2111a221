"""Sources of keys that are broken, silent or renewed: one line that names the source, and no secret in it."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from monocontext import Monocontext, publish
from monocontext.errors import AccessDenied
from monocontext.stores import open_store
from monocontext.stores.http.signing import Credentials
from monocontext.stores.s3.identity.identity import NativeIdentity
from monocontext.stores.s3.identity.keys import FoundKeys
from monocontext.stores.s3.identity.reasons import NoIdentity
from monocontext.testing import S3StandIn

from .conftest import Write
from .source_server import ROLES, SourceServer

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
        ("", "tried: the environment, the profile default in .*credentials, instance metadata"),
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
    assert f"{path} cannot be parsed: it is no text" in refusal()


def test_a_file_that_may_not_be_read(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """botocore takes it for empty; so do we, and say so where no keys are found."""
    path = write("credentials", "[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
    path.chmod(0)
    if os.access(path, os.R_OK):  # root may read everything

        def refuse(given: object, *more: object) -> object:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("monocontext.stores.s3.identity.shared_files.open", refuse, raising=False)
    assert f"{path} (Permission denied)" in refusal()
    assert "could not be found; unreadable: " in refusal(profile="work")


@pytest.mark.slow
def test_metadata_that_hangs(sources: SourceServer, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounded by a clock of its own: the request for the role is what is left of two seconds, not two more."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", sources.url)
    sources.hanging.add("")
    began = time.monotonic()
    assert f"instance metadata at {sources.url} (no answer within 2 s)" in refusal()
    assert time.monotonic() - began > 1.9
    assert sources.asked == ["PUT /latest/api/token", f"GET {ROLES}"]


@pytest.mark.slow
def test_a_container_that_hangs(sources: SourceServer, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{sources.url}/container?token=hunter2")
    sources.hanging.add("")
    assert f"the container's credentials at {sources.url}/container: no answer within 2 s" in refusal()


@pytest.mark.parametrize(
    ("path", "answer", "expected"),
    [
        ("/container", (500, "oops"), "HTTP 500"),
        ("/container", (200, "hunter2"), "gave no JSON"),
        ("/container", (200, "[]"), "gave no JSON object"),
        ("/container", (200, json.dumps({"AccessKeyId": "hunter2"})), "gave no SecretAccessKey"),
        ("/container", (200, json.dumps({"AccessKeyId": "a", "SecretAccessKey": "b", "Expiration": "soon"})), "gave an end that is no time: 'soon'"),
    ],
)  # fmt: skip
def test_a_container_that_errs(
    path: str, answer: tuple[int, str], expected: str, sources: SourceServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{sources.url}{path}")
    sources.answers[path] = answer
    assert f"the container's credentials at {sources.url}{path}" in refusal()
    assert expected in refusal()


def test_a_token_is_not_sent_anywhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "hunter2")
    for host in ("store.example", "10.0.0.1", "169.254.169.254"):
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://{host}/x")
        assert "the host is neither a loopback address nor one of" in refusal()


def test_sts_that_refuses(sources: SourceServer, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(write("token", "hunter2")))
    assert "no role, set AWS_ROLE_ARN" in refusal()
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sources.url)
    sources.answers["/"] = (
        400,
        "<E><Error><Code>ExpiredTokenException</Code><Message>Token\nexpired</Message></Error></E>",
    )
    assert refusal().endswith("token: HTTP 400 ExpiredTokenException: Token expired")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere/at/all")
    assert "the web identity /nowhere/at/all: No such file" in refusal()


def test_what_a_process_says_of_its_failure(write: Write) -> None:
    write("config", f"[default]\ncredential_process = {sys.executable} -c \"exit('log in\\n first')\"\n")
    assert "the credential_process of the profile default ended with 1: log in first" in refusal()


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
        assert other.credentials_source == "botocore, asked since AWS_USE_FIPS_ENDPOINT is set"  # type: ignore[attr-defined]
        assert [each for each in caplog.messages if "AWS_USE_FIPS_ENDPOINT is set" in each]
        store.close()
        other.close()
        publish("some text", server.store.url + "/ctx")
        with Monocontext.open(server.url("ctx"), endpoint=server.endpoint) as text:
            assert text.stats.credentials_source == "botocore, asked since AWS_USE_FIPS_ENDPOINT is set"
            assert str(text.stats).endswith("; keys of botocore, asked since AWS_USE_FIPS_ENDPOINT is set")


# -- renewing -------------------------------------------------------------------------------------------------------


class Source:
    """Gives numbered keys that live for a while, by a clock that stands until it is moved."""

    def __init__(self, lives_seconds: float) -> None:
        self.now, self.asked, self.lives, self.fails = 0.0, 0, lives_seconds, False

    def __call__(self) -> FoundKeys:
        self.asked += 1
        if self.fails:
            raise NoIdentity("the source is gone")
        return FoundKeys(Credentials(f"key-{self.asked}", "s"), "a source", self.now + self.lives)


def test_keys_are_renewed_before_they_end() -> None:
    source = Source(3600)
    identity = NativeIdentity(source, lambda: source.now)
    source.now = 3600 - 901
    assert identity.get().access_key == "key-1"
    source.now = 3600 - 899
    assert identity.get().access_key == "key-2"
    assert identity.get().access_key == "key-2"
    assert source.asked == 2


def test_a_source_that_fails_is_left_alone_until_keys_are_needed() -> None:
    source = Source(3600)
    identity = NativeIdentity(source, lambda: source.now)
    source.fails, source.now = True, 3600 - 800
    assert [identity.get().access_key for _ in range(5)] == ["key-1"] * 5
    assert source.asked == 2, "asked at most once a minute"
    source.now += 61
    assert identity.get().access_key == "key-1"
    assert source.asked == 3
    source.now = 3600 - 599
    with pytest.raises(NoIdentity, match="the source is gone"):
        identity.get()
    source.fails = False
    assert identity.get().access_key == "key-5"


def test_keys_that_live_shortly_are_not_asked_for_each_time() -> None:
    source = Source(300)
    identity = NativeIdentity(source, lambda: source.now)
    for _ in range(10):
        identity.get()
    assert source.asked == 1
    source.now = 160
    assert identity.get().access_key == "key-2"


def test_keys_that_ended_before_they_came() -> None:
    with pytest.raises(NoIdentity, match="a source gave keys that have expired"):
        NativeIdentity(Source(-1), lambda: 0.0)


def test_of_many_threads_one_renews() -> None:
    source, entered, go = Source(3600), threading.Event(), threading.Event()

    def slowly() -> FoundKeys:
        if source.asked:
            entered.set()
            assert go.wait(60)
        return source()

    identity = NativeIdentity(slowly, lambda: source.now)
    source.now = 3600 - 700
    with ThreadPoolExecutor(8) as threads:
        first = threads.submit(identity.get)
        assert entered.wait(60)
        assert {threads.submit(identity.get).result(60).access_key for _ in range(7)} == {"key-1"}, "none waits"
        go.set()
        assert first.result(60).access_key == "key-2"
    assert source.asked == 2


def test_stores_share_keys(sources: SourceServer, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{sources.url}/container")
    with S3StandIn({"a": b"x"}) as server:
        for _ in range(5):
            store = open_store(server.url(), endpoint=server.endpoint)
            store.get("a")
            store.close()
    assert sources.asked == ["GET /container"]
