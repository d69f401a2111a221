"""A text in four frames, every way to read it, and how to damage what is stored of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from monocontext import Monocontext
from monocontext.format.manifest import ROOT_KEY, Manifest
from monocontext.stores.protocol import Store

from .counted import wait_until_idle

FRAMES = ["first frame é\n", "second frame 漢字\r\n", "third, in ASCII alone\n", "fourth 😀 and the last"]
TEXT = "".join(FRAMES)
BYTES = [frame.encode() for frame in FRAMES]

READINGS: dict[str, Callable[[Monocontext], Any]] = {
    "slice": lambda c: c[2:-2],
    "stepped": lambda c: c[::-1],
    "item": lambda c: "".join(c[i] for i in range(len(c))),
    "find": lambda c: c.find("not there"),
    "rfind": lambda c: c.rfind("not there"),
    "count": lambda c: c.count("frame"),
    "iteration": "".join,
    "reversed": lambda c: "".join(reversed(c)),
    "str": str,
    "equality": lambda c: c == TEXT[: len(c)].ljust(len(c)),
    "lines": lambda c: list(c.lines),
    "splitlines": lambda c: list(c.splitlines()),
    "chunks": lambda c: list(c.chunks(7)),
}
RIGHT = {name: reading(TEXT) for name, reading in READINGS.items() if name not in ("lines", "chunks")}  # type: ignore[arg-type]
RIGHT["lines"] = [line + "\n" for line in TEXT.split("\n")[:-1]] + [TEXT.split("\n")[-1]]

Damage = Callable[[Store], Any]


def put_changed(store: Store, key: str, change: Callable[[bytearray], object]) -> None:
    data = bytearray(store.get(key).data)
    store.put(key, bytes(change(data) or data))  # type: ignore[arg-type]


def flip(position: float) -> Callable[[bytearray], None]:
    def change(data: bytearray) -> None:
        data[int(position * (len(data) - 1))] ^= 0x20

    return change


def page_key(store: Store) -> str:
    return Manifest.from_bytes(store.get(ROOT_KEY).data).pages[0].key


def read_all(store: Store, reading: Callable[[Monocontext], Any], **options: Any) -> Any:
    context = Monocontext.open(store, **options)
    try:
        result = reading(context)
        return list(result) if isinstance(result, list) else result
    finally:
        wait_until_idle(context)
