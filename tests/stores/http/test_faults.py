"""What goes wrong on the way, and what the reader sees of it: the right bytes, or a typed error, soon."""

from __future__ import annotations

import random
import time
import zlib
from email.utils import formatdate

import pytest
from faults.gauges import connections

from monocontext.errors import AccessDenied, ContextChanged, DamagedData, NotFound, StoreFailure, Unsupported
from monocontext.stores import open_store
from monocontext.stores.http import client
from monocontext.stores.http.client import MOST_RETRIES
from monocontext.stores.s3 import client as s3_client
from monocontext.stores.s3.store import S3Store

from .object_server import GOOD, ObjectServer, Turn, error

DATA = random.Random(5).randbytes(300_000)
URL = "s3://bucket/ctx"
START, LENGTH = 1000, 200_000
WANTED = DATA[START : START + LENGTH]


def store_at(server: ObjectServer, **options: object) -> S3Store:
    store = open_store(URL, endpoint=server.endpoint, **options)
    assert isinstance(store, S3Store)
    return store


def transport_of(store: S3Store) -> client.Client:
    transport = store._connection.transport("bucket")
    assert transport is not None
    return transport


def ranges(server: ObjectServer) -> list[str]:
    return [item.headers.get("range", "") for item in server.asked]


def read(store: S3Store, etag: str | None = None) -> bytes:
    blob = store.get_range("a", START, LENGTH, etag=etag)
    assert (type(blob.data), blob.etag, blob.total_bytes) == (bytes, "e1", len(DATA))
    return blob.data


def test_connections_are_kept() -> None:
    with ObjectServer(DATA) as server:
        store = store_at(server)
        for _ in range(5):
            assert read(store, "e1") == WANTED
        assert store.get("a").data == DATA
        assert (server.connections, len(server.asked)) == (1, 6)
        assert {item.headers["accept-encoding"] for item in server.asked} == {"identity"}
        assert connections(transport_of(store).pool) == (1, 0)


def test_nothing_is_kept_where_nothing_may_be_alive_between_calls() -> None:
    with ObjectServer(DATA) as server:
        store = store_at(server, keep_alive=False)
        for _ in range(3):
            assert read(store) == WANTED
        assert server.connections == 3
        assert connections(transport_of(store).pool) == (0, 0)


def test_a_connection_that_was_closed_while_it_waited() -> None:
    """Neither an error nor a retry that costs anything, whether the closing was seen or not."""
    with ObjectServer(DATA, GOOD, Turn(close=True)) as server:
        store = store_at(server)
        assert read(store) == WANTED
        server.hang_up()
        time.sleep(0.05)
        assert [read(store) == WANTED for _ in range(3)] == [True] * 3
        assert (server.connections, len(server.asked)) == (3, 4)
        assert round(transport_of(store).budget._retries, 1) == MOST_RETRIES


@pytest.mark.slow
@pytest.mark.parametrize("stall_at", [-1, 0, 1, 100_000, LENGTH - 1], ids=lambda offset: f"at {offset}")
def test_a_stalled_body_is_recovered_long_before_silence_is_an_error(
    stall_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_client, "READ_TIMEOUT_SECONDS", 3600.0)
    with ObjectServer(DATA, Turn(stall_at=stall_at)) as server:
        store = store_at(server)
        assert store._connection.transport("bucket") is not None  # boto3 is made, which is not what is measured
        assert read(store) == WANTED  # after 1.0 to 1.3 s where the machine has time; silence is an error after an hour
        missing = START + max(stall_at, 0)
        assert ranges(server) == ["bytes=1000-200999", f"bytes={missing}-200999"]
        assert server.connections == 2
        # Once a version has been seen, nothing else will do.
        assert server.asked[1].headers.get("if-match") == ('"e1"' if stall_at >= 0 else None)


@pytest.mark.parametrize("transport", ["own", "boto3"])
def test_a_seeded_sequence_is_not_disturbed(transport: str) -> None:
    """Code that seeds `random`, to draw the same windows again, draws them whatever had to be asked for again."""
    with ObjectServer(DATA, Turn(cut_at=100), Turn(cut_at=7)) as server:
        random.seed(9)
        state = random.getstate()
        assert read(store_at(server, transport=transport)) == WANTED
        assert len(server.asked) == 3
        assert random.getstate() == state


