"""Measure warm reads in four scripts, lines and lazy lists by index, grep of a common word, idioms at three sizes."""

from __future__ import annotations

import gc
import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from types import ModuleType
from typing import Any

from monocontext import Monocontext, publish, regex
from monocontext.stores.memory import forget

Row = tuple[str, str, str, bool]
"""What, asked, measured, whether it holds. All times are of the processor, the least of a few rounds."""
SCRIPTS = {
    "ASCII": "etaoinshrdlu",
    "Latin-1": "étàoinshrdlu",
    "CJK": "漢字仮名交文例使長章節語",
    "emoji": "etaoinshrdl😀",
}
SMALL = 8_000_000
"""Characters of a text in one script."""
SIZES = (1_000_000, 50_000_000, 100_000_000)
"""Characters at which idioms are measured: below, below and above the 64 Mi of one real `str`."""
CLIFF = 3
NOISE_SECONDS = 0.02
"""What is faster at 100 MB has no cliff to speak of."""

IDIOMS = """
len(context)
context[:500], context[-500:], context[len(context) // 2 :][:100]
type(context[:10]).__name__
context.count("quota")
context.count("\\n")
context.find("needle")
context.rfind("quota")
"quota" in context
"needle in a haystack" in context
context.index("quota exceeded")
context.lower().count("quota")
context.lower().find("needle")
context.upper().count("QUOTA")
context.replace("quota", "limit").count("limit")
context.startswith("FILE"), context.endswith("\\n")
len(context.split("\\n"))
context.split("\\n")[0]
context.split("\\n")[-2]
context.split("\\n")[:5]
context.split("\\n")[1000:1010]
sum(1 for line in context.split("\\n"))
[line for line in context.split("\\n") if "needle" in line]
sum("quota" in line for line in context.split("\\n"))
[i for i, line in enumerate(context.split("\\n")) if line.startswith("# FILE")][:3]
(lambda lines: [lines[i] for i in range(len(lines)) if i % 1000 == 0])(context.split("\\n"))[-1]
(lambda lines: sum(len(lines[i]) for i in range(len(lines))))(context.split("\\n"))
(lambda lines: max(range(len(lines)), key=lambda i: len(lines[i])))(context.split("\\n"))
(lambda lines: lines.index(lines[len(lines) * 9 // 10]))(context.split("\\n"))
(lambda lines: lines[len(lines) // 2])(context.split("\\n"))
next(reversed(context.split("\\n")))
context.split("\\n").count("")
len(context.splitlines())
context.splitlines()[0]
sum(1 for line in context.splitlines() if line)
context.splitlines()[10:20]
(lambda lines: sum(len(lines[i]) for i in range(len(lines))))(context.splitlines())
len(context.split())
context.split()[:10]
sum(1 for word in context.split() if word == "quota")
(lambda words: words[len(words) // 2])(context.split())
len(context.split("# FILE: "))
context.split("# FILE: ")[3][:20]
(lambda parts: [parts[i][:10] for i in range(len(parts))])(context.split("# FILE: "))[-1]
[part[:10] for part in context.split("# FILE: ")][-1]
(lambda parts: [parts[i][:9] for i in range(len(parts) - 1, -1, -1)])(context.split("# FILE: "))[0]
context.split("# FILE: ", 2)[1][:20]
context.partition("# FILE: ")[2][:20]
context.rpartition("# FILE: ")[2][:20]
len(re.findall("quota \\\\w+", context))
len(re.findall("# FILE: (\\\\w+)", context))
re.search("needle", context)
re.search("(?i)NEEDLE", context)
sum(1 for found in re.finditer("quota", context))
len(re.split("\\n# FILE: ", context))
(lambda parts: [parts[i][:9] for i in range(len(parts))])(re.split("\\n# FILE: ", context))[-1]
len(re.findall("\\n\\n+", context))
[context[i : i + 20] for i in range(0, len(context), 1_000_000)][-1]
sum(len(context[i : i + 100_000]) for i in range(0, len(context), 100_000))
[found for found in (context[i : i + 200_000] for i in range(0, len(context), 200_000)) if "needle" in found]
(lambda at: context[at - 10 : at + 10])(context.find("quota"))
"""


