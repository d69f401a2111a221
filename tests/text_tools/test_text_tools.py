"""`monocontext.tools`: plain functions over one text, described as the tools of the MCP server are."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import monocontext
from monocontext import Monocontext, publish
from monocontext.mcp import Served, Tools

DOCUMENTS = {
    "src/a.py": "import os\nneedle = 1\n",
    "src/b.py": "".join(f"line {i}\n" for i in range(5000)),
    "notes.md": "# The zebra\n\nThe zebra eats grass. Zebras sleep.\n",
}
SERVED_AS = {
    "describe": "context_info",
    "read": "context_slice",
    "grep": "context_search",
    "list_documents": "context_documents",
    "outline": "context_outline",
}


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monocontext]:
    place = tmp_path_factory.mktemp("text")
    publish(DOCUMENTS, place)
    with Monocontext.open(place) as opened:
        yield opened


@pytest.fixture
def call(context: Monocontext) -> dict[str, Callable[..., str]]:
    return {tool.__name__: tool for tool in monocontext.tools(context)}


def test_the_tools_of_an_open_text(call: dict[str, Callable[..., str]]) -> None:
    assert list(call) == ["describe", "read", "grep", "search", "list_documents", "outline"]
    assert '"documents": 3' in call["describe"]()
    assert type(call["read"]()) is str
    assert call["grep"]("need.e").splitlines()[0].startswith("src/a.py:2:")
    assert call["grep"]("line 42", fixed=True, max_hits=1).splitlines()[0].startswith("src/b.py:43:")
    assert call["read"](start=1, stop=2, unit="lines", document="src/a.py") == "needle = 1\n"
    assert "notes.md" in call["search"]("sleeping zebra").splitlines()[0]
    assert "3 documents" in call["outline"]()
    at = len(DOCUMENTS["src/a.py"])
    assert call["list_documents"](glob="*/b.py") == f"src/b.py  characters {at} to {at + len(DOCUMENTS['src/b.py'])}"


def test_lists_go_on_where_they_were_cut(tmp_path: Path) -> None:
    names = [f"folder/with  spaces/{i:04}.txt" for i in range(1203)]
    publish(dict.fromkeys(names, "text\n"), tmp_path)
    by_name = {tool.__name__: tool for tool in monocontext.tools(tmp_path)}
    found: list[str] = []
    after = ""
    while True:
        rows = by_name["list_documents"](glob="*[02468].txt", after=after).splitlines()
        found += [row.rpartition("  characters ")[0] for row in rows if not row.startswith("[")]
        if not rows[-1].startswith("[cut"):
            break
        after = rows[-1].partition("after=")[2].removesuffix("]")
    assert found == [name for name in names if name[-5] in "02468"]


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("grep", {"pattern": "("}, "error: "),
        ("grep", {"pattern": "os\nneedle"}, "error: the pattern needs a newline, but grep matches within a line: look"),
        ("grep", {"pattern": "os\nneedle", "fixed": True}, "error: the pattern needs a newline"),
        ("grep", {"patern": "x"}, "error: grep has no argument 'patern': did you mean pattern?"),
        ("read", {"document": "src/c.py"}, "error: no document 'src/c.py': did you mean src/b.py?"),
        ("search", {"words": ""}, "error: "),
    ],
)
def test_what_a_model_can_mend_is_one_line(
    call: dict[str, Callable[..., str]], name: str, given: dict[str, object], said: str
) -> None:
    answer = call[name](**given)
    assert answer.startswith(said)
    assert "\n" not in answer


def test_a_part_has_no_documents(context: Monocontext) -> None:
    by_name = {tool.__name__: tool for tool in monocontext.tools(context.view(0, 60))}
    assert "import os" in by_name["grep"]("im.ort")
    assert by_name["list_documents"]() == "error: this text is not divided into documents"


def test_options_and_prefix(context: Monocontext, tmp_path: Path) -> None:
    publish("text", tmp_path)
    names = [tool.__name__ for tool in monocontext.tools(tmp_path, prefix="logs_", cache_bytes=1 << 20)]
    assert names[2] == "logs_grep"
    with pytest.raises(TypeError, match="an open text takes no options: leave out cache_bytes"):
        monocontext.tools(context, cache_bytes=1)
    with pytest.raises(TypeError, match="unknown option 'cache_byte': did you mean cache_bytes"):
        monocontext.tools(tmp_path, cache_byte=1)  # type: ignore[call-arg]


def test_each_function_is_described_as_the_tool_of_the_server(context: Monocontext) -> None:
    served = Tools(Served()).by_name(uploads=False)
    for tool in monocontext.tools(context):
        described = inspect.getdoc(tool) or ""
        parameters = inspect.signature(tool).parameters
        hints = typing.get_type_hints(tool)
        assert hints.pop("return") is str
        assert list(hints) == list(parameters)
        assert all(f"    {name}: " in described for name in parameters)
        if tool.__name__ in SERVED_AS:
            same = served[SERVED_AS[tool.__name__]]
            assert (inspect.getdoc(same) or "").startswith(described.partition("\n\nArgs:")[0])
            assert set(described.partition("Args:\n")[2].splitlines()) <= set((inspect.getdoc(same) or "").splitlines())
            theirs = inspect.signature(same).parameters
            assert {name: (each.annotation, each.default) for name, each in parameters.items()}.items() <= {
                name: (each.annotation, each.default) for name, each in theirs.items()
            }.items()
