"""Keys and values as they are kept, hostile, large and damaged ones; how they are found again, and as one text."""

from __future__ import annotations

import math
import pickle
import random
import re
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monocontext import Monocontext
from monocontext.errors import ContextChanged, DamagedData, InvalidEntry, NotFound, NotPicklable
from monocontext.memory import Memory, MemoryTool
from monocontext.memory.names import FOLDER, key_of, name_of, prefix_of
from monocontext.sessions import Sessions
from monocontext.stores import open_store
from monocontext.stores.protocol import Blob, Store
from monocontext.testing import CountingStore, WrappedStore
from tests.budget import examples

HOSTILE = [
    "../", "../../etc/passwd", "/etc/passwd", "..", ".", "a/../b", "a//b", "a/", "/", "./a", ".hidden", "C:\\x",
    "\0", "a\0b", "\n", "a\nb", "\r\n", "\t", " ", "  a  ", "\x1b[31m", "\x7f", "\u200b", "\u2028", "\ufeff", "\ufffe",
    "%", "%41", "%2e%2e%2f", "a%", "+", "+/+", "a+/+b", "A", "a", "É", "é", "e\u0301", "ß", "SS", "İ", "ı", "K",
    "\u212a", "ключ", "鍵", "🔑", "👩‍💻", "مفتاح", "*", "?", "META", "a META", "\\", "..\\x", "con", "aux.txt",
    "x" * 900, ".monocontext-lock", "entries", "entries/a", "manifest.json", "~", "$(id)", "`id`", "'", '"', "a b",
    "\U0010ffff",
]  # fmt: skip


@pytest.mark.slow
def test_hostile_keys_are_kept_exactly(any_store: Store) -> None:
    memory = Memory(any_store)
    classes = {unicodedata.category(chr(code)): chr(code) for code in range(0x110000)}
    keys = HOSTILE + [f"class {name}: {char}" for name, char in classes.items() if name != "Cs"]
    assert len(set(keys)) == len(keys)
    for number, key in enumerate(keys):
        memory.put(key, f"value {number}", create=True)
    assert memory.list() == sorted(keys)
    assert [memory[key] for key in keys] == [f"value {number}" for number in range(len(keys))]
    assert all(info.key.startswith(FOLDER) for info in any_store.list())
    assert all(memory.delete(key) for key in keys[::7])
    assert memory.list() == sorted(set(keys) - set(keys[::7]))


def test_nothing_outside_the_prefix(tmp_path: Path) -> None:
    memory = Memory.open(tmp_path / "a" / "memory")
    for key in HOSTILE:
        memory.put(key, "x")
    outside = [path for path in tmp_path.rglob("*") if not path.is_relative_to(tmp_path / "a" / "memory" / "entries")]
    assert outside == [tmp_path / "a", tmp_path / "a" / "memory"]


@pytest.mark.slow
@pytest.mark.parametrize("key", ["", "k" * 2048, "鍵" * 300, "\ud800", "a\udfffb", 7, None, b"k"])
def test_keys_that_are_refused(key: str, any_store: Store) -> None:
    memory = Memory(any_store)
    calls = (memory.get, memory.delete, lambda key: memory.put(key, "v"), lambda key: memory.put_new(key, "v"))
    for call in calls:
        with pytest.raises(InvalidEntry, match=r"^[^\n]{1,199}\Z"):
            call(key)
    assert list(any_store.list()) == []


def test_the_tool_refuses_them_in_one_line() -> None:
    tool = MemoryTool(Memory.open("memory://refused"))
    put = {"command": "P", "key": "k", "value": "v"}
    for parameters in (
        {**put, "key": "k" * 2048}, {"command": f"G {'k' * 2048}"}, {**put, "key": "\ud800"},
        {**put, "value": "\ud800"}, {"command": 'P k "\\ud800"'}, {"command": "L", "key": "\ud800*"},
        {**put, "ttl": -1}, {**put, "ttl": math.nan}, {**put, "ttl": True}, {**put, "ttl": "9" * 5000},
        {**put, "if_match": 5}, {**put, "if_absent": "yes"}, {**put, "if_absent": True, "if_match": "x"},
    ):  # fmt: skip
        reply = tool.execute(parameters)
        assert reply["success"] is False, parameters
        assert re.fullmatch(r"ERR:[^\n]+", reply["error"]), parameters
    for value in (object(), b"bytes", {1, 2}, {"x": object()}):
        assert tool.execute({**put, "value": value})["error"] == "ERR:Invalid PUT Syntax"
    assert tool.execute({"command": "L"})["output"] == {"keys": []}


