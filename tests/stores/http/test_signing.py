"""Our signatures are botocore's."""

from __future__ import annotations

import datetime
from unittest import mock
from urllib.parse import quote

import botocore.auth
import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials
from botocore.utils import percent_encode
from hypothesis import given
from hypothesis import strategies as st

from monocontext.stores.http.route import Credentials
from monocontext.stores.s3.account import Signer

AWKWARD = st.text(st.sampled_from("aZ09-_.~ +%&=?#;,:@!$'()*[]\"\\^`{|}<>äß€語😀\t"), min_size=1, max_size=20)
KEYS = st.lists(AWKWARD | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/"), min_size=1)).map(
    lambda parts: "/".join(parts) or "k"
)
TOKENS = st.none() | st.text(st.sampled_from("abcXYZ019+/="), min_size=1, max_size=60)
PAIRS = st.lists(st.tuples(AWKWARD, AWKWARD), max_size=4)
VALUES = st.text(st.sampled_from('abc019 -="*,/'), min_size=1, max_size=20).filter(lambda value: value.strip())
NOW = st.datetimes(datetime.datetime(1990, 1, 1), datetime.datetime(2090, 1, 1)).map(
    lambda moment: moment.replace(microsecond=0, tzinfo=datetime.UTC)
)


@pytest.mark.skipif(not hasattr(botocore.auth, "get_current_datetime"), reason="a botocore whose clock we cannot set")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@given(
    key=KEYS,
    pairs=PAIRS,
    token=TOKENS,
    secret=st.text(st.characters(codec="ascii"), min_size=1),
    region=st.sampled_from(["us-east-1", "eu-central-1", "xx"]),
    host=st.sampled_from(["bucket.s3.eu-central-1.amazonaws.com", "127.0.0.1:8333", "localhost"]),
    headers=st.dictionaries(st.sampled_from(["Range", "If-Match", "X-Amz-Meta-A", "x-amz-request-payer"]), VALUES),
    now=NOW,
)
def test_equal_to_botocore(
    key: str,
    pairs: list[tuple[str, str]],
    token: str | None,
    secret: str,
    region: str,
    host: str,
    headers: dict[str, str],
    now: datetime.datetime,
) -> None:
    path = "/" + quote(key, safe="/-_.~")
    assert path == "/" + percent_encode(key, safe="/~")  # as botocore puts a key into a URL
    query = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in pairs)
    target = path + (f"?{query}" if query else "")
    request = AWSRequest("GET", f"https://{host}{target}", dict(headers))
    request.context["timestamp"] = ""
    with mock.patch.object(botocore.auth, "get_current_datetime", return_value=now.replace(tzinfo=None)):
        S3SigV4Auth(BotoCredentials("ACCESS/KEY", secret, token), "s3", region).add_auth(request)
    signer = Signer(Credentials("ACCESS/KEY", secret, token), region)
    signed = signer.headers("GET", host, target, headers, now.timestamp())
    assert signed["authorization"] == request.headers["Authorization"]
    assert signed["x-amz-date"] == request.headers["X-Amz-Date"]
    assert signed.get("x-amz-security-token") == request.headers.get("X-Amz-Security-Token")


def test_the_key_of_a_day_is_made_once_and_anew_at_midnight() -> None:
    signer = Signer(Credentials("a", "s"), "r")
    midnight = datetime.datetime(2026, 11, 23, tzinfo=datetime.UTC).timestamp()

    def stamp(now: float) -> str:
        return signer.headers("GET", "h", "/k", {}, now)["authorization"]

    before, again, after = stamp(midnight - 1), stamp(midnight - 1), stamp(midnight)
    assert before == again
    assert "/20261122/" in before
    assert "/20261123/" in after
    assert after == Signer(Credentials("a", "s"), "r").headers("GET", "h", "/k", {}, midnight)["authorization"]


def test_secrets_do_not_show() -> None:
    shown = repr(Credentials("access", "very-secret", "very-token"))
    assert "access" in shown
    assert "very" not in shown
