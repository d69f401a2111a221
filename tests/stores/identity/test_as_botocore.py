"""Each case is resolved by us and by botocore: the same keys, region, endpoint and path, or botocore was asked."""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from monocontext.stores.s3 import account
from monocontext.stores.s3 import client as s3_client
from monocontext.stores.s3.client import learn_route
from monocontext.stores.s3.identity import BotocoreIdentity, RequestPlan
from monocontext.stores.s3.settings import ConfigurationError, S3Options

Write = Callable[[str, str], Path]
KEYS = {"AWS_ACCESS_KEY_ID": "env-key", "AWS_SECRET_ACCESS_KEY": "env-secret"}
CREDENTIALS = """[default]
aws_access_key_id = default-key
aws_secret_access_key = default-secret

[other]
aws_access_key_id = other-key
aws_secret_access_key = other-secret
aws_session_token = other-token
"""
END = "2099-01-01T00:00:00Z"
"""When keys expire."""
PROCESS = (
    f"{sys.executable} -c \"import json; print(json.dumps(dict(Version=1, AccessKeyId='p', SecretAccessKey='s'%s)))\""
)


@dataclass
class Case:
    """One environment with its files."""

    environment: Mapping[str, str] = field(default_factory=lambda: KEYS)
    config: str | None = None
    credentials: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    bucket: str = "bucket"
    asks: bool = False
    """Whether botocore is asked."""
    fails: bool = False
    """Whether there are no keys."""


def env(**more: str) -> dict[str, str]:
    return {**KEYS, **more}


def of(**options: Any) -> Any:
    return options


