"""The documents of a context as a `list[str]` and a `dict[str, str]`: what the real ones give."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from monocontext import Monocontext, documents, publish
from monocontext.stores.memory import MemoryStore, forget
from monocontext.text.documents.shapes import DocumentDict, DocumentList

NAMED = {"a.md": "nothing here", "b.md": "the 'password' is hunter2\n", "c.md": "x" * 300 + " hunter2", "d.md": ""}
TEXTS = list(NAMED.values())


@pytest.fixture(scope="module")
def store() -> Iterator[MemoryStore]:
    name = uuid.uuid4().hex
    store = MemoryStore(name)
    publish(documents(NAMED.items()), store, frame_bytes=64)
    yield store
    forget(name)


@pytest.fixture
def opened(store: MemoryStore) -> Iterator[Callable[..., Any]]:
    made: list[Any] = []

    def make(shape: str, limit: int = 1 << 20) -> Any:
        made.append(Monocontext.open(store, shape=shape, materialize_limit=limit))  # type: ignore[call-overload]
        return made[-1]

    yield make
    for item in made:
        item.close()


ON_A_LIST = (
    "len(x)", "x[0]", "x[-1]", "x[1:3]", "x[::-1]", "x[5:]", "list(x)", "[len(t) for t in x]", "x == y", "x != y",
    "x == y[1:]", "y == x", "'' in x", "'no' in x", "x.index('')", "x.count('')", "x + ['z']", "['z'] + x", "x.copy()",
    "list(reversed(x))", "[i for i, t in enumerate(x) if 'hunter2' in t]", "'-'.join(x)", "sorted(x)", "bool(x)",
    "x[9]", "x['a']", "[type(t) for t in x]", "dict(enumerate(x))", "x.index('no')",
)  # fmt: skip
ON_A_DICT = (
    "len(x)", "x['a.md']", "list(x)", "list(x.items())", "list(x.values())", "x == y", "x != y", "y == x",
    "'b.md' in x", "'no' in x",
    "x.get('a.md')", "x.get('no', 3)", "x.copy()", "x['no']", "x[['a']]", "{**x}", "bool(x)",
    "[n for n, t in x.items() if 'hunter2' in t]", "x.keys() & {'a.md', 'z'}", "sorted(x.values())", "max(x)",
)  # fmt: skip


def outcome(code: str, subject: Any, real: Any) -> Any:
    try:
        return eval(code, {"x": subject, "y": real})
    except KeyError:
        return KeyError
    except Exception as error:
        return type(error)


@pytest.mark.parametrize(
    ("shape", "code"), [*(("list", code) for code in ON_A_LIST), *(("dict", code) for code in ON_A_DICT)]
)
def test_it_is_what_the_real_one_gives(opened: Callable[..., Any], shape: str, code: str) -> None:
    real: Any = TEXTS if shape == "list" else NAMED
    result, expected = outcome(code, opened(shape), real), outcome(code, real, real)
    assert result == expected
    assert type(result) is type(expected)


def test_above_the_limit_items_are_views_and_slices_lazy(opened: Callable[..., Any]) -> None:
    texts = opened("list", 100)
    assert [type(text) for text in texts] == [str, str, Monocontext, str]
    assert (list(texts), type(texts[1:3]), type(texts[:2])) == (TEXTS, DocumentList, list)
    assert type(opened("dict", 100)["c.md"]) is Monocontext
    assert [hit.document for hit in opened("list").text.grep("hunter2")] == ["b.md", "c.md"]


def test_reprs_and_descriptions(opened: Callable[..., Any]) -> None:
    texts, names = opened("list"), opened("dict")
    assert repr(texts) == "<DocumentList of 4 documents; a lazy list of str: index, slice or iterate it>"
    assert repr(names) == "<DocumentDict of 4 documents; a lazy dict of str: look names up or iterate it>"
    assert names.describe()["sentence"].startswith("a dict of 4 documents by name, all str, 346 bytes together")
    assert "context.text.grep" in texts.describe()["access"]
    assert texts.copy() == TEXTS
    for change in ("x.append('a')", "x.__setitem__(0, 'a')", "x.clear()"):
        with pytest.raises(AttributeError):
            eval(change, {"x": texts})


def test_pickles_and_cells(tmp_path: Path) -> None:
    publish(documents(NAMED.items()), tmp_path)
    for shape, kind in (("list", DocumentList), ("dict", DocumentDict)):
        with Monocontext.open(tmp_path, shape=shape) as texts:  # type: ignore[call-overload]
            assert pickle.loads(pickle.dumps(texts)) == texts
            assert type(texts) is kind
            passes = texts.repl_namespace().names["isinstance"]
            assert (passes(texts, list), passes(texts, dict)) == (shape == "list", shape == "dict")


def test_a_text_without_documents_has_no_shape(tmp_path: Path) -> None:
    publish("one text", tmp_path)
    with pytest.raises(ValueError, match="one text without documents"):
        Monocontext.open(tmp_path, shape="list")