def rows() -> Iterator[Row]:
    for name, letters in SCRIPTS.items():
        yield from _warm_reads(name, letters)
    yield from _lazy_lists()
    yield from _grep()
    yield from _idioms()


def _warm_reads(script: str, letters: str) -> Iterator[Row]:
    text = _text(SMALL, letters)
    dice = Random(1)
    with _opened(text) as context:
        ends: dict[str, Callable[[], object]] = {
            "c[:500]": lambda: context[:500],
            "c[-500:]": lambda: context[-500:],
            "c[0:500]": lambda: context[0:500],
        }
        for what, read in ends.items():
            taken = _each(read, 2000)
            yield f"{script}: {what}", "<= 1 us", f"{taken:.2f}", taken <= 1
        places = [dice.randrange(len(text) - 100) for _ in range(3000)]
        taken = _least(lambda: [context[at : at + 100] for at in places]) / len(places) * 1e6
        most = 3 if script == "ASCII" else 6
        yield f"{script}: c[a : a + 100] anywhere", f"<= {most} us", f"{taken:.2f}", taken <= most
        ours, theirs = (_least(lambda: _chunks(one), 9) for one in (context, text))  # noqa: B023
        ratio = ours / theirs
        yield f"{script}: a pass by 100,000 characters", "<= 4 x str", f"{ratio:.1f}", ratio <= 4
        lines, size = context.lines, len(context.lines)
        taken = _least(lambda: [lines[i] for i in range(size)]) / size * 1e6
        yield f"{script}: lines[i] in order", "<= 2 us", f"{taken:.2f}", taken <= 2
        picked = [dice.randrange(size) for _ in range(1000)]
        taken = _least(lambda: [lines[i] for i in picked]) / len(picked) * 1e6
        yield f"{script}: lines[i] at random", "<= 20 us", f"{taken:.1f}", taken <= 20


def _lazy_lists() -> Iterator[Row]:
    text = _text(SIZES[-1], SCRIPTS["ASCII"])
    ways: dict[str, Callable[[Any], Any]] = {
        'split("\\n")': lambda text: text.split("\n"),
        "splitlines()": lambda text: text.splitlines(),
        "split()": lambda text: text.split(),
        'split("# FILE: ")': lambda text: text.split("# FILE: "),
        're.split("\\n# FILE: ")': lambda text: regex.split("\n# FILE: ", text),
    }
    with _opened(text) as context:
        for what, split in ways.items():
            by_item = _least(lambda: sum(1 for _ in split(context)), 2)  # noqa: B023
            by_index = _least(lambda: _by_index(split(context)), 2)  # noqa: B023
            ratio = by_index / by_item
            yield f"100 MB, {what}: by index / by item", "<= 3 x", f"{ratio:.1f} ({by_index:.2f} s)", ratio <= 3
        items = text.split("\n")
        late = items[-2] + "!"  # at the end alone: an absent item takes as long
        ours, theirs = _least(lambda: late in context.split("\n"), 2), _least(lambda: late in items, 2)
        with_split = _least(lambda: late in text.split("\n"), 2)
        yield (
            '100 MB, split("\\n"): a late item',
            "<= 2 x the list of a str, made and searched",
            f"{ours / with_split:.2f} ({ours / theirs:.1f} x a list that is there)",
            ours <= 2 * with_split,
        )


def _by_index(items: Any) -> None:
    for i in range(len(items)):
        items[i]


def _grep() -> Iterator[Row]:
    for script, letters in SCRIPTS.items():
        plain = _text(SMALL, letters).split("\n")
        text = "\n".join(line + " budget spent" * (i % 3 == 0) for i, line in enumerate(plain))
        with _opened(text) as context:
            hits = sum(1 for _ in context.grep("budget"))
            taken = _least(lambda: sum(1 for _ in context.grep("budget"))) / hits * 1e6
        yield f"{script}: grep of a word in every third line", "<= 3 us a hit", f"{taken:.2f}", taken <= 3


