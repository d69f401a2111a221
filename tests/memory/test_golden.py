"""The protocol, command by command: ours, and where they are equal the original's.

Each letter of the golden vectors starts with an empty memory, its rows run in order: commands, CloudLLM's measured
reply, ours. Of several commands the last one's reply is shown, all before it are OK. A number is a wait in seconds. A
text that is no reply is the `error` of a failure; `SAME` is what the original says; `T` stands for a time. Rows with
`META` leave out our three extra fields.
"""

from __future__ import annotations

import itertools
import re
from types import SimpleNamespace
from typing import Any

import pytest

from monocontext.errors import InvalidParameters, UnknownTool
from monocontext.memory import Memory, MemoryTool
from monocontext.stores.protocol import Store

OK = {"status": "OK"}
SAME = "same"
T = "<T>"
INVALID = "InvalidParameters"

Command = str | float | dict[str, Any]

# fmt: off
VECTORS: list[tuple[str, list[Command], Any, Any]] = [
    ('A1', ['P doc_name Important_Report', 'G doc_name'], {'value': 'Important_Report'}, SAME),
    ('A2', ['G doc_name META'], {'value': 'Important_Report', 'added_utc': T, 'expires_in': None}, SAME),
    ('A3', ['P m Step_1 3600', 'G m META'], {'value': 'Step_1', 'added_utc': T, 'expires_in': 3600}, SAME),
    ('A4', ['G m meta'], {'value': 'Step_1'}, SAME),
    ('A5', ['G m META extra'], {'value': 'Step_1', 'added_utc': T, 'expires_in': 3600}, SAME),
    ('A6', ['G m extra META'], {'value': 'Step_1'}, SAME),
    ('A7', ['L'], {'keys': ['doc_name', 'm']}, SAME),
    ('A8', ['L META'], {'keys': [{'key': 'doc_name', 'added_utc': T, 'expires_in': None}, {'key': 'm', 'added_utc': T, 'expires_in': 3600}]}, SAME),
    ('A9', ['L extra'], {'keys': ['doc_name', 'm']}, SAME),
    ('A10', ['P counter 42 60', 'T A'], {'total_bytes': 40}, SAME),
    ('A11', ['T K'], {'keys_bytes': 16}, SAME),
    ('A12', ['T V'], {'values_bytes': 24}, SAME),
    ('A13', ['D m extra', 'D m'], 'ERR:NOT_FOUND', SAME),
    ('A14', ['G nope'], 'ERR:NOT_FOUND', SAME),
    ('A15', ['C extra', 'L'], {'keys': []}, SAME),
    ('A16', ['T A'], {'total_bytes': 0}, SAME),
    ('B2', ['   '], 'ERR:Invalid Command', SAME),
    ('B4', ['P onlykey'], 'ERR:Invalid PUT Syntax', SAME),
    ('B7', ['T'], 'ERR:Invalid TOTAL Syntax', SAME),
    ('B8', ['T a'], 'ERR:Invalid TOTAL Scope', SAME),
    ('B10', ['X y'], 'ERR:Unknown Command', SAME),
    ('B11', ['Pk v'], 'ERR:Unknown Command', SAME),
    ('B12', ['p x y'], 'ERR:Unknown Command', SAME),
    ('B16', ['PUT'], 'ERR:Invalid PUT Syntax', SAME),
    ('B17', ['GET'], 'ERR:Invalid GET Syntax', SAME),
    ('B18', ['DELETE'], 'ERR:Invalid DELETE Syntax', SAME),
    ('B19', ['P doc v', 'GET doc META'], {'value': 'v', 'added_utc': T, 'expires_in': None}, SAME),
    ('B20', [{'command': 'L', 'key': 'META'}], {'keys': [{'key': 'doc', 'added_utc': T, 'expires_in': None}]}, SAME),
    ('B21', [{'command': 'T', 'key': 'A'}], {'total_bytes': 4}, SAME),
    ('B22', ['LIST'], {'keys': ['doc']}, SAME),
    ('B23', ['PUT z 1 5', 'DELETE z', 'CLEAR', 'TOTAL'], 'ERR:Unknown Command', 'ERR:Invalid TOTAL Syntax'),
    ('B24', ['TOTAL A'], 'ERR:Unknown Command', {'total_bytes': 0}),
    ('B25', ['SPEC extra'], {'specification': '<text>'}, SAME),
    ('B26', [{'cmd': 'L'}], INVALID, SAME),
    ('B27', [{'command': 5}], INVALID, SAME),
    ('C1', ['P doc v', {'command': '  G   doc  '}], 'ERR:NOT_FOUND', {'value': 'v'}),
    ('C2', [{'command': '\tG\tdoc\tMETA\n'}], 'ERR:NOT_FOUND', {'value': 'v', 'added_utc': T, 'expires_in': None}),
    ('C3', ['P k a\xa0b', 'G k'], {'value': 'a'}, {'value': 'a\xa0b'}),
    ('C4', ['P u\u3000v', 'G u'], {'value': 'v'}, SAME),
    ('C5', ['P z\x1cw v', 'G z\x1cw'], {'value': 'v'}, SAME),
    ('C6', ['P a\u200bb v', 'G a\u200bb'], {'value': 'v'}, SAME),
    ('C7', ['P ключ значение 60', 'G ключ'], {'value': 'значение'}, SAME),
    ('C8', ['T K'], {'keys_bytes': 21}, SAME),
    ('C9', ['P two  a  b', 'G two'], {'value': 'a'}, {'value': 'a  b'}),
    ('C10', ['P nl line one\nline two', 'G nl'], {'value': 'line'}, {'value': 'line one\nline two'}),
    ('D1', ['P s Task is complete', 'G s META'], {'value': 'Task', 'added_utc': T, 'expires_in': None}, {'value': 'Task is complete', 'added_utc': T, 'expires_in': None}),
    ('D2', ['P s Task 60 complete', 'G s META'], {'value': 'Task', 'added_utc': T, 'expires_in': 60}, {'value': 'Task 60 complete', 'added_utc': T, 'expires_in': None}),
    ('D3', ['P s Task is complete 60'], OK, {'status': 'OK', 'expires_in': 60}),
    ('D4', ['G s META'], {'value': 'Task', 'added_utc': T, 'expires_in': None}, {'value': 'Task is complete', 'added_utc': T, 'expires_in': 60}),
    ('D5', ['P n 42', 'G n META'], {'value': '42', 'added_utc': T, 'expires_in': None}, SAME),
    ('D6', ['P n 42 60 7'], OK, {'status': 'OK', 'expires_in': 7}),
    ('D7', ['G n META'], {'value': '42', 'added_utc': T, 'expires_in': 60}, {'value': '42 60', 'added_utc': T, 'expires_in': 7}),
    ('D10', ['P a v -5', 'G a META'], {'value': 'v', 'added_utc': T, 'expires_in': None}, {'value': 'v -5', 'added_utc': T, 'expires_in': None}),
    ('D13', ['P a v +7', 'G a META'], {'value': 'v', 'added_utc': T, 'expires_in': 7}, SAME),
    ('D14', ['P a v 007', 'G a META'], {'value': 'v', 'added_utc': T, 'expires_in': 7}, SAME),
    ('D15', ['P a v + 5'], OK, {'status': 'OK', 'expires_in': 5}),
    ('D16', ['G a META'], {'value': 'v', 'added_utc': T, 'expires_in': None}, {'value': 'v +', 'added_utc': T, 'expires_in': 5}),
    ('D17', ['P a v ٣', 'G a META'], {'value': 'v', 'added_utc': T, 'expires_in': None}, {'value': 'v ٣', 'added_utc': T, 'expires_in': None}),
    ('D18', ['P a v 0', 'G a'], 'ERR:NOT_FOUND', SAME),
    ('D19', ['P a v 315360001'], OK, 'ERR:Invalid TTL'),
    ('D20', ['P a v 18446744073709551616'], OK, 'ERR:Invalid TTL'),
    ('D21', ['G a'], {'value': 'v'}, 'ERR:NOT_FOUND'),
    ('E1', ['P q "hello world" 60'], OK, {'status': 'OK', 'expires_in': 60}),
    ('E2', ['G q META'], {'value': '"hello', 'added_utc': T, 'expires_in': None}, {'value': 'hello world', 'added_utc': T, 'expires_in': 60}),
    ('E3', ['P q "the year is 2024"', 'G q META'], {'value': '"the', 'added_utc': T, 'expires_in': None}, {'value': 'the year is 2024', 'added_utc': T, 'expires_in': None}),
    ('E4', ['P q "a\\nb"', 'G q'], {'value': '"a\\nb"'}, {'value': 'a\nb'}),
    ('E5', ['P q ""', 'G q'], {'value': '""'}, {'value': ''}),
    ('E6', ['P q "hello', 'G q'], {'value': '"hello'}, SAME),
    ('E7', ['P q "a" and "b"', 'G q'], {'value': '"a"'}, {'value': '"a" and "b"'}),
    ('E8', ['P j {"a": 1} 60'], OK, {'status': 'OK', 'expires_in': 60}),
    ('E9', ['G j META'], {'value': '{"a":', 'added_utc': T, 'expires_in': None}, {'value': '{"a": 1}', 'added_utc': T, 'expires_in': 60}),
    ('F1', [{'command': 'P', 'key': 'k1', 'value': 'two words here'}, {'command': 'G', 'key': 'k1'}], {'value': 'two'}, {'value': 'two words here'}),
    ('F2', [{'command': 'P', 'key': 'k2', 'value': 'v 30'}, 'G k2 META'], {'value': 'v', 'added_utc': T, 'expires_in': 30}, {'value': 'v 30', 'added_utc': T, 'expires_in': None}),
    ('F3', [{'command': 'G', 'key': 'k2 META'}], {'value': 'v', 'added_utc': T, 'expires_in': 30}, {'value': 'v 30', 'added_utc': T, 'expires_in': None}),
    ('F4', [{'command': 'G META', 'key': 'k2'}], {'value': 'v'}, {'value': 'v 30', 'added_utc': T, 'expires_in': None}),
    ('F5', [{'command': 'P', 'key': 'k with space', 'value': 'v'}, {'command': 'G', 'key': 'k with space'}], {'value': 'with'}, {'value': 'v'}),
    ('F6', [{'command': 'G', 'key': 'k'}], {'value': 'with'}, 'ERR:NOT_FOUND'),
    ('F7', [{'command': 'D', 'key': 'k with space'}, {'command': 'P', 'key': 'k3'}], 'ERR:Invalid PUT Syntax', SAME),
    ('F8', [{'command': 'P', 'key': 'k3', 'value': None}], 'ERR:Invalid PUT Syntax', SAME),
    ('F9', [{'command': 'P', 'key': 'k3', 'value': ''}], 'ERR:Invalid PUT Syntax', OK),
    ('F10', [{'command': 'G', 'key': 'k3'}], 'ERR:NOT_FOUND', {'value': ''}),
    ('F11', [{'command': 'P', 'key': 'k7', 'value': 7}], 'ERR:Invalid PUT Syntax', OK),
    ('F12', [{'command': 'G', 'key': 'k7'}], 'ERR:NOT_FOUND', {'value': '7'}),
    ('F13', [{'command': 'P', 'key': 5, 'value': 'v'}], 'ERR:Invalid PUT Syntax', SAME),
    ('F14', [{'command': 'P ignored stuff', 'key': 'k4', 'value': 'vv'}, 'G k4'], {'value': 'vv'}, SAME),
    ('F16', [{'command': 'P k6 inline', 'value': 'vv'}], OK, 'ERR:Invalid PUT Syntax'),
    ('F17', ['G k6'], {'value': 'inline'}, 'ERR:NOT_FOUND'),
    ('F18', [{'command': 'PUT', 'key': 'k8', 'value': 'x\ny', 'ttl': 60}, 'G k8 META'], {'value': 'x', 'added_utc': T, 'expires_in': None}, {'value': 'x\ny', 'added_utc': T, 'expires_in': 60}),
    ('F19', [{'command': 'P k9 year 2024', 'ttl': 5}, 'G k9 META'], {'value': 'year', 'added_utc': T, 'expires_in': 2024}, {'value': 'year 2024', 'added_utc': T, 'expires_in': 5}),
    ('F20', [{'command': 'P k10 v', 'ttl': 'soon'}], OK, 'ERR:Invalid TTL'),
    ('F21', [{'command': 'P k10 v 60', 'ttl': None}, 'G k10 META'], {'value': 'v', 'added_utc': T, 'expires_in': 60}, SAME),
    ('F22', [{'command': 'C', 'key': 'x'}], OK, SAME),
    ('G1', [{'command': 'P t:p:claimed:1 al', 'if_absent': True}, {'command': 'P t:p:claimed:1 bo', 'if_absent': True}], OK, 'ERR:EXISTS'),
    ('G2', ['G t:p:claimed:1'], {'value': 'bo'}, {'value': 'al'}),
    ('G3', ['P other v', 'L t:*'], {'keys': ['other', 't:p:claimed:1']}, {'keys': ['t:p:claimed:1']}),
    ('G4', ['L t:* META'], {'keys': ['other', 't:p:claimed:1']}, {'keys': [{'key': 't:p:claimed:1', 'added_utc': T, 'expires_in': None}]}),
    ('G5', ['L META t:*'], {'keys': [{'key': 'other', 'added_utc': T, 'expires_in': None}, {'key': 't:p:claimed:1', 'added_utc': T, 'expires_in': None}]}, {'keys': [{'key': 't:p:claimed:1', 'added_utc': T, 'expires_in': None}]}),
    ('H1', ['P k old 1', 'P k new', 'G k META'], {'value': 'new', 'added_utc': T, 'expires_in': None}, SAME),
    ('H2', [1.3, 'G k'], 'ERR:NOT_FOUND', {'value': 'new'}),
    ('H3', ['P k a 1', 'P k b 100', 1.3, 'G k'], 'ERR:NOT_FOUND', {'value': 'b'}),
    ('H4', ['P e x 1', 0.6, 'G e META'], {'value': 'x', 'added_utc': T, 'expires_in': 1}, SAME),
    ('H5', [1.6, 'G e'], 'ERR:NOT_FOUND', SAME),
    ('H6', ['P del v 1', 'D del', 'P del w', 1.3, 'G del'], 'ERR:NOT_FOUND', {'value': 'w'}),
    ('H7', ['P d v 1', 2.3, 'D d'], 'ERR:NOT_FOUND', SAME),
    ('H8', ['L'], {'keys': []}, {'keys': ['del', 'k']}),
    ('I1', ['P keep vv', 'P keep v 0', 'T A'], {'total_bytes': 5}, {'total_bytes': 0}),
    ('I2', ['L'], {'keys': []}, SAME),
]
# fmt: on
OURS = {"expires_at", "remaining", "etag"}
LETTERS = {letter: list(rows) for letter, rows in itertools.groupby(VECTORS, key=lambda row: row[0][0])}
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+\+00:00")