@pytest.mark.slow
def test_silence_again_and_again_ends_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_client, "S3_ATTEMPTS", 2)
    monkeypatch.setattr(s3_client, "READ_TIMEOUT_SECONDS", 1.2)
    with ObjectServer(DATA, *[Turn(stall_at=5)] * 2) as server:
        with pytest.raises(StoreFailure, match=rf"^{URL}/a: the server sent no byte for 1\.2 s \(2 attempts\)$"):
            read(store_at(server))
        assert ranges(server) == ["bytes=1000-200999", "bytes=1005-200999"]


def test_a_slow_drip_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "DEADLINE_SECONDS", 0.3)
    with ObjectServer(DATA, Turn(drip_seconds=0.02)) as server:
        store = store_at(server)
        with pytest.raises(StoreFailure, match=r"not complete within its time limit of \d+\.\d s"):
            store.get_range("a", 0, 1000)


def test_a_cut_body_is_resumed() -> None:
    with ObjectServer(DATA, Turn(cut_at=50_000), Turn(cut_at=70_000), Turn(reset=True)) as server:
        assert read(store_at(server)) == WANTED
        rest = "bytes=121000-200999"
        assert ranges(server) == ["bytes=1000-200999", "bytes=51000-200999", rest, rest]
        assert [item.headers.get("if-match") for item in server.asked] == [None] + ['"e1"'] * 3


def test_a_cut_whole_is_resumed() -> None:
    with ObjectServer(DATA, Turn(cut_at=0), Turn(cut_at=10), Turn(cut_at=10)) as server:
        blob = store_at(server).get("a")
        assert (blob.data, blob.total_bytes) == (DATA, len(DATA))
        assert ranges(server) == ["", "", "bytes=10-299999", "bytes=20-299999"]


def test_a_body_that_is_always_cut() -> None:
    with ObjectServer(DATA, *[Turn(cut_at=1)] * 9) as server:
        with pytest.raises(
            StoreFailure, match=f"{URL}/a: the response body broke off 4 times; the last error was: the "
        ):
            store_at(server).get("a")
        assert len(server.asked) == 4


@pytest.mark.slow
@pytest.mark.parametrize("cut", [{"cut_at": 20_000}, {"cut_at": 20_000, "chunk_bytes": 1000}, {"stall_at": 20_000}])
def test_a_line_that_breaks_again_and_again_is_used_as_long_as_it_brings_bytes(
    cut: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_client, "READ_TIMEOUT_SECONDS", 0.5 if "stall_at" in cut else 60.0)
    with ObjectServer(DATA, *[Turn(**cut)] * 9) as server:  # type: ignore[arg-type]
        store = store_at(server)
        assert read(store) == WANTED
        assert len(server.asked) == len(set(ranges(server))) == 10
        assert round(transport_of(store).budget._retries, 1) == MOST_RETRIES


def test_an_object_replaced_between_two_parts_of_one_read() -> None:
    for second in (Turn(headers={"ETag": '"e2"'}), error(412, "PreconditionFailed")):
        with ObjectServer(DATA, Turn(cut_at=50_000), second) as server:
            with pytest.raises(ContextChanged, match=f"{URL}/a was replaced: expected ETag e1"):
                read(store_at(server))
            assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (Turn(200, DATA, {"Content-Range": ""}), "expected HTTP 206, found HTTP 200"),
        (Turn(headers={"Content-Range": "bytes 1000-200999/300000"}), "found bytes 1000-200999/300000"),
        (Turn(headers={"Content-Range": "bytes 51000-200999/300001"}), "expected 300,000 bytes in all, found 300001"),
    ],
)
def test_a_rest_that_is_not_what_was_asked(second: Turn, said: str) -> None:
    with ObjectServer(DATA, Turn(cut_at=50_000), second) as server, pytest.raises(DamagedData, match=said):
        read(store_at(server))


@pytest.mark.parametrize("chunk_bytes", [1, 7, 65536, 1 << 20])
def test_chunked_bodies(chunk_bytes: int) -> None:
    data = DATA[:5000] if chunk_bytes < 10 else DATA
    with ObjectServer(data, *[Turn(chunk_bytes=chunk_bytes)] * 2) as server:
        store = store_at(server)
        assert store.get_range("a", 5, 4000).data == data[5:4005]
        blob = store.get("a")
        assert (blob.data, blob.total_bytes) == (data, len(data))
        assert store.get("a").data == data
        assert server.connections == 1


