"""Random searches in texts with filters, against `str` and `re` on the whole text."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable
from itertools import islice
from random import Random
from typing import Any

from monocontext import Monocontext, publish, regex
from monocontext.errors import ContextTooLarge
from monocontext.stores.memory import forget
from monocontext.writing.publish import append
from tests.simulated import SimulatedWorkers

FRAME_BYTES = 512
"""The smallest frames that get filters."""
WORDS = [
    "error", "timeout", "Disk", "failure", "user_id", "userid", "alpha", "request-7f3a", "host-12", "INFO", "WARN",
    "station", "Kelvin", "STRASSE", "Straße", "İstanbul", "ıssız", "Kelvin", "ſtation", "ΣΊΣΥΦΟΣ", "σίσυφος",
    "ﬁligree", "漢字仮名交じり文", "😀😀smile", "éclair", "̇dotted", "ﬅyle", "ﬆyle", "ΐota", "ΐota",
]  # fmt: skip
FILLERS = ["the", "of", "and", "a", "to", "in", "is", "it", "x", "zz"]


def make_text(random: Random, size: int = 9000) -> str:
    """Words and numbers in lines of uneven length; sometimes one kind of character for a long stretch."""
    ascii_only = random.random() < 0.4
    words = [w for w in WORDS if w.isascii()] if ascii_only else WORDS
    lines: list[str] = []
    length = 0
    while length < size:
        if random.random() < 0.02:
            line = random.choice("aé漢\u0307 ") * random.randrange(1, 700)
        else:
            pool = [random.choice(FILLERS) for _ in range(random.randrange(12))]
            if random.random() < 0.12:
                pool.insert(random.randrange(len(pool) + 1), random.choice(words))
            if random.random() < 0.3:
                pool.append(f"{random.randrange(10**6):x}-{random.randrange(10**6)}")
            line = " ".join(pool)
        line += random.choice(["\n"] * 8 + ["\r\n", " ", ""])
        if ascii_only:
            line = line.encode("ascii", "ignore").decode()
        lines.append(line)
        length += len(line.encode())
    return "".join(lines)


def make_context(random: Random, text: str, name: str) -> Monocontext:
    """The text as a context: at once, or in appends, some of them without filters."""
    url = f"memory://{name}"
    options: dict[str, Any] = {"frame_bytes": random.choice([FRAME_BYTES, FRAME_BYTES, 700, 1500]), "codec": "raw"}
    cuts = sorted(random.randrange(len(text) + 1) for _ in range(random.choice([0, 0, 1, 2, 4])))
    first, *rest = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    publish(first, url, replace=True, filters=random.random() < 0.9, **options)
    for piece in rest:
        append(piece, url, filters=random.random() < 0.85)
    return Monocontext.open(
        url,
        materialize_limit=random.choice([1000, 1 << 26]),
        cache_bytes=random.choice([0, 5000, 1 << 26]),
        workers=SimulatedWorkers(lambda request: 0.0),  # no thread has a part in reading it
    )


def make_needle(random: Random, text: str) -> str:
    """Mostly something that is there, sometimes in another case, sometimes not quite."""
    offset = random.randrange(len(text))
    size = random.choice([1, 3, 5, 6, 8, 12, 20, 40, 200, 900])
    needle = text[offset : offset + size] if random.random() < 0.8 else random.choice(WORDS)
    if random.random() < 0.2:
        needle = random.choice([str.lower, str.upper, str.casefold, str.swapcase, str.title])(needle)
    if random.random() < 0.15:
        place = random.randrange(len(needle) + 1)
        needle = needle[:place] + random.choice("qé漢\u0307ıI") + needle[place + 1 :]
    return needle


def make_pattern(random: Random, text: str) -> tuple[str, int]:
    """A pattern with literals out of the text, joined by what models write between them."""

    def literal() -> str:
        return re.escape(make_needle(random, text)[:25])

    between = [".*", ".*?", r"\s*", r"\s+", r"\w*", ".{0,20}", "[^q]{0,300}", r"\d+", "[^\\n]*", "", "x?", "\\b"]
    shapes: list[Callable[[], str]] = [
        literal,
        lambda: literal() + random.choice(between) + literal(),
        lambda: random.choice(between) + literal(),
        lambda: literal() + random.choice(between),
        lambda: rf"\b{literal()}\b",
        lambda: f"^{random.choice(between)}{literal()}",
        lambda: f"{literal()}{random.choice(between)}$",
        lambda: f"(?:{literal()}|{literal()})",
        lambda: f"({literal()})|({literal()}){random.choice(between)}{literal()}",
        lambda: f"(?={literal()}).{{0,30}}",
        lambda: f"(?<={re.escape(make_needle(random, text)[:3])}){literal()}",
        lambda: f"(?:{literal()})?{literal()}",
        lambda: f"{literal()}(?!{literal()})",
        lambda: f"(?:{literal()}){{2,}}|{literal()}",
        lambda: f"(?i:{literal()}){random.choice(between)}{literal()}",
        lambda: r"(?s)" + literal() + ".*" + literal(),
    ]  # fmt: skip
    flags = random.choice([0, 0, 0, re.I, re.I, re.M, re.M | re.I, re.S, re.I | re.A, re.M | re.S])
    return random.choice(shapes)(), int(flags)


Search = Callable[[Any, Any], object]
"""Of a module like `re` and a text."""


def make_search(random: Random, text: str) -> tuple[str, Search]:
    """What is asked, and how; the same on both sides."""
    if random.random() < 0.5:
        needle = make_needle(random, text) or "x"
        low, high = sorted(random.randrange(len(text) + 1) for _ in range(2))
        most = random.randrange(4)
        name, search = random.choice(
            [
                ("in", lambda re, t: needle in t),
                ("find", lambda re, t: t.find(needle)),
                ("rfind", lambda re, t: t.rfind(needle)),
                ("count", lambda re, t: t.count(needle)),
                ("find between", lambda re, t: t.find(needle, low, high)),
                ("rfind between", lambda re, t: t.rfind(needle, low, high)),
                ("count between", lambda re, t: t.count(needle, low, high)),
                ("loop of find", lambda re, t: _loop(t, needle)),
                ("lower find", lambda re, t: t.lower().find(needle.lower())),
                ("lower count", lambda re, t: t.lower().count(needle.lower())),
                ("lower rfind", lambda re, t: t.lower().rfind(needle)),
                ("casefold find", lambda re, t: t.casefold().find(needle.casefold())),
                ("upper in", lambda re, t: needle.upper() in t.upper()),
                ("part find", lambda re, t: _part(t, low, high).find(needle)),
                ("lower part count", lambda re, t: _part(t, low, high).lower().count(needle.lower())),
                ("partition", lambda re, t: [len(part) for part in t.partition(needle)]),
                ("rpartition", lambda re, t: [len(part) for part in t.rpartition(needle)]),
                ("split", lambda re, t: len(t.split(needle))),
                ("split some", lambda re, t: [len(part) for part in t.split(needle, most)]),
                ("rsplit some", lambda re, t: [len(part) for part in t.rsplit(needle, most)]),
                ("replace some", lambda re, t: t.replace(needle, "ok", most)[low:high]),
            ]
        )
        return f"{name} {needle!r} [{low}:{high}] {most}", search
    pattern, flags = make_pattern(random, text)
    low = random.randrange(len(text))
    name, search = random.choice(
        [
            ("search", lambda re, t: _spans([re.search(pattern, t, flags)])),
            ("finditer", lambda re, t: _spans(islice(re.finditer(pattern, t, flags), 200))),
            ("findall", lambda re, t: re.findall(pattern, t, flags)[:200]),
            ("finditer from", lambda re, t: _spans(islice(re.compile(pattern, flags).finditer(t, low), 50))),
            ("finditer to", lambda re, t: _spans(islice(re.compile(pattern, flags).finditer(t, 0, low), 50))),
            ("lower finditer", lambda re, t: _spans(islice(re.finditer(pattern, t.lower(), flags), 50))),
            ("part finditer", lambda re, t: _spans(islice(re.finditer(pattern, _part(t, low // 2, low), flags), 50))),
        ]
    )
    return f"{name} {pattern!r} flags {flags} at {low}", search


def _part(text: Any, low: int, high: int) -> Any:
    return text.view(low, high) if isinstance(text, Monocontext) else text[low:high]


def _loop(text: Any, needle: str) -> list[int]:
    result, offset = [], -1
    while len(result) < 50 and (offset := text.find(needle, offset + 1)) >= 0:
        result.append(offset)
    return result


def _spans(matches: Any) -> list[object]:
    return [match and (match.span(), match.groups(), match.group()) for match in matches]


def run(seed: int, searches: int, counts: Counter[str]) -> None:
    """Some searches in one text. Raises `AssertionError` with all it takes to see the difference again."""
    random = Random(seed)
    text = make_text(random)
    context = make_context(random, text, f"filter-cases-{seed}")
    try:
        for _ in range(searches):
            story, search = make_search(random, text)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = search(re, text)
                try:
                    result = search(regex, context)
                except ContextTooLarge:  # what `findall` makes is above the small limit
                    counts["too large"] += 1
                    continue
            assert result == expected, (
                f"seed {seed}: {story}: expected {str(expected)[:300]}, found {str(result)[:300]}"
            )
        stats = context.stats.search
        counts["cases"] += searches
        counts["narrowed"] += stats.searches
        counts["frames"] += stats.frames
        counts["pruned"] += stats.pruned
        counts["in vain"] += stats.false_positives
    finally:
        context.close()
        forget(f"filter-cases-{seed}")