def plain(found: Any) -> Any:
    """A reply as the table shows it."""
    if isinstance(found, list):
        return [plain(each) for each in found]
    if not isinstance(found, dict):
        return found
    if "added_utc" in found:
        assert set(found) >= OURS
    ours = OURS | ({"total_bytes"} if {"keys_bytes", "values_bytes"} & set(found) else set())
    shown = {name: plain(value) for name, value in found.items() if name not in ours}
    if "added_utc" in shown:
        assert TIMESTAMP.fullmatch(shown["added_utc"])
        shown["added_utc"] = T
    if "specification" in shown:
        shown["specification"] = "<text>"
    return shown


def reply(tool: MemoryTool, command: Command) -> Any:
    try:
        envelope = tool.execute(command if isinstance(command, dict) else {"command": command})
    except InvalidParameters:
        return INVALID
    assert list(envelope) == ["success", "output", "error", "metadata"]
    assert envelope["metadata"] == {}
    assert envelope["success"] is (envelope["error"] is None) is (envelope["output"] is not None)
    return plain(envelope["output"]) if envelope["success"] else envelope["error"]


@pytest.mark.parametrize("letter", LETTERS)
def test_every_vector(letter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a store's clock that is turned by hand: waits take no time and no load ends a life early."""
    clock = SimpleNamespace(now=1_800_000_000.25)
    monkeypatch.setattr("monocontext.stores.memory.time", SimpleNamespace(time=lambda: clock.now))
    tool = MemoryTool(Memory.open(f"memory://golden-{letter}"))
    tool.memory.clear()
    for name, commands, upstream, ours in LETTERS[letter]:
        for command in commands[:-1]:
            if isinstance(command, float):
                clock.now += command
            else:
                assert reply(tool, command) == OK, (name, command)
        assert reply(tool, commands[-1]) == (upstream if ours == SAME else ours), name


def test_no_command_says_what_one_looks_like() -> None:
    tool = MemoryTool(Memory.open("memory://spec"))
    with pytest.raises(InvalidParameters, match=r"^Invalid parameters: Missing 'command' field. "):
        tool.execute({"cmd": "L"})
    with pytest.raises(UnknownTool, match=r"^Tool not found: calculator$"):
        tool.execute({"command": "L"}, tool="calculator")
    text = tool.execute({"command": "SPEC"})["output"]["specification"]
    for wanted in ("Memory tool quick-reference", "P <key> <value>", "G <key>", "L", "D <key>", "C", "T A"):
        assert wanted in text


def test_our_fields_follow_the_conforming_ones() -> None:
    tool = MemoryTool(Memory.open("memory://fields"))
    tool.execute({"command": "P k v 60"})
    found = tool.execute({"command": "G k META"})["output"]
    assert list(found) == ["value", "added_utc", "expires_in", "expires_at", "remaining", "etag"]
    assert 0 < found["remaining"] <= 60
    tool.execute({"command": "P k v"})
    assert tool.execute({"command": "G k META"})["output"]["expires_at"] is None


def test_each_total_carries_that_of_all(any_store: Store) -> None:
    tool = MemoryTool(Memory(any_store))
    tool.execute({"command": "P key value"})
    totals = [tool.execute({"command": command})["output"] for command in ("T K", "T V", "T A")]
    assert totals == [
        {"keys_bytes": 3, "total_bytes": 8}, {"values_bytes": 5, "total_bytes": 8}, {"total_bytes": 8},
    ]  # fmt: skip
