"""`keep`: a large text becomes a document that other tools read, for as long as it lives."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import monocontext
from monocontext import publish
from monocontext.errors import NotFound
from monocontext.mcp import Served, Tools
from monocontext.memory import Memory
from monocontext.text_tools.keep import KeepTool, _keys

LINES = "".join(f"line {i} of a build\n" for i in range(40_000))


def functions(place: Path, **options: bool) -> dict[str, Callable[..., str]]:
    publish({"a.txt": "one\n"}, place / "text")
    return {tool.__name__: tool for tool in monocontext.tools(place / "text", keep=place / "kept", **options)}


def test_functions_read_what_is_kept(tmp_path: Path) -> None:
    call = functions(tmp_path)
    assert list(call)[-3:] == ["keep", "kept_read", "kept_grep"]
    assert call["keep"](LINES, "build.log").splitlines()[0] == "build.log: 868,890 bytes, 40,000 lines, for 86,400 s"
    assert call["kept_grep"]("line 39999 ").startswith("build.log:40000:")
    assert call["kept_read"](start=1, stop=2, unit="lines", document="build.log") == "line 1 of a build\n"
    assert call["read"](document="a.txt") == "one\n"


def test_a_name_that_is_taken_is_not_overwritten(tmp_path: Path) -> None:
    tools = [KeepTool(Memory.open(tmp_path)) for _ in range(2)]
    with ThreadPoolExecutor(8) as threads:
        names = [*threads.map(lambda i: tools[i % 2].keep(f"text {i}", "out.txt").data.name, range(8))]
    assert sorted(names) == ["out-2.txt", *(f"out-{n}.txt" for n in range(3, 9)), "out.txt"]
    assert sorted(map(str, tools[0].text().documents.values())) == [f"text {i}\n" for i in range(8)]
    assert [[*_keys(name)][-1] for name in ("v1.2/n", "a/.env", "a.b/")] == ["v1.2/n-1000", "a/.env-1000", "a-1000.b"]


def test_fifty_megabytes_and_what_is_expired(tmp_path: Path) -> None:
    tool = KeepTool(Memory.open(tmp_path))
    large = "0123456789abcdef\n" * 3_000_000
    kept = tool.keep(large, "large")
    assert kept == "large: 51,000,000 bytes, 3,000,000 lines, for 86,400 s\n" + large[:500]
    tool.keep("short-lived", "short", ttl_seconds=1)
    before = tool.text()
    assert list(before.documents) == ["large", "short"]
    assert before is tool.text()
    time.sleep(1.2)
    assert list(tool.text().documents) == ["large"]
    assert str(tool.text().documents["large"][-17:]) == large[-17:]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("x", ""), "error: name must be"),
        (("x", "../.."), "error: name must be 1 to 200 printable characters, and not only slashes, dots and spaces"),
        (("x", "a\nb"), "error: name must be"),
        (("", "a"), "error: text must have"),
        (("x", "a", 0), "error: ttl_seconds must be at least 1, not 0"),
    ],
)
def test_what_a_model_can_mend(tmp_path: Path, arguments: tuple[str | int, ...], said: str) -> None:
    assert functions(tmp_path)["keep"](*arguments).startswith(said)


def test_the_server_keeps_and_its_tools_read(tmp_path: Path) -> None:
    publish({"a.txt": "one\n"}, tmp_path / "text")
    served = Served({"logs": str(tmp_path / "text")}, kept=KeepTool(Memory.open(tmp_path / "kept")))
    tools = Tools(served).by_name(uploads=False)
    assert tools["context_list"]() == "logs\nkept"
    tools["keep"]("a\nneedle\n", "out")
    assert tools["context_search"](pattern="needle", context="kept").startswith("out:2:")
    assert "bash" not in tools
    with pytest.raises(NotFound, match="--keep"):
        Tools(Served({})).keep("x", "y")


def test_the_shell_of_the_server_sees_texts_and_what_is_kept(tmp_path: Path) -> None:
    pytest.importorskip("bashkit")
    publish({"a.txt": "one\n"}, tmp_path / "texts" / "x")
    served = Served({"all": str(tmp_path / "texts")}, kept=KeepTool(Memory.open(tmp_path / "kept")), shell=True)
    tools = Tools(served).by_name(uploads=False)
    assert tools["bash"]("grep -rn one /all; ls /kept") == "/all/x/a.txt:1:one"
    tools["keep"]("two\n", "out.txt")
    assert tools["bash"]("cat /kept/out.txt") == "two"
    served.close()
