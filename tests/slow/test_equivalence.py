"""The same cells over a `str` and over a Monocontext print the same, without any model, at 1 and 10 MB (fuzz: 100).

Each cell runs in a namespace of its own.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from monocontext import Monocontext, publish
from monocontext.text.monocontext import MATERIALIZE_LIMIT
from rlm import ScriptedLM
from rlm.calls.subcalls import SubCalls
from rlm.calls.usage import Usage
from rlm.runners.local import LocalRunner
from tests.slow.big_text import BigText
from tests.slow.weak_idioms import IDIOMS

pytestmark = pytest.mark.slow

MEGABYTES = [1, 10, pytest.param(100, marks=pytest.mark.fuzz)]

MOST_TIME = 4.0
"""Of all cells over a Monocontext, in the time that they take over a `str` in memory; CPU of this process."""

_ADDRESS = re.compile(r"0x[0-9a-f]+")


def text_of(folder: Path, megabytes: int) -> str:
    """A log with three needles, at a tenth, in the middle and near the end."""
    text = BigText.write(folder / f"{megabytes}.txt", megabytes * 1_000_000).path.read_text("utf-8")
    for number, offset in enumerate((0.1, 0.5, 0.97)):
        place = text.index("\n", int(offset * len(text))) + 1
        text = f"{text[:place]}the needle-{number} lies here\n{text[place:]}"
    return text


def short(prompt: object) -> str:
    return hashlib.sha256(str(prompt).encode()).hexdigest()[:12]


def ran(context: object, code: str) -> tuple[str, str, float]:
    """What a cell printed, its error without addresses and the name of its type, and its seconds of CPU."""
    runner = LocalRunner(context, SubCalls(ScriptedLM(short), Usage()), output_limit=20_000)
    try:
        began = time.process_time()
        result = runner.run(code)
        seconds = time.process_time() - began
    finally:
        runner.close()
    error = result.stderr.strip().rpartition("\n")[2]
    error = error.replace("'Monocontext' object has no attribute", "'str' object has no attribute")
    return _ADDRESS.sub("0x", result.stdout), _ADDRESS.sub("0x", error), seconds


@pytest.fixture(scope="module", params=MEGABYTES, ids=lambda size: f"{size} MB")
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Monocontext]]:
    folder = tmp_path_factory.mktemp("equivalence")
    text = text_of(folder, request.param)
    publish(text, folder / "context")
    with Monocontext.open(folder / "context") as lazy:
        yield text, lazy


@pytest.mark.timeout(900)
def test_every_cell_prints_the_same(pair: tuple[str, Monocontext]) -> None:
    text, lazy = pair
    differing, seconds, refused = {}, [0.0, 0.0], []
    for code in IDIOMS:
        plain, ours = ran(text, code), ran(lazy, code)
        seconds = [seconds[0] + plain[2], seconds[1] + ours[2]]
        if "(materialize_limit)" in ours[1] and len(text) > MATERIALIZE_LIMIT:
            refused.append(code)
        elif plain[:2] != ours[:2]:
            differing[code] = (plain[:2], ours[:2])
    ratio = seconds[1] / seconds[0]
    print(
        f"{len(text):,} characters: {len(IDIOMS)} cells, {len(refused)} refused, CPU {seconds[1]:.1f} s, {ratio:.1f} x"
    )
    assert not differing
    assert len(refused) <= len(IDIOMS) // 20, refused
    assert ratio <= MOST_TIME
