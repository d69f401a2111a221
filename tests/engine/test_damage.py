"""Wrong data is an error, never a value: every kind of damage at rest against every kind of reading.

A damaged context raises a typed error that names the object and says what was expected and found. No reading ever
returns a character that was not stored.
"""

from __future__ import annotations

import re

import pytest
import zstandard
from format.crafted import SEGMENT, changed, craft, root_of, write_root

from monocontext import Monocontext
from monocontext.errors import (
    ContextChanged,
    DamagedData,
    ForeignObject,
    InvalidUrl,
    MonocontextError,
    NotFound,
    UnsupportedFormat,
)
from monocontext.format.manifest import ROOT_KEY, Manifest
from monocontext.stores.memory import MemoryStore
from monocontext.stores.protocol import Store
from monocontext.writing.upkeep.verify import verify

from .counted import memory, wait_until_idle
from .damaged import BYTES, READINGS, RIGHT, TEXT, Damage, flip, page_key, put_changed, read_all


def with_root(**changes: object) -> Damage:
    """A root whose checksum agrees, with other fields."""
    import json

    from monocontext.format.manifest import checksum

    def damage(store: Store) -> None:
        root = json.loads(store.get(ROOT_KEY).data) | changes
        root["crc32c"] = checksum(root)
        write_root(store, json.dumps(root).encode())

    return damage


def bomb(number: int, data: bytes) -> bytes:
    return zstandard.compress(b"x" * (64 << 20)) if number == 1 else data


