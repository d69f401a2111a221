"""Arguments of calls: what counts as what a tool takes, and the line for what does not."""

from __future__ import annotations

from typing import Any

import pytest

from monocontext.errors import ToolRefusal
from monocontext.mcp import Served, Tools
from monocontext.text_tools.arguments import check_arguments

TOOLS = Tools(Served())


def check(tool: str, **given: Any) -> dict[str, Any]:
    return check_arguments(tool, getattr(TOOLS, tool), given)


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({}, {}),
        ({"start": 5, "stop": None}, {"start": 5, "stop": None}),
        ({"start": "5", "stop": " -7"}, {"start": 5, "stop": -7}),
        ({"start": 5.0}, {"start": 5}),
        ({"context": "5"}, {"context": "5"}),
    ],
)
def test_nothing_is_lost(given: dict[str, Any], taken: dict[str, Any]) -> None:
    found = check("context_slice", **given)
    assert found == taken
    assert [type(value) for value in found.values()] == [type(value) for value in taken.values()]


@pytest.mark.parametrize("given", ["true", "True", "1", 1, True, "yes"])
def test_true(given: Any) -> None:
    assert check("context_search", pattern="x", fixed=given)["fixed"] is True


def test_a_value_of_the_memory_stays_as_it_is() -> None:
    given = {"command": "P", "key": "k", "value": '{"a": [1]}', "ttl": "1h"}
    assert check("memory", **given) == given
    assert check("memory", command="P", ttl=5)["ttl"] == 5


@pytest.mark.parametrize(
    ("tool", "given", "said"),
    [
        ("context_slice", {"contxt": "x"}, "context_slice has no argument 'contxt': did you mean context?"),
        ("context_slice", {"q": 1}, "context_slice has no argument 'q': it takes context, start, stop, unit, document"),
        ("context_slice", {"start": "x"}, 'start must be an integer, not "x"'),
        ("context_slice", {"start": "5.5"}, 'start must be an integer, not "5.5"'),
        ("context_slice", {"start": ""}, 'start must be an integer, not ""'),
        ("context_slice", {"start": float("inf")}, "start must be an integer, not Infinity"),
        ("context_slice", {"start": "٣"}, 'start must be an integer, not "\\u0663"'),
        ("context_slice", {"start": True}, "start must be an integer, not true"),
        ("context_slice", {"stop": [1]}, "stop must be an integer or null, not [1]"),
        ("context_slice", {"context": None}, "context must be a string, not null"),
        ("context_slice", {"context": "\ud800"}, "context contains half a surrogate pair, which is not a character"),
        ("context_search", {}, "context_search needs the argument pattern"),
        ("context_search", {"pattern": "x", "words": 2}, "words must be true or false, not 2"),
        ("context_search", {"pattern": "x", "words": None}, "words must be true or false, not null"),
        ("memory", {"command": "G k", "if_absent": "maybe"}, 'if_absent must be true or false or null, not "maybe"'),
    ],
)
def test_refused(tool: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(ToolRefusal) as refused:
        check(tool, **given)
    assert str(refused.value) == said
