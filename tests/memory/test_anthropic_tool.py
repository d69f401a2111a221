"""Anthropic's memory tool over a memory: the answers of the SDK's own tool, hostile paths, many agents, failures."""

from __future__ import annotations

import asyncio
import os
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("anthropic.tools.memory", reason="no anthropic here")

from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool

from monocontext.errors import StoreFailure
from monocontext.memory import Memory
from monocontext.memory.anthropic_tool import AnthropicMemoryTool, AsyncAnthropicMemoryTool
from monocontext.stores.protocol import Blob, ObjectInfo, Store
from monocontext.testing import CountingStore, WrappedStore
from tests.budget import examples

PATHS = [
    *("/memories", "/memories/", "/memories/a", "/memories/a/b", "/memories/a/b/c", "/memories/a/.h"),
    *("/memories/a.txt", "/memories/ä b/x", "/memories/.d/x", "/memories/a/../b", "/memories//b", "/memories/./b/"),
    *("/memories/..", "/etc/x", "/memories/a/../../x", "memories/a", "", "/"),
]
TEXTS = ["", "\n", "one", "one\ntwo\nthree\n", "e\r\ne\n\n", "aaa", "x" * 1500]
PIECES = ["one", "e", "aa", "x\ny\n", "\n", "none", "\r"]


@pytest.fixture
def tool(any_store: Store) -> AnthropicMemoryTool:
    return AnthropicMemoryTool(Memory(any_store))


def call(tool: Any, command: str, path: str, **more: object) -> str:
    return str(tool.call({"command": command, "path": path, **more}))


def refusal(tool: Any, command: str, path: str, **more: object) -> str:
    with pytest.raises(ToolError) as caught:
        call(tool, command, path, **more)
    return str(caught.value)


def random_call(seed: random.Random) -> dict[str, Any]:
    name = seed.choice(["view", "create", "create", "str_replace", "insert", "delete", "rename"])
    given: dict[str, Any] = {"command": name, "path": seed.choice(PATHS)}
    if name == "view":
        spans = [None, [1, -1], [2, 3], [0, 1], [3, 1], [-4, 2], [2, -2], [1], []]
        return {**given, "view_range": seed.choice(spans)}
    if name == "create":
        return {**given, "file_text": seed.choice(TEXTS)}
    if name == "str_replace":
        return {**given, "old_str": seed.choice(PIECES), "new_str": seed.choice(["", *PIECES])}
    if name == "insert":
        return {**given, "insert_line": seed.randint(-1, 4), "insert_text": seed.choice(TEXTS)}
    if name == "rename":
        return {"command": name, "old_path": given["path"], "new_path": seed.choice(PATHS)}
    return given


def answer_of(tool: Any, given: dict[str, Any]) -> tuple[str, str]:
    """The answer, without the sizes of folders: a disk's are its own. Without slashes that a path has for nothing."""
    try:
        lines = str(tool.call(given)).split("\n")
    except ToolError as error:
        return "refused", str(error)
    except (OSError, ValueError):
        return "refused", "by the disk"
    if lines[0].startswith("Here're"):
        lines[1:] = [line.split("\t")[1] if line.endswith("/") or line == lines[1] else line for line in lines[1:]]
    return "done", "\n".join(lines)


@pytest.mark.parametrize("number", range(examples(100)))
def test_the_answers_are_those_of_the_sdk(number: int, tmp_path: Path) -> None:
    seed = random.Random(number)
    theirs = BetaLocalFilesystemMemoryTool(str(tmp_path))
    ours = AnthropicMemoryTool(Memory.open(f"memory://anthropic-{number}"))
    assert ours.to_dict() == theirs.to_dict()
    for _ in range(60):
        given = random_call(seed)
        expected, result = answer_of(theirs, given), answer_of(ours, given)
        plain = {name: os.path.normpath(path) for name, path in given.items() if name.endswith("path") and path}
        assert result[0] == expected[0], (given, expected, result)
        if expected[1] != "by the disk" and all(given[name] == path for name, path in plain.items()):
            assert result == expected, given
        for folder, _, _ in os.walk(tmp_path / "memories", topdown=False):
            if folder != str(tmp_path / "memories") and not os.listdir(folder):
                os.rmdir(folder)  # a folder of ours exists while it holds a file
        files = {f"/{path.relative_to(tmp_path)}": path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        assert {key: ours.memory[key].encode() for key in ours.memory.list()} == files, given


@pytest.mark.parametrize("any_store", ["directory"], indirect=True)
def test_keys_that_are_no_paths_stay_and_lead_nowhere(
    tool: AnthropicMemoryTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = ["/memories/../../x", "/memories/..", "/memories/a//b", "/memories/./a.txt", "/memories/d/", "//a.txt", "x"]
    for key in odd:
        tool.memory.put(key, "kept")
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path)
    assert call(tool, "view", "/memories").endswith(":\n0B\t/memories")
    assert refusal(tool, "view", "/memories/a").endswith("does not exist. Please provide a valid path.")
    assert refusal(tool, "delete", "/memories/d") == "The path /memories/d does not exist"
    assert "does not exist" in refusal(tool, "insert", "/memories/a//b", insert_line=0, insert_text="x")
    assert sorted(tmp_path.rglob("*")) == before
    names = ["%2e%2e", "..%2fx", "…", "a\0b", "n" * 300, "\\..\\x", "con", "*"]
    for name in names:
        call(tool, "create", f"/memories/{name}", file_text="mine")
    call(tool, "rename", "", old_path="/memories/a\0b", new_path="/memories/n")
    for name in (*names[:3], "n"):
        assert call(tool, "view", f"/memories/{name}").endswith("     1\tmine")
    assert "too long" in refusal(tool, "create", "/memories/" + "k" * 2048, file_text="")
    assert "UTF-8" in refusal(tool, "create", "/memories/\ud800", file_text="")
    assert [tool.memory[key] for key in odd] == ["kept"] * len(odd)


def test_a_view_stores_nothing_and_asks_once(any_store: Store) -> None:
    Memory(any_store).put("/memories/a//b", "kept", 3600, metadata={"by": "me"})
    Memory(any_store).put("/memories/a/b", "one")
    store = CountingStore(any_store)
    tool = AnthropicMemoryTool(Memory(store))
    call(tool, "view", "/memories/a/b")
    assert store.counts == {"get": 1}
    call(tool, "view", "/memories")
    assert "put" not in store.counts
    assert "delete" not in store.counts


def test_lifetimes_and_texts_are_kept(tool: AnthropicMemoryTool) -> None:
    tool.memory.put("/memories/a/b", "one\r\ntwo", 3600, metadata={"by": "me"})
    call(tool, "rename", "", old_path="/memories/a", new_path="/memories/c")
    call(tool, "str_replace", "/memories/c/b", old_str="one", new_str="1")
    entry = tool.memory.entry("/memories/c/b")
    assert (entry.value, entry.ttl_seconds, entry.metadata) == ("1\r\ntwo", 3600, {"by": "me"})
    assert tool.clear_all_memory() == "All memory cleared"
    assert tool.memory.list() == []


def test_edits_of_many_agents_are_kept(any_store: Store) -> None:
    call(AnthropicMemoryTool(Memory(any_store)), "create", "/memories/log", file_text="")

    def agent(number: int) -> None:
        tool = AnthropicMemoryTool(Memory(any_store))
        for line in range(3):
            call(tool, "insert", "/memories/log", insert_line=0, insert_text=f"agent {number} line {line}")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(agent, range(4)))
    lines = Memory(any_store)["/memories/log"].splitlines()
    assert sorted(lines) == sorted(f"agent {number} line {line}" for number in range(4) for line in range(3))


