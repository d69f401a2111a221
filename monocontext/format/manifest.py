"""The root of a context: parse, check and write the JSON object that names index pages and filters.

Invariants, asserted by `Manifest.check()`:

- counts never fall from one page to the next, and the last page's counts are those of the whole text
- every page holds at least one frame, every frame at least one character
- bytes >= characters >= newlines; an empty text has no page
- filters cover frames of the text, in order, each frame at most once
- directories come before the entries that they do not name; the last entry of pages is a page
- documents lie within the text, in order; their tables of names cover the first of them, each once
- ids are hex, so that no id leads out of the context's place

`docs/format.md` is the specification.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import google_crc32c

from monocontext.errors import DamagedData, NotAContext, UnsupportedFormat
from monocontext.format.refs import (
    CODECS,
    LIMIT,
    MAX_FRAME_BYTES,
    FilterDirectory,
    FilterRef,
    PageDirectory,
    PageRef,
    as_object,
    check_filters,
    check_pages,
    count_of,
    filter_directories,
    filter_refs,
    page_refs,
)
from monocontext.records import dataclass, field, replace

if TYPE_CHECKING:
    from monocontext.format.document_refs import DocumentsRef


ANCESTORS = 16
"""Generations that a root names: a writer that was paused between two requests looks itself up there."""
_ID_DIGITS = 8


@dataclass(frozen=True, slots=True)
class History:
    """The record of earlier roots in a root."""

    lineage: str = ""
    """Random name of the text's first root. Roots of one lineage hold texts each of which begins with the one before;
    empty where an older version wrote the root."""
    ancestors: tuple[str, ...] = ()
    """First 8 digits of the `write_id` of the generations right before this one, the nearest last."""
    floor: int = 0
    """Generations below this one may have been removed."""
    fence: int = 0
    """The newest generation that `gc` committed before it removed objects younger than its safe grace period. A writer
    must not rely on an object that it stored, or found, before that."""
    replaced: tuple[str, ...] = ()
    """Keys of objects that the generation before names and this one does not, and that can never be stored again."""

    def after(self, write_id: str, before: History) -> History:
        """This history for a root that follows the root `write_id` with the history `before`."""
        return replace(
            self,
            ancestors=(*before.ancestors, write_id[:_ID_DIGITS])[-ANCESTORS:],
            floor=max(self.floor, before.floor),
            fence=max(self.fence, before.fence),
        )

    def descends_from(self, generation: int, write_id: str, own_generation: int) -> bool | None:
        """Whether the root `own_generation` with this history follows an earlier one; None if that is too long ago to
        tell."""
        if generation >= self.floor:
            return True  # no root of that number was removed, so none was written twice
        back = own_generation - generation
        if not 0 < back <= len(self.ancestors):
            return None
        return self.ancestors[-back] == write_id[:_ID_DIGITS]

    def as_object(self) -> dict[str, Any]:
        """The JSON form, without empty parts."""
        found: dict[str, Any] = {"lineage": self.lineage, "ancestors": list(self.ancestors), "floor": self.floor}
        found |= {"fence": self.fence, "replaced": list(self.replaced)}
        return {name: value for name, value in found.items() if value}

    @classmethod
    def from_object(cls, row: dict[str, Any]) -> History:
        """Raises `ValueError` or `TypeError` for other JSON."""
        floor, fence = row.get("floor", 0), row.get("fence", 0)
        if not (isinstance(floor, int) and isinstance(fence, int) and floor >= 0 and fence >= 0):
            raise ValueError(f"history: not generations: {floor!r}, {fence!r}")
        return cls(
            str(row.get("lineage", "")),
            tuple(map(str, row.get("ancestors", ()))),
            floor,
            fence,
            tuple(map(str, row.get("replaced", ()))),
        )


FORMAT = 1
ROOT_KEY = "manifest.json"
INLINE_PAGE_BYTES = 32 << 10
"""About 1400 frames, 350 MB of text: the root stays a GET of 45 KB at most."""

MOST_ROOT_BYTES = 64 << 20
"""Largest root: 100,000 pages take 19 MB (107 TB of text in frames of 256 KiB), their filters at most 30 MB."""
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_LONG_BYTES = 4096
_AT_ONCE = 64 << 10
_TEXT_FIELD = b'\n  "text": "'
_STAND_IN = b"of 7d1c6f0e4b"
_ESCAPED = bytes(range(32)) + b'"\\\x7f'
"""ASCII bytes that JSON escapes."""
DIRECTORIES = "directories"
"""The feature that a root requires of its reader if it names pages or filters by directories."""
COPIES = ("text", "head", "tail")
"""Fields that hold copies of stored text."""


def generation_key(generation: int) -> str:
    return f"generations/{generation:020d}.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """One generation of a context. Immutable: each change of the text makes a new generation."""

    generation: int
    """1 for the first commit at a prefix; each commit adds 1."""
    write_id: str
    """Random name of the commit, by which its writer recognises its own root after a lost reply."""
    created: str
    """ISO 8601, UTC, by the writer's clock."""
    pages: tuple[PageRef, ...] = ()
    """In the order of the text. Of a large text the first ones are directories; the last is a page."""
    final_newline: bool = False
    """Whether the text ends in a newline."""
    stored_bytes: int = 0
    """Sum of the stored lengths of all frames."""
    frame_bytes: int = 256 << 10
    """Target size of a frame of the last writer, in bytes of text."""
    codec: str = "zstd"
    """Codec of the last writer."""
    last_page: bytes | None = None
    """A copy of the last page's object where it is small (INLINE_PAGE_BYTES): it saves most texts a round trip."""
    text: bytes | memoryview = b""
    """All frames as they are stored, back to back, in base64; only with `last_page`, the one page (`inline`)."""
    head: str = ""
    """The first characters of the text: one zstd frame, in base64."""
    tail: str = ""
    """The last characters."""
    flags: int = 0
    """Flags of `index.OF_TEXT` that all frames have; 0 in contexts written before this was."""
    sources: tuple[str, ...] = ()
    """Places outside the context that hold virtual segments."""
    filters: tuple[FilterRef, ...] = ()
    """In the order of the text. Frames without a filter may hold anything."""
    filter_directories: tuple[FilterDirectory, ...] = ()
    """The filters of a large text that precede those."""
    documents: DocumentsRef | None = None
    """None: the text has no documents."""
    open_frames: int = 0
    """The number of frames at the end that the next append may merge into fewer. They are in the last page."""
    history: History = field(default_factory=History)
    """The record of earlier generations."""
    extra: dict[str, Any] = field(default_factory=dict, compare=False)
    """Unknown fields of the JSON object."""

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
        r"""Lines that end in `\n`, and one more for a last line without it."""
        return self.newlines + (1 if self.characters and not self.final_newline else 0)

    @property
    def has_directories(self) -> bool:
        """Whether anything is named by a directory: `pages`, `filters` or the pages of documents are not all."""
        of_documents = self.documents.pages if self.documents else ()
        first = (*self.pages[:1], *of_documents[:1])
        return bool(self.filter_directories) or any(hasattr(page, "level") for page in first)

    def with_floor(self, floor: int) -> Manifest:
        """A root that announces the removal of all generations below one (`History.floor`)."""
        return replace(self, history=replace(self.history, floor=floor))

    def check(self) -> None:
        """Assert the invariants listed at the top of this file; raises `DamagedData`."""
        self._assert(self.generation >= 1, f"generation {self.generation} is not positive")
        self._assert(self.codec in CODECS, f"codec {self.codec!r} is unknown")
        self._assert(1 <= self.frame_bytes <= MAX_FRAME_BYTES, f"frame_bytes {self.frame_bytes} is out of range")
        try:
            check_pages(self.pages)
            covered = check_filters(self.filters, check_filters(self.filter_directories, 0))
            last = next(reversed(self.pages), None)
            if isinstance(last, PageDirectory):
                raise ValueError("the last page is a directory")
            if self.documents:
                self.documents.check(self.text_bytes, self.characters, self.newlines)
        except ValueError as error:
            self._assert(False, str(error))
        self._assert(self.text_bytes < LIMIT and self.stored_bytes < LIMIT, "counts are out of range")
        self._assert(covered <= self.frames, f"filters cover more than {self.frames} frames")
        inline = self.last_page
        fits = inline is None or (bool(self.pages) and len(inline) == self.pages[-1].size_bytes)
        self._assert(fits, "last_page and the last page differ in length")
        is_whole = inline is not None and len(self.pages) == 1 and len(self.text) == -(-self.stored_bytes // 3) * 4
        self._assert(not self.text or is_whole, "text is not that of its one page")
        self._assert(not self.final_newline or self.newlines > 0, "a final newline, but no newline")
        self._assert(self.open_frames <= self.frames, f"{self.open_frames} open frames of {self.frames}")

    def _assert(self, holds: bool, what: str) -> None:
        if not holds:
            raise DamagedData(f"{ROOT_KEY} (generation {self.generation}): {what}")

    def to_bytes(self) -> bytes:
        """The JSON form: one line a page; the last field is a checksum of everything else."""
        root: dict[str, Any] = {
            **self.extra,
            "format": FORMAT,
            "min_reader": FORMAT,
            "requires": [DIRECTORIES] if self.has_directories else [],
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
            **({"flags": self.flags} if self.flags else {}),
            **({"text": str(self.text, "utf-8")} if self.text else {}),
            **({"head": self.head} if self.head else {}),
            **({"tail": self.tail} if self.tail else {}),
            **(
                {"filter_directories": [as_object(ref) for ref in self.filter_directories]}
                if self.filter_directories
                else {}
            ),
            **({"filters": [as_object(ref) for ref in self.filters]} if self.filters else {}),
            **({"documents": self.documents.as_object()} if self.documents else {}),
            **({"open_frames": self.open_frames} if self.open_frames else {}),
            **({"history": history} if (history := self.history.as_object()) else {}),
            "pages": [as_object(page) for page in self.pages],
        }
        root["crc32c"] = _checksum(root, self.text if _is_plain(self.text) else b"")
        lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in root.items() if key != "pages"]
        pages = ",\n".join(f"    {json.dumps(page)}" for page in root["pages"])
        lines.insert(-1, f'  "pages": [\n{pages}\n  ]' if pages else '  "pages": []')
        return ("{\n" + ",\n".join(lines) + "\n}\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes, name: str = ROOT_KEY) -> Manifest:
        """Parse and check a root; messages call it `name`.

        Raises `NotAContext` for a DeepRecurse manifest or JSON of another kind, `UnsupportedFormat` for a newer format,
        `DamagedData`.
        """
        if len(data) > MOST_ROOT_BYTES:
            raise DamagedData(f"{name}: a root of {len(data):,} bytes, at most {MOST_ROOT_BYTES:,}")
        try:
            root, found = _parse(data)
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
        if (requires := root.get("requires")) and requires != [DIRECTORIES]:
            raise UnsupportedFormat(f"{name}: needs features that this version lacks: {requires!r}: upgrade")
        if root.get("crc32c") != found:
            raise DamagedData(f"{name}: checksum differs: expected {root.get('crc32c')!r}, found {found!r}")
        try:
            manifest = cls._from_object(root)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DamagedData(f"{name}: field missing or of the wrong kind: {error!r}") from None
        manifest.check()
        return manifest

    @classmethod
    def _from_object(cls, root: dict[str, Any]) -> Manifest:
        known = {"format", "min_reader", "requires", "characters", "bytes", "newlines", "frames", "crc32c"}
        known |= set(cls.__match_args__)
        manifest = cls(
            generation=count_of(root["generation"]),
            write_id=str(root["write_id"]),
            created=str(root["created"]),
            pages=page_refs(root["pages"]),
            final_newline=bool(root["final_newline"]),
            stored_bytes=count_of(root["stored_bytes"]),
            frame_bytes=count_of(root["frame_bytes"]),
            codec=str(root["codec"]),
            last_page=base64.b64decode(root["last_page"], validate=True) if root.get("last_page") else None,
            flags=count_of(root.get("flags", 0)),
            text=text if isinstance(text := root.get("text", b""), memoryview) else str(text or "").encode(),
            head=str(root.get("head", "")),
            tail=str(root.get("tail", "")),
            filters=filter_refs(root.get("filters", ())),
            filter_directories=filter_directories(root.get("filter_directories", ())),
            open_frames=count_of(root.get("open_frames", 0)),
            sources=tuple(str(source) for source in root["sources"]),
            documents=_documents_in(root),
            history=History.from_object(root.get("history", {})),
            extra={key: value for key, value in root.items() if key not in known},
        )
        totals = (manifest.characters, manifest.text_bytes, manifest.newlines, manifest.frames)
        for name, total in zip(("characters", "bytes", "newlines", "frames"), totals, strict=True):
            if root[name] != total:
                raise ValueError(f"{name} is {root[name]!r}, the pages say {total}")
        return manifest


def _documents_in(root: dict[str, Any]) -> DocumentsRef | None:
    if not root.get("documents"):
        return None
    from monocontext.format.document_refs import documents_ref  # 2 ms that a text without documents need not pay

    return documents_ref(root["documents"])


def _parse(data: bytes) -> tuple[Any, str]:
    """The parsed JSON of a root, and its checksum. Raises `ValueError`, `RecursionError`.

    A text in a root is megabytes of base64, most of the time of an open if the parser goes through them. So the parser
    gets a placeholder for the string between two quotes, which is checked where it is, since each copy costs fresh
    pages. Where that could be wrong, with escapes or DEL, the parser gets everything.
    """
    start = data.find(_TEXT_FIELD) + len(_TEXT_FIELD)
    text = memoryview(data)[start : data.find(b'"', start)] if start >= len(_TEXT_FIELD) else memoryview(b"")
    if len(text) > _LONG_BYTES and data.isascii() and b"\x7f" not in data and b"\\" not in data:
        around = data[:start] + _STAND_IN + data[start + len(text) :]
        root = json.loads(around)
        if isinstance(root, dict) and root.get("text") == _STAND_IN.decode() and around.count(_STAND_IN) == 1:
            return root | {"text": text}, _checksum(root, text)
    root = json.loads(data)
    return root, _checksum(root) if isinstance(root, dict) else ""


def _checksum(root: dict[str, Any], text: bytes | memoryview = b"") -> str:
    """CRC-32C over the canonical form: keys sorted, no white space, ASCII only, without the field itself.

    `text` is the field of that name, where JSON holds it without an escape.
    """
    fields = {key: value for key, value in root.items() if key != "crc32c"}
    if text:
        pieces = _CANONICAL.encode(fields | {"text": _STAND_IN.decode()}).encode().split(_STAND_IN)
        if len(pieces) == 2:
            found = google_crc32c.value(pieces[0])
            for at in range(0, len(text), _AT_ONCE):  # the library takes nothing but bytes
                found = google_crc32c.extend(found, bytes(text[at : at + _AT_ONCE]))
            return f"{google_crc32c.extend(found, pieces[1]):08x}"
    return f"{google_crc32c.value(_CANONICAL.encode(fields).encode()):08x}"


def _is_plain(text: bytes | memoryview) -> bool:
    """Whether JSON holds a text without an escape, and it is long."""
    data = bytes(text)
    return len(data) > _LONG_BYTES and data.isascii() and len(data.translate(None, _ESCAPED)) == len(data)