def test_long_commands_take_no_long_time() -> None:
    """Runs of spaces and digits, where a careless pattern would look at each from each."""
    tool = MemoryTool(Memory.open("memory://long"))
    spaces, digits = " " * 200_000, "1" * 200_000
    began = time.process_time()
    runs = (f"a{spaces}b", f"a{digits}b", f"a {digits}b", f"a{spaces}", f"{'1 ' * 100_000}x", f'"a{spaces}b')
    for rest in (*runs, f'"a"{spaces}b'):
        assert tool.execute({"command": f"P k {rest}"})["success"]
        assert tool.execute({"command": "G k"})["output"]["value"] == rest.rstrip(" ")
    assert tool.execute({"command": f"P k a{spaces}{digits}"})["error"] == "ERR:Invalid TTL"
    assert tool.execute({"command": f"{spaces}L{spaces}META{spaces}"})["success"]
    assert tool.execute({"command": "G", "key": f"k{' ' * 20}META"})["output"]["expires_in"] is None
    assert tool.execute({"command": "G", "key": "k" * 10_000_000})["error"].startswith("ERR:the key 'kkkk")
    assert time.process_time() - began < 20


def test_long_keys_up_to_the_last(any_store: Store) -> None:
    """The object's name, the store's own prefix included, has at most 1,024 bytes on S3."""
    memory, values = Memory(any_store), {"n" * length: str(length) for length in (199, 200, 201, 400, 401, 940)}
    for key, value in values.items():
        memory.put(key, value)
    assert {entry.key: entry.value for entry in memory.read_entries()} == values
    assert len(memory.list("n" * 200)) == 5
    assert memory.list("n" * 941) == []


@given(st.text(min_size=1, max_size=80), st.text(min_size=1, max_size=80), st.integers(0, 80))
@settings(max_examples=examples(300))
def test_names(key: str, other: str, cut: int) -> None:
    name = name_of(key, 10_000)
    assert key_of(name) == key
    assert (name.casefold() == name_of(other, 10_000).casefold()) is (key == other)
    assert name == name.lower() == unicodedata.normalize("NFC", name) == unicodedata.normalize("NFD", name)
    assert all(not part.startswith(".") and 0 < len(part) < 210 for part in name.split("/"))
    assert name.startswith(prefix_of(key[:cut]))


def test_names_that_are_no_entries() -> None:
    rests = ["", "A", "%61", "%4A", "%c3", "%ed%a0%80", "a/b", "a+/b", "%", "%4", "a b", ".x", "é"]
    assert [rest for rest in rests if key_of(f"entries/{rest}") is not None or key_of(rest) is not None] == []


def test_other_objects_are_left_alone(any_store: Store) -> None:
    others = {"manifest.json": b"{}", "entries.txt": b"x", "entries/Not ours": b"y", "other/entries/a": b"z"}
    for key, data in others.items():
        any_store.put(key, data)
    memory = Memory(any_store)
    memory.put("manifest.json", "mine")
    assert (memory.list(), memory.clear()) == (["manifest.json"], 1)
    assert {info.key: any_store.get(info.key).data for info in any_store.list()} == others


TTLS = [math.nan, math.inf, -math.inf, -1, -0.001, 315_360_001, 1e300, 10**400, -(10**4000), "60", True, [60]]


