"""Wrap stores so that they fail on purpose: wrong bytes for readers, lost replies and crashes for writers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from monocontext.errors import StoreFailure
from monocontext.stores.protocol import Blob, Store
from monocontext.testing.stores import Request, T, WrappedStore

Fault = Callable[[Blob], Blob]
"""Takes the answer to a GET, and returns the answer that the reader gets, or raises."""
FaultPlan = Sequence[Fault | None] | Callable[[int, Request], Fault | None]
"""The fault of each GET: a sequence by the number of the GET, from 0, or a function of that number and the request.
`None`, and a number beyond the sequence, mean no fault."""


def fail(error: BaseException | None = None) -> Fault:
    """A fault that raises `error`, by default a `StoreFailure`, instead of the answer. The request itself is sent."""

    def fault(blob: Blob) -> Blob:
        raise error or StoreFailure("fault on purpose")

    return fault


def truncate(missing_bytes: int = 1) -> Fault:
    """A fault that drops the last `missing_bytes` bytes of the answer, without an error."""
    return lambda blob: replace(blob, data=blob.data[: max(0, len(blob.data) - missing_bytes)])


def flip_byte(index: int = 0) -> Fault:
    """A fault that inverts all bits of one byte; a negative index counts from the end.

    It raises `IndexError` for an index outside of the answer.
    """

    def fault(blob: Blob) -> Blob:
        changed = bytearray(blob.data)
        changed[index] ^= 0xFF
        return replace(blob, data=bytes(changed))

    return fault


def wrong_etag(etag: str = "another-version") -> Fault:
    """A fault that gives the answer the ETag of another version."""
    return lambda blob: replace(blob, etag=etag)


class FaultyStore(WrappedStore):
    """Applies a plan of faults to `get` and `get_range`, whose requests are numbered together."""

    def __init__(self, store: Store, plan: FaultPlan) -> None:
        super().__init__(store)
        self._plan = plan
        self._lock = threading.Lock()
        self._next = 0
        self.faults = 0  # the number of faults so far

    def _send(self, request: Request, call: Callable[[], T]) -> T:
        if request.verb not in ("get", "get_range"):
            return call()
        with self._lock:
            number, self._next = self._next, self._next + 1
            if callable(self._plan):
                fault = self._plan(number, request)
            else:
                fault = self._plan[number] if number < len(self._plan) else None
            self.faults += fault is not None
        result = call()
        return cast(T, fault(cast(Blob, result))) if fault else result


class LosingStore(WrappedStore):
    """Carries out each conditional put, then loses the reply: the caller gets `error`.

    A client raises `StoreFailure` when it gives up, and `AlreadyExists` when it repeats the request and finds its own
    object. Puts without a condition, and all other requests, pass unchanged.
    """

    def __init__(self, store: Store, error: type[Exception] = StoreFailure) -> None:
        super().__init__(store)
        self._error = error
        self.lost = 0  # the number of lost replies so far

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        etag = super().put(key, data, if_absent=if_absent, if_match=if_match)
        if if_absent or if_match is not None:
            self.lost += 1
            raise self._error(f"the reply to put {key} is lost on purpose")
        return etag


class Crash(BaseException):
    """Stands for the death of the process. Not an `Exception`, so that no handler of the code under test catches it."""


class CrashingStore(WrappedStore):
    """Lets `after_puts` puts succeed; the next put raises `Crash`, and so does every later request.

    With `landed`, the failing put is carried out, and only its answer is lost. A loop over all values of `after_puts`
    produces every state in which a killed process can leave the store.
    """

    def __init__(self, store: Store, after_puts: int, *, landed: bool = False) -> None:
        super().__init__(store)
        self._puts_left = after_puts
        self._landed = landed
        self._lock = threading.Lock()
        self.crashed = False  # whether a put has raised `Crash`

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        with self._lock:  # also around the put: with several writers the crash comes after exactly `after_puts` puts
            if self._puts_left == 0 and not self.crashed:
                self.crashed = True
                if self._landed:
                    self.store.put(key, data, if_absent=if_absent, if_match=if_match)  # past `_send`, which raises now
                raise Crash(f"before the answer to put {key}" if self._landed else f"before put {key}")
            self._puts_left -= 1
            return super().put(key, data, if_absent=if_absent, if_match=if_match)

    def _send(self, request: Request, call: Callable[[], T]) -> T:
        if self.crashed:
            raise Crash("after the crash")
        return call()
