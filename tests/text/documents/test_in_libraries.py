"""Documents in pandas, numpy and polars: as with a real list or dict, or an error, never a column without text.

The libraries are those of `make test-libraries`; without them a module that calls itself pandas shows how it is asked.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import os
import uuid
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from monocontext import Monocontext, documents, publish
from monocontext.errors import ContextTooLarge
from monocontext.stores.memory import MemoryStore, forget

NAMED = {"a.md": "nothing here", "b.md": "the password is hunter2\n", "c.md": "x" * 300 + " hunter2", "d.md": ""}
SIZE = sum(map(len, NAMED.values()))
FOUND = ".str.contains('hunter2').sum()"

ROWS = [
    ("dict", "pd.DataFrame(context.items(), columns=['n', 'v'])['v']" + FOUND),
    ("dict", "pd.DataFrame({'v': context.values()})['v']" + FOUND),
    ("dict", "pd.DataFrame({'n': context.keys(), 'v': context.values()})['v']" + FOUND),
    ("dict", "pd.DataFrame(list(context.items()))[1]" + FOUND),
    ("dict", "pd.DataFrame(((n, t) for n, t in context.items()))[1]" + FOUND),
    ("dict", "pd.DataFrame([{'n': n, 't': t} for n, t in context.items()])['t']" + FOUND),
    ("dict", "pd.DataFrame(zip(context.keys(), context.values()))[1]" + FOUND),
    ("dict", "pd.DataFrame(enumerate(context.values()))[1]" + FOUND),
    ("dict", "pd.Series({n: t for n, t in context.items()}.values())" + FOUND),
    ("dict", "pd.Series(context)" + FOUND),
    ("dict", "pd.DataFrame.from_dict(context, orient='index')[0]" + FOUND),
    ("dict", "pd.DataFrame(context, index=[0]).T[0]" + FOUND),
    ("dict", "np.array(context).item()"),
    ("list", "pd.DataFrame({'doc': context})['doc']" + FOUND),
    ("list", "pd.Series(context)" + FOUND),
    ("list", "pd.Series(context[:])" + FOUND),
    ("list", "pd.Series(list(context))" + FOUND),
    ("list", "pd.Series(t for t in context)" + FOUND),
    ("list", "pd.Series(map(str, context))" + FOUND),
    ("list", "pd.Series(reversed(context))" + FOUND),
    ("list", "pd.DataFrame(context)[0]" + FOUND),
    ("list", "pd.DataFrame(context[:], columns=['t'])['t']" + FOUND),
    ("list", "pd.DataFrame(zip(range(9), context))[1]" + FOUND),
    ("list", "pd.DataFrame({'i': range(4)}).assign(d=context)['d']" + FOUND),
    ("list", "df.__setitem__('d', context) or df['d']" + FOUND),
    ("list", "pd.Series(['x', 'nothing here']).isin(context).sum()"),
    ("list", "pd.DataFrame({'d': context}).d.str.len().tolist()"),
    ("list", "np.array(context).tolist()"),
    ("list", "np.char.count(context, 'hunter2').tolist()"),
    ("list", "np.asarray(context[:]).tolist()"),
    ("list", "pl.Series(context).str.contains('hunter2').sum()"),
    ("dict", "pl.DataFrame({'v': context.values()})['v'].str.contains('hunter2').sum()"),
]


@pytest.fixture
def opened() -> Iterator[Callable[[str, int], Any]]:
    name, made = uuid.uuid4().hex, []
    store = MemoryStore(name)
    publish(documents(NAMED.items()), store, frame_bytes=64)

    def make(shape: str, limit: int) -> Any:
        made.append(Monocontext.open(store, shape=shape, materialize_limit=limit))  # type: ignore[call-overload]
        return made[-1]

    yield make
    for each in made:
        each.close()
    forget(name)


def run(code: str, context: Any, names: dict[str, Any], kit: bool) -> Any:
    names = {"__name__": "__main__", **names, "context": context}
    tree = ast.parse(f"found = {code}")
    if kit:
        made = context.repl_namespace()
        names["__builtins__"] = vars(builtins) | made.names
        tree = made.transform(tree)
    exec(compile(tree, "<cell>", "exec"), names)
    return names["found"]


@pytest.mark.filterwarnings("ignore")  # of libraries
@pytest.mark.parametrize(("shape", "code"), ROWS)
def test_a_column_of_documents(opened: Callable[[str, int], Any], shape: str, code: str) -> None:
    names: dict[str, Any] = {}
    for short, library in (("np", "numpy"), ("pd", "pandas"), ("pl", "polars")):
        if importlib.util.find_spec(library):
            names[short] = importlib.import_module(library)
        elif f"{short}." in code or (short == "pd" and "df" in code):
            assert "MONOCONTEXT_REQUIRE_LIBRARIES" not in os.environ, f"{library} is not installed"
            pytest.skip(f"{library} is not installed")

    def outcome(context: Any, kit: bool) -> Any:
        if "df" in code:
            names["df"] = names["pd"].DataFrame({"i": range(4)})
        return run(code, context, names, kit)

    expected = outcome(NAMED if shape == "dict" else list(NAMED.values()), kit=False)
    assert outcome(opened(shape, 1 << 20), kit=True) == expected
    for limit, kit in ((1 << 20, False), (SIZE - 1, False), (SIZE - 1, True), (100, False), (100, True)):
        got, told = None, ""
        try:
            got = outcome(opened(shape, limit), kit)
        except (ContextTooLarge, TypeError, AttributeError) as error:
            told = f"{type(error).__name__}: {error}"
        assert told or got == expected
        assert "\n" not in told
        assert not told or "ContextTooLarge" in told or "pandas" in told or "polars" in code


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module that keeps items as pandas does."""
    module = ModuleType("pandas.core.construction")
    source = "def column(data):\n    items = list(data)\n    isinstance(items[0], int)\n    return items"
    exec(compile(source, "<pandas>", "exec"), vars(module))
    return module


