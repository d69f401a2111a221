"""Equality of `monocontext.regex` with `re`: the same calls on a text and on the `str` it stands for."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from monocontext import Monocontext, publish, regex
from monocontext.errors import ContextTooLarge
from monocontext.stores.memory import forget
from monocontext.text.regex import plan, scan

Patterned = Callable[[Any, Any], Any]


class Slow(BaseException):
    """Took longer than allowed."""


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise `Slow` after so many seconds; the engine looks for signals now and then."""

    def ring(*_: object) -> None:
        raise Slow

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def windows(size: int, bound: int = plan.MOST_REACH) -> Iterator[None]:
    """Let a first read have this many characters, and let patterns that reach further than `bound` not stream by it."""
    before = scan.FIRST_READ, plan.MOST_REACH, plan.RUN_CHARACTERS
    scan.FIRST_READ, plan.MOST_REACH = size, bound
    plan.RUN_CHARACTERS = 1 + size % 9 if size < 1000 else plan.RUN_CHARACTERS
    regex.purge()
    try:
        yield
    finally:
        scan.FIRST_READ, plan.MOST_REACH, plan.RUN_CHARACTERS = before
        regex.purge()


@contextmanager
def context_of(
    text: str, frame_bytes: int, limit: int = 1 << 20, *, name: str = "regex-equality"
) -> Iterator[Monocontext]:
    """The text, stored in frames of this size."""
    publish(text, f"memory://{name}", frame_bytes=frame_bytes, replace=True)
    try:
        with Monocontext.open(f"memory://{name}", materialize_limit=limit) as context:
            yield context
    finally:
        forget(name)


def seen(match: Any) -> Any:
    """All that a match tells."""
    if match is None:
        return None
    return (
        match.regs,
        match.groups(),
        match.group(),
        match.lastindex,
        match.lastgroup,
        match.groupdict("-"),
        match.pos,
        match.endpos,
        repr(match),
        match.string[match.start() : match.end()],
    )


def calls(pos: int, endpos: int, maximum: int) -> dict[str, Patterned]:
    """What is asked of a pattern and a text."""
    return {
        "finditer": lambda p, s: [seen(m) for m in p.finditer(s)],
        "finditer pos": lambda p, s: [seen(m) for m in p.finditer(s, pos, endpos)],
        "findall": lambda p, s: p.findall(s),
        "findall pos": lambda p, s: p.findall(s, pos, endpos),
        "split": lambda p, s: p.split(s),
        "split max": lambda p, s: p.split(s, maximum),
        "sub": lambda p, s: p.sub(r"<\g<0>>", s),
        "sub max": lambda p, s: p.sub("-", s, maximum),
        "subn call": lambda p, s: p.subn(lambda m: f"{m.start()}{m.group()[:3]}", s),
        "search": lambda p, s: seen(p.search(s)),
        "search pos": lambda p, s: seen(p.search(s, pos, endpos)),
        "match": lambda p, s: seen(p.match(s)),
        "match pos": lambda p, s: seen(p.match(s, pos, endpos)),
        "fullmatch": lambda p, s: seen(p.fullmatch(s)),
        "fullmatch pos": lambda p, s: seen(p.fullmatch(s, pos, endpos)),
    }


def outcome(call: Patterned, pattern: Any, subject: Any) -> Any:
    try:
        return call(pattern, subject)
    except Exception as error:
        return type(error)


def differences(
    pattern: str, flags: int, text: str, context: Monocontext, pos: int, endpos: int, maximum: int, only: str = ""
) -> tuple[int, int, list[str]]:
    """How many comparisons were made, how many ended in `ContextTooLarge`, and those of the others that differ."""
    real, ours = re.compile(pattern, flags), regex.compile(pattern, flags)
    compared, refused, wrong = 0, 0, []
    for name, call in calls(pos, endpos, maximum).items():
        if not name.startswith(only):
            continue
        expected, result = outcome(call, real, text), outcome(call, ours, context)
        compared += 1
        refused += result is ContextTooLarge
        if result != expected and result is not ContextTooLarge:
            wrong.append(
                f"{name} {pattern!r} flags={flags} pos={pos}:{endpos} max={maximum}\n{text!r}\n{expected}\n{result}"
            )
    return compared, refused, wrong