class _Busy(WrappedStore):
    """Another agent writes the entry before each conditional request for it."""

    def put(self, key: str, data: bytes, **condition: Any) -> str:
        if condition.get("if_match"):
            Memory(self.store).put("/memories/a", "theirs")
        return self.store.put(key, data, **condition)

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        if key.endswith("%2fa"):
            Memory(self.store).put("/memories/a", "theirs")
        self.store.delete(key, if_match=if_match)


@pytest.mark.parametrize("any_store", ["memory"], indirect=True)
def test_a_change_among_busy_writers_ends(any_store: Store) -> None:
    Memory(any_store).put("/memories/a", "mine")
    tool = AnthropicMemoryTool(Memory(_Busy(any_store)))
    assert "write it all the time" in refusal(tool, "insert", "/memories/a", insert_line=0, insert_text="x")
    assert "write it all the time" in refusal(tool, "rename", "", old_path="/memories/a", new_path="/memories/b")
    assert [(key, tool.memory[key]) for key in tool.memory] == [("/memories/a", "theirs")]


def test_damaged_entries_are_refusals_and_can_be_deleted(any_store: Store) -> None:
    memory = Memory(any_store)
    memory.put("/memories/a", "lost")
    memory.put("/memories/b", "kept")
    (damaged, _) = sorted(info.key for info in any_store.list(""))
    any_store.put(damaged, b"no entry")
    tool = AnthropicMemoryTool(Memory(any_store))
    for command in ("view", "create", "insert", "str_replace"):
        more: dict[str, object] = {"insert_line": 0, "insert_text": ""} if command == "insert" else {"file_text": ""}
        more |= {"old_str": "a", "new_str": "b"} if command == "str_replace" else {}
        assert "not an entry of a memory" in refusal(tool, command, "/memories/a", **more)
    assert call(tool, "delete", "/memories/a")
    assert call(tool, "view", "/memories").endswith(":\n4B\t/memories\n4B\t/memories/b")


class _Asleep(WrappedStore):
    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        raise StoreFailure("the server sleeps")

    def head(self, key: str) -> ObjectInfo:
        raise StoreFailure("the server sleeps")


@pytest.mark.parametrize("any_store", ["memory"], indirect=True)
def test_failures_and_calls_without_sense_are_refusals(any_store: Store) -> None:
    Memory(any_store).put("/memories/a", "kept")
    tool = AnthropicMemoryTool(Memory(_Asleep(any_store)))
    for command in ("view", "delete"):
        assert "the server sleeps" in refusal(tool, command, "/memories/a")
    tool = AnthropicMemoryTool(Memory(any_store))
    with pytest.raises(ToolError, match="path"):
        tool.call({"command": "view"})
    with pytest.raises(ToolError, match="command"):
        tool.call({"command": "_edit", "path": "/memories/a"})
    assert "path" in refusal(tool, "view", 7)  # type: ignore[arg-type]
    assert "insert_line" in refusal(tool, "insert", "/memories/a", insert_line="x", insert_text="")
    assert "verbatim" in refusal(tool, "str_replace", "/memories/a", old_str="", new_str="x")
    assert tool.memory["/memories/a"] == "kept"


@pytest.mark.parametrize("any_store", ["memory"], indirect=True)
def test_in_async_code(any_store: Store) -> None:
    async def run() -> None:
        tool = AsyncAnthropicMemoryTool(Memory(any_store))
        given = {"command": "create", "path": "/memories/a", "file_text": "x"}
        results = await asyncio.gather(*[tool.call(given) for _ in range(4)], return_exceptions=True)
        texts = sorted(map(str, results))
        assert texts == [*["File /memories/a already exists"] * 3, "File created successfully at: /memories/a"]
        await tool.clear_all_memory()
        assert tool.memory.list() == []

    asyncio.run(run())
