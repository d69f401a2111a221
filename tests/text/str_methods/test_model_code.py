"""Blocks of model-style code print the same on a `str` and on the context that stands for it.

`pytest -s` shows what each block fetched. The class alone does, with `re` taken from `monocontext.regex` by those blocks
that use it; what else a namespace needs is the kit's affair (tests/namespace).
"""

from __future__ import annotations

import contextlib
import io
import re
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from monocontext import Monocontext, publish, regex
from monocontext.errors import ContextTooLarge

from .model_code import BLOCKS, WANT_IT_WHOLE, pieces


class Published(NamedTuple):
    text: str
    place: Path
    limit: int

    def open(self) -> Monocontext:
        return Monocontext.open(self.place, materialize_limit=self.limit)


def published(place: Path, characters: int, limit: int) -> Published:
    text = "".join(pieces(characters))
    publish(pieces(characters), place)
    return Published(text, place, limit)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return published(tmp_path_factory.mktemp("model-code") / "small", 2_000_000, 100_000)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return published(tmp_path_factory.mktemp("model-code") / "large", 200_000_000, 64 << 20)


def printed(code: str, context: Any) -> str:
    """What a block prints."""
    output = io.StringIO()
    namespace = {"context": context, "re": regex if isinstance(context, Monocontext) else re}
    with contextlib.redirect_stdout(output):
        exec(textwrap.dedent(code), namespace)
    return output.getvalue()


def assert_same(name: str, where: Published) -> None:
    with where.open() as context:
        before = context.stats.bytes_fetched
        found = printed(BLOCKS[name], context)
        fetched = context.stats.bytes_fetched - before
    print(f"{name:26} {fetched:>13,} bytes stored of a text of {len(where.text):,} characters")
    assert found == printed(BLOCKS[name], where.text)
    assert found.strip()


@pytest.mark.parametrize("name", BLOCKS)
def test_block(name: str, small: Published) -> None:
    assert_same(name, small)


@pytest.mark.parametrize("name", WANT_IT_WHOLE)
def test_the_whole_text_is_refused_in_words(name: str, small: Published) -> None:
    with small.open() as context, pytest.raises(ContextTooLarge) as raised:
        printed(WANT_IT_WHOLE[name], context)
    assert f"{len(small.text):,} characters, the limit is 100,000" in str(raised.value)


@pytest.mark.parametrize("name", WANT_IT_WHOLE)
def test_the_whole_text_within_the_limit(name: str, small: Published) -> None:
    with Monocontext.open(small.place) as context:
        assert printed(WANT_IT_WHOLE[name], context) == printed(WANT_IT_WHOLE[name], small.text)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", BLOCKS)
def test_block_at_200_mb(name: str, large: Published) -> None:
    assert_same(name, large)


@pytest.mark.slow
@pytest.mark.parametrize("name", WANT_IT_WHOLE)
def test_the_whole_of_200_mb_is_refused_in_words(name: str, large: Published) -> None:
    with large.open() as context, pytest.raises(ContextTooLarge, match="the limit is 67,108,864"):
        printed(WANT_IT_WHOLE[name], context)
