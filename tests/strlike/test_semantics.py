"""docs/semantics.md against the code: every operation of `str` has a row, and does above the limit what its row says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monocontext import ContextTooLarge, Monocontext, publish
from monocontext.kinds import LazyItems, LazyText

PAGE = Path(__file__, "../../../docs/semantics.md").resolve().read_text()
ROWS = dict(re.findall(r"^\| `([^`]+)` \| (same|lazy|bounded) \|", PAGE, re.M))

OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "len": len,
    "[i]": lambda x: x[7],
    "[a:b]": lambda x: x[3:200],
    "[::step]": lambda x: x[::2],
    "iter": lambda x: sum(1 for _ in x),
    "reversed": lambda x: next(reversed(x)),
    "in": lambda x: "line 0031" in x,
    "==": lambda x: x == "something else",
    "<": lambda x: x < "zzz",
    "hash": hash,
    "+": lambda x: x + "end",
    "*": lambda x: x * 2,
    "% args": lambda x: x % (),
    "str()": str,
    "repr": repr,
    "format()": lambda x: f"{x}",
    "center": lambda x: x.center(len(x) + 5),
    "ljust": lambda x: x.ljust(len(x) + 5),
    "rjust": lambda x: x.rjust(len(x) + 5),
    "zfill": lambda x: x.zfill(len(x) + 5),
    "count": lambda x: x.count("line"),
    "endswith": lambda x: x.endswith("\n"),
    "startswith": lambda x: x.startswith("line"),
    "find": lambda x: x.find("0031"),
    "rfind": lambda x: x.rfind("0031"),
    "index": lambda x: x.index("0031"),
    "rindex": lambda x: x.rindex("0031"),
    "format_map": lambda x: x.format_map({}),
    "join": lambda x: x.join(["a", "b"]),
    "maketrans": lambda x: x.maketrans("a", "b"),
    "partition": lambda x: max(x.partition("0031"), key=len),
    "rpartition": lambda x: max(x.rpartition("0031"), key=len),
    "removeprefix": lambda x: x.removeprefix("line"),
    "removesuffix": lambda x: x.removesuffix("\n"),
    "replace": lambda x: x.replace("line", "row"),
    "rsplit": lambda x: x.rsplit("line"),
    "split": lambda x: x.split("line"),
    "translate": lambda x: x.translate({108: "L"}),
}
TEXT = "".join(f"line {i:04d}\n" for i in range(60))


def operation(name: str) -> Callable[[Any], Any]:
    return OPERATIONS.get(name) or (lambda x: getattr(x, name)())


@pytest.fixture
def large() -> Any:
    """A text of 600 characters, above a limit of 50."""
    publish(TEXT, "memory://semantics", frame_bytes=64, replace=True)
    return Monocontext.open("memory://semantics", materialize_limit=50)


def test_every_public_operation_of_str_has_a_row() -> None:
    methods = {name for name in dir(str) if not name.startswith("_")}
    assert methods <= set(ROWS), methods - set(ROWS)
    special = {
        "len",
        "[i]",
        "[a:b]",
        "[::step]",
        "iter",
        "in",
        "==",
        "<",
        "hash",
        "+",
        "*",
        "% args",
        "str()",
        "repr",
        "format()",
    }
    assert set(ROWS) == methods | special | {"reversed"}


def test_a_text_has_every_method_of_str() -> None:
    assert [name for name in dir(str) if not name.startswith("_") and not hasattr(Monocontext, name)] == []


@pytest.mark.parametrize("name", [name for name, does in ROWS.items() if does == "same"])
def test_same(name: str, large: Any) -> None:
    if name == "repr":
        assert len(repr(large)) < 200
        return
    assert operation(name)(large) == operation(name)(TEXT)
    assert not isinstance(operation(name)(large), LazyText | LazyItems)


@pytest.mark.parametrize("name", [name for name, does in ROWS.items() if does == "lazy"])
def test_lazy(name: str, large: Any) -> None:
    result = operation(name)(large)
    assert isinstance(result, LazyText | LazyItems), f"{name} gave a {type(result).__name__}"
    expected = operation(name)(TEXT)
    assert list(result) == list(expected)
    assert len(result) == len(expected)


@pytest.mark.parametrize("name", [name for name, does in ROWS.items() if does == "bounded"])
def test_bounded(name: str, large: Any) -> None:
    with pytest.raises(ContextTooLarge, match=r"[\d,]+ characters, the limit is 50 \(materialize_limit\): \w"):
        operation(name)(large)
    publish(TEXT, "memory://semantics-small", frame_bytes=64, replace=True)
    small = Monocontext.open("memory://semantics-small")
    result = operation(name)(small)
    assert result == operation(name)(TEXT)
    assert not isinstance(result, LazyText | LazyItems)
