"""Lines that the SDK would not answer."""

from __future__ import annotations

import pytest

stdio = pytest.importorskip("monocontext.mcp.stdio", exc_type=ImportError, reason="no MCP SDK here")

CALL = '{"jsonrpc": "2.0", "id": %s, "method": "tools/call", "params": {"name": "%s"}}'


NOT_UTF8 = "the request is not UTF-8"
HALF = "the request holds half a surrogate pair, which is not a character"
NO_ID = "the id of a request must be a string or an integer"
NO_MESSAGE = "not a message of JSON-RPC 2.0"


@pytest.mark.parametrize(
    ("line", "identity", "code", "said"),
    [
        (CALL % (1, r"\ud83e"), 1, -32600, HALF),
        (CALL % (1, r"\uDD9C\ud83e"), 1, -32600, HALF),
        (CALL % ('"a"', r"\udc00"), "a", -32600, HALF),
        (CALL % (r'"\ud800"', "x"), None, -32600, NO_ID),
        (CALL % ('"a b\\n"', "\ud83e"), "a b\n", -32600, NOT_UTF8),
        (CALL % (1, "\udcff"), 1, -32600, NOT_UTF8),
        *((CALL % (bad, "x"), None, -32600, NO_ID) for bad in ("null", "1.5", "true", "{}", "[1]")),
        ('{"id": 1, "method": "tools/list"}', 1, -32600, NO_MESSAGE),
        ('{"jsonrpc": "1.0", "id": 1, "method": "tools/list"}', 1, -32600, NO_MESSAGE),
        ('{"jsonrpc": "2.0", "id": 1, "method": 7}', 1, -32600, NO_MESSAGE),
        ('{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}', 1, -32600, NO_MESSAGE),
        ('{"jsonrpc": "2.0", "id": 1}', 1, -32600, NO_MESSAGE),
        ("{}", None, -32600, NO_ID),
        ("[1]", None, -32600, "a message must be a JSON object"),
        ("no JSON", None, -32700, "not JSON"),
        ("[" * 100_000, None, -32700, "not JSON"),
    ],
)
def test_a_line_without_sense_is_answered(line: str, identity: int | str | None, code: int, said: str) -> None:
    refusal = stdio.refusal_of(line.encode(errors="surrogateescape" if "\udcff" in line else "surrogatepass"))
    assert refusal is not None
    assert (refusal.id, refusal.error.code) == (identity, code)
    assert refusal.error.message.startswith(said)


@pytest.mark.parametrize(
    "line",
    [
        *(CALL % (1, r"\ud83e\udd9c"), CALL % ('"a"', "x"), "", " \n", '{"jsonrpc": "2.0", "method": 9}'),
        *('{"jsonrpc": "2.0", "id": 9, "result": 5}', '{"jsonrpc": "2.0", "id": null, "error": {}}'),
        '{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"id": 1}}',
    ],
)
def test_other_lines_are_left_to_the_sdk(line: str) -> None:
    assert (stdio.refusal_of(line.encode()), stdio.is_request(line.encode())) == (None, "tools/call" in line)
