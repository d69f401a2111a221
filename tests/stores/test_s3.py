"""S3 in particular: answers that must not be believed, errors in words, real signatures, fork and pickle."""

from __future__ import annotations

import pickle
from contextlib import closing

import pytest

from monocontext.errors import (
    AccessDenied,
    AlreadyExists,
    DamagedData,
    InvalidUrl,
    NotFound,
    NotPicklable,
    StoreFailure,
    Unsupported,
)
from monocontext.stores import open_store
from monocontext.stores.protocol import CONTENT_TYPE
from monocontext.stores.s3 import client as s3_client
from monocontext.stores.s3.errors import translate_errors
from monocontext.testing import SeaweedServer

from .http.object_server import GOOD, ObjectServer, Turn, error

URL = "s3://bucket/ctx"


def scripted(*turns: Turn) -> ObjectServer:
    """Serves these answers, the last of them again and again."""
    return ObjectServer(b"abcdefghij", *turns, repeats=True)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Turn(206, b"cd", {"Content-Range": "bytes 2-3/10"}), "expected Content-Range bytes 2-5/"),
        (Turn(206, b"bcde", {"Content-Range": "bytes 1-4/10"}), "found bytes 1-4/10"),
        (Turn(206, b"cdefg", {"Content-Range": "bytes 2-6/10"}), "found bytes 2-6/10"),
        (Turn(206, b"cde", {"Content-Range": "bytes 2-5/10"}), "expected 4 bytes from byte 2, found 3"),
        (Turn(206, b"cdefg", {"Content-Range": "bytes 2-5/10"}), "expected 4 bytes from byte 2, found 5"),
        (Turn(206, b"cd", {"Content-Range": "bytes 2-3/4"}), "expected bytes 2 to 6, found 4 bytes in all"),
        (Turn(206, b"cdef", {"Content-Range": "bytes 2-5/*"}), r"found bytes 2-5/\*"),
        (Turn(206, b"cdef"), "found None"),
        (Turn(200, b"abcdefghij"), "expected HTTP 206, found HTTP 200"),
        (Turn(206, b"cdef", {"Content-Range": "bytes 2-5/10", "ETag": ""}), "no ETag"),
        (error(416, "InvalidRange"), "ends before"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_a_range_that_is_not_what_was_asked(answer: Turn, said: str) -> None:
    with scripted(answer) as server:
        store = open_store(URL, endpoint=server.endpoint)
        with pytest.raises(DamagedData, match=said) as caught:
            store.get_range("a", 2, 4)
        assert f"{URL}/a" in str(caught.value)
        assert len(server.asked) == 1


def test_a_cut_body_is_asked_for_again() -> None:
    cut = Turn(206, b"cdef", {"Content-Range": "bytes 2-5/10"}, cut_at=2)
    with scripted(cut, cut, GOOD) as server:
        # Our own transport asks for what is missing: http/test_faults.py
        store = open_store(URL, endpoint=server.endpoint, transport="boto3")
        assert store.get_range("a", 2, 4, etag="e1").data == b"cdef"
        assert [request.headers["range"] for request in server.asked] == ["bytes=2-5"] * 3
        assert {request.headers["if-match"] for request in server.asked} == {'"e1"'}


@pytest.mark.parametrize("whole", [True, False], ids=["get", "get_range"])
def test_a_body_that_is_always_cut(whole: bool) -> None:
    answer = Turn(200 if whole else 206, b"cdef", {"Content-Range": "" if whole else "bytes 2-5/10"}, cut_at=1)
    with scripted(answer) as server:
        store = open_store(URL, endpoint=server.endpoint, transport="boto3")
        with pytest.raises(StoreFailure, match=f"{URL}/a: the response body broke off 4 times"):
            store.get("a") if whole else store.get_range("a", 2, 4)
        assert len(server.asked) == 4


LISTED = "<Name>bucket</Name><Contents><Key>ctx/a</Key><Size>1</Size><ETag>e</ETag></Contents>"
PORTAL = Turn(200, b"<html><body>Please log in</body></html>", {"Content-Type": "text/html"})


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (PORTAL, f"{URL}/: expected the listing of an S3 server, found text/html"),
        (Turn(200, b"", {"Content-Type": "text/plain"}), "expected the listing of an S3 server, found text/plain"),
        (
            Turn(200, f"<ListBucketResult>{LISTED}<IsTruncated>true</IsTruncated></ListBucketResult>".encode()),
            f"{URL}/: the listing is incomplete",
        ),
    ],
)
def test_a_listing_that_is_cut_or_none_is_an_error(answer: Turn, said: str) -> None:
    """Its end would count as the end of all objects, and `gc` or `sync --delete` would remove what it misses."""
    with scripted(answer) as server, pytest.raises(StoreFailure, match=said):
        list(open_store(URL, endpoint=server.endpoint).list())