CASES = {
    # regions
    "no region": Case(),
    "a region of the environment": Case(env(AWS_DEFAULT_REGION="eu-central-1")),
    "AWS_REGION is none of botocore's": Case(env(AWS_REGION="eu-central-1")),
    "a region of the profile": Case(KEYS, "[default]\nregion = ap-southeast-2\n"),
    "the environment comes before the profile": Case(env(AWS_DEFAULT_REGION="sa-east-1"), "[default]\nregion = us-west-2\n"),
    "the option comes first": Case(env(AWS_DEFAULT_REGION="sa-east-1"), options=of(region="us-west-1")),
    "an empty region": Case(env(AWS_DEFAULT_REGION=""), asks=True),
    "us-east-1": Case(options=of(region="us-east-1")),
    "China": Case(options=of(region="cn-north-1")),
    "GovCloud": Case(options=of(region="us-gov-west-1")),
    "isolated": Case(options=of(region="us-iso-east-1"), asks=True),
    "the region of the partition": Case(options=of(region="aws-global"), asks=True),
    "a region of next year": Case(options=of(region="xx-north-9"), asks=True),
    "virtual, as asked": Case(options=of(region="eu-west-1", path_style=False)),
    # buckets
    "dots in the bucket": Case(options=of(region="eu-west-1"), bucket="a.b.c"),
    "dots, virtual": Case(options=of(region="eu-west-1", path_style=False), bucket="a.b.c"),
    "double dash in the bucket": Case(options=of(region="eu-west-1"), bucket="a--b", asks=True),
    "capitals in the bucket": Case(options=of(region="us-east-1"), bucket="OldBucket", asks=True),
    "underscore on a server": Case(options=of(endpoint="http://127.0.0.1:9"), bucket="my_Bucket"),
    "alias of an access point": Case(options=of(region="eu-west-1"), bucket="abc-s3alias", asks=True),
    "64 characters": Case(options=of(region="eu-west-1"), bucket="a" * 64, asks=True),
    # endpoints
    "an endpoint": Case(options=of(endpoint="http://127.0.0.1:8333")),
    "an endpoint with a path": Case(options=of(endpoint="http://127.0.0.1:8333/s3/")),
    "an endpoint over TLS": Case(options=of(endpoint="https://Minio.Example")),
    "an endpoint of IPv6": Case(options=of(endpoint="http://[::1]:8333")),
    "an endpoint and a region": Case(options=of(endpoint="https://x.r2.cloudflarestorage.com", region="auto")),
    "an endpoint and the region of the profile": Case(KEYS, "[default]\nregion=garage\n", options=of(endpoint="http://h:1")),
    "an endpoint, virtual": Case(options=of(endpoint="https://store.example", path_style=False)),
    "an address, virtual": Case(options=of(endpoint="http://127.0.0.1:9", path_style=False), asks=True),
    "an endpoint with a query": Case(options=of(endpoint="http://127.0.0.1:9/?a=b"), asks=True),
    "an underscore in the endpoint": Case(options=of(endpoint="http://my_minio:9000"), asks=True, fails=True),
    "AWS_ENDPOINT_URL": Case(env(AWS_ENDPOINT_URL="http://127.0.0.1:1")),
    "AWS_ENDPOINT_URL_S3": Case(env(AWS_ENDPOINT_URL="http://127.0.0.1:1", AWS_ENDPOINT_URL_S3="http://127.0.0.1:2")),
    "AWS_ENDPOINT_URL, virtual": Case(env(AWS_ENDPOINT_URL="http://h.example"), options=of(path_style=False)),
    "AWS_ENDPOINT_URL of AWS": Case(env(AWS_ENDPOINT_URL="https://s3.eu-west-1.amazonaws.com"), asks=True),
    "the option before AWS_ENDPOINT_URL": Case(env(AWS_ENDPOINT_URL="http://127.0.0.1:1"), options=of(endpoint="http://h:2")),
    "endpoint_url": Case(KEYS, "[default]\nendpoint_url = http://127.0.0.1:3\n"),
    "a services section": Case(
        KEYS,
        "[default]\nservices = mine\nendpoint_url = http://127.0.0.1:3\n"
        "[services mine]\ns3 =\n  endpoint_url = http://127.0.0.1:4\nsts =\n  endpoint_url = http://127.0.0.1:5\n",
        asks=True,
    ),
    "a services section that is not there": Case(KEYS, "[default]\nservices = mine\n", asks=True, fails=True),
    "the environment before a services section": Case(
        env(AWS_ENDPOINT_URL="http://127.0.0.1:1"),
        "[default]\nservices = mine\n[services mine]\ns3 =\n  endpoint_url = http://127.0.0.1:4\n",
    ),
    "ignored endpoints": Case(env(AWS_ENDPOINT_URL="http://127.0.0.1:1", AWS_IGNORE_CONFIGURED_ENDPOINT_URLS="true")),
    "ignored by the profile": Case(
        env(AWS_ENDPOINT_URL="http://127.0.0.1:1"), "[default]\nignore_configured_endpoint_urls = TRUE\n"
    ),
    # rules of botocore alone
    "dual stack": Case(env(AWS_USE_DUALSTACK_ENDPOINT="true", AWS_DEFAULT_REGION="eu-west-1"), asks=True),
    "FIPS": Case(env(AWS_USE_FIPS_ENDPOINT="true", AWS_DEFAULT_REGION="us-east-2"), asks=True),
    "acceleration": Case(KEYS, "[default]\ns3 =\n  use_accelerate_endpoint = true\n", asks=True),
    "addressing_style of the profile": Case(KEYS, "[default]\nregion = eu-west-1\ns3 =\n  addressing_style = path\n", asks=True),
    "us-east-1 as a region": Case(env(AWS_S3_US_EAST_1_REGIONAL_ENDPOINT="regional"), asks=True),
    "defaults mode": Case(KEYS, "[default]\ndefaults_mode = standard\n", asks=True),
    # proxies
    "a proxy": Case(env(HTTPS_PROXY="http://us%40er:pass@127.0.0.1:3128"), options=of(region="eu-west-1")),
    "no proxy for this host": Case(
        env(HTTPS_PROXY="http://127.0.0.1:3128", NO_PROXY="amazonaws.com"), options=of(region="eu-west-1")
    ),
    "a proxy over TLS": Case(env(HTTPS_PROXY="https://proxy.example:3128"), options=of(region="eu-west-1"), asks=True),
    # keys
    "nobody": Case({}, fails=True),
    "nobody signs nothing": Case({}, options=of(anonymous=True, region="eu-west-1")),
    "anonymous at a server": Case(KEYS, options=of(anonymous=True, endpoint="http://127.0.0.1:9")),
    "a token": Case(env(AWS_SESSION_TOKEN="token")),
    "keys that end": Case(env(AWS_CREDENTIAL_EXPIRATION=END)),
    "half of the keys": Case({"AWS_ACCESS_KEY_ID": "env-key"}, fails=True),
    "an empty key": Case({"AWS_ACCESS_KEY_ID": ""}, credentials=CREDENTIALS),
    "the credentials file": Case({}, credentials=CREDENTIALS),
    "the environment before the file": Case(KEYS, credentials=CREDENTIALS),
    "AWS_PROFILE": Case({"AWS_PROFILE": "other"}, credentials=CREDENTIALS),
    "AWS_DEFAULT_PROFILE before AWS_PROFILE": Case(
        {"AWS_DEFAULT_PROFILE": "default", "AWS_PROFILE": "other"}, credentials=CREDENTIALS
    ),
    "AWS_PROFILE does not beat keys of the environment": Case(env(AWS_PROFILE="other"), credentials=CREDENTIALS),
    "the option does": Case(KEYS, credentials=CREDENTIALS, options=of(profile="other")),
    "no such profile": Case(KEYS, credentials=CREDENTIALS, options=of(profile="nobody"), fails=True),
    "no such AWS_PROFILE": Case(env(AWS_PROFILE="nobody"), fails=True),
    "a profile without keys": Case({"AWS_PROFILE": "empty"}, "[profile empty]\nregion = eu-west-1\n", fails=True),
    "keys in the configuration": Case({}, "[default]\naws_access_key_id = a\naws_secret_access_key = b\n"),
    "keys in a profile of the configuration": Case(
        {"AWS_PROFILE": "x y"}, "[profile 'x y']\naws_access_key_id = a\naws_secret_access_key = b\nregion = eu-west-3\n"
    ),
    "the credentials before the configuration": Case(
        {}, "[default]\naws_access_key_id = a\naws_secret_access_key = b\n", CREDENTIALS
    ),
    "a profile without its prefix": Case(
        {"AWS_PROFILE": "x"}, "[x]\naws_access_key_id = a\naws_secret_access_key = b\n", fails=True
    ),
    "defaults for all sections": Case({"AWS_PROFILE": "other"}, "[DEFAULT]\nregion = eu-west-2\n[profile other]\na = b\n", CREDENTIALS),
    "a file that is no INI": Case(KEYS, "aws_secr", fails=True),
    "an indented block that is none": Case(KEYS, "[default]\ns3 =\n  nonsense\n", fails=True),
    # other sources
    "a process": Case({}, f"[default]\ncredential_process = {PROCESS % ''}\n"),
    "a process with a token": Case({}, "[default]\ncredential_process = " + PROCESS % f", SessionToken='t', Expiration='{END}'"),
    "a process that fails": Case({}, f"[default]\ncredential_process = {sys.executable} -c 'exit(3)'\n", fails=True),
    "a process of another version": Case({}, "[default]\ncredential_process = echo '{\"Version\": 2}'\n", fails=True),
    "a process that says no JSON": Case({}, "[default]\ncredential_process = echo no\n", fails=True),
    "no such process": Case({}, "[default]\ncredential_process = /nowhere/at/all\n", fails=True),
    "a role over a profile": Case(
        {"AWS_PROFILE": "r", "AWS_ENDPOINT_URL_STS": "http://127.0.0.1:9"}, "[profile r]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = default\nregion=eu-west-1\n", CREDENTIALS, fails=True
    ),
    "a file of boto 2": Case({"BOTO_CONFIG": "~/.aws/boto2"}),
}  # fmt: skip