@pytest.mark.parametrize("transport", ["own", "boto3"])
def test_what_a_proxy_does_to_a_response(transport: str) -> None:
    """It compresses a body, though nobody asked for that; it weakens the ETag of one that is cut."""
    compressed = Turn(body=zlib.compress(DATA), headers={"Content-Encoding": "deflate"}, chunk_bytes=1000)
    weak = {"ETag": 'W/"e1"'}
    with ObjectServer(DATA, compressed, Turn(cut_at=50_000, headers=weak), Turn(headers=weak)) as server:
        store = store_at(server, transport=transport)
        said = r"a proxy compressed the response \(deflate\)" if transport == "own" else "does not state its length"
        with pytest.raises(DamagedData, match=said):
            store.get("a")
        assert read(store, "e1") == WANTED
        assert {item.headers["if-match"] for item in server.asked[1:]} == {'"e1"'}


def test_a_chunked_body_that_is_cut() -> None:
    """A whole of unknown length is read again: nothing says how much is missing."""
    cut = Turn(chunk_bytes=1000, cut_at=50_000)
    with ObjectServer(DATA, cut, GOOD, cut) as server:
        store = store_at(server)
        assert read(store) == WANTED
        assert store.get("a").data == DATA
        assert ranges(server)[0] == "bytes=1000-200999"
        assert ranges(server)[1].startswith("bytes=50")
        assert ranges(server)[2:] == ["", ""]


def test_chunks_that_bring_more_or_less_than_was_asked() -> None:
    said = {"Content-Range": f"bytes {START}-{START + LENGTH - 1}/{len(DATA)}"}
    for body, result in ((WANTED + b"x", "found more"), (WANTED[:-1], "expected 200,000 bytes, found 199,999")):
        with ObjectServer(DATA, Turn(body=body, headers=said, chunk_bytes=5000)) as server:
            with pytest.raises(DamagedData, match=result):
                read(store_at(server))
            assert len(server.asked) == 1


def test_bytes_after_a_body_answer_no_other_request() -> None:
    said = {"Content-Range": "bytes 0-4/300000", "Content-Length": "5"}
    with ObjectServer(DATA, Turn(body=DATA[:5] + b"HTTP/1.1 204 No\r\n\r\n", headers=said)) as server:
        store = store_at(server)
        assert [store.get_range("a", 0, 5).data for _ in range(2)] == [DATA[:5]] * 2
        assert server.connections == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "turn",
    [error(503, "SlowDown"), error(500, "InternalError"), Turn(503, b"<html>"), Turn(502, b""), error(200, "SlowDown")],
    ids=["503", "500", "html", "502", "200"],
)
def test_an_overloaded_server_is_asked_again_on_the_same_connection(turn: Turn) -> None:
    with ObjectServer(DATA, turn, turn) as server:
        assert read(store_at(server)) == WANTED
        assert (len(server.asked), server.connections) == (3, 1)


def test_without_budget_the_first_failure_counts_and_silence_is_waited_out() -> None:
    with ObjectServer(DATA, error(503, "SlowDown")) as server:
        store = store_at(server)
        while transport_of(store).budget.take():
            pass
        with pytest.raises(StoreFailure, match="SlowDown"):
            read(store)
        assert len(server.asked) == 1


def test_what_is_no_http() -> None:
    with ObjectServer(DATA, Turn(headers={"Content-Length": "many"})) as server:
        assert read(store_at(server)) == WANTED
        assert (len(server.asked), server.connections) == (2, 2)


@pytest.mark.parametrize(
    ("turn", "kind"),
    [
        (error(404, "NoSuchKey"), NotFound),
        (error(403, "AccessDenied"), AccessDenied),
        (error(200, "AccessDenied"), AccessDenied),
        (Turn(403, b""), AccessDenied),
    ],
)
def test_refusals_are_not_repeated(turn: Turn, kind: type[Exception]) -> None:
    with ObjectServer(DATA, turn) as server:
        with pytest.raises(kind, match=f"{URL}/a"):
            read(store_at(server))
        assert (len(server.asked), server.connections) == (1, 1)