def test_an_object_that_is_listed_twice_counts_once() -> None:
    """`index` would store its text twice."""
    listed = 2 * LISTED.replace("<Size>", "<LastModified>2026-11-30T00:00:00Z</LastModified><Size>")
    answer = Turn(200, f"<ListBucketResult>{listed}<IsTruncated>false</IsTruncated></ListBucketResult>".encode())
    with scripted(answer) as server:
        assert [info.key for info in open_store(URL, endpoint=server.endpoint).list()] == ["a"]


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (error(404, "NoSuchKey"), NotFound, "nothing at s3://bucket/ctx/a"),
        (error(404, "NoSuchBucket"), NotFound, "no bucket 'bucket': s3://bucket/ctx/a"),
        (error(403, "AccessDenied"), AccessDenied, "s3://bucket/ctx/a was refused: HTTP 403 AccessDenied"),
        (error(400, "ExpiredToken"), AccessDenied, "s3://bucket/ctx/a was refused: HTTP 400 ExpiredToken"),
        (error(400, "AuthorizationHeaderMalformed"), Unsupported, "region"),
        (error(400, "KeyTooLongError"), Unsupported, "s3://bucket/ctx/a: HTTP 400 KeyTooLongError"),
        (error(400, "Unheard"), StoreFailure, "s3://bucket/ctx/a: HTTP 400 Unheard"),
        (error(501, "NotImplemented"), Unsupported, "s3://bucket/ctx/a: HTTP 501 NotImplemented"),
        (error(402, "QuotaExceeded"), Unsupported, "s3://bucket/ctx/a: HTTP 402 QuotaExceeded"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_errors_in_words(answer: Turn, kind: type[Exception], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_client, "S3_ATTEMPTS", 1)
    with scripted(answer) as server:
        store = open_store(URL, endpoint=server.endpoint)
        for ask in (store.get, lambda key: store.get_range(key, 0, 1), lambda key: store.put(key, b"x")):
            with pytest.raises(kind, match=said) as caught:
                ask("a")
            assert type(caught.value) is kind
            assert "\n" not in str(caught.value)


def test_a_head_that_is_refused_is_asked_no_more() -> None:
    """Its answer has no code that would say why."""
    with scripted(error(400, "ExpiredToken")) as server, pytest.raises(Unsupported, match="HTTP 400"):
        open_store(URL, endpoint=server.endpoint).head("a")


WRONG_REGION = "s3://bucket/ctx/a is in the region eu-west-9: open it with region='eu-west-9': HTTP "


@pytest.mark.parametrize("transport", ["own", "boto3"])
@pytest.mark.parametrize("status", [301, 400])
def test_the_error_of_a_wrong_region_names_the_right_one(transport: str, status: int) -> None:
    code = "PermanentRedirect" if status == 301 else "AuthorizationHeaderMalformed"
    answer = error(status, code, "Wrong", **{"x-amz-bucket-region": "eu-west-9"})
    with scripted(answer) as server:
        store = open_store(URL, endpoint=server.endpoint, transport=transport)
        for ask in (store.get, store.head, lambda key: store.put(key, b"x")):
            with pytest.raises(Unsupported, match=WRONG_REGION):
                ask("a")


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["own", "boto3"])
def test_a_server_that_always_leads_elsewhere(transport: str) -> None:
    """Without the name of a region botocore asks for it, is led elsewhere, asks for it: until Python's stack ends."""
    with scripted(error(301, "PermanentRedirect", "Elsewhere")) as server:
        store = open_store(URL, endpoint=server.endpoint, transport=transport)
        asks = (store.get, store.head, lambda key: store.put(key, b"x"), store.delete, lambda key: list(store.list()))
        for ask in asks:
            with pytest.raises(Unsupported, match=r"is in another region|redirects in circles"):
                ask("a")


def test_the_recursion_of_a_caller_is_not_that_of_redirects() -> None:
    def recurse() -> None:
        recurse()

    with pytest.raises(RecursionError), translate_errors(URL):
        recurse()


@pytest.mark.parametrize("answer", [error(412, "PreconditionFailed"), error(409, "ConditionalRequestConflict")])
def test_a_lost_race(answer: Turn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_client, "S3_ATTEMPTS", 2)
    with scripted(answer) as server:
        store = open_store(URL, endpoint=server.endpoint)
        with pytest.raises(AlreadyExists, match=f"{URL}/a"):
            store.put("a", b"x", if_absent=True)
        *_, request = server.asked  # a 409 is asked again
        assert request.headers["if-none-match"] == "*"
        assert request.headers["content-type"] == CONTENT_TYPE


