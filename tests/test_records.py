"""Classes made by `monocontext.records` behave as the standard library's dataclasses do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from monocontext import records

SOURCE = """
from __future__ import annotations

@dataclass(frozen=True, slots=True)
class Point:
    "A place."

    x: int
    y: int = 7
    _: KW_ONLY
    names: tuple[str, ...] = ()
    seen: list[int] = field(default_factory=list, compare=False)
    secret: str = field(default="key", repr=False)

    @property
    def sum(self) -> int:
        return self.x + self.y

@dataclass(frozen=True, slots=True)
class Pair:
    left: int
    right: int

@dataclass(frozen=True, slots=True)
class Labelled(Pair):
    label: str = "none"

@dataclass(frozen=True, slots=True)
class Checked:
    value: int

    def __post_init__(self) -> None:
        if self.value < 0:
            raise ValueError(f"{self.value} is less than nothing")

class Plain(Labelled):
    pass

@dataclass(slots=True)
class Count:
    hits: int = 0
    by_name: dict[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "a count"

class Place(NamedTuple):
    "Where."

    x: int
    y: int = 7

    @property
    def sum(self) -> int:
        return self.x + self.y

@dataclass(frozen=True, slots=True, eq=False)
class Token:
    name: str
"""


def defined(name: str, library: Any, tuples: Any) -> ModuleType:
    module = sys.modules[name] = ModuleType(name)
    vars(module).update(dataclass=library.dataclass, field=library.field, KW_ONLY=library.KW_ONLY, NamedTuple=tuples)
    exec(SOURCE, vars(module))
    return module


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[ModuleType, ModuleType]]:
    names = "records_of_ours", "records_of_the_library"
    yield defined(names[0], records, records.NamedTuple), defined(names[1], dataclasses, NamedTuple)
    for name in names:
        del sys.modules[name]


EXPRESSIONS = [
    "Point(1)",
    "Point(1, 2, names=('a',), seen=[3])",
    "Point(1) == Point(1, seen=[2])",
    "Point(1) == Point(1, secret='other')",
    "Point(1) == (1, 7)",
    "hash(Point(1)) == hash(Point(1, 7, seen=[2]))",
    "Point()",
    "Point(1, 2, ('a',))",
    "Point(1, z=2)",
    "setattr(Point(1), 'x', 2)",
    "delattr(Point(1), 'x')",
    "Point.__doc__",
    "Point.__qualname__",
    "Point(1).__dict__",
    "Point(1).seen is Point(1).seen",
    "[Count(), Count(1) == Count(1), Count(1) == Count(2)]",
    "[Labelled(1, 2), Labelled(1, 2) == Labelled(1, 2, 'x'), Labelled(1, 2) == Pair(1, 2), Labelled(1, right=3).left]",
    "[Labelled.__slots__, Labelled.__match_args__, issubclass(Labelled, Pair), len({Labelled(1, 2), Labelled(1, 2)})]",
    "[replace(Labelled(1, 2), left=3), dataclasses.asdict(Labelled(1, 2)), pickle.loads(pickle.dumps(Labelled(1, 2)))]",
    "setattr(Labelled(1, 2), 'left', 3)",
    "[Plain(1, 2), pickle.loads(pickle.dumps(Plain(1, 2))), copy.copy(Plain(1, 2)), replace(Plain(1, 2), left=3)]",
    "[Plain(1, 2) == Labelled(1, 2), dataclasses.asdict(Plain(1, 2))]",
    "[Checked(1), replace(Checked(1), value=2)]",
    "Checked(-1)",
    "replace(Checked(1), value=-1)",
    "[Place(1), Place(1).sum, Place(x=1, y=2)[1], Place(1) == (1, 7), Place(1)._replace(y=2), Place.__doc__]",
    "[Place._fields, Place._field_defaults, Place.__slots__, Place.__match_args__, Place.__qualname__]",
    "Place()",
    "[pickle.loads(pickle.dumps(Place(1, 2))), copy.copy(Place(1)), hash(Place(1)) == hash((1, 7))]",
    "hash(Count())",
    "setattr(Count(), 'other', 2)",
    "[Token('a') == Token('a'), len({Token('a'), Token('a')}), Token('a')]",
    "dataclasses.asdict(Point(1, names=('a',)))",
    "[(each.name, each.type, each.compare, each.repr, each.kw_only) for each in dataclasses.fields(Point)]",
    "[dataclasses.is_dataclass(each) for each in (Point, Point(1), Count)]",
    "dataclasses.replace(Point(1), y=9, names=('b',))",
    "replace(Point(1), y=9, names=('b',))",
    "replace(Point(1), z=9)",
    "[way(Point(1, seen=[2])) for way in (copy.copy, copy.deepcopy)]",
    "[pickle.loads(pickle.dumps(Point(1, 2), protocol)) == Point(1, 2) for protocol in range(2, 6)]",
    "pickle.loads(pickle.dumps(Count(5, {'a': 1}))).by_name",
    "[repr(each.__dataclass_params__) for each in (Point, Pair, Token, Count(1))]",
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_they_do_as_dataclasses(both: tuple[ModuleType, ModuleType], expression: str) -> None:
    found = []
    for module, replace in zip(both, (records.replace, dataclasses.replace), strict=True):
        tools = {"dataclasses": dataclasses, "copy": copy, "pickle": pickle, "replace": replace}
        try:
            found.append(repr(eval(expression, vars(module) | tools)))
        except Exception as error:
            found.append(type(error).__name__)
    ours, theirs = found
    assert ours == theirs


def test_pickles_of_the_library_open_as_ours_and_back(both: tuple[ModuleType, ModuleType]) -> None:
    ours, theirs = both
    for one, other in ((ours, theirs), (theirs, ours)):
        for kind, values in (("Point", (1, 2)), ("Labelled", (1, 2, "x")), ("Count", (3,))):
            state = pickle.dumps(getattr(one, kind)(*values), 2).replace(one.__name__.encode(), other.__name__.encode())
            assert repr(pickle.loads(state)) == repr(getattr(other, kind)(*values))


@pytest.mark.parametrize("annotation", ["ClassVar[int]", "InitVar[int]"])
def test_annotations_that_are_not_known_are_refused(annotation: str) -> None:
    plain = type("Odd", (), {"__annotations__": {"x": annotation}})
    with pytest.raises(TypeError, match=r"Odd\.x: .* is not supported"):
        records.dataclass(frozen=True, slots=True)(plain)


def test_only_records_are_replaced(both: tuple[ModuleType, ModuleType]) -> None:
    for other in (both[1].Pair(1, 2), "text"):
        with pytest.raises(TypeError, match="an instance of a record class"):
            records.replace(other, left=3)
