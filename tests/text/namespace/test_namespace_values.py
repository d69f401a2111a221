"""Where C code demands a real `str` of a cell: keys of json, what `__str__` returns, paths, replacements."""

from __future__ import annotations

import ast
import builtins
import io
import os
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from monocontext import Monocontext
from monocontext.errors import ContextTooLarge

PRELUDE = """
import collections, io, json, os, re
class Shown:
    def __str__(self):
        if True:
            return context
    def __repr__(self): return context
class Path:
    def __fspath__(self): return context
def same(match): return context
"""
NAME = "a-name.txt"
SAME = (
    "json.dumps({context: 1})", "json.dumps({'a': [{context: context}]})",
    "json.dumps({context: 1, 'b': 2}, skipkeys=True)",
    "json.dumps({1: ({context: None},)}, indent=1, sort_keys=True)", "json.loads(json.dumps({context: 1}))[context]",
    "json.dump({context: 1}, out) or out.getvalue()", "json.dumps(collections.OrderedDict({context: 1}))",
    "json.dumps(Shown(), default=lambda _: {context: 1})",
    "str(Shown())", "f'{Shown()}'", "'%s' % Shown()", "'{}'.format(Shown())", "repr(Shown())", "str([Shown()])",
    "f'{Shown()!r}'", "printed(Shown())", "os.fspath(Path())",
    "open(context).read()", "io.open(context).read()", "open(context, 'r', encoding='utf-8').read()",
    "re.sub('a', lambda m: context, 'banana')", "re.compile('a').sub(same, 'banana')", "re.subn('n', same, 'banana')",
    "re.sub('a', lambda m: context if m.start() > 1 else 'q', 'banana')", "re.sub('[am]', same, context)",
    "os.environ.get(context)", "os.environ.get(context, 'x')", "os.environ.pop(context, 3)", "context in os.environ",
    "os.environ.update({context: 'v'}) or os.environ.pop(NAME)",
)  # fmt: skip


def printed(value: Any) -> str:
    with redirect_stdout(io.StringIO()) as out:
        print(value)
    return out.getvalue()


def run(code: str, context: Any) -> Any:
    names = {"__name__": "__main__", "context": context, "NAME": NAME, "printed": printed, "out": io.StringIO()}
    trees = [ast.parse(PRELUDE), ast.parse(f"found = {code}")]
    if isinstance(context, Monocontext):
        kit = context.repl_namespace()
        names["__builtins__"] = vars(builtins) | kit.names
        trees = [kit.transform(tree) for tree in trees]
    for tree in trees:
        exec(compile(tree, "<cell>", "exec"), names)
    found = names["found"]
    return str(found) if isinstance(found, Monocontext) else found


@pytest.mark.parametrize("code", SAME)
def test_it_is_as_with_a_str(
    code: str, open_text: Callable[..., Monocontext], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(NAME).write_text("inside")
    expected = run(code, NAME)
    assert run(code, open_text(NAME, frame_bytes=4)) == expected
    assert NAME not in os.environ


@pytest.mark.parametrize(
    "code",
    ["str(Shown())", "open(context)", "f'{Shown()}'", "re.sub('a', same, 'banana')", "json.dumps({'a': context})"],
)
def test_above_the_limit_it_says_so(code: str, open_text: Callable[..., Monocontext]) -> None:
    with pytest.raises(ContextTooLarge):
        run(code, open_text(NAME, frame_bytes=4, materialize_limit=3))


def test_what_holds_itself_is_still_a_circle_to_json(open_text: Callable[..., Monocontext]) -> None:
    code = "(lambda ring: (ring.extend([ring, ring]), json.dumps({context: ring})))([])"
    with pytest.raises(ValueError, match="Circular"):
        run(code, open_text(NAME, frame_bytes=4))


def test_a_log_of_what_is_too_large_says_so(open_text: Callable[..., Monocontext]) -> None:
    for code in ("logging.getLogger('a test').warning(context)", "logging.warning('%s', context)"):
        with pytest.raises(ContextTooLarge, match="logging would make 10 characters"):
            run(f"[logging := __import__('logging'), {code}]", open_text(NAME, frame_bytes=4, materialize_limit=3))