def test_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with scripted(GOOD) as server:
        with pytest.raises(AccessDenied, match=f"no credentials for {URL}/a: set AWS_ACCESS_KEY_ID"):
            open_store(URL, endpoint=server.endpoint).get("a")
        assert server.asked == []
        assert open_store(URL, endpoint=server.endpoint, anonymous=True).get_range("a", 2, 4).data == b"cdef"
        assert "authorization" not in server.asked[0].headers


@pytest.mark.parametrize(
    "endpoint", ["", "127.0.0.1 9", "http://", "http://[::1", "http://[zz]", "http://a b", "http://a:99999", "ftp://a"]
)
def test_an_endpoint_that_is_no_url(endpoint: str) -> None:
    with pytest.raises(InvalidUrl, match="endpoint must be a URL such as"):
        open_store(URL, endpoint=endpoint).get("a")


@pytest.mark.slow
def test_pickle_carries_how_to_connect_and_no_client(seaweed: SeaweedServer) -> None:
    store = open_store(seaweed.url("pickled"), endpoint=seaweed.endpoint, path_style=True)
    store.put("a", b"x")
    frozen = pickle.dumps(store)
    assert seaweed.secret_key.encode() not in frozen
    copy = pickle.loads(frozen)
    assert (copy.url, copy.get("a").data) == (store.url, b"x")
    given = open_store(seaweed.url("pickled"), client=seaweed.client())
    assert given.get("a").data == b"x"
    with pytest.raises(NotPicklable, match="opened with client="):
        pickle.dumps(given)


def test_wrong_secret_and_unknown_key(seaweed: SeaweedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    url = seaweed.url("signed")
    open_store(url, endpoint=seaweed.endpoint).put("a", b"x")
    with pytest.raises(AccessDenied, match=f"{url}/a"):
        open_store(url, endpoint=seaweed.endpoint, anonymous=True).get("a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    store = open_store(url, endpoint=seaweed.endpoint)
    for ask in (store.get, store.head, lambda key: store.put(key, b"y"), lambda _: list(store.list())):
        with pytest.raises(AccessDenied, match=url):
            ask("a")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    with pytest.raises(AccessDenied, match="InvalidAccessKeyId"):
        open_store(url, endpoint=seaweed.endpoint).get("a")


def test_content_type_is_ours(seaweed: SeaweedServer) -> None:
    """Else the server compresses text, and inflates it for every range."""
    store = open_store(seaweed.url("typed"), endpoint=seaweed.endpoint)
    store.put("small", b"text " * 1000)
    store.put("large", b"text " * 4_000_000)
    for key in ("small", "large"):
        head = seaweed.client().head_object(Bucket=seaweed.bucket, Key=f"typed/{key}")
        assert head["ContentType"] == CONTENT_TYPE
    assert store.head("large").etag.endswith("-3")


def test_an_upload_in_parts_that_fails_leaves_nothing(seaweed: SeaweedServer) -> None:
    client = seaweed.client()
    store = open_store(seaweed.url("parts"), client=client)

    def refuse(params: dict[str, object], **_: object) -> None:
        if params["url_path"].endswith("/large") and params["query_string"].get("partNumber") == 2:  # type: ignore[attr-defined]
            raise ConnectionResetError("on purpose")

    client.meta.events.register("before-call.s3.UploadPart", refuse)
    with pytest.raises(StoreFailure, match="parts/large: on purpose"):
        store.put("large", b"x" * (17 << 20))
    with pytest.raises(NotFound):
        store.head("large")
    pending = client.list_multipart_uploads(Bucket=seaweed.bucket, Prefix="parts/").get("Uploads", [])
    assert pending == []


def test_an_empty_object_leaves_the_connection_usable(seaweed: SeaweedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """SeaweedFS is silent after an empty body that was announced by `Expect`: the next request took 10 s, and two."""
    from botocore.httpsession import URLLib3Session

    sent, send = [], URLLib3Session.send
    monkeypatch.setattr(URLLib3Session, "send", lambda self, request: sent.append(request) or send(self, request))
    with closing(open_store(seaweed.url("empty"), endpoint=seaweed.endpoint)) as store:
        for number in range(3):
            etag = store.put(f"empty-{number}", b"", if_absent=True)
            store.put(f"full-{number}", b"x")
            blob = store.get(f"empty-{number}")
            assert (blob.data, blob.etag) == (b"", etag)
        assert store.head("empty-0").size_bytes == 0
    assert len(sent) == 7, "a request had to be made twice"
