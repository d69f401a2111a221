"""Where a context of the stateful test lies: in memory, or behind a server that speaks S3; and what may go wrong there.

A fault strikes what is read after a context was opened: roots have no second source that they could be compared with.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

from monocontext import Monocontext, append, publish
from monocontext.errors import StoreFailure
from monocontext.stores.memory import MemoryStore, forget
from monocontext.stores.protocol import Blob
from monocontext.testing import FaultyStore, S3StandIn, fail, flip_byte, truncate
from monocontext.testing.faults import Fault
from monocontext.testing.http_faults import (
    HttpFault,
    cut,
    cut_head,
    drip,
    error_in_200,
    flipped,
    internal_error,
    lost,
    reset,
    shifted,
    short,
    slow_down,
    stall,
    whole,
    wrong_range,
)
from monocontext.testing.stores import Request

_numbers = itertools.count()


class World:
    """A place that holds one context."""

    faults: tuple[str, ...]
    """Names of what may go wrong."""

    def __init__(self, place: str | MemoryStore, **store_options: str) -> None:
        self._place, self._options = place, store_options

    def publish(self, text: str, **options: Any) -> None:
        """The text, in place of what there may be."""
        publish(text, self._place, replace=True, store_options=self._options or None, **options)

    def append(self, text: str) -> None:
        append(text, self._place, store_options=self._options or None)

    def open(self, **options: Any) -> Monocontext:
        context = Monocontext.open(self._read_from(), **self._options, **options)
        assert isinstance(context, Monocontext)
        return context

    def _read_from(self) -> Any:
        return self._place

    def arm(self, fault: str, times: int) -> None:
        """The next `times` GETs of text, filters or index pages meet a fault."""

    def linger(self, times: int) -> None:
        """The next GETs take 20 ms more, where there is a distance at all."""

    def lose_roots(self) -> None:
        """Every GET of a root fails."""

    def calm(self) -> None:
        """From now on all is well."""

    def close(self) -> None:
        """Nothing is left of it."""


def _late(blob: Blob) -> Blob:
    time.sleep(0.01)
    return blob


class InMemory(World):
    """Objects in this process, and a store around them that errs."""

    _FAULTS: ClassVar[dict[str, Callable[[], Fault]]] = {
        "fail": fail,
        "cut": lambda: truncate(1),
        "empty": lambda: truncate(1 << 30),
        "damaged": lambda: flip_byte(-1),
        "shifted": lambda: lambda blob: replace(blob, data=bytes(blob.data[1:]) + bytes(blob.data[:1])),
        "late": lambda: _late,
    }
    faults = tuple(_FAULTS)

    def __init__(self) -> None:
        self._name = f"stateful-{next(_numbers)}"
        self._armed: list[Fault] = []
        self._roots_fail = False
        plain = MemoryStore(self._name)
        super().__init__(plain)
        self._store = FaultyStore(plain, self._plan)

    def _plan(self, number: int, request: Request) -> Fault | None:
        if request.key.startswith(("manifest.json", "generations/")):  # a root
            if self._roots_fail:
                raise StoreFailure("fault on purpose")  # here, since the next generation may not be there
            return None
        return self._armed.pop() if self._armed else None

    def _read_from(self) -> FaultyStore:
        return self._store

    def arm(self, fault: str, times: int) -> None:
        self._armed = [self._FAULTS[fault]() for _ in range(times)]

    def lose_roots(self) -> None:
        self._roots_fail = True

    def calm(self) -> None:
        self._armed = []
        self._roots_fail = False

    def close(self) -> None:
        forget(self._name)


class BehindHttp(World):
    """A prefix of its own on a server, written by boto3 and read by the transport of ours."""

    _FAULTS: ClassVar[dict[str, Callable[[], HttpFault]]] = {
        "cut": cut,
        "cut later": lambda: cut(7),
        "cut in the head": cut_head,
        "lost": lost,
        "reset": reset,
        "short": short,
        "shifted": shifted,
        "flipped": flipped,
        "wrong range": wrong_range,
        "whole": whole,
        "503": slow_down,
        "500": internal_error,
        "error in 200": error_in_200,
        "stall": lambda: stall(3),
    }
    faults = ("hang up", *_FAULTS)

    def __init__(self, server: S3StandIn) -> None:
        self._server = server
        self._prefix = f"stateful-{next(_numbers)}"
        super().__init__(server.url(self._prefix), endpoint=server.endpoint)

    def arm(self, fault: str, times: int) -> None:
        self.calm()
        if fault == "hang up":
            self._server.hang_up()
            return
        if fault == "stall":
            times = 1  # each takes a second to be noticed
        for kind in ("segments", "filters", "index"):
            self._server.faults.add(self._FAULTS[fault](), key=f"{self._prefix}/{kind}/*", times=times)

    def linger(self, times: int) -> None:
        self._server.faults.add(drip(5_000), key=f"{self._prefix}/segments/*", times=times)

    def lose_roots(self) -> None:
        for key in ("manifest.json", "generations/*"):
            self._server.faults.add(internal_error(), key=f"{self._prefix}/{key}", times=None)

    def calm(self) -> None:
        self._server.faults.clear()

    def close(self) -> None:
        self.calm()
        for info in list(self._server.store.list(f"{self._prefix}/")):
            self._server.store.delete(info.key)
