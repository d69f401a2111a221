"""Each fault of the matrix where requests are those of obstore: `gs://` and the web.

What differs from our own transport stands in `DIFFERS` for both.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from stores.gcs_server import GcsStandIn

from monocontext import Monocontext, append, publish
from monocontext.errors import MonocontextError
from monocontext.testing import HttpFault, S3StandIn
from monocontext.testing.http_faults import expired, internal_error, lost, reset, slow_down

from .faulted import OPERATIONS, TEXT, WHERE, attempt, objects, serve
from .test_matrix import CASES, DEADLINE_SECONDS, Case, name_of, recover, strike

pytest.importorskip("obstore", reason="no obstore here: pip install -e '.[obstore]'")
_FAILED = frozenset({"StoreFailure"})
_NO_RANGE = frozenset({"StoreFailure", "Unsupported"})  # a web server is taken for one without ranges
DIFFERS: dict[str, frozenset[str]] = {
    "short range": _FAILED,
    "wrong Content-Range": _FAILED,
    "200 for a range": _NO_RANGE,
    "200 InternalError": _NO_RANGE,
    "200 SlowDown": _NO_RANGE,
    "400 ExpiredToken": _FAILED,
    "403 ExpiredToken": frozenset({"AccessDenied"}),
}
"""Outcomes by fault that our own transport does not have: it asks again, obstore gives up."""
OPERATION = OPERATIONS["find"]


@pytest.fixture(params=["gs", "web"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("GOOGLE_BEARER_TOKEN", "any")
    return str(request.param)


@pytest.fixture
def server(way: str) -> Iterator[S3StandIn]:
    """With the context at `ctx`."""
    with GcsStandIn(objects=objects()) if way == "gs" else serve() as server:
        yield server


def opened(server: S3StandIn, way: str) -> Monocontext:
    options: dict[str, Any] = {"endpoint": server.endpoint} if way == "gs" else {}
    url = server.url("ctx") if way == "gs" else f"{server.endpoint}/bucket/ctx"
    context = Monocontext.open(url, **options)
    assert isinstance(context, Monocontext)
    return context


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_each_fault_by_obstore(case: Case, way: str, server: S3StandIn) -> None:
    with opened(server, way) as context:
        assert context[:5] == TEXT[:5]
        if case.connects:
            server.hang_up()
        strike(server, case, WHERE)
        outcome = attempt(lambda: OPERATION(context), OPERATION(TEXT), 4 * DEADLINE_SECONDS)
        assert server.faults.struck
        recover(server, case)
        assert outcome.kind in case.reads | DIFFERS.get(case.fault.name, frozenset()), outcome
        with opened(server, way) as anew:
            assert attempt(lambda: OPERATION(anew), OPERATION(TEXT), DEADLINE_SECONDS).kind == "right"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*committed, but")
@pytest.mark.parametrize("way", ["gs"], indirect=True)
@pytest.mark.parametrize("fault", [lost(), reset(), slow_down(), internal_error(), expired()], ids=lambda f: f.name)
def test_a_commit_whose_put_meets_a_fault_leaves_the_old_text_or_the_new(
    fault: HttpFault, way: str, server: S3StandIn
) -> None:
    """Each of its PUTs in turn; an append that says that it is done, is."""
    url, options = server.url(f"commits-{uuid.uuid4().hex}"), {"endpoint": server.endpoint}
    publish("old\n" * 20, url, frame_bytes=20, segment_bytes=40, store_options=options)
    text = "old\n" * 20
    for puts in range(100):
        new = text + f"line {puts}\n" * 20
        rule = server.faults.add(fault, verb="PUT", skip=puts)
        try:
            append(f"line {puts}\n" * 20, url, store_options=options)
            said_so = True
        except MonocontextError:
            said_so = False
        server.faults.clear()
        with Monocontext.open(url, **options) as context:
            result = str(context.refresh())
        assert result in ({new} if said_so else {text, new}), puts
        text = result
        if not rule.struck:
            break
    assert puts > 2
    assert text.endswith(f"line {puts}\n")
