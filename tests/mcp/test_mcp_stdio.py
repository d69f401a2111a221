"""Requests that the SDK would not answer."""

from __future__ import annotations

import pytest

stdio = pytest.importorskip("monocontext.mcp.stdio", exc_type=ImportError, reason="no MCP SDK here")

CALL = '{"jsonrpc": "2.0", "id": %s, "method": "tools/call", "params": {"name": "%s"}}'


@pytest.mark.parametrize(
    ("line", "identity"),
    [
        (CALL % (1, r"\ud83e"), 1),
        (CALL % (1, r"\uDD9C\ud83e"), 1),
        (CALL % ('"a"', r"\udc00"), "a"),
        (CALL % (r'"\ud800"', "x"), None),
        (CALL % (1, "\ud83e"), 1),
    ],
)
def test_half_a_pair_is_answered(line: str, identity: int | str | None) -> None:
    refusal = stdio.refusal_of(line.encode(errors="surrogatepass"))
    assert refusal is not None
    assert refusal.id == identity
    assert refusal.error.message == "the request holds half a surrogate pair, which is not a character"


@pytest.mark.parametrize("line", [CALL % (1, r"\ud83e\udd9c"), CALL % (1, "x"), "no JSON", "[1]", "[" * 100_000])
def test_other_lines_are_left_to_the_sdk(line: str) -> None:
    assert stdio.refusal_of(line.encode()) is None