# What is stored, which error it is, and what its message says.
DAMAGED: dict[str, tuple[Damage, type[MonocontextError], str]] = {
    "first byte of the segment flipped": (lambda s: (craft(s, BYTES), put_changed(s, SEGMENT, flip(0))),
        DamagedData, rf"frame 0 of {SEGMENT}: crc32c differs: expected \w+, found \w+"),
    "last byte of the segment flipped": (lambda s: (craft(s, BYTES, codec="zstd"), put_changed(s, SEGMENT, flip(1))),
        DamagedData, rf"frame 3 of {SEGMENT}: crc32c differs: expected \w+, found \w+"),
    "segment truncated": (lambda s: (craft(s, BYTES), put_changed(s, SEGMENT, lambda data: data[:-1])),
        DamagedData, rf"{SEGMENT} is too short: expected bytes .*, found"),
    "segment missing": (lambda s: (craft(s, BYTES), s.delete(SEGMENT)), NotFound, SEGMENT),
    "byte of the page flipped": (lambda s: (craft(s, BYTES), put_changed(s, page_key(s), flip(0.7))),
        DamagedData, r"index/\w{32}\.idx: crc32c differs: expected \w+, found \w+"),
    "page truncated": (lambda s: (craft(s, BYTES), put_changed(s, page_key(s), lambda data: data[:-1])),
        DamagedData, r"index/\w{32}\.idx is too short: expected bytes .*, found"),
    "page missing": (lambda s: (craft(s, BYTES), s.delete(page_key(s))), NotFound, r"index/\w{32}\.idx"),
    "byte of the root flipped": (lambda s: (craft(s, BYTES), put_changed(s, ROOT_KEY, flip(0.5))),
        DamagedData, r"manifest\.json: (crc32c differs: expected|expected a JSON object).*found"),
    "garbage in the root": (lambda s: (craft(s, BYTES), write_root(s, bytes(range(256)))),
        DamagedData, r"manifest\.json: expected a JSON object, found"),
    "newer format": (lambda s: (craft(s, BYTES), with_root(format=2, min_reader=2)(s)),
        UnsupportedFormat, r"manifest\.json: has format 2 \(this version reads formats up to 1\)"),
    "unknown requirement": (lambda s: (craft(s, BYTES), with_root(requires=["encryption"])(s)),
        UnsupportedFormat, r"manifest\.json: .*encryption"),
    "root that says more than its page": (lambda s: craft(s, BYTES) and lie_about_characters(s),
        DamagedData, r"index/\w{32}\.idx: not a page of this context: sums differ: expected .* found"),
    "frame that inflates to more": (lambda s: craft(s, BYTES, codec="zstd", stored=bomb), DamagedData,
        rf"frame 1 of {SEGMENT}: expected \d+ bytes of text, found 67108864 in its zstd header"),
    "frame that inflates to less": (
        lambda s: craft(s, BYTES, codec="zstd", stored=lambda n, data: zstandard.compress(b"x") if n == 1 else data),
        DamagedData, rf"frame 1 of {SEGMENT}: expected \d+ bytes of text, found 1 in its zstd header"),
    "frame that is not compressed": (lambda s: craft(s, BYTES, codec="zstd", stored=lambda n, data: BYTES[n]),
        DamagedData, rf"frame \d of {SEGMENT}: not valid zstd"),
    "frame that is no text": (lambda s: craft(s, [BYTES[0], b"caf\xe9\n", *BYTES[2:]]),
        DamagedData, rf"frame 1 of {SEGMENT}: not UTF-8 at byte 3"),
    "character cut in two by frames": (lambda s: craft(s, [b"a\xe2\x82", b"\xac b" + BYTES[0], *BYTES]),
        DamagedData, rf"frame \d of {SEGMENT}: not UTF-8 at byte \d"),
    "frame with the flag ASCII that is not": (
        lambda s: craft(s, BYTES, lie=lambda n, r: r._replace(flags=r.flags | 1, characters=r.bytes)),
        DamagedData, rf"frame \d of {SEGMENT}: expected ASCII, found other characters"),
    "characters miscounted": (
        lambda s: craft(s, BYTES, lie=lambda n, r: r._replace(characters=r.characters + (n == 1) - (n == 3))),
        DamagedData, rf"frame [13] of {SEGMENT}: expected \d+ characters, found \d+"),
    "frames beyond the segment": (lambda s: craft(s, BYTES, run=changed(offset=5)), DamagedData, rf"{SEGMENT}"),
    "frames at an offset beyond all": (lambda s: craft(s, BYTES, run=changed(offset=1 << 61)),
        DamagedData, rf"{SEGMENT} is too short: expected bytes .*, found"),
    "frames at an offset that is none": (lambda s: craft(s, BYTES, run=changed(offset=1 << 80)),
        DamagedData, r"not a page of this context: expected a count, found 12089"),
    "codec of another": (lambda s: craft(s, BYTES, run=changed(codec="zstd")), DamagedData, rf"frame \d of {SEGMENT}"),
    "another bucket": (lambda s: craft(s, BYTES, run=changed(object="s3://other-bucket/secret.txt", etag="e")),
        ForeignObject, r"memory://\w+/prefix refers to s3://other-bucket/secret\.txt, which is outside the context"),
    "another place in memory": (lambda s: craft(s, BYTES, run=changed(object="memory://other/secret.txt", etag="e")),
        ForeignObject, r"refers to memory://other/secret\.txt, which is outside"),
    "a file by URL": (lambda s: craft(s, BYTES, run=changed(object="file:///etc/passwd", etag="e")),
        ForeignObject, r"refers to file:///etc/passwd, which is outside"),
    "a file by path": (lambda s: craft(s, BYTES, run=changed(object="/etc/passwd")),
        DamagedData, r"index/\w{32}\.idx: .*expected a segment.*/etc/passwd"),
    "a file by a path that looks like a URL": (
        lambda s: craft(s, BYTES, run=changed(object="/etc/passwd://", etag="e")),
        ForeignObject, "/etc/passwd://"),
    "outwards": (lambda s: craft(s, BYTES, run=changed(object="../escape")),
        DamagedData, r"expected a segment.*\.\./escape"),
    "outwards from the segments": (lambda s: craft(s, BYTES, run=changed(object="segments/../../escape")),
        InvalidUrl, r"segments/\.\./\.\./escape"),
    "a scheme of no store": (lambda s: craft(s, BYTES, run=changed(object="http://169.254.169.254/latest", etag="e")),
        ForeignObject, r"http://169\.254\.169\.254/latest"),
    "a URL with a password": (lambda s: craft(s, BYTES, run=changed(object="https://bob:secret@host/a", etag="e")),
        ForeignObject, r"refers to https://\*\*\*@host/a: the URL must not contain a user or a password"),
}  # fmt: skip


def lie_about_characters(store: Store) -> None:
    import dataclasses

    root = Manifest.from_bytes(store.get(ROOT_KEY).data)
    page = dataclasses.replace(root.pages[0], characters=root.characters - 1)
    write_root(store, root_of(page, stored_bytes=root.stored_bytes))


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