def test_a_library_that_collects_items_gets_real_ones(opened: Callable[[str, int], Any], fake: ModuleType) -> None:
    named, listed = opened("dict", 1 << 20), opened("list", 1 << 20)
    for given, expected in (
        (listed, list(NAMED.values())), (named.values(), list(NAMED.values())), (named.items(), list(NAMED.items())),
    ):  # fmt: skip
        found = fake.column(given)
        assert found == expected
        assert {type(each) for item in found for each in (item if type(item) is tuple else (item,))} == {str}
    for large in (opened("list", SIZE - 1), opened("dict", SIZE - 1).values()):
        with pytest.raises(ContextTooLarge):
            fake.column(large)


def test_a_lazy_text_is_no_item_of_a_column(opened: Callable[[str, int], Any], fake: ModuleType) -> None:
    context = opened("list", 1 << 20)
    for given in (list(context), (text for text in context), [context.text]):
        with pytest.raises(TypeError, match=r"pandas finds no text in a \w+"):
            fake.column(given)
    text = next(iter(context))
    assert text.__class__ is type(text)  # for anyone else
    assert not isinstance(text, int)
    assert isinstance(context.text, Monocontext)


def test_in_the_kit_iterators_are_real_for_pandas(opened: Callable[[str, int], Any], fake: ModuleType) -> None:
    for code in ("enumerate(context)", "zip(context, context)", "((1, t) for t in context)", "map(str, context)",
                 "filter(None, context)", "reversed(context)", "{1: context[0]}.values()"):  # fmt: skip
        found = run(f"column({code})", opened("list", 1 << 20), {"column": fake.column}, kit=True)
        assert {type(each) for item in found for each in (item if type(item) is tuple else (item,))} <= {str, int}
        assert found == run(f"column({code})", list(NAMED.values()), {"column": fake.column}, kit=False)
    with pytest.raises(ContextTooLarge):
        run("column(t.lower() for t in context)", opened("list", 100), {"column": fake.column}, kit=True)
