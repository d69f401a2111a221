"""Roots: what is written comes back, what is not a sound root is refused with a typed error that names the object."""

from __future__ import annotations

import dataclasses
import json

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monocontext.errors import DamagedData, MonocontextError, NotAContext, UnsupportedFormat
from monocontext.format.manifest import Manifest, checksum
from monocontext.format.refs import CODECS, MAX_FRAME_BYTES, DocumentsRef, PageRef

from .crafted import root_of

OPTIONAL = {
    *("documents", "extra", "filter_directories", "filters", "flags", "history", "last_page", "has_earlier_filters"),
    *("text", "head", "tail"),
}
NAME = "s3://bucket/prefix/manifest.json"
HEX = "0123456789abcdef" * 2


@st.composite
def page_refs(draw: st.DrawFn) -> tuple[PageRef, ...]:
    """Pages whose counts are possible."""
    pages, frames, size, characters, newlines = [], 0, 0, 0, 0
    for _ in range(draw(st.integers(0, 5))):
        frames_here = draw(st.integers(1, 4096))
        characters_here = frames_here + draw(st.integers(0, 1 << 40))
        frames += frames_here
        characters += characters_here
        size += characters_here + draw(st.integers(0, 1 << 40))
        newlines += draw(st.integers(0, characters_here))
        name = draw(st.text("0123456789abcdef", min_size=32, max_size=32))
        crc, length = draw(st.integers(0, 2**32 - 1)), draw(st.integers(1, 1 << 20))
        pages.append(PageRef(name, length, crc, frames, size, characters, newlines))
    return tuple(pages)


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    pages = draw(page_refs())
    return Manifest(
        generation=draw(st.integers(1, 1 << 60)),
        write_id=draw(st.text()),
        created=draw(st.text()),
        pages=pages,
        final_newline=bool(pages and pages[-1].newlines and draw(st.booleans())),
        stored_bytes=draw(st.integers(0, 1 << 60)),
        frame_bytes=draw(st.integers(1, MAX_FRAME_BYTES)),
        codec=draw(st.sampled_from(CODECS)),
        sources=tuple(draw(st.lists(st.text(), max_size=3))),
    )


@given(manifests())
def test_round_trip(root: Manifest) -> None:
    data = root.to_bytes()
    assert Manifest.from_bytes(data) == root
    assert Manifest.from_bytes(data).to_bytes() == data
    assert data.isascii()


GOOD = root_of(PageRef(HEX, 100, 1, 2, 30, 20, 3), PageRef(HEX, 100, 1, 4, 60, 40, 3), stored_bytes=60)


def with_page(**changes: object) -> Manifest:
    page = dataclasses.replace(GOOD.pages[1], **changes)  # type: ignore[arg-type]
    return dataclasses.replace(GOOD, pages=(GOOD.pages[0], page))


VIOLATIONS = {
    "generation 0": dataclasses.replace(GOOD, generation=0),
    "codec 'lzma'": dataclasses.replace(GOOD, codec="lzma"),
    "frame_bytes 0": dataclasses.replace(GOOD, frame_bytes=0),
    "frame_bytes 16777217": dataclasses.replace(GOOD, frame_bytes=MAX_FRAME_BYTES + 1),
    "page 1: 'short' is not an id": with_page(id="short"),
    "page 1: '../../../../../../../../../etc/pw' is not": with_page(id="../../../../../../../../../etc/pw"),
    f"page 1: {HEX.upper()!r} is not": with_page(id=HEX.upper()),
    f"page 1: '{HEX}.n' is not": with_page(id=HEX + "\n"),
    "page 1: size_bytes 0 is impossible": with_page(size_bytes=0),
    "page 1: size_bytes 1,073,741,824 is impossible": with_page(size_bytes=1 << 30),
    "page 1: frames do not rise: 2, 2": with_page(frames=2),
    "page 1: frames do not rise: 2, 1": with_page(frames=1),
    "page 1: -1 bytes": with_page(bytes=29),
    "page 1: 30 bytes, -1 characters": with_page(characters=19),
    "page 1: 30 bytes, 20 characters and -1 newlines": with_page(newlines=2),
    "page 1: 30 bytes, 31 characters": with_page(characters=51),
    "page 1: 30 bytes, 20 characters and 21 newlines": with_page(newlines=24),
    "page 1: 30 bytes, 1 characters and 0 newlines": with_page(characters=21),  # two frames, one character
    "documents need at least one page": dataclasses.replace(GOOD, documents=DocumentsRef(())),
    r"sizes exceed 2\^62 bytes": dataclasses.replace(GOOD, stored_bytes=1 << 62),
    "final_newline is true, but newlines is 0": root_of(PageRef(HEX, 9, 1, 1, 3, 3, 0), final_newline=True),
}


@pytest.mark.parametrize("what", VIOLATIONS)
def test_each_invariant_is_asserted(what: str) -> None:
    with pytest.raises(DamagedData, match=rf"manifest\.json \(generation \d\): {what.replace('[', '.')}"):
        VIOLATIONS[what].check()
    with pytest.raises(DamagedData, match=r"manifest\.json"):
        Manifest.from_bytes(VIOLATIONS[what].to_bytes())


def edit_manifest(**changes: object) -> bytes:
    """A root with other fields, under a checksum that agrees."""
    root = json.loads(GOOD.to_bytes()) | changes
    root = {name: value for name, value in root.items() if value is not None}
    root["crc32c"] = checksum(root)
    return json.dumps(root).encode()


