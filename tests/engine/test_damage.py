"""Wrong data is an error, never a value: every kind of damage against every kind of reading.

A damaged context raises a typed error that names the object and says what was expected and found. No reading ever
returns a character that was not stored.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import zstandard
from format.crafted import SEGMENT, changed, craft, root_of, write_root

from monocontext import Monocontext
from monocontext.errors import (
    AccessDenied,
    ContextChanged,
    DamagedData,
    ForeignObject,
    InvalidUrl,
    MonocontextError,
    NotFound,
    StoreFailure,
    UnsupportedFormat,
)
from monocontext.format.manifest import ROOT_KEY, Manifest
from monocontext.stores.memory import MemoryStore
from monocontext.stores.protocol import Blob, Store
from monocontext.testing import CountingStore, FaultyStore, WrappedStore, fail, flip_byte, truncate, wrong_etag
from monocontext.writing.publish import publish
from monocontext.writing.upkeep.verify import verify

from .counted import Slim, memory, stored, wait_until_idle

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


def with_root(**changes: object) -> Damage:
    """A root whose checksum agrees, with other fields."""
    import json

    from monocontext.format.manifest import checksum

    def damage(store: Store) -> None:
        root = json.loads(store.get(ROOT_KEY).data) | changes
        root["crc32c"] = checksum(root)
        write_root(store, json.dumps(root).encode())

    return damage


def other_text(store: Store) -> None:
    """Equal lengths, other text."""
    store.put(SEGMENT, "".join(FRAMES).replace("frame", "FRAME").encode())


def bomb(number: int, data: bytes) -> bytes:
    return zstandard.compress(b"x" * (64 << 20)) if number == 1 else data


# What is stored, which error it is, and what its message says.
DAMAGED: dict[str, tuple[Damage, type[MonocontextError], str]] = {
    "first byte of the segment flipped": (
        lambda s: (craft(s, BYTES), put_changed(s, SEGMENT, flip(0))),
        DamagedData,
        rf"frame 0 of {SEGMENT}: crc32c differs: expected \w+, found \w+",
    ),
    "byte in the middle of the segment flipped": (
        lambda s: (craft(s, BYTES), put_changed(s, SEGMENT, flip(0.5))),
        DamagedData,
        rf"frame \d of {SEGMENT}: crc32c differs: expected \w+, found \w+",
    ),
    "last byte of the segment flipped": (
        lambda s: (craft(s, BYTES, codec="zstd"), put_changed(s, SEGMENT, flip(1))),
        DamagedData,
        rf"frame 3 of {SEGMENT}: crc32c differs: expected \w+, found \w+",
    ),
    "segment truncated": (
        lambda s: (craft(s, BYTES), put_changed(s, SEGMENT, lambda data: data[:-1])),
        DamagedData,
        rf"{SEGMENT} is too short: expected bytes .*, found",
    ),
    "segment of other text": (lambda s: (craft(s, BYTES), other_text(s)), DamagedData, rf"{SEGMENT}: crc32c differs"),
    "segment missing": (lambda s: (craft(s, BYTES), s.delete(SEGMENT)), NotFound, SEGMENT),
    "byte of the page flipped": (
        lambda s: (craft(s, BYTES), put_changed(s, page_key(s), flip(0.7))),
        DamagedData,
        r"index/\w{32}\.idx: crc32c differs: expected \w+, found \w+",
    ),
    "page truncated": (
        lambda s: (craft(s, BYTES), put_changed(s, page_key(s), lambda data: data[:-1])),
        DamagedData,
        r"index/\w{32}\.idx is too short: expected bytes .*, found",
    ),
    "page missing": (lambda s: (craft(s, BYTES), s.delete(page_key(s))), NotFound, r"index/\w{32}\.idx"),
    "page that is another": (
        lambda s: (craft(s, BYTES), s.put(page_key(s), b"x" * 300)),
        DamagedData,
        r"index/\w{32}\.idx: crc32c differs: expected \w+, found \w+",
    ),
    "byte of the root flipped": (
        lambda s: (craft(s, BYTES), put_changed(s, ROOT_KEY, flip(0.5))),
        DamagedData,
        r"manifest\.json: (checksum differs: expected|not a manifest: expected).*found",
    ),
    "garbage in the root": (
        lambda s: (craft(s, BYTES), write_root(s, bytes(range(256)))),
        DamagedData,
        r"manifest\.json: not a manifest: expected a JSON object, found",
    ),
    "root truncated": (
        lambda s: (craft(s, BYTES), put_changed(s, ROOT_KEY, lambda data: data[: len(data) // 2])),
        DamagedData,
        r"manifest\.json: not a manifest",
    ),
    "newer format": (
        lambda s: (craft(s, BYTES), with_root(format=2, min_reader=2)(s)),
        UnsupportedFormat,
        r"manifest\.json: has format 2, and this version reads formats up to 1",
    ),
    "unknown requirement": (
        lambda s: (craft(s, BYTES), with_root(requires=["encryption"])(s)),
        UnsupportedFormat,
        r"manifest\.json: .*encryption",
    ),
    "root that says more than its page": (
        lambda s: craft(s, BYTES) and lie_about_characters(s),
        DamagedData,
        r"index/\w{32}\.idx: not a page of this context: sums differ: expected .* found",
    ),
    "frame that inflates to more": (
        lambda s: craft(s, BYTES, codec="zstd", stored=bomb),
        DamagedData,
        rf"frame 1 of {SEGMENT}: inflates to more or less than recorded: expected \d+ bytes, found 67108864",
    ),
    "frame that inflates to less": (
        lambda s: craft(s, BYTES, codec="zstd", stored=lambda n, data: zstandard.compress(b"x") if n == 1 else data),
        DamagedData,
        rf"frame 1 of {SEGMENT}: inflates to more or less than recorded: expected \d+ bytes, found 1",
    ),
    "frame that is not compressed": (
        lambda s: craft(s, BYTES, codec="zstd", stored=lambda n, data: BYTES[n]),
        DamagedData,
        rf"frame \d of {SEGMENT}: does not inflate",
    ),
    "frame that is no text": (
        lambda s: craft(s, [BYTES[0], b"caf\xe9\n", *BYTES[2:]]),
        DamagedData,
        rf"frame 1 of {SEGMENT}: not UTF-8 at byte 3",
    ),
    "character cut in two by frames": (
        lambda s: craft(s, [b"a\xe2\x82", b"\xac b" + BYTES[0], *BYTES]),
        DamagedData,
        rf"frame \d of {SEGMENT}: not UTF-8 at byte \d",
    ),
    "frame with the flag ASCII that is not": (
        lambda s: craft(s, BYTES, lie=lambda n, r: r._replace(flags=r.flags | 1, characters=r.bytes)),
        DamagedData,
        rf"frame \d of {SEGMENT}: expected ASCII, found other characters",
    ),
    "characters miscounted": (
        lambda s: craft(s, BYTES, lie=lambda n, r: r._replace(characters=r.characters + (n == 1) - (n == 3))),
        DamagedData,
        rf"frame [13] of {SEGMENT}: expected \d+ characters, found \d+",
    ),
    "frames beyond the segment": (
        lambda s: craft(s, BYTES, run=changed(offset=5)),
        DamagedData,
        rf"{SEGMENT}",
    ),
    "frames at an offset beyond all": (
        lambda s: craft(s, BYTES, run=changed(offset=1 << 61)),
        DamagedData,
        rf"{SEGMENT} is too short: expected bytes .*, found",
    ),
    "frames at an offset that is none": (
        lambda s: craft(s, BYTES, run=changed(offset=1 << 80)),
        DamagedData,
        r"not a page of this context: expected a count, found 12089",
    ),
    "codec of another": (lambda s: craft(s, BYTES, run=changed(codec="zstd")), DamagedData, rf"frame \d of {SEGMENT}"),
    "another bucket": (
        lambda s: craft(s, BYTES, run=changed(object="s3://other-bucket/secret.txt", etag="e")),
        ForeignObject,
        r"memory://\w+/prefix refers to s3://other-bucket/secret\.txt, outside of its own place",
    ),
    "another place in memory": (
        lambda s: craft(s, BYTES, run=changed(object="memory://other/secret.txt", etag="e")),
        ForeignObject,
        r"refers to memory://other/secret\.txt, outside",
    ),
    "a file by URL": (
        lambda s: craft(s, BYTES, run=changed(object="file:///etc/passwd", etag="e")),
        ForeignObject,
        r"refers to file:///etc/passwd, outside",
    ),
    "a file by path": (
        lambda s: craft(s, BYTES, run=changed(object="/etc/passwd")),
        DamagedData,
        r"index/\w{32}\.idx: .*neither one of our segments.*/etc/passwd",
    ),
    "a file by a path that looks like a URL": (
        lambda s: craft(s, BYTES, run=changed(object="/etc/passwd://", etag="e")),
        ForeignObject,
        "/etc/passwd://",
    ),
    "outwards": (
        lambda s: craft(s, BYTES, run=changed(object="../escape")),
        DamagedData,
        r"neither one of our segments.*\.\./escape",
    ),
    "outwards from the segments": (
        lambda s: craft(s, BYTES, run=changed(object="segments/../../escape")),
        InvalidUrl,
        r"segments/\.\./\.\./escape",
    ),
    "a scheme of no store": (
        lambda s: craft(s, BYTES, run=changed(object="http://169.254.169.254/latest", etag="e")),
        ForeignObject,
        r"http://169\.254\.169\.254/latest",
    ),
}


def lie_about_characters(store: Store) -> None:
    import dataclasses

    root = Manifest.from_bytes(store.get(ROOT_KEY).data)
    page = dataclasses.replace(root.pages[0], characters=root.characters - 1)
    write_root(store, root_of(page, stored_bytes=root.stored_bytes))


def read_all(store: Store, reading: Callable[[Monocontext], Any], **options: Any) -> Any:
    context = Monocontext.open(store, **options)
    try:
        result = reading(context)
        return list(result) if isinstance(result, list) else result
    finally:
        wait_until_idle(context)


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("codec", ["raw", "zstd"])
def test_a_crafted_context_that_is_sound(reading: str, codec: str) -> None:
    store = memory()
    craft(store, BYTES, codec=codec)
    for options in ({}, {"cache_bytes": 0}, {"materialize_limit": 20}):
        if reading in ("str", "stepped", "slice", "chunks") and options:
            continue
        result = read_all(store, READINGS[reading], **options)
        assert result == RIGHT.get(reading, result)
        assert reading != "chunks" or "".join(result) == TEXT


@pytest.mark.slow
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("what", DAMAGED)
def test_damage(what: str, reading: str) -> None:
    damage, expected, message = DAMAGED[what]
    store = memory()
    damage(store)
    for options in ({}, {"cache_bytes": 0}):
        with pytest.raises(MonocontextError, match=message) as raised:
            read_all(store, READINGS[reading], **options)
        assert type(raised.value) is expected
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("what", DAMAGED)
def test_verify_finds_the_damage(what: str) -> None:
    damage, expected, message = DAMAGED[what]
    store = memory()
    damage(store)
    try:
        report = verify(store)
    except MonocontextError as error:
        assert isinstance(error, expected)  # noqa: PT017
        return
    assert not report.ok
    message = message.replace(" is too short: expected bytes", ".*: expected")  # it reads pages whole
    message = message if what != "page that is another" else r"index/\w{32}\.idx: length differs: expected"
    assert any(re.search(message, problem) for problem in report.problems), report.problems


@pytest.mark.parametrize("change", ["nothing", "newlines", "final newline", "flags", "stored bytes"])
def test_verify_finds_counts_that_lie(change: str) -> None:
    store = memory()
    match change:
        case "nothing":
            craft(store, BYTES, named=True)
        case "newlines":
            craft(store, BYTES, named=True, lie=lambda n, r: r._replace(newlines=r.newlines + (n == 1) - (n == 0)))
        case "flags":
            craft(store, BYTES, named=True, lie=lambda n, r: r._replace(flags=0))
        case "final newline":
            craft(store, BYTES, named=True)
            with_root(final_newline=True)(store)
        case "stored bytes":
            craft(store, BYTES, named=True)
            with_root(stored_bytes=7)(store)
    report = verify(store)
    assert report.ok == (change == "nothing"), report.problems


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("same", [True, False], ids=["equal bytes", "other bytes"])
def test_segment_replaced_between_two_reads(reading: str, same: bool) -> None:
    store = memory()
    craft(store, BYTES)
    # What was cached was right when it was read; without a cache all of it is read again.
    context = Monocontext.open(store, cache_bytes=0)
    assert context[20] == TEXT[20]
    store.put(SEGMENT, b"".join(BYTES) if same else b"".join(BYTES).upper())
    with pytest.raises(ContextChanged, match=rf"{SEGMENT} was replaced.*: expected ETag \w+, found \w+"):
        READINGS[reading](context)
    wait_until_idle(context)


@pytest.mark.parametrize("reading", READINGS)
def test_virtual_segment_replaced_after_it_was_indexed(reading: str) -> None:
    store = memory()
    place = MemoryStore(store.url.removeprefix("memory://").split("/")[0], "elsewhere")
    etag = place.put("a.txt", b"".join(BYTES))
    craft(store, BYTES, run=changed(object=f"{place.url}/a.txt", etag=etag))
    result = read_all(store, READINGS[reading])
    assert result == RIGHT.get(reading, result)
    place.put("a.txt", b"".join(BYTES))
    with pytest.raises(ContextChanged, match=r"/elsewhere/a\.txt was replaced.*expected ETag \w+, found \w+"):
        read_all(store, READINGS[reading])
    place.delete("a.txt")
    with pytest.raises(NotFound, match=r"/elsewhere/a\.txt"):
        read_all(store, READINGS[reading])


def test_what_was_refused_is_not_cached() -> None:
    store = memory()
    craft(store, BYTES)
    whole = store.get(SEGMENT).data
    store.put(SEGMENT, whole.replace(b"second", b"SECOND"))
    context = Monocontext.open(store)
    for _ in range(3):
        with pytest.raises(DamagedData, match=f"frame 1 of {SEGMENT}: crc32c differs"):
            str(context)
    assert context[0:3] == TEXT[0:3]  # frame 0 alone is sound
    store.put(SEGMENT, whole)
    assert str(Monocontext.open(store)) == TEXT


# -- on the way ----------------------------------------------------

BAD_ANSWERS = {
    "first byte flipped": flip_byte(0),
    "last byte flipped": flip_byte(-1),
    "one byte short": truncate(1),
    "nothing arrives": truncate(10**9),
    "more than was asked for": lambda blob: Blob(blob.data + b"more", blob.etag, blob.total_bytes),
    "another range": lambda blob: Blob(blob.data[1:] + blob.data[:1], blob.etag, blob.total_bytes),
}


@pytest.mark.slow
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("fault", BAD_ANSWERS)
def test_one_bad_answer_is_asked_for_again(fault: str, reading: str) -> None:
    plain = stored(TEXT, frame_bytes=20, frames_per_segment=2)
    for number in range(1, 8):
        store = FaultyStore(Slim(plain), [*[None] * number, BAD_ANSWERS[fault]])
        result = read_all(store, READINGS[reading])
        assert result == RIGHT.get(reading, result)
        if number < 4:  # a page and three segments are read for certain
            assert store.faults == 1


@pytest.mark.parametrize("fault", BAD_ANSWERS)
def test_bad_answers_that_go_on_are_an_error(fault: str) -> None:
    store = FaultyStore(stored(TEXT, frame_bytes=20), lambda number, request: BAD_ANSWERS[fault] if number else None)
    context = Monocontext.open(store)
    for reading in READINGS.values():
        with pytest.raises(DamagedData, match=r"segments/\w{32}\.seg.*expected.*found"):
            reading(context)
    wait_until_idle(context)


@pytest.mark.parametrize("fault", [*BAD_ANSWERS, "another version"])
def test_one_bad_answer_to_the_root_is_asked_for_again(fault: str) -> None:
    store = FaultyStore(stored(TEXT), [(BAD_ANSWERS | {"another version": wrong_etag()})[fault]])
    context = Monocontext.open(store)
    # The root's last byte is the newline behind its object, and its ETag is of no interest.
    is_seen = fault not in ("another version", "one byte short")
    assert context.stats.gets == 1 + is_seen
    assert str(context) == TEXT


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["raw", "zstd"])
@pytest.mark.parametrize("slim", [True, False], ids=["page apart", "page in the root"])
def test_any_byte_that_is_damaged_once_on_its_way(codec: str, slim: bool) -> None:
    """One bit of one answer, anywhere: the text is right, for one GET more at most."""
    plain = memory()
    publish(TEXT, plain, frame_bytes=20, segment_bytes=60, codec=codec)
    store = Slim(plain) if slim else plain
    undisturbed = CountingStore(store)
    with Monocontext.open(undisturbed) as context:
        assert str(context) == TEXT
    rng = random.Random(11)
    for number in range(undisturbed.gets):
        for _ in range(40):

            def turn(blob: Blob) -> Blob:
                data = bytearray(blob.data)
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
                return replace(blob, data=bytes(data))

            counted = CountingStore(FaultyStore(store, [*[None] * number, turn]))
            with Monocontext.open(counted) as context:
                assert str(context) == TEXT
            assert counted.gets <= undisturbed.gets + 1


@pytest.mark.parametrize("what", ["root", "generation", "page", "segment"])
def test_damage_at_rest_costs_one_get_more(what: str) -> None:
    store = memory()
    craft(store, BYTES)
    key = {
        "root": ROOT_KEY,
        "generation": "generations/00000000000000000001.json",
        "page": page_key(store),
        "segment": SEGMENT,
    }[what]
    put_changed(store, key, flip(0 if key == SEGMENT else 0.7))
    counted = CountingStore(store)
    with pytest.raises(DamagedData, match=re.escape(key)):
        Monocontext.open(counted, generation=1 if what == "generation" else None)[2:5]
    asked = [request.key for request in counted.log]
    assert asked.count(key) == 2, asked
    assert {asked.count(other) for other in asked if other != key} <= {1}, asked


def test_an_answer_of_another_version() -> None:
    store = FaultyStore(stored(TEXT, frame_bytes=20, frames_per_segment=99), [None, None, wrong_etag("other")])
    context = Monocontext.open(store, cache_bytes=0)
    assert context[0:3] == TEXT[0:3]
    with pytest.raises(ContextChanged, match=r"segments/\w{32}\.seg was replaced.*expected ETag \w+, found other"):
        _ = context[40:43]
    assert context[40:43] == TEXT[40:43]


@pytest.mark.parametrize("error", [StoreFailure("no answer"), AccessDenied("forbidden"), NotFound("gone")])
def test_a_failing_store_is_reported_as_it_says(error: MonocontextError) -> None:
    for number in (1, 2):
        store = FaultyStore(Slim(stored(TEXT)), [*[None] * number, fail(error)])
        context = Monocontext.open(store)
        with pytest.raises(type(error), match=str(error)):
            str(context)
        assert str(context) == TEXT
        wait_until_idle(context)


def test_random_faults_never_give_wrong_text() -> None:
    """Hundreds of readings over a store that damages every third answer: right, or a typed error."""
    rng = random.Random(5)
    faults = [*BAD_ANSWERS.values(), fail()]
    plain = stored(TEXT * 5, frame_bytes=20, frames_per_segment=2, codec="zstd")
    right = wrong = 0
    for _ in range(150):
        store = FaultyStore(Slim(plain), lambda number, request: rng.choice(faults) if rng.random() < 0.3 else None)
        try:
            context = Monocontext.open(store, cache_bytes=rng.choice([0, 500, 10_000]))
            a, b = sorted(rng.choices(range(len(TEXT) * 5), k=2))
            assert context[a:b] == (TEXT * 5)[a:b]
            assert context.find("😀", a) == (TEXT * 5).find("😀", a)
            right += 1
        except MonocontextError:
            wrong += 1
    assert right > 10
    assert wrong > 10


class Changing(WrappedStore):
    """Any byte of any object may have changed."""

    def __init__(self, store: Store, key: str, index: int, change: int) -> None:
        super().__init__(store)
        self.key, self.index, self.change = key, index, change

    def _changed(self, key: str, start: int, blob: Blob) -> Blob:
        at = self.index - start
        if key != self.key or not 0 <= at < len(blob.data):
            return blob
        data = bytearray(blob.data)
        data[at] ^= self.change
        return Blob(bytes(data), blob.etag, blob.total_bytes)

    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        return self._changed(key, 0, super().get(key, most_bytes=most_bytes))

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        return self._changed(key, start, super().get_range(key, start, length, etag=etag))


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["raw", "zstd"])
@pytest.mark.parametrize("inline", [True, False])
def test_any_byte_of_any_object(codec: str, inline: bool) -> None:
    plain = memory()
    publish(TEXT, plain, frame_bytes=20, segment_bytes=60, codec=codec)
    store = plain if inline else Slim(plain)
    rng = random.Random(7)
    damaged = 0
    for info in plain.list():
        if info.key.startswith("generations/") or (info.key.startswith("index/") and inline):
            continue  # not read
        step = 1 if info.key.startswith("segments/") else 3
        for index in range(rng.randrange(step), info.size_bytes, step):
            broken = Changing(store, info.key, index, rng.randrange(1, 256))
            try:
                with Monocontext.open(broken) as context:
                    assert str(context) == TEXT
                    assert list(context.lines) == RIGHT["lines"]
            except DamagedData as error:
                damaged += 1
                name = "manifest.json" if info.key == ROOT_KEY else info.key  # noqa: F841
                assert any(part in str(error) for part in ("manifest.json", "index/", "segments/"))  # noqa: PT017
            except UnsupportedFormat:
                damaged += 1
    assert damaged > 200