@pytest.mark.parametrize(
    ("value", "ttl", "why"),
    [("v", ttl, r"^a TTL must be .*not [^\n]*\Z") for ttl in TTLS]
    + [(value, None, "^a value must ") for value in (b"bytes", 7, None, ["a"], "\ud800")],
)
def test_lifetimes_and_values_that_are_refused(value: str, ttl: float, why: str) -> None:
    memory = Memory.open("memory://lifetimes")
    with pytest.raises(InvalidEntry, match=why):
        memory.put("k", value, ttl)
    assert memory.list() == []


def test_a_value_comes_back_exactly(any_store: Store) -> None:
    memory, rng = Memory(any_store), random.Random(4)
    odd = "".join(chr(rng.randrange(1, 0xD800)) for _ in range(99))
    values = ["", "\n", "\r\n", "\0", "x\r", "é" * 200_000, "🔑\n" * 70_000, odd]
    for number, value in enumerate(values):
        memory.put(f"k{number}", value)
        entry = memory.entry(f"k{number}")
        assert (entry.value, entry.value_bytes) == (value, len(value.encode()))
    sizes = memory.total()
    assert (sizes.keys_bytes, sizes.values_bytes) == (2 * len(values), sum(len(v.encode()) for v in values))


def test_metadata_stay_with_the_entry(any_store: Store) -> None:
    memory = Memory(any_store)
    memory.put("k", "v", metadata={"writer": "Ünï", "run": "7"})
    (listed,) = Memory(any_store).entries()
    assert dict(memory.entry("k").metadata) == dict(listed.metadata) == {"writer": "Ünï", "run": "7"}
    memory.put("k", "w")
    assert dict(memory.entry("k").metadata) == {}
    refused = {"at most 2,048 bytes": [{"x": "y" * 3000}], "mapping of str to str": [{"x": 5}, ["x"], "x"]}
    for why, metadata in ((why, each) for why, every in refused.items() for each in every):
        with pytest.raises(InvalidEntry, match=why):
            memory.put("k", "v", metadata=metadata)  # type: ignore[arg-type]


def test_an_entry_that_never_stays_ends_in_an_error() -> None:
    """As of a server that gives one version two ETags, which some proxies do."""

    class Restless(WrappedStore):
        def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
            raise ContextChanged(key)

    store = open_store("memory://restless")
    Memory(store).put("k", "v")
    for work in (lambda memory: "k" in memory, lambda memory: memory.list(), lambda memory: memory.delete("k")):
        with pytest.raises(ContextChanged, match="was replaced 100 times while it was read"):
            work(Memory(Restless(store)))


def test_entries_are_read_as_they_are_asked_for(any_store: Store) -> None:
    memory = Memory(any_store)
    for number in range(9):
        memory.put(f"k{number}", f"v{number}")
    counted = CountingStore(any_store)
    entries = Memory(counted).read_entries("k", ahead=3)
    assert [next(entries).value for _ in range(3)] == ["v0", "v1", "v2"]
    assert counted.counts == {"list": 1, "get": 3}
    memory.delete("k4")
    assert [entry.key for entry in entries] == ["k3", "k5", "k6", "k7", "k8"]
    assert [entry.key for entry in memory.read_entries("k8", ahead=0)] == ["k8"]


def test_prefixes_search_and_clear(any_store: Store) -> None:
    memory = Memory(any_store)
    values = {"team/a": "Error: disk\nfine", "team/b": "all fine", "Team/c": "error again\n", "other": "error (x)"}
    for key, value in values.items():
        memory.put(key, value)
    assert [(entry.key, entry.value_bytes) for entry in memory.entries("team/")] == [("team/a", 16), ("team/b", 8)]
    hits = [(hit.key, hit.line_number, hit.line) for hit in memory.search("error", ignore_case=True)]
    assert hits == [("Team/c", 1, "error again"), ("other", 1, "error (x)"), ("team/a", 1, "Error: disk")]
    assert [hit.key for hit in memory.search("(x)", fixed=True)] == ["other"]
    assert [hit.key for hit in memory.search(re.compile("fine$"), "team/")] == ["team/a", "team/b"]
    assert [hit.line for hit in memory.search(r"disk\sfine")] == ["Error: disk"]
    with pytest.raises(re.error):
        memory.search("(")
    assert (memory.clear("team/"), memory.list()) == (2, ["Team/c", "other"])
    assert [memory.clear(), memory.clear()] == [2, 0]