def test_a_missing_field() -> None:
    for field in {f.name for f in dataclasses.fields(Manifest)} - OPTIONAL:
        with pytest.raises(DamagedData, match=rf"{NAME}: a field is missing.*{field}"):
            Manifest.from_bytes(edit_manifest(**{field: None}), NAME)
    for field in (f.name for f in dataclasses.fields(PageRef)):
        pages = json.loads(GOOD.to_bytes())["pages"]
        del pages[1][field]
        with pytest.raises(DamagedData, match=rf"{NAME}: a field is missing.*{field}"):
            Manifest.from_bytes(edit_manifest(pages=pages), NAME)


NO_COUNTS = (-1, 1.5, "1", True, [], {}, 1 << 62, 10**400, float("nan"), float("inf"))
NO_PAGES = (3, "pages", {"a": 1}, [3], [None], [[]], ["page"])
GARBAGE = (
    *(b"", b"\x00" * 50, b"not json", b"\xff\xfe{}", b"{'format': 1}", b'{"format": 1', b"[" * 200_000, b"9" * 5000),
    *(b'{"a":' * 200_000, GOOD.to_bytes()[:-3], GOOD.to_bytes() + b"x"),
)
REFUSED: list[tuple[type[MonocontextError], str, list[bytes]]] = [
    (DamagedData, ".*expected a count", [
        edit_manifest(**{field: value})
        for field in ("generation", "stored_bytes", "frame_bytes")
        for value in NO_COUNTS
    ]),
    (DamagedData, "a field is missing or has the wrong type", [edit_manifest(pages=pages) for pages in NO_PAGES]),
    (DamagedData, ".*is 1, but the pages add up to", [
        edit_manifest(**{field: 1}) for field in ("characters", "bytes", "newlines", "frames")
    ]),
    (DamagedData, r"crc32c differs: expected '\w{8}', found '\w{8}'", [
        GOOD.to_bytes().replace(b"crafted", b"crufted"),
    ]),
    (DamagedData, "expected a JSON object, found", [*GARBAGE]),
    (DamagedData, "", [  # nested near the limit of recursion
        b'{"format": 1, "extra": ' + b"[" * depth + b"]" * depth + b"}" for depth in range(800, 1001, 5)
    ]),
    (UnsupportedFormat, "has format .*reads formats up to 1", [
        edit_manifest(min_reader=needed) for needed in (2, 10**30, "2.0", 1.5, [1])
    ]),
    (UnsupportedFormat, ".*format 7", [b'{"format": 7, "whatever": {}}']),
    (UnsupportedFormat, ".*encryption", [
        edit_manifest(requires=requires) for requires in (["encryption"], {"encryption": 1}, "encryption")
    ]),
    (NotAContext, '.*unit="lines".*monocontext index', [
        b"[]", b'[{"segment": "a.txt", "start_line": 0, "line_count": 3}]', b"[[[]]]",
    ]),
    (NotAContext, "JSON, but not the manifest", [
        b"{}", b"3", b"null", b'"format"', b'{"version": 1}', b"NaN", b"true",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("error", "said", "roots"), REFUSED, ids=[said for _, said, _ in REFUSED])
def test_what_is_no_sound_root_is_refused(error: type[MonocontextError], said: str, roots: list[bytes]) -> None:
    for data in roots:
        with pytest.raises(error, match=f"{NAME}: {said}") as raised:
            Manifest.from_bytes(data, NAME)
        assert type(raised.value) is error
        assert "\n" not in str(raised.value)


def test_a_newer_writer_that_older_readers_can_read() -> None:
    assert Manifest.from_bytes(edit_manifest(format=5, min_reader=1), NAME).pages == GOOD.pages


def test_unknown_optional_fields_are_kept() -> None:
    root = Manifest.from_bytes(edit_manifest(shelf=[{"id": "ab"}], note="hello"), NAME)
    assert root == GOOD
    assert root.extra == {"shelf": [{"id": "ab"}], "note": "hello"}
    again = Manifest.from_bytes(root.to_bytes(), NAME)
    assert again.extra == root.extra


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(json.loads(GOOD.to_bytes()))), json_values)
def test_any_value_in_any_field_is_sound_or_a_typed_error(field: str, value: object) -> None:
    try:
        root = Manifest.from_bytes(edit_manifest(**{field: value}), NAME)
    except MonocontextError:
        return
    root.check()
    assert root.pages == GOOD.pages


def test_the_checksum_is_over_the_canonical_json() -> None:
    root = json.loads(dataclasses.replace(GOOD, text="QUJD" * 5000, sources=('"\\\n\x7fé',)).to_bytes())
    given = root.pop("crc32c")
    canonical = json.dumps(root, sort_keys=True, separators=(",", ":")).encode()
    assert given == f"{google_crc32c.value(canonical):08x}"


@given(st.data())
def test_any_byte_changed_is_an_error_or_no_change(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(["", "QUJD" * 2000]))
    good = dataclasses.replace(GOOD, text=text)
    changed = bytearray(good.to_bytes())
    offset = changed.index(text.encode())
    edge = st.sampled_from([max(offset - 1, 0), offset, offset + len(text) - 1, offset + len(text)])
    changed[data.draw(edge | st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        root = Manifest.from_bytes(bytes(changed), NAME)
    except MonocontextError:
        return
    assert (root, root.extra) == (good, {})
