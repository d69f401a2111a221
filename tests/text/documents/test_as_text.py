"""A list or dict of documents in text is the real one, up to the limit; above it an error, never the line of a repr."""

from __future__ import annotations

import ast
import builtins
import io
import json
import logging
import pprint
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from typing import Any

import pytest

from monocontext import Monocontext, documents, publish
from monocontext.errors import ContextTooLarge
from monocontext.stores.memory import MemoryStore, forget
from monocontext.testing import CountingStore

NAMED = {"a.md": "nothing here", "b.md": "the 'password' is hunter2\n", "c.md": "x" * 300 + " hunter2", "d.md": ""}
SIZE = sum(map(len, NAMED.values()))
ABOVE_ALL, ABOVE_ONE = SIZE - 1, 100
"""Limits above which all documents together are, and one of them."""


@pytest.fixture
def store() -> Iterator[CountingStore]:
    name = uuid.uuid4().hex
    store = MemoryStore(name)
    publish(documents(NAMED.items()), store, frame_bytes=64)
    yield CountingStore(store)
    forget(name)


@pytest.fixture
def opened(store: CountingStore) -> Iterator[Callable[..., Any]]:
    made: list[Any] = []

    def make(shape: str, limit: int = 1 << 20) -> Any:
        made.append(Monocontext.open(store, shape=shape, materialize_limit=limit))  # type: ignore[call-overload]
        return made[-1]

    yield make
    for each in made:
        each.close()


def printed(*values: Any) -> str:
    with redirect_stdout(io.StringIO()) as out:
        print(*values)
    return out.getvalue()


def run(code: str, context: Any, kit: bool) -> Any:
    """What an expression gives; ContextTooLarge as its type."""
    logger, stream = logging.Logger("a test"), io.StringIO()
    logger.addHandler(logging.StreamHandler(stream))
    names = {"context": context, "json": json, "pprint": pprint, "printed": printed, "logger": logger, "out": stream}
    names["__name__"] = "__main__"
    tree = ast.parse(f"found = {code}")
    if kit:
        made = context.repl_namespace()
        names["__builtins__"] = vars(builtins) | made.names
        tree = made.transform(ast.fix_missing_locations(tree))
        names["json"] = made.names["__import__"]("json")
    try:
        exec(compile(tree, "<cell>", "exec"), names)
    except ContextTooLarge:
        return ContextTooLarge
    return names["found"]


ANY = (
    "str(context)", 'f"{context}"', 'f"{context!r}"', 'f"{context!s}"', '"%s" % context', '"%s" % (context,)',
    '"{}".format(context)', '"{0!r}".format(context)', '"{c}".format(c=context)', "repr(context)", "format(context)",
    "ascii(context)", "str([context])", "str((context, 1))", "str({'doc': context})", 'f"{[context]}"',
    "str(list(context))",
    'f"{ {1: context} }"', '"%s" % [context]', '"{}".format([context])', '"".join(map(str, [context]))',
    "str([[context]])",
    '"".join(f"{x}" for x in (context,))', "'hunter2' in str(context)", "len(str(context))", "str(context) + 'x'",
    "(lambda x: f'{x}')([context])", "str(sorted(context))", "str(tuple(context))", "str({'a': {'b': [context]}})",
)  # fmt: skip
VIEWS = (
    "str(context.values())", "str(context.items())", "str(context.keys())", 'f"{context.values()}"',
    "str([context.items()])",
    "str(list(context.items()))", "str([t for t in context.values()])", '"%s" % context.values()',
    "repr(context.keys())",
    "str(context | {})", "str(context.copy())", "str(max(context.items()))",
)  # fmt: skip
IN_THE_KIT = (
    "pprint.pformat(context)", "pprint.pformat([context])", "json.dumps(context)", "json.dumps({'d': [context]})",
    "logger.warning(context) or out.getvalue()", "logger.warning('%s', context) or out.getvalue()",
    "logger.warning([context]) or out.getvalue()",
)  # fmt: skip
CASES = [
    *((shape, code) for shape in ("list", "dict") for code in ANY + IN_THE_KIT),
    *(("dict", code) for code in VIEWS),
    ("list", "', '.join(context)"), ("list", "', '.join(t for t in context)"), ("dict", "', '.join(context.values())"),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "code"), CASES)
def test_it_is_the_text_of_the_real_one(opened: Callable[..., Any], shape: str, code: str) -> None:
    real = NAMED if shape == "dict" else list(NAMED.values())
    expected = run(code, real, kit=False)
    for kit in (True,) if code in IN_THE_KIT or "join(" in code else (False, True):
        assert run(code, opened(shape), kit) == expected
        for limit in (ABOVE_ALL, ABOVE_ONE):
            assert run(code, opened(shape, limit), kit) in (expected, ContextTooLarge)


@pytest.mark.parametrize("shape", ["list", "dict"])
def test_above_the_limit_it_says_what_to_write_and_reads_no_text(
    store: CountingStore, opened: Callable[..., Any], shape: str
) -> None:
    context = opened(shape, ABOVE_ALL)
    store.reset()
    with pytest.raises(ContextTooLarge, match="go over its items in a loop"):
        str(context)
    assert not [request for request in store.log if request.key.startswith("segments/")]


def test_a_lazy_list_of_pieces_is_no_text(opened: Callable[..., Any]) -> None:
    parts = opened("list", ABOVE_ONE).text.split(" ")
    for look in (str, repr, lambda parts: f"{[parts]}", "{}".format):
        with pytest.raises(ContextTooLarge, match="SeparatorSplit of"):
            look(parts)


@pytest.mark.parametrize(("shape", "line"), [("list", "<DocumentList of 4 documents"), ("dict", "<DocumentDict of 4")])
def test_at_a_prompt_it_is_one_short_line(
    opened: Callable[..., Any], shape: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    context = opened(shape)
    exec(compile("context", "<stdin>", "single"), {"context": context})
    exec(compile("[context]", "<stdin>", "single"), {"context": context})
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith(line)
    assert shown[1].startswith("[" + line)
    assert sys.displayhook is sys.__displayhook__


CONTAINED = (
    "str([context])", "f'{[context]}'", "'%s' % [context]", "'%s' % ({1: context},)", "'{}'.format([context])",
    "repr([context])",
)  # fmt: skip
LIBRARIES = ("logger.warning([context]) or out.getvalue()", "pprint.pformat({'t': context})")


@pytest.mark.parametrize("code", [*CONTAINED, *LIBRARIES, "printed([context])"])
def test_in_the_kit_one_text_inside_a_list_is_a_str(opened: Callable[..., Any], code: str) -> None:
    text = opened("list").text
    whole = str(text)
    if code == "printed([context])":
        kit = text.repl_namespace()
        with redirect_stdout(io.StringIO()) as out:
            kit.names["print"]([text])
        assert out.getvalue() == printed([whole])
        return
    assert run(code, text, kit=True) == run(code, whole, kit=False)
    assert run(code, opened("list", ABOVE_ONE).text, kit=True) is ContextTooLarge