def test_damage_is_an_error_and_no_value(any_store: Store) -> None:
    memory = Memory(any_store)
    memory.put("k", "a value that matters")
    (info,) = any_store.list()
    whole = any_store.get(info.key).data
    changes = {
        b"matters": b"mutters", b'"key":"k"': b'"key":"j"', b'"ttl":null': b'"ttl":-100', b"frames": b"farmes",
        b" 1 000": b" 1 999",
    }  # fmt: skip
    changed = [whole.replace(old, new) for old, new in changes.items()]
    changed += [whole.replace(b'"ttl":null', b'"ttl":NaN0'), whole[:-1], whole + b"x", whole[:40], b"", b"plain text"]
    no_mapping = '"ttl":null,"metadata":[5]'
    for damage in ('"ttl":1e999', '"ttl":null,"frames":[[1e999,1,0,0,0]]', f'"ttl":1{"0" * 400}', no_mapping):
        line = f'{{"key":"k","token":"t","frames":[],{damage}}}\n'
        changed.append(b"monocontext-memory 1 %08d\n" % (30 + len(line)) + line.encode())
    for data in changed:
        any_store.put(info.key, data)
        with pytest.raises(DamagedData, match=r"^[^\n]+\Z"):
            Memory(any_store).get("k")
    tool = MemoryTool(Memory(any_store))
    assert tool.execute({"command": "G k"})["error"].startswith("ERR:")
    assert tool.execute({"command": "D k"})["success"]
    assert list(any_store.list()) == []


def test_a_damaged_entry_is_named_and_hides_no_other(any_store: Store) -> None:
    memory = Memory(any_store)
    for key in ("a", "c"):
        memory.put(key, f"{key} matters\n")
    memory.put("gone", "v", 0.001)
    any_store.put("entries/b", b"no entry")
    time.sleep(2.1 if any_store.url.startswith("s3:") else 0.01)
    fresh = Memory(any_store)
    with pytest.warns(UserWarning, match="left out: .*entries/b is not an entry"):
        assert fresh.list() == ["a", "c"]
    with pytest.warns(UserWarning, match="entries/b"):
        assert [hit.key for hit in fresh.search("matters")] == ["a", "c"]
    with pytest.warns(UserWarning, match="entries/b"):
        assert fresh.purge() == 1
    (damaged,) = MemoryTool(fresh).execute({"command": "L"})["output"]["damaged"]
    assert "entries/b is not an entry" in damaged
    with pytest.raises(DamagedData, match="entries/b"):
        fresh.context()
    assert fresh.clear() == 3


def test_names_of_calls() -> None:
    memory = Memory.open("memory://no bucket")
    memory.put("k", "v", create=True)
    with pytest.raises(ValueError, match="cannot be combined"):
        memory.put("k", "v", create=True, if_match="x")
    assert ("k" in memory, "j" in memory, memory.get("j", "default")) == (True, False, "default")
    with pytest.raises(NotFound, match="no key 'j'"):
        memory["j"]
    for call in (memory.list, memory.entries, memory.total, memory.context, memory.clear):
        with pytest.raises(InvalidEntry, match="a prefix must be a str, not int"):
            call(5)  # type: ignore[operator]
    assert list(memory) == ["k"]
    assert memory.put("k", "v", 0) == ""
    assert list(memory) == []
    with memory as same:
        assert repr(same) == "<Memory memory://no bucket>"


