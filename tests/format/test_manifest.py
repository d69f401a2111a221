"""Roots: what is written comes back, what is not a sound root is refused with a typed error that names the object."""

from __future__ import annotations

import dataclasses
import json

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monocontext.errors import DamagedData, MonocontextError, NotAContext, UnsupportedFormat
from monocontext.format.manifest import Manifest, checksum, generation_key
from monocontext.format.refs import CODECS, MAX_FRAME_BYTES, PageRef

from .crafted import root_of

OPTIONAL = (
    "documents",
    "extra",
    "filter_directories",
    "filters",
    "flags",
    "history",
    "last_page",
    "has_earlier_filters",
    "text",
    "head",
    "tail",
)
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


@given(manifests())
def test_the_counts_are_those_of_the_last_page(root: Manifest) -> None:
    written = json.loads(root.to_bytes())
    last = root.pages[-1] if root.pages else PageRef("", 0, 0, 0, 0, 0, 0)
    counts = {"frames": last.frames, "bytes": last.bytes, "characters": last.characters, "newlines": last.newlines}
    assert {name: written[name] for name in counts} == counts


def test_generations_sort_by_name() -> None:
    numbers = [1, 2, 9, 10, 99, 100, 10**18]
    assert sorted(map(generation_key, numbers)) == [generation_key(number) for number in numbers]


def test_lines() -> None:
    def lines(characters: int, newlines: int, final_newline: bool) -> int:
        page = PageRef(HEX, 1, 0, 1, characters, characters, newlines)
        return root_of(page, final_newline=final_newline).lines

    assert root_of().lines == 0
    assert [lines(3, 0, False), lines(3, 1, False), lines(3, 1, True), lines(1, 1, True)] == [1, 2, 1, 1]


GOOD = root_of(PageRef(HEX, 100, 1, 2, 30, 20, 3), PageRef(HEX, 100, 1, 4, 60, 40, 3), stored_bytes=60)


def with_page(**changes: object) -> Manifest:
    page = dataclasses.replace(GOOD.pages[1], **changes)  # type: ignore[arg-type]
    return dataclasses.replace(GOOD, pages=(GOOD.pages[0], page))


VIOLATIONS = {
    "generation 0": dataclasses.replace(GOOD, generation=0),
    "codec 'lzma'": dataclasses.replace(GOOD, codec="lzma"),
    "frame_bytes 0": dataclasses.replace(GOOD, frame_bytes=0),
    "frame_bytes 16777217": dataclasses.replace(GOOD, frame_bytes=MAX_FRAME_BYTES + 1),
    "page 1: 'short' is not a page id": with_page(id="short"),
    "page 1: '../../../../../../../../../etc/pw' is not": with_page(id="../../../../../../../../../etc/pw"),
    f"page 1: {HEX.upper()!r} is not": with_page(id=HEX.upper()),
    f"page 1: '{HEX}.n' is not": with_page(id=HEX + "\n"),
    "page 1: an object of 0 bytes": with_page(size_bytes=0),
    "page 1: an object of 1,073,741,824 bytes": with_page(size_bytes=1 << 30),
    "page 1: frames do not rise: 2, 2": with_page(frames=2),
    "page 1: frames do not rise: 2, 1": with_page(frames=1),
    "page 1: -1 bytes": with_page(bytes=29),
    "page 1: 30 bytes, -1 characters": with_page(characters=19),
    "page 1: 30 bytes, 20 characters and -1 newlines": with_page(newlines=2),
    "page 1: 30 bytes, 31 characters": with_page(characters=51),
    "page 1: 30 bytes, 20 characters and 21 newlines": with_page(newlines=24),
    "page 1: 30 bytes, 1 characters and 0 newlines": with_page(characters=21),  # two frames, one character
    "counts are out of range": dataclasses.replace(GOOD, stored_bytes=1 << 62),
    "a final newline, but no newline": root_of(PageRef(HEX, 9, 1, 1, 3, 3, 0), final_newline=True),
}


def test_the_root_that_is_violated_below_is_sound() -> None:
    GOOD.check()


