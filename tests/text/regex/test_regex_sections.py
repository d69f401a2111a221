"""Patterns that begin with an unbounded repeat, over long sections: a dump is split at the headers of its files."""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Iterator

import pytest

from monocontext import Monocontext, publish
from monocontext import regex as mre
from monocontext.errors import ContextTooLarge
from monocontext.stores.memory import forget
from monocontext.text.regex.stream import WINDOW

LIMIT = 200_000


def dump(files: int, characters: int) -> str:
    choice = random.Random(files)
    parts = []
    for number in range(files):
        lines = (f"line {i} = {choice.random()} {'é' if i % 50 == 0 else ''}" for i in range(characters // 28))
        parts += ["=" * 80, f"File: a{number}.py", "=" * 10 if number % 3 == 0 else "# x", *lines, ""]
    return "\n".join(parts)


TEXT = dump(24, 60_000)


@pytest.fixture(scope="module")
def context() -> Iterator[Monocontext]:
    name = uuid.uuid4().hex
    publish(TEXT, f"memory://{name}/text")
    with Monocontext.open(f"memory://{name}/text", materialize_limit=LIMIT) as opened:
        yield opened
    forget(name)


PATTERNS = (
    r"(?s)={20,}\nFile: a1\.py\n(.*?)\n=", r"(?s)={20,}\nFile: a23\.py\n(.*?)(?=\n={20,}|\Z)",
    r"(?s)={20,}\nFile: a(\d+)\.py\n(.*?)(?=\n={20,}|\Z)", r"(?s)=+\nFile: (\S+)\n(.*?)(?=={80}\n|\Z)",
    r"(?m)^=+$\n^File: (.*)$\n((?:(?!^={80}).*\n)*)", r"(?s)={20,}\s*File:\s*a3\.py\s*(.*?)={20,}",
    r"(?s)\s+File: a2\.py\s+(.*?)={40}", r"(?s)={20,}\nFile: nothing\n(.*?)\n=", r"\n*={20,}\nFile: (\S+)\n",
    r"(?s)(=+)\nFile: ([^\n]+)\n=?(.*?)(?=\n=+\nFile|\Z)", r"={3,} *\nFile",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("pattern", PATTERNS)
def test_matches_are_those_of_re(context: Monocontext, pattern: str) -> None:
    expected = [(found.span(), found.groups()) for found in re.finditer(pattern, TEXT)]
    assert [(found.span(), found.groups()) for found in mre.finditer(pattern, context)] == expected
    first = mre.search(pattern, context)
    assert (first and first.span()) == (expected[0][0] if expected else None)
    assert [len(part or "") for part in mre.split(pattern, context)] == [len(p or "") for p in re.split(pattern, TEXT)]
    for place in (700_000, len(TEXT) - 100_000):
        found, plain = mre.compile(pattern).search(context, place), re.compile(pattern).search(TEXT, place)
        assert (found and found.span()) == (plain and plain.span())


def test_what_is_refused_names_the_numbers_that_hold(context: Monocontext) -> None:
    with pytest.raises(ContextTooLarge) as raised:
        mre.search(r"(?s)\nFile: a1\.py\n(.*?)[@~][@~]", context)
    assert f"within {WINDOW:,} characters (a window; materialize_limit is {LIMIT:,})" in str(raised.value)
    at = TEXT.index("\nFile: a1.py")
    assert f"context[{at}:{at + LIMIT}]" in str(raised.value)