def _idioms() -> Iterator[Row]:
    codes = [line for line in IDIOMS.splitlines() if line]
    taken: dict[int, list[float]] = {}
    for size in SIZES:
        text = _text(size, SCRIPTS["ASCII"])
        with _opened(text) as context:
            taken[size] = [_idiom(code, context) for code in codes]
        del text, context
        gc.collect()
    below, above = taken[SIZES[1]], taken[SIZES[2]]
    steep = []
    for code, before, after in zip(codes, below, above, strict=True):
        ratio = (after / SIZES[2]) / max(before / SIZES[1], 1e-12)
        if ratio > CLIFF and after > NOISE_SECONDS:
            steep.append((ratio, code, before, after))
    of_str = _cliffs_of_str([code for _, code, *_ in steep])
    ours = []
    for ratio, code, before, after in sorted(steep, reverse=True):
        what = f"a character at 100 MB / at 50 MB: `{code}`".replace("|", "\\|")
        holds = ratio <= of_str[code]
        ours += [] if holds else [code]
        measured = f"{ratio:.1f} ({before:.3f} s, {after:.3f} s); a `str` {of_str[code]:.1f}"
        yield what, f"<= {CLIFF} x, or what a `str` has", measured, holds
    sums = ", ".join(f"{sum(all_of):.2f} s at {size // 1_000_000} MB" for size, all_of in taken.items())
    yield f"{len(codes)} idioms, without a cliff of ours", "all", f"{len(codes) - len(ours)} ({sums})", not ours


def _cliffs_of_str(codes: list[str]) -> dict[str, float]:
    """The same of a `str`: the C library takes blocks above 32 MiB from the system, page by page, each time anew."""
    taken = []
    for size in SIZES[1:] if codes else ():
        text = _text(size, SCRIPTS["ASCII"])
        taken.append([_idiom(code, text, re) for code in codes])
        del text
        gc.collect()
    return {
        code: (after / SIZES[2]) / max(before / SIZES[1], 1e-12)
        for code, before, after in zip(codes, *taken, strict=True)
    }


def _idiom(code: str, context: Monocontext | str, engine: ModuleType = regex) -> float:
    compiled = compile(code, "<idiom>", "eval")
    names = {"context": context, "re": engine}
    return min(_seconds(lambda: eval(compiled, names)) for _ in range(2))


@contextmanager
def _opened(text: str) -> Iterator[Monocontext]:
    """The text, all of it in memory, behind the limits that users have."""
    url = f"memory://growth-{uuid.uuid4().hex}"
    publish(text, url, codec="raw", filters=False)
    try:
        with Monocontext.open(url, cache_bytes=512 << 20, preload=True) as context:
            yield context
    finally:
        forget(url.removeprefix("memory://"))


def _text(characters: int, letters: str) -> str:
    """Lines of words; a heading every 300 lines, and now and then `quota exceeded`."""
    dice = Random(3)
    words = ["".join(dice.choices(letters, k=dice.randint(2, 9))) for _ in range(5000)]
    made = [" ".join(dice.choices(words, k=12)) for _ in range(20_000)]
    lines: list[str] = []
    size = number = 0
    while size < characters:
        line = made[number % len(made)]
        if number % 300 == 0:
            line = f"# FILE: part{number}\n\n{line}"
        elif number % 50 == 0:
            line += f" quota exceeded {number}"
        lines.append(line)
        size += len(line) + 1
        number += 1
    return "\n".join(lines) + "\n"


def _chunks(text: Any) -> None:
    for at in range(0, len(text), 100_000):
        text[at : at + 100_000]


def _each(call: Callable[[], object], times: int) -> float:
    """Microseconds of a call, the least of five rounds of many."""
    return _least(lambda: [call() for _ in range(times)]) / times * 1e6


def _least(call: Callable[[], object], rounds: int = 5) -> float:
    return min(_seconds(call) for _ in range(rounds))


def _seconds(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began
