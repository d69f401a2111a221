"""`deepagents`: the documents of a text as the files of its agent; the backend against its own in-memory one."""

from __future__ import annotations

import tempfile
from typing import Any

from deepagents import create_deep_agent
from deepagents.backends.filesystem import FilesystemBackend
from deepagents.backends.store import StoreBackend
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from contract import SHELL_QUESTIONS, lines_for, shell_text

import monocontext
from monocontext import Monocontext, publish
from monocontext.adapters.deepagents import DocumentsBackend
from monocontext.memory import Memory
from monocontext.memory.langgraph_store import LangGraphStore

FILES = {
    "src/app/main.py": "import os\nneedle = 1\n\nprint(needle)",
    "src/util.py": "needle = 2\n",
    "notes.md": "".join(f"line {i}\n" for i in range(3000)),
    "empty.txt": "",
}
SHELL_CALLS = [("bash", {"command": command}) for command, _ in SHELL_QUESTIONS]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("ls", {"path": "/src"}),
    ("grep", {"pattern": "needle", "path": "/"}),
    ("glob", {"pattern": "*.md", "path": "/"}),
    ("read_file", {"file_path": "/src/util.py"}),
]


class Scripted(BaseChatModel):
    calls: list[tuple[str, dict[str, Any]]] = CALLS

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        results = [str(item.content) for item in messages if isinstance(item, ToolMessage)]
        if len(results) == len(self.calls):
            reply = AIMessage("\n".join(results))
        else:
            name, arguments = self.calls[len(results)]
            reply = AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": str(len(results))}])
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    @property
    def _llm_type(self) -> str:
        return "scripted"


def compare(ours: DocumentsBackend, theirs: FilesystemBackend) -> None:
    """Ask both backends the same; sizes of folders and times are their own."""
    for path in ("/src/app/main.py", "/notes.md", "/src/util.py"):
        for offset, limit in ((0, 2000), (1, 1), (2999, 5), (0, 0), (-3, 2)):
            left, right = ours.read(path, offset, limit), theirs.read(path, offset, limit)
            if right.error is None:
                assert left == right, (path, offset, limit, left, right)
    assert ours.read("/empty.txt").file_data == {"content": "", "encoding": "utf-8"}
    for pattern, path, glob in (("needle", None, None), ("needle", "/src", "*.py"), ("needle", None, "src/*.py"),
                                ("line 29", "/notes.md", None), ("absent", None, None), ("(", None, None)):  # fmt: skip
        left, right = ours.grep(pattern, path, glob), theirs.grep(pattern, path, glob)
        assert _sorted(left.matches) == _sorted(right.matches), (pattern, path, glob, left, right)
    assert ours.grep("needle", max_count=1).truncated
    assert "no file or folder '/no'" in (ours.grep("needle", "/no").error or "")
    for pattern, path in (("*.py", None), ("src/**/*.py", None), ("/*.md", None), ("*.py", "/src/app"), ("*.js", None)):
        left, right = ours.glob(pattern, path), theirs.glob(pattern, path)
        assert _paths(left.matches) == _paths(right.matches), (pattern, path, left, right)
    assert ours.glob("../*").error
    for path in ("/", "/src", "/src/app"):
        assert _paths(ours.ls(path).entries) == _paths(theirs.ls(path).entries), path


def _sorted(matches: Any) -> list[tuple[str, int, str]]:
    return sorted((item["path"], item["line"], item["text"]) for item in matches)


def _paths(entries: Any) -> set[str]:
    return {item["path"] for item in entries}


def main() -> None:
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as folder:
        publish(FILES, place)
        theirs = FilesystemBackend(root_dir=folder, virtual_mode=True)
        for name, text in FILES.items():
            theirs.write(f"/{name}", text)
        compare(DocumentsBackend(place), theirs)
        ours = DocumentsBackend(place)
        assert "read-only" in (ours.write("/a.txt", "x").error or "")
        assert "read-only" in (ours.edit("/src/util.py", "needle", "x").error or "")
        agent = lines_for("deepagents", place)["make_agent"](Scripted())
        said = agent.invoke({"messages": [{"role": "user", "content": "go"}]})["messages"][-1].content
        for part in ("/src/app/", "/notes.md", "needle = 2"):
            assert part in said, said
        publish({"long.txt": "x" * 2_000_000}, place, replace=True)
        assert "1,048,576 characters: ask for fewer lines" in (DocumentsBackend(place).read("/long.txt").error or "")
    with tempfile.TemporaryDirectory() as place:
        publish("one text", place)
        said = ""
        try:
            DocumentsBackend(place)
        except ValueError as error:
            said = str(error)
        assert "has no documents, so no files" in said, said
    with tempfile.TemporaryDirectory() as place:
        store = LangGraphStore(Memory.open(place))
        notes = StoreBackend(store=store, namespace=lambda runtime: ("notes",))
        assert notes.write("/a/b.md", "hello\nneedle\n").error is None
        assert _sorted(notes.grep("needle").matches) == [("/a/b.md", 2, "needle")]
        assert notes.edit("/a/b.md", "hello", "bye").occurrences == 1
        again = StoreBackend(store=LangGraphStore(Memory.open(place)), namespace=lambda runtime: ("notes",))
        assert again.read("/a/b.md").file_data["content"] == "bye\nneedle\n"
    with Monocontext.open(shell_text()) as text:
        agent = create_deep_agent(Scripted(calls=SHELL_CALLS), tools=monocontext.tools(text, shell=True))
        answer = agent.invoke({"messages": [("user", "?")]}, {"recursion_limit": 100})["messages"][-1].content
        assert answer.splitlines() == [answer for _, answer in SHELL_QUESTIONS], answer
        assert text.stats.bytes_fetched < len(text) // 100
    print("deepagents: equal")


if __name__ == "__main__":
    main()