@pytest.mark.slow
def test_a_place_that_is_not_there(tmp_path: Path, seaweed: object) -> None:
    assert Memory.open(tmp_path / "none").list() == []
    assert not (tmp_path / "none").exists()
    store = open_store("s3://no-such-bucket/x", endpoint=seaweed.endpoint)  # type: ignore[attr-defined]
    memory = Memory(store)
    calls = (lambda: memory.put("k", "v"), lambda: memory.put_new("k", "v"), lambda: memory.entry("k"), memory.list)
    for call in (*calls, lambda: store.delete("a", if_match="e")):
        with pytest.raises(NotFound, match="no bucket 'no-such-bucket'"):
            call()


@pytest.mark.parametrize("kind", [Memory, Sessions])
def test_a_url_or_nothing_in_place_of_a_store_names_the_call_that_takes_one(kind: type[Memory | Sessions]) -> None:
    for place in ("memory://anything", None):
        with pytest.raises(TypeError, match=rf"takes a store, not .*: {kind.__name__}\.open\(\.\.\.\) takes a URL"):
            kind(place)  # type: ignore[arg-type]


def expected(values: dict[str, str]) -> str:
    parts = [f"=== KEY: {key} ===\n{value}" for key, value in sorted(values.items())]
    return "".join(part if part.endswith("\n") else part + "\n" for part in parts)


def test_equals_its_text(any_store: Store) -> None:
    values = {
        "b": "two\nlines", "a": "ends in a line\n", "c": "", "ü/ é": "日本語 " * 100_000, "cr": "x\r", "lf": "\n\n",
        "z": "é" * 300_000 + "\n", "other prefix": "x",
    }  # fmt: skip
    memory = Memory(any_store)
    for key, value in values.items():
        memory.put(key, value, metadata={"writer": "w"})
    text, context = expected(values), Memory(any_store).context()
    assert isinstance(context, Monocontext)
    assert (len(context), str(context)) == (len(text), text)
    assert context[5:-5:3] == text[5:-5:3]
    assert context.find("=== KEY: z") == text.find("=== KEY: z")
    assert [hit.line for hit in context.grep("two")] == ["two"]
    assert list(context.splitlines()) == text.splitlines()
    assert str(memory.context("c")) == "=== KEY: c ===\n=== KEY: cr ===\nx\r\n"


def test_reads_no_value_until_it_is_asked_for(any_store: Store) -> None:
    memory = Memory(any_store)
    for number in range(5):
        memory.put(f"key {number}", f"{number} some text\n" * 100_000)
    counted = CountingStore(any_store)
    context = Memory(counted).context()
    assert counted.counts == {"list": 1, "get_range": 5}
    head_bytes = counted.bytes_read
    assert head_bytes <= 5 * 2048
    assert len(context) == 5 * (1_200_000 + len("=== KEY: key 0 ===\n"))
    assert counted.bytes_read == head_bytes
    assert context[-12:] == "4 some text\n"[-12:]
    assert 0 < counted.bytes_read - head_bytes < 1_300_000


def test_a_snapshot(any_store: Store) -> None:
    """New keys are not seen; a value that was replaced is an error, never other text."""
    memory = Memory(any_store)
    memory.put("a", "first value\n")
    context = memory.context()
    memory.put("b", "later")
    for _ in range(2):
        assert str(context) == "=== KEY: a ===\nfirst value\n"
        context.refresh()
    again = memory.context("a")
    memory.put("a", "other value\n")
    with pytest.raises(ContextChanged):
        str(again)
    assert str(memory.context("a")) == "=== KEY: a ===\nother value\n"


def test_no_keys_and_expired_and_odd_ones() -> None:
    memory = Memory.open("memory://odd")
    assert str(memory.context()) == ""
    memory.put("line\nend", "v")
    memory.put("gone", "v", 0)
    assert str(memory.context()) == "=== KEY: 'line\\nend' ===\nv\n"
    with pytest.raises(NotPicklable):
        pickle.dumps(memory.context())


@pytest.mark.slow
def test_many_entries_are_several_pages() -> None:
    memory = Memory.open("memory://many")
    values = {f"{number:05}": f"value {number}" for number in range(3000)}
    for key, value in values.items():
        memory.put(key, value)
    context = memory.context()
    assert str(context) == expected(values)
    assert context.lines[5001] == "value 2500\n"
