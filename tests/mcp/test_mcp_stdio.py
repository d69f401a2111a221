"""Lines that are no message: which are answered, and by what."""

from __future__ import annotations

import json
from typing import Any

import pytest

from monocontext.mcp.stdio import refusal_of

CALL = '{"jsonrpc": "2.0", "id": %s, "method": "tools/call", "params": {"name": "%s"}}'


def parse(line: str) -> Any:
    """As strict as the SDK in what counts here."""
    message = json.loads(line)
    json.dumps(message, ensure_ascii=False).encode()
    if message.get("jsonrpc") != "2.0" or not {"method", "result", "error"} & message.keys():
        raise ValueError("many\nlines")


@pytest.mark.parametrize(
    ("line", "identity", "said"),
    [
        (CALL % (1, r"\ud83e"), 1, "the request holds half a surrogate pair, which is not a character"),
        (CALL % (1, r"\uDD9C\ud83e"), 1, "the request holds half a surrogate pair, which is not a character"),
        (CALL % ('"a"', r"\udc00"), "a", "the request holds half a surrogate pair, which is not a character"),
        (CALL % (r'"\ud800"', "x"), None, "the id of a request is a string or an integer"),
        (CALL % ("1.5", "x"), None, "the id of a request is a string or an integer"),
        (CALL % ("true", "x"), None, "the id of a request is a string or an integer"),
        (CALL % (1, "\udced\udca0\udcbe"), 1, "the line is not UTF-8"),
        ("no JSON", None, "not JSON: Expecting value: line 1 column 1 (char 0)"),
        ("[1]", None, "a message is one JSON object"),
        ('{"jsonrpc": "2.0", "id": 3}', 3, "not a message of JSON-RPC 2.0"),
        ('{"id": 3, "method": "ping"}', 3, "not a message of JSON-RPC 2.0"),
    ],
)
def test_answered(line: str, identity: Any, said: str) -> None:
    reply = json.loads(refusal_of(line, parse) or "")
    assert (reply["jsonrpc"], reply["id"], reply["error"]["message"]) == ("2.0", identity, said)


def test_not_answered() -> None:
    assert refusal_of(CALL % (1, r"\ud83e\udd9c"), parse) is None
    assert refusal_of('{"jsonrpc": "2.0", "method": "notifications/x"}', parse) is None
    for silent in (r'"method": "notifications/x", "params": "\ud800"', r'"id": 1, "result": "\ud800"'):
        assert refusal_of(f'{{"jsonrpc": "2.0", {silent}}}', parse) == ""
