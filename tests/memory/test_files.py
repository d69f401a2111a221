"""Anthropic's memory tool commands: answers, refusals, traversal, and edits of several agents at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from monocontext.errors import ToolRefusal
from monocontext.memory import Memory
from monocontext.memory.files import MemoryFiles
from monocontext.stores.memory import MemoryStore
from monocontext.stores.protocol import Store


@pytest.fixture
def files(any_store: Store) -> MemoryFiles:
    return MemoryFiles(Memory(any_store))


def refusal_of(files: MemoryFiles, **command: object) -> str:
    with pytest.raises(ToolRefusal) as caught:
        files.execute(command)
    return str(caught.value)


def test_a_file_from_its_creation_to_its_end(files: MemoryFiles) -> None:
    path = "/memories/notes/a.txt"
    assert files.execute({"command": "create", "path": path, "file_text": "one\ntwo\nthree\n"}) == (
        f"File created successfully at: {path}"
    )
    assert refusal_of(files, command="create", path=path, file_text="x") == f"File {path} already exists"
    assert files.execute({"command": "view", "path": path}) == (
        f"Here's the content of {path} with line numbers:\n     1\tone\n     2\ttwo\n     3\tthree\n     4\t"
    )
    assert files.execute({"command": "view", "path": path, "view_range": [2, 3]}).endswith(
        ":\n     2\ttwo\n     3\tthree"
    )
    assert files.execute({"command": "view", "path": path, "view_range": [3, -1]}).endswith("     3\tthree\n     4\t")
    assert files.execute({"command": "str_replace", "path": path, "old_str": "two", "new_str": "2"}) == (
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        "     1\tone\n     2\t2\n     3\tthree\n     4\t"
    )
    assert files.execute({"command": "insert", "path": path, "insert_line": 0, "insert_text": "zero\n"}) == (
        f"The file {path} has been edited."
    )
    assert files.memory[path] == "zero\none\n2\nthree\n"
    assert refusal_of(files, command="insert", path=path, insert_line=5, insert_text="x") == (
        "Invalid `insert_line` parameter: 5. It should be within the range [0, 4]."
    )
    assert refusal_of(files, command="str_replace", path=path, old_str="absent", new_str="x") == (
        f"No replacement was performed, old_str `absent` did not appear verbatim in {path}."
    )
    assert files.execute({"command": "rename", "old_path": path, "new_path": "/memories/b.txt"}) == (
        f"Successfully renamed {path} to /memories/b.txt"
    )
    assert files.execute({"command": "delete", "path": "/memories/b.txt"}) == "Successfully deleted /memories/b.txt"
    assert refusal_of(files, command="delete", path="/memories/b.txt") == "The path /memories/b.txt does not exist"
    assert files.memory.list() == []


def test_several_occurrences_are_named(files: MemoryFiles) -> None:
    files.create("/memories/a", "x\ny x\n\nx")
    assert refusal_of(files, command="str_replace", path="/memories/a", old_str="x", new_str="y") == (
        "No replacement was performed. Multiple occurrences of old_str `x` in lines: 1, 2, 4. "
        "Please ensure it is unique"
    )
    assert files.memory["/memories/a"] == "x\ny x\n\nx"


def test_folders(files: MemoryFiles) -> None:
    assert files.view("/memories").splitlines()[1:] == ["0B\t/memories"]
    for path, size in (
        ("b", 10),
        ("a/x", 1024),
        ("a/deep/y", 2048),
        ("a/deep/er/z", 512),
        (".hidden", 1),
        ("a.txt", 3),
    ):
        files.create(f"/memories/{path}", "x" * size)
    assert files.view("/memories").splitlines() == [
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:",
        *("3.5K\t/memories", "3.5K\t/memories/a/", "2.5K\t/memories/a/deep/", "1K\t/memories/a/x"),
        *("3B\t/memories/a.txt", "10B\t/memories/b"),
    ]
    assert files.execute({"command": "view", "path": "/memories/a/deep/"}).splitlines()[1:] == [
        *("2.5K\t/memories/a/deep", "512B\t/memories/a/deep/er/", "512B\t/memories/a/deep/er/z"),
        "2K\t/memories/a/deep/y",
    ]
    assert refusal_of(files, command="str_replace", path="/memories/a", old_str="x", new_str="y") == (
        "The path /memories/a is not a file."
    )
    assert refusal_of(files, command="create", path="/memories/a", file_text="") == "File /memories/a already exists"
    assert refusal_of(files, command="create", path="/memories/b/c", file_text="") == (
        "The path /memories/b is not a directory."
    )
    assert refusal_of(files, command="rename", old_path="/memories/a", new_path="/memories/b") == (
        "The destination /memories/b already exists"
    )
    assert refusal_of(files, command="rename", old_path="/memories/b", new_path="/memories/a/deep") == (
        "The destination /memories/a/deep already exists"
    )
    assert "lies inside" in refusal_of(files, command="rename", old_path="/memories/a", new_path="/memories/a/c")
    files.rename("/memories/a", "/memories/c")
    assert files.memory.list("/memories/c/") == [
        *("/memories/c/deep/er/z", "/memories/c/deep/y", "/memories/c/x"),
    ]
    files.delete("/memories/c")
    assert files.memory.list() == ["/memories/.hidden", "/memories/a.txt", "/memories/b"]
    assert files.clear_all_memory() == "All memory cleared"
    assert files.memory.list() == []


def test_what_is_not_there(files: MemoryFiles) -> None:
    missing = "The path /memories/none does not exist. Please provide a valid path."
    assert refusal_of(files, command="view", path="/memories/none") == missing
    assert refusal_of(files, command="str_replace", path="/memories/none", old_str="a", new_str="b") == missing
    assert refusal_of(files, command="insert", path="/memories/none", insert_line=0, insert_text="b") == missing
    assert refusal_of(files, command="rename", old_path="/memories/none", new_path="/memories/a") == (
        "The path /memories/none does not exist"
    )


@pytest.mark.parametrize("any_store", ["directory"], indirect=True)
def test_paths_that_lead_elsewhere(files: MemoryFiles) -> None:
    files.memory.put("/etc/passwd", "not a file of the tool's")
    for path in ("/etc/passwd", "memories/a", "", "/", "/memoriesX/a", "/Memories/a", "/memories\\..\\a"):
        for command in ({"command": "view", "path": path}, {"command": "create", "path": path, "file_text": ""}):
            assert refusal_of(files, **command) == f"Path must start with /memories, got: {path}"
    for path in ("/memories/..", "/memories/../etc/passwd", "/memories/a/../../etc/passwd", "/memories/a/.."):
        assert refusal_of(files, command="view", path=path) == f"Path {path} would escape /memories directory"
        assert "would escape" in refusal_of(files, command="rename", old_path="/memories/a", new_path=path)
    for path in ("/memories/%2e%2e/x", "/memories/..%2fx", "/memories/…", "/memories/a\0b", "/memories//./x/"):
        files.execute({"command": "create", "path": path, "file_text": "kept"})
        assert files.execute({"command": "view", "path": path}).endswith("     1\tkept")
    assert refusal_of(files, command="delete", path="/memories/") == "Cannot delete the /memories directory itself"
    assert refusal_of(files, command="rename", old_path="/memories", new_path="/memories/x2") == (
        "Cannot rename the /memories directory itself"
    )
    assert "too long" in refusal_of(files, command="create", path="/memories/" + "k" * 2048, file_text="")
    assert files.memory["/etc/passwd"] == "not a file of the tool's"


@pytest.mark.parametrize("any_store", ["memory"], indirect=True)
def test_calls_that_make_no_sense(files: MemoryFiles) -> None:
    assert refusal_of(files, command="format") == "Unknown command: format"
    assert refusal_of(files, command="_edit", path="/memories/a") == "Unknown command: _edit"
    assert refusal_of(files) == "Unknown command: None"
    assert refusal_of(files, command="view").startswith("Invalid parameters of view: ")
    assert refusal_of(files, command="view", path=7) == "Path must start with /memories, got: 7"
    assert "`view_range`" in (
        files.create("/memories/a", "x") and refusal_of(files, command="view", path="/memories/a", view_range=[1])
    )
    assert "Invalid parameters of insert" in refusal_of(
        files, command="insert", path="/memories/a", insert_line="1", insert_text="x"
    )


@pytest.mark.slow
@pytest.mark.parametrize("any_store", ["memory", "directory", "seaweedfs"], indirect=True)
def test_no_edit_of_several_agents_is_lost(any_store: Store) -> None:
    MemoryFiles(Memory(any_store)).create("/memories/log", "")

    def agent(number: int) -> None:
        files = MemoryFiles(Memory(any_store))
        for each in range(3):
            files.insert("/memories/log", 0, f"agent {number} line {each}")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(agent, range(4)))
    lines = Memory(any_store)["/memories/log"].splitlines()
    assert sorted(lines) == sorted(f"agent {number} line {each}" for number in range(4) for each in range(3))


def test_an_edit_that_meets_another_begins_again() -> None:
    memory = Memory(MemoryStore("edited"))
    files = MemoryFiles(memory)
    files.create("/memories/a", "one two")
    put, met = memory.put, list[int]()

    def slower(path: str, *given: Any, **condition: Any) -> Any:
        if not met:
            met.append(1)
            put(path, "one two three")
        return put(path, *given, **condition)

    memory.put = slower  # type: ignore[method-assign]
    files.str_replace("/memories/a", "two", "2")
    assert memory["/memories/a"] == "one 2 three"