@pytest.mark.parametrize("what", VIOLATIONS)
def test_each_invariant_is_asserted(what: str) -> None:
    with pytest.raises(DamagedData, match=rf"manifest\.json \(generation \d\): {what.replace('[', '.')}"):
        VIOLATIONS[what].check()


def edit_manifest(**changes: object) -> bytes:
    """A root with other fields, under a checksum that agrees."""
    root = json.loads(GOOD.to_bytes()) | changes
    root = {name: value for name, value in root.items() if value is not None}
    root["crc32c"] = checksum(root)
    return json.dumps(root).encode()


def test_every_violation_is_found_on_reading_too() -> None:
    for root in VIOLATIONS.values():
        with pytest.raises(DamagedData, match=r"manifest\.json"):
            Manifest.from_bytes(root.to_bytes())


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(Manifest) if f.name not in OPTIONAL])
def test_a_missing_field(field: str) -> None:
    with pytest.raises(DamagedData, match=rf"{NAME}: field missing.*{field}"):
        Manifest.from_bytes(edit_manifest(**{field: None}), NAME)


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(PageRef)])
def test_a_missing_field_of_a_page(field: str) -> None:
    pages = json.loads(GOOD.to_bytes())["pages"]
    del pages[1][field]
    with pytest.raises(DamagedData, match=rf"{NAME}: field missing.*{field}"):
        Manifest.from_bytes(edit_manifest(pages=pages), NAME)


@pytest.mark.parametrize("value", [-1, 1.5, "1", True, [], {}, 1 << 62, 10**400, float("nan"), float("inf")])
@pytest.mark.parametrize("field", ["generation", "stored_bytes", "frame_bytes"])
def test_what_is_not_a_count(field: str, value: object) -> None:
    with pytest.raises(DamagedData, match=f"{NAME}: .*expected a count"):
        Manifest.from_bytes(edit_manifest(**{field: value}), NAME)


@pytest.mark.parametrize("pages", [None, 3, "pages", {"a": 1}, [3], [None], [[]], ["page"]])
def test_pages_that_are_no_pages(pages: object) -> None:
    root = json.loads(GOOD.to_bytes()) | {"pages": pages}
    root["crc32c"] = checksum(root)
    with pytest.raises(DamagedData, match=f"{NAME}: field missing or of the wrong kind"):
        Manifest.from_bytes(json.dumps(root).encode(), NAME)


@pytest.mark.parametrize("field", ["characters", "bytes", "newlines", "frames"])
def test_totals_that_disagree_with_the_pages(field: str) -> None:
    with pytest.raises(DamagedData, match=rf"{NAME}: .*{field} is 1, the pages say"):
        Manifest.from_bytes(edit_manifest(**{field: 1}), NAME)


def test_a_checksum_that_differs() -> None:
    data = GOOD.to_bytes().replace(b'"write_id": "crafted"', b'"write_id": "crufted"')
    with pytest.raises(DamagedData, match=rf"{NAME}: checksum differs: expected '\w{{8}}', found '\w{{8}}'"):
        Manifest.from_bytes(data, NAME)


def test_a_newer_format_is_refused_by_name() -> None:
    for needed in (2, 10**30, "2.0", 1.5, [1]):
        with pytest.raises(UnsupportedFormat, match=rf"{NAME}: has format .*reads formats up to 1"):
            Manifest.from_bytes(edit_manifest(min_reader=needed), NAME)


def test_a_newer_format_needs_no_fields_that_we_know() -> None:
    with pytest.raises(UnsupportedFormat, match="format 7"):
        Manifest.from_bytes(b'{"format": 7, "whatever": {}}', NAME)


def test_a_newer_writer_that_older_readers_can_read() -> None:
    assert Manifest.from_bytes(edit_manifest(format=5, min_reader=1), NAME).pages == GOOD.pages


@pytest.mark.parametrize("requires", [["encryption"], {"encryption": 1}, "encryption"])
def test_an_unknown_required_feature_is_refused_by_name(requires: object) -> None:
    with pytest.raises(UnsupportedFormat, match=f"{NAME}: .*encryption"):
        Manifest.from_bytes(edit_manifest(requires=requires), NAME)


