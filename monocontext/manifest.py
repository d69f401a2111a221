"""The root of a context: a small JSON object that names its index pages and says how long the text is.

Invariants, asserted by `Manifest.check()`:
- counts never fall from one page to the next, and the last page's counts are those of the whole text;
- every page holds at least one frame, every frame at least one character;
- bytes >= characters >= newlines; an empty text has no page;
- filters cover frames of the text, in order, none twice;
- ids are hex, so that no id can lead out of the context's place.

`docs/format.md` is the specification.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, field, fields
from typing import Any

import google_crc32c

from monocontext.errors import DamagedData, NotAContext, UnsupportedFormat

FORMAT = 1
ROOT_KEY = "manifest.json"
CODECS = ("zstd", "raw")
MAX_FRAME_BYTES = 16 << 20
"""No reader has to hold more than this for one frame, whatever a manifest says."""

FILTER_KIND = "grams-2"
"""Of search filters that are written."""
FILTER_KINDS = ("grams-1", FILTER_KIND)
"""Those that are read; others are passed over. Blocks of the first do not know their place."""
INLINE_PAGE_BYTES = 32 << 10
"""About 1400 frames, 350 MB of text: the root stays a GET of 45 KB at most."""

_ID = re.compile(r"[0-9a-f]{32}")
_LIMIT = 1 << 62


def generation_key(generation: int) -> str:
    return f"generations/{generation:020d}.json"


def filter_key(part: str) -> str:
    return f"filters/{part}.flt"


@dataclass(frozen=True, slots=True)
class PageRef:
    """One index page, with the counts of the text up to and including its last frame."""

    id: str
    """Truncated SHA-256 of the page's bytes; the object is `index/<id>.idx`."""
    size_bytes: int
    """Length of the page object."""
    crc32c: int
    """Checksum of the page object."""
    frames: int
    bytes: int
    characters: int
    newlines: int

    @property
    def key(self) -> str:
        return f"index/{self.id}.idx"


@dataclass(frozen=True, slots=True)
class FilterRef:
    """A search filter over some neighbouring frames (`filters`)."""

    kind: str
    """How rows are computed and laid out; readers pass over kinds that they do not know."""
    fold: str
    """The tables by which case was folded (`filters.fold.TABLES`)."""
    first_frame: int
    frames: int
    bits: int
    """There are 2 ** bits rows."""
    overlap_bytes: int
    """Folded text after each frame that its column covers too."""
    tail_frames: int
    """Last frames of the group that a match can begin in and end behind the group."""
    border_frames: int
    """Frames before the group that its border column stands for; 0: it has none."""
    parts: tuple[str, ...]
    """Ids of the objects, in order: truncated SHA-256 of their bytes."""
    seed: int | None = None
    """Goes into the checksum of each block, so that a block of another filter is none of this; None in `grams-1`."""

    @property
    def stop_frame(self) -> int:
        return self.first_frame + self.frames

    def key(self, part: int) -> str:
        return filter_key(self.parts[part])

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(map(filter_key, self.parts))


