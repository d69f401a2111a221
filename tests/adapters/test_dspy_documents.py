"""Lists and dicts of documents in the sandbox of `dspy`: its own side of them against real ones, with tools by JSON."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from monocontext import Monocontext, publish
from monocontext.adapters import dspy
from monocontext.stores.memory import MemoryStore, forget


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    name = uuid.uuid4().hex
    yield MemoryStore(name)
    forget(name)


@pytest.fixture(autouse=True)
def own_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sandbox changes its own `re` and `json`, which are ours here."""
    for name in ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn"):
        monkeypatch.setattr(re, name, getattr(re, name))
    monkeypatch.setattr(json.JSONEncoder, "default", json.JSONEncoder.default)


def in_sandbox(context: Any, small: int = 1 << 20) -> tuple[dict[str, Any], list[str]]:
    """The namespace of the sandbox with `context`, and the operations that it asked for so far."""
    asked: list[str] = []
    tools = [*dspy._tools(context.text, ""), dspy._documents_tool(context, "")]

    def called(tool: Any) -> Any:
        def call(**given: Any) -> Any:
            asked.append(given.get("operation", tool.__name__))
            return json.loads(json.dumps(tool(**json.loads(json.dumps(given)))))

        return call

    names: dict[str, Any] = {"__name__": "sandbox", **{tool.__name__: called(tool) for tool in tools}}
    *_, call = (tool.__name__ for tool in tools)
    of_text = ", ".join(tool.__name__ for tool in tools[:-1])
    kind = "DocumentListProxy" if type(context).__name__ == "DocumentList" else "DocumentDictProxy"
    exec(f"{dspy._proxy_source('dspy_proxy')}\n{dspy._proxy_source('dspy_documents_proxy')}", names)
    names["DOCUMENTS_AT_ONCE"] = 7
    exec(
        f"context = {kind}(DocumentsInHost({call}, {len(context)}), ContextProxy({len(context.text)}, {of_text}))",
        names,
    )
    return names, asked


def test_a_search_asks_once_for_many(store: MemoryStore) -> None:
    given = {f"n{i}": f"document {i}\n" * 20 + "user-4711" * (i % 1000 == 7) for i in range(5000)}
    publish(given, store, frame_bytes=4096, codec="raw")
    for shape, loop in (("list", "i for i, d in enumerate(context)"), ("dict", "k for k, d in context.items()")):
        with Monocontext.open(store, shape=shape) as context:  # type: ignore[call-overload]
            names, asked = in_sandbox(context)
            names["DOCUMENTS_AT_ONCE"] = 1000
            found = eval(f"[{loop} if 'user-4711' in d]", names)
            assert found == ([*range(7, 5000, 1000)] if shape == "list" else [f"n{i}" for i in range(7, 5000, 1000)])
            assert [one for one in asked if one != "names"] == ["holding"] * 5
            import_re = {"re": re, **names}
            assert (
                len(eval(f"[{loop} if re.search('user-47', d) and re.search(re.compile('r-4711$'), d)]", import_re))
                == 5
            )
            assert asked.count("matching") == 10


def test_a_large_document_stays_in_the_host(store: MemoryStore) -> None:
    large = "é line\n" * 200_000
    publish({"small": "few", "large": large, "other": "end"}, store)
    with Monocontext.open(store, shape="list") as context:
        names, asked = in_sandbox(context)
        assert eval("[len(d) for d in context]", names) == [3, len(large), 3]
        assert eval("context[1][5:19], context[1].find('line', 99), 'nothing' in context[1]", names) == (
            large[5:19], large.find("line", 99), False,
        )  # fmt: skip
        assert "texts_from" not in asked
        with pytest.raises(MemoryError, match="take a slice"):
            eval("str(context[1])", names)
        assert eval("[d[:3] for d in context]", names) == ["few", large[:3], "end"]
        assert eval("next(context.text.grep('end')).line", names) == "end"


def test_json_takes_documents_and_few_methods_are_called(store: MemoryStore) -> None:
    publish({"a": "one", "b": "two"}, store)
    with Monocontext.open(store, shape="dict") as context:
        names, _ = in_sandbox(context)
        names["json"] = json
        assert eval("json.loads(json.dumps(context)), json.dumps([d for d in context.values()])", names) == (
            {"a": "one", "b": "two"}, '["one", "two"]',
        )  # fmt: skip
        assert eval("'absent' in context, context.get('absent'), context['b']", names) == (False, None, "two")
        call = dspy._documents_tool(context, "_left")
        assert call.__name__ == "documents_call_left"
        for name in ("close", "text", "documents", "__class__", "count", "_shape"):
            assert call([], name, [])["error"] == "AttributeError"


def test_what_is_no_context_is_refused() -> None:
    pytest.importorskip("dspy", reason="no dspy here")
    with pytest.raises(TypeError, match="takes a lazy text, list or dict, not list"):
        dspy.wrap(["a"])  # type: ignore[arg-type]