def test_unknown_optional_fields_are_kept() -> None:
    root = Manifest.from_bytes(edit_manifest(shelf=[{"id": "ab"}], note="hello"), NAME)
    assert root == GOOD
    assert root.extra == {"shelf": [{"id": "ab"}], "note": "hello"}
    again = Manifest.from_bytes(root.to_bytes(), NAME)
    assert again.extra == root.extra


@pytest.mark.parametrize("data", [b"[]", b'[{"segment": "a.txt", "start_line": 0, "line_count": 3}]', b"[[[]]]"])
def test_a_list_is_a_deeprecurse_manifest(data: bytes) -> None:
    with pytest.raises(NotAContext, match=rf'{NAME}: .*unit="lines".*monocontext index'):
        Manifest.from_bytes(data, NAME)


@pytest.mark.parametrize("data", [b"{}", b"3", b"null", b'"format"', b'{"version": 1}', b"NaN", b"true"])
def test_json_of_another_kind(data: bytes) -> None:
    with pytest.raises(NotAContext, match=f"{NAME}: JSON, but not the manifest"):
        Manifest.from_bytes(data, NAME)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 50,
        b"not json",
        b"\xff\xfe{}",
        b"{'format': 1}",
        b'{"format": 1',
        b"[" * 200000,
        b"9" * 5000,
        b'{"a":' * 200000,
        GOOD.to_bytes()[:-3],
        GOOD.to_bytes() + b"x",
    ],
    ids=lambda data: repr(data[:12]),
)
def test_garbage(data: bytes) -> None:
    with pytest.raises(DamagedData, match=f"{NAME}: not a manifest: expected a JSON object, found") as raised:
        Manifest.from_bytes(data, NAME)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("depth", range(800, 1001, 5))
def test_nesting_near_the_recursion_limit(depth: int) -> None:
    with pytest.raises(DamagedData, match=NAME):
        Manifest.from_bytes(b'{"format": 1, "extra": ' + b"[" * depth + b"]" * depth + b"}", NAME)


@given(st.binary(max_size=300))
def test_random_bytes_raise_typed_errors_only(data: bytes) -> None:
    with pytest.raises(MonocontextError):
        Manifest.from_bytes(data, NAME)


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


@given(st.integers(0, len(GOOD.to_bytes()) - 1), st.integers(1, 255))
def test_any_byte_changed_is_an_error_or_no_change(index: int, change: int) -> None:
    data = bytearray(GOOD.to_bytes())
    data[index] ^= change
    try:
        root = Manifest.from_bytes(bytes(data), NAME)
    except MonocontextError:
        return
    assert (root, root.extra) == (GOOD, {})


@given(st.integers(0, len(GOOD.to_bytes()) - 3))
def test_any_prefix_is_an_error(size: int) -> None:
    with pytest.raises(DamagedData, match=NAME):
        Manifest.from_bytes(GOOD.to_bytes()[:size], NAME)


def test_the_checksum_is_over_the_canonical_json() -> None:
    root = json.loads(dataclasses.replace(GOOD, text="QUJD" * 5000, sources=('"\\\n\x7fé',)).to_bytes())
    given = root.pop("crc32c")
    canonical = json.dumps(root, sort_keys=True, separators=(",", ":")).encode()
    assert given == f"{google_crc32c.value(canonical):08x}"


LONG = "QUJD" * 2000


@given(st.data())
def test_any_byte_of_a_root_with_a_text_changed_is_an_error_or_no_change(data: st.DataObject) -> None:
    good = dataclasses.replace(GOOD, text=LONG)
    changed = bytearray(good.to_bytes())
    text_at = changed.index(LONG.encode())
    edge = st.sampled_from([text_at - 1, text_at, text_at + len(LONG) - 1, text_at + len(LONG)])
    changed[data.draw(edge | st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        root = Manifest.from_bytes(bytes(changed), NAME)
    except MonocontextError:
        return
    assert (root, root.extra) == (good, {})