@dataclass(frozen=True, slots=True)
class Manifest:
    """One generation of a context. Immutable: a new text is a new generation."""

    generation: int
    """1 for the first commit at a prefix, then one more each."""
    write_id: str
    """Random name of the commit: its writer knows its own root again after a lost reply."""
    created: str
    """ISO 8601, UTC, by the writer's clock."""
    pages: tuple[PageRef, ...] = ()
    final_newline: bool = False
    """Whether the text ends in a newline."""
    stored_bytes: int = 0
    """Sum of the stored lengths of all frames."""
    frame_bytes: int = 256 << 10
    """What the last writer aimed at for a frame, in bytes of text."""
    codec: str = "zstd"
    """How the last writer stored frames."""
    last_page: bytes | None = None
    """A copy of the last page's object where it is small (INLINE_PAGE_BYTES): most texts are then read without asking
    for a page first, one round trip less."""
    sources: tuple[str, ...] = ()
    """Places outside the context that virtual segments lie in."""
    filters: tuple[FilterRef, ...] = ()
    """In the order of the text. Frames that none covers may hold anything."""
    extra: dict[str, Any] = field(default_factory=dict, compare=False)
    """Fields of the JSON object that this version does not know."""

    @property
    def frames(self) -> int:
        """Frames of the whole text."""
        return self.pages[-1].frames if self.pages else 0

    @property
    def text_bytes(self) -> int:
        """Length of the text in bytes of UTF-8."""
        return self.pages[-1].bytes if self.pages else 0

    @property
    def characters(self) -> int:
        """Characters of the whole text."""
        return self.pages[-1].characters if self.pages else 0

    @property
    def newlines(self) -> int:
        r"""`\n` in the whole text."""
        return self.pages[-1].newlines if self.pages else 0

    @property
    def lines(self) -> int:
        r"""Lines ended by `\n`, and one more for a rest without it."""
        return self.newlines + (1 if self.characters and not self.final_newline else 0)

    def check(self) -> None:
        """Assert the invariants listed at the top of this file; raises `DamagedData`."""
        self._assert(self.generation >= 1, f"generation {self.generation} is not positive")
        self._assert(self.codec in CODECS, f"codec {self.codec!r} is unknown")
        self._assert(1 <= self.frame_bytes <= MAX_FRAME_BYTES, f"frame_bytes {self.frame_bytes} is out of range")
        before = PageRef("", 0, 0, 0, 0, 0, 0)
        for number, page in enumerate(self.pages):
            where = f"page {number}"
            self._assert(_ID.fullmatch(page.id) is not None, f"{where}: {page.id!r} is not a page id")
            self._assert(page.size_bytes > 0, f"{where}: empty object")
            self._assert(page.frames > before.frames, f"{where}: frames do not rise: {before.frames}, {page.frames}")
            grown = (page.bytes - before.bytes, page.characters - before.characters, page.newlines - before.newlines)
            ordered = grown[0] >= grown[1] >= max(grown[2], page.frames - before.frames) and grown[2] >= 0
            self._assert(ordered, f"{where}: impossible counts (bytes, characters, newlines): {grown}")
            before = page
        self._assert(before.bytes < _LIMIT and self.stored_bytes < _LIMIT, "counts are out of range")
        inline = self.last_page
        fits = inline is None or (bool(self.pages) and len(inline) == self.pages[-1].size_bytes)
        self._assert(fits, "last_page has not the length of the last page")
        self._assert(not self.final_newline or self.newlines > 0, "a final newline, but no newline")
        covered = 0
        for number, ref in enumerate(self.filters):
            within = covered <= ref.first_frame and ref.frames > 0 and ref.stop_frame <= self.frames
            self._assert(within, f"filter {number}: frames {ref.first_frame} to {ref.stop_frame} of {self.frames}")
            sane = ref.tail_frames <= ref.frames and ref.border_frames <= ref.first_frame and ref.overlap_bytes > 0
            self._assert(sane and 0 < ref.bits <= 32, f"filter {number}: impossible record")
            named = bool(ref.parts) and all(_ID.fullmatch(part) for part in ref.parts)
            self._assert(named, f"filter {number}: parts without a name")
            covered = ref.stop_frame

    def _assert(self, holds: bool, what: str) -> None:
        if not holds:
            raise DamagedData(f"{ROOT_KEY} (generation {self.generation}): {what}")

    def to_bytes(self) -> bytes:
        """The JSON form: one line a page, ended by a checksum of everything else."""
        root: dict[str, Any] = {
            **self.extra,
            "format": FORMAT,
            "min_reader": FORMAT,
            "requires": [],
            "generation": self.generation,
            "write_id": self.write_id,
            "created": self.created,
            "characters": self.characters,
            "bytes": self.text_bytes,
            "newlines": self.newlines,
            "final_newline": self.final_newline,
            "frames": self.frames,
            "stored_bytes": self.stored_bytes,
            "frame_bytes": self.frame_bytes,
            "codec": self.codec,
            "sources": list(self.sources),
            **({} if self.last_page is None else {"last_page": base64.b64encode(self.last_page).decode()}),
            **({"filters": [_as_object(ref) for ref in self.filters]} if self.filters else {}),
            "pages": [_as_object(page) for page in self.pages],
        }
        root["crc32c"] = _checksum(root)
        lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in root.items() if key != "pages"]
        pages = ",\n".join(f"    {json.dumps(page)}" for page in root["pages"])
        lines.insert(-1, f'  "pages": [\n{pages}\n  ]' if pages else '  "pages": []')
        return ("{\n" + ",\n".join(lines) + "\n}\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes, name: str = ROOT_KEY) -> Manifest:
        """Parse and check a root; `name` is the object, for messages.

        Raises `NotAContext` (a DeepRecurse manifest, or JSON of another kind), `UnsupportedFormat` (newer),
        `DamagedData`.
        """
        try:
            root = json.loads(data)
            found = _checksum(root) if isinstance(root, dict) else ""
        except (ValueError, RecursionError) as error:
            raise DamagedData(
                f"{name}: not a manifest: expected a JSON object, found {data[:40]!r} ({error})"
            ) from None
        if isinstance(root, list):
            raise NotAContext(
                f'{name}: a DeepRecurse manifest, which counts lines: open it with unit="lines", or make a context in '
                f"characters at another prefix with `monocontext index`"
            )
        if not isinstance(root, dict) or "format" not in root:
            raise NotAContext(f'{name}: JSON, but not the manifest of a context (no field "format")')
        min_reader = root.get("min_reader", root["format"])
        if not isinstance(min_reader, int) or min_reader > FORMAT:
            raise UnsupportedFormat(
                f"{name}: needs a reader of format {min_reader!r}, this one reads up to {FORMAT}: upgrade"
            )
        if requires := root.get("requires"):
            raise UnsupportedFormat(f"{name}: needs features that this version lacks: {requires!r}: upgrade")
        if root.get("crc32c") != found:
            raise DamagedData(f"{name}: checksum differs: expected {root.get('crc32c')!r}, found {found!r}")
        try:
            manifest = cls._from_object(root)
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedData(f"{name}: field missing or of the wrong kind: {error!r}") from None
        manifest.check()
        return manifest

    @classmethod
    def _from_object(cls, root: dict[str, Any]) -> Manifest:
        pages = tuple(
            PageRef(str(page["id"]), *(_count(page[f.name]) for f in fields(PageRef)[1:])) for page in root["pages"]
        )
        known = {"format", "min_reader", "requires", "characters", "bytes", "newlines", "frames", "crc32c"}
        known |= {f.name for f in fields(cls)}
        manifest = cls(
            generation=_count(root["generation"]),
            write_id=str(root["write_id"]),
            created=str(root["created"]),
            pages=pages,
            final_newline=bool(root["final_newline"]),
            stored_bytes=_count(root["stored_bytes"]),
            frame_bytes=_count(root["frame_bytes"]),
            codec=str(root["codec"]),
            last_page=base64.b64decode(root["last_page"], validate=True) if root.get("last_page") else None,
            sources=tuple(str(source) for source in root["sources"]),
            filters=tuple(_filter_ref(ref) for ref in root.get("filters", ()) if ref["kind"] in FILTER_KINDS),
            extra={key: value for key, value in root.items() if key not in known},
        )
        totals = (manifest.characters, manifest.text_bytes, manifest.newlines, manifest.frames)
        for name, total in zip(("characters", "bytes", "newlines", "frames"), totals, strict=True):
            if root[name] != total:
                raise ValueError(f"{name} is {root[name]!r}, the pages say {total}")
        return manifest


def _as_object(ref: PageRef | FilterRef) -> dict[str, Any]:
    found = {f.name: getattr(ref, f.name) for f in fields(ref)}
    return {name: value for name, value in found.items() if value is not None}


def _filter_ref(row: dict[str, Any]) -> FilterRef:
    return FilterRef(
        kind=str(row["kind"]),
        fold=str(row["fold"]),
        first_frame=_count(row["first_frame"]),
        frames=_count(row["frames"]),
        bits=_count(row["bits"]),
        overlap_bytes=_count(row["overlap_bytes"]),
        tail_frames=_count(row["tail_frames"]),
        border_frames=_count(row["border_frames"]),
        parts=tuple(str(part) for part in row["parts"]),
        seed=_count(row["seed"]) if row["kind"] == FILTER_KIND else None,
    )


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _LIMIT:
        raise ValueError(f"not a count: {value!r}")
    return value


def _checksum(root: dict[str, Any]) -> str:
    """CRC-32C over the canonical form: keys sorted, no white space, ASCII only, without the field itself."""
    rest = {key: value for key, value in root.items() if key != "crc32c"}
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"{google_crc32c.value(canonical.encode()):08x}"