def test_expired_credentials_are_renewed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with ObjectServer(DATA, GOOD, error(400, "ExpiredToken")) as server:
        store = store_at(server)
        assert read(store) == WANTED
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "renewed")
        monkeypatch.setenv("AWS_SESSION_TOKEN", "fresh/token==")
        assert read(store) == WANTED
        old, refused, new = [item.headers for item in server.asked]
        assert "Credential=devaccess/" in old["authorization"]
        assert "Credential=devaccess/" in refused["authorization"]
        assert "Credential=renewed/" in new["authorization"]
        assert "x-amz-security-token," in new["authorization"]
        assert new["x-amz-security-token"] == "fresh/token=="
        assert server.connections == 1
    with ObjectServer(DATA, *[error(400, "ExpiredToken")] * 9) as server:
        with pytest.raises(AccessDenied, match="ExpiredToken"):
            read(store_at(server))
        assert len(server.asked) == 2


def test_the_server_s_clock_is_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = formatdate(time.time() + 7200, usegmt=True)
    with ObjectServer(DATA, error(403, "RequestTimeTooSkewed", Date=ahead)) as server:
        store = store_at(server)
        assert [read(store), read(store)] == [WANTED, WANTED]
        first, second, third = [time.strptime(item.headers["x-amz-date"], "%Y%m%dT%H%M%SZ") for item in server.asked]
        assert 7190 < time.mktime(second) - time.mktime(first) < 7210
        assert time.mktime(third) - time.mktime(second) < 10
    with ObjectServer(DATA, *[error(403, "RequestTimeTooSkewed", Date=ahead)] * 9) as server:
        with pytest.raises(AccessDenied, match="RequestTimeTooSkewed"):
            read(store_at(server))
        assert len(server.asked) == 2
    for no_date in ("soon", f"Mon, 01 Jan {'9' * 20} 00:00:00 GMT", f"Mon, 01 Jan 2020 00:00:00 +{'9' * 20}"):
        with ObjectServer(DATA, *[error(403, "RequestTimeTooSkewed", Date=no_date)] * 9) as server:
            with pytest.raises(AccessDenied, match="RequestTimeTooSkewed"):
                read(store_at(server))
            assert len(server.asked) == 1


@pytest.mark.parametrize(
    "turn",
    [
        error(301, "PermanentRedirect", **{"x-amz-bucket-region": "eu-west-9"}),
        error(400, "AuthorizationHeaderMalformed", "<Region>eu-west-9</Region>"),
    ],
    ids=["301", "400"],
)
def test_a_bucket_in_another_region(turn: Turn) -> None:
    with ObjectServer(DATA, turn) as server:
        store = store_at(server)
        assert [read(store), read(store)] == [WANTED, WANTED]
        regions = [item.headers["authorization"].split("/")[2] for item in server.asked]
        assert regions == ["us-east-1", "eu-west-9", "eu-west-9"]
    with ObjectServer(DATA, turn, turn) as server:
        with pytest.raises(Unsupported, match="is in the region eu-west-9: open it with region='eu-west-9': HTTP "):
            read(store_at(server))
        assert len(server.asked) == 2


def test_a_temporary_redirect_is_followed_for_this_once() -> None:
    with ObjectServer(DATA, error(307, "TemporaryRedirect", Location="/elsewhere/b%20c?x=y")) as server:
        store = store_at(server)
        assert [read(store), read(store)] == [WANTED, WANTED]
        assert [item.target for item in server.asked] == ["/bucket/ctx/a", "/elsewhere/b%20c?x=y", "/bucket/ctx/a"]
        assert {item.headers["host"] for item in server.asked} == {f"127.0.0.1:{server.port}"}


def test_a_redirect_does_not_lead_in_circles() -> None:
    with ObjectServer(DATA, *[error(307, "TemporaryRedirect", Location="/bucket/ctx/a")] * 9) as server:
        with pytest.raises(Unsupported):
            read(store_at(server))
        assert len(server.asked) == 2


def test_no_etag_ends_its_header() -> None:
    with ObjectServer(DATA) as server:
        with pytest.raises(ContextChanged, match=r"the recorded ETag .* is not valid"):
            read(store_at(server), 'e1"\r\nx-evil: 1')
        assert server.asked == []