def plain(found: RequestPlan) -> tuple[Any, ...]:
    route = found.route
    keys = found.identity.credentials if route.signed else None
    credentials = keys and (keys.access_key, keys.secret_key, keys.token)
    return route.endpoint, route.path, route.region, route.service, route.signed, credentials


def by_botocore(options: S3Options, bucket: str) -> tuple[Any, ...] | str:
    """What botocore resolves, or its error."""
    try:
        with closing(s3_client.new_client(options)) as client:
            route = learn_route(client, bucket)
            assert route is not None
            return plain(RequestPlan(route, BotocoreIdentity(lambda: client._request_signer._credentials, ""), ""))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def by_us(options: S3Options, bucket: str) -> tuple[tuple[Any, ...] | str, str]:
    """What we resolve, or the error; and why botocore is asked."""
    with mock.patch.object(account, "learn_plan", return_value=None) as learn:
        try:
            found = account.account_of(options.profile).plan(options, bucket)
            return "asked" if found is None else plain(found), learn.call_args.args[2] if learn.called else ""
        except ConfigurationError as error:
            return f"ConfigurationError: {error}", ""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a file below `~/.aws`, in a home of its own without any setting."""
    for name in list(os.environ):
        if name.startswith("AWS_") or name.lower().endswith("_proxy") or name in ("BOTO_CONFIG", "REQUESTS_CA_BUNDLE"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    # Both are read when botocore is imported.
    for module in ("botocore.credentials.SSOProvider", "botocore.tokens.SSOTokenProvider"):
        monkeypatch.setattr(f"{module}._SSO_TOKEN_CACHE_DIR", str(tmp_path / ".aws" / "sso" / "cache"))

    def write(name: str, text: str) -> Path:
        path = tmp_path / ".aws" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return write


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_same_as_botocore(name: str, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    for variable, value in case.environment.items():
        monkeypatch.setenv(variable, value)
    for file, text in (("config", case.config), ("credentials", case.credentials)):
        if text is not None:
            write(file, text)
    write("boto2", "[Credentials]\naws_access_key_id = old\naws_secret_access_key = old\n")
    options = S3Options(**case.options)
    expected, (found, asked) = by_botocore(options, case.bucket), by_us(options, case.bucket)
    assert bool(asked) == case.asks, (asked, expected, found)
    if case.fails:
        assert isinstance(expected, str)
        assert isinstance(found, str)
    elif not case.asks:
        assert found == expected


def test_files_are_read_as_utf_8(write: Write) -> None:
    """A read in the encoding of the locale is an error here."""
    write("config", "[profile a]\nregion = eu-west-1\n")
    options = ["-X", "warn_default_encoding", "-W", "error::EncodingWarning"]
    code = "from monocontext.stores.s3.account import account_of; print(account_of('a').settings.region())"
    assert subprocess.check_output([sys.executable, *options, "-c", code], text=True) == "eu-west-1\n"


def test_a_line_that_is_no_setting_is_named(write: Write) -> None:
    path = write("config", "[default]\ns3 =\n  nonsense\n")
    expected = f"ConfigurationError: {path} cannot be parsed: a line below s3 in [default] is not a setting"
    assert by_us(S3Options(), "bucket")[0] == expected


def test_resolved_in_less_than_a_millisecond(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second store in the process reads no file: as many calls of the parser as there are files."""
    parsed = []
    parse = configparser.RawConfigParser.read_string
    monkeypatch.setattr(configparser.RawConfigParser, "read_string", lambda *given: parsed.append(1) or parse(*given))
    write("config", "[default]\nregion = eu-west-1\n")
    path = write("credentials", CREDENTIALS)
    for _ in range(20):
        by_us(S3Options(), "bucket")
    assert len(parsed) == 2
    path.write_text(CREDENTIALS.replace("default-key", "newer-key"))
    assert by_us(S3Options(), "bucket")[0][-1][0] == "newer-key"
