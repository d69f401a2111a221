"""Parse, check, write and find the root of a context: the JSON object that names its index pages and filters.

`docs/format.md` is the specification. `Manifest.check` asserts its invariants: counts rise from entry to entry and are
possible, directories come first, each frame has a column in at most one filter, and no id leads out of the context.
"""

from __future__ import annotations

import base64
import json
import re
from contextlib import suppress
from typing import Any

import google_crc32c

from monocontext.errors import DamagedData, NotAContext, NotFound, Unsupported, UnsupportedFormat
from monocontext.format import refs
from monocontext.options import check_int
from monocontext.records import NamedTuple, dataclass, field
from monocontext.stores.protocol import Store

_FORMAT = 1  # the version of the format that is written, and the newest one that is read
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
_CHECKSUM_PIECE = 64 << 10  # the most characters of a value that are encoded at once for the checksum
_TEXT_FIELD = b'\n  "text": "'
_PLACEHOLDER = b"@"  # stands for the text while the rest is parsed
_FIELDS_AFTER_BYTES = ("newlines", "final_newline", "frames", "stored_bytes", "frame_bytes", "codec")
ROOT_KEY = "manifest.json"
_GENERATION_KEY = re.compile(r"generations/(\d{20})\.json")
INLINE_PAGE_BYTES = 32 << 10
"""The most bytes of an index page in a root: some 1400 frames, 350 MB of text. Such a root has at most 45 KB."""
MOST_ROOT_BYTES = 64 << 20
"""The largest root: 100,000 pages (107 TB of text in frames of 256 KiB) take 19 MB, and their filters at most 30 MB."""
DIRECTORIES = "directories"
"""The feature that a root requires of its readers if directories name some of its pages or filters."""
_GENERATION_FIELDS = ("floor", "fence", "forgotten")  # the fields of a history that are generations, which never fall
ANCESTORS = 16
"""The number of earlier roots that a root names. A writer that was paused between requests looks for its own there."""


def generation_key(generation: int) -> str:
    return f"generations/{generation:020d}.json"


@dataclass(frozen=True, slots=True)
class History:
    """What a root records about earlier roots."""

    ancestors: tuple[str, ...] = ()
    """The first 8 digits of the `write_id` of the previous generations, the latest last."""
    floor: int = 0
    """Generations below this one may have been removed."""
    fence: int = 0
    """The newest generation that `gc` committed before it removed objects younger than its safe grace period. A writer
    must not rely on an object that it stored, or found, before that."""
    forgotten: int = 0
    """The newest generation that a `forget` committed. Earlier ones must not be restored."""

    def after(self, write_id: str, before: History) -> History:
        """This history, continued for a root after the root `write_id`, whose history is `before`."""
        ancestors = (*before.ancestors, write_id[:8])[-ANCESTORS:]
        newest = {name: max(getattr(self, name), getattr(before, name)) for name in _GENERATION_FIELDS}
        return History(ancestors, **newest)

    def descends_from(self, generation: int, write_id: str, own_generation: int) -> bool | None:
        """Whether the root `own_generation`, which has this history, descends from the root `write_id` of an earlier
        `generation`; `None` if that is too long ago to tell."""
        if generation >= self.floor:
            return True  # that root was not removed, so its number was not used twice
        distance = own_generation - generation
        if not 0 < distance <= len(self.ancestors):
            return None
        return self.ancestors[-distance] == write_id[:8]


@dataclass(frozen=True, slots=True)
class Manifest:
    """One generation of a context. Immutable: each change of the text makes a new generation."""

    generation: int
    """1 for the first commit at a prefix; each commit adds 1."""
    write_id: str
    """A random name of the commit, by which its writer recognises its own root if the response was lost."""
    created: str
    """ISO 8601, UTC, by the writer's clock."""
    pages: tuple[refs.PageRef, ...] = ()
    """The index pages, in the order of the text. In a large text the first ones are directories, the last is a page."""
    final_newline: bool = False
    """Whether the text ends in a newline."""
    stored_bytes: int = 0
    """The sum of the stored lengths of all frames."""
    frame_bytes: int = 256 << 10
    """The size of a frame that the last writer aimed for, in bytes of text."""
    codec: str = "zstd"
    """The codec of the frames of the last writer: one of `refs.CODECS`."""
    last_page: bytes | None = None
    """A copy of the last page if it has at most `INLINE_PAGE_BYTES`; it saves most texts a round trip."""
    text: str = ""
    """All frames as they are stored, end to end, in base64; only if `last_page` is the only page of the text."""
    head: str = ""
    """The first characters of the text: one zstd frame, in base64."""
    tail: str = ""
    """The last characters, in the same form."""
    flags: int = 0
    """The flags of `index.WHOLE_TEXT_FLAGS` that all frames have; 0 in contexts of older versions."""
    sources: tuple[str, ...] = ()
    """The URLs, outside the context, below which its virtual segments are."""
    filters: tuple[refs.FilterRef, ...] = ()
    """The search filters, in the order in which they were made."""
    filter_directories: tuple[refs.FilterDirectory, ...] = ()
    """Directories that name further filters of a large text, in the order of the text."""
    has_earlier_filters: bool = field(default=False, compare=False)
    """Whether the root names filters of an earlier version, which are read as absent."""
    documents: refs.DocumentsRef | None = None
    history: History = field(default_factory=History)
    extra: dict[str, Any] = field(default_factory=dict, compare=False)
    """The fields of the JSON object that this version does not know."""

    @property
    def frames(self) -> int:
        """The number of frames."""
        return self.pages[-1].frames if self.pages else 0

    @property
    def text_bytes(self) -> int:
        """The length of the text in bytes of UTF-8."""
        return self.pages[-1].bytes if self.pages else 0

    @property
    def characters(self) -> int:
        """The length of the text in characters."""
        return self.pages[-1].characters if self.pages else 0

    @property
    def newlines(self) -> int:
        """The number of newlines in the text."""
        return self.pages[-1].newlines if self.pages else 0

    @property
    def lines(self) -> int:
        r"""The number of lines that end in `\n`, and 1 more for a last line without it."""
        return self.newlines + (1 if self.characters and not self.final_newline else 0)

    @property
    def has_directories(self) -> bool:
        """Whether directories name some of the pages, filters or pages of documents."""
        document_pages = self.documents.pages if self.documents else ()
        first_pages = (*self.pages[:1], *document_pages[:1])
        return bool(self.filter_directories) or any(hasattr(page, "level") for page in first_pages)

    def check(self) -> None:
        """Raise `DamagedData` unless the invariants hold."""
        try:
            refs.require(self.generation >= 1, f"generation {self.generation} is not positive")
            refs.require(self.codec in refs.CODECS, f"codec {self.codec!r} is unknown")
            is_allowed = 1 <= self.frame_bytes <= refs.MAX_FRAME_BYTES
            refs.require(is_allowed, f"frame_bytes {self.frame_bytes} is out of range")
            refs.check_pages(self.pages)
            refs.check_filters(self.filters, self.frames)
            covered = refs.check_filter_directories(self.filter_directories)
            last = self.pages[-1] if self.pages else None
            refs.require(not isinstance(last, refs.PageDirectory), "the last page is a directory")
            if self.documents:
                self.documents.check(self.text_bytes, self.characters, self.newlines)
            refs.require(self.text_bytes < refs.LIMIT and self.stored_bytes < refs.LIMIT, "sizes exceed 2^62 bytes")
            refs.require(covered <= self.frames, f"directories of filters cover {covered} frames of {self.frames}")
            copy = self.last_page
            fits = copy is None or (last is not None and len(copy) == last.size_bytes)
            refs.require(fits, "last_page and the last page differ in length")
            base64_characters = -(-self.stored_bytes // 3) * 4  # 4 for each 3 bytes or fewer
            is_whole = copy is not None and len(self.pages) == 1 and len(self.text) == base64_characters
            refs.require(not self.text or is_whole, "text does not have the length of the only page's frames")
            refs.require(not self.final_newline or self.newlines > 0, "final_newline is true, but newlines is 0")
        except ValueError as error:
            raise DamagedData(f"{ROOT_KEY} (generation {self.generation}): {error}") from None

    def to_bytes(self) -> bytes:
        """The JSON form, with a line for each page. The last field is a checksum of all others."""
        optional = {
            "last_page": base64.b64encode(self.last_page or b"").decode(),
            "flags": self.flags,
            "text": self.text,
            "head": self.head,
            "tail": self.tail,
            "filter_directories": [refs.as_object(ref) for ref in self.filter_directories],
            "filters": [refs.as_object(ref) for ref in self.filters],
            "documents": self.documents.as_object() if self.documents else None,
            "history": {name: value for name, value in refs.as_object(self.history).items() if value},
        }
        root: dict[str, Any] = {
            **self.extra,
            "format": _FORMAT,
            "min_reader": _FORMAT,
            "requires": [DIRECTORIES] if self.has_directories else [],
            **{name: getattr(self, name) for name in ("generation", "write_id", "created", "characters")},
            "bytes": self.text_bytes,
            **{name: getattr(self, name) for name in _FIELDS_AFTER_BYTES},
            "sources": list(self.sources),
            **{name: value for name, value in optional.items() if value},
            "pages": [refs.as_object(page) for page in self.pages],
        }
        root["crc32c"] = checksum(root)
        lines = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in root.items() if name != "pages"]
        pages = ",\n".join(f"    {json.dumps(page)}" for page in root["pages"])
        lines.insert(-1, f'  "pages": [\n{pages}\n  ]' if pages else '  "pages": []')
        return ("{\n" + ",\n".join(lines) + "\n}\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes, name: str = ROOT_KEY) -> Manifest:
        """Parse and check a root, which messages call `name`. Raises `NotAContext` for a DeepRecurse manifest or other
        JSON, `UnsupportedFormat` for a newer format, and `DamagedData` for a root that is damaged or not JSON."""
        if len(data) > MOST_ROOT_BYTES:
            raise DamagedData(f"{name}: the root has {len(data):,} bytes, at most {MOST_ROOT_BYTES:,} are allowed")
        try:
            root = _parse_json(data)
            computed = checksum(root) if isinstance(root, dict) else ""
        except (ValueError, RecursionError) as error:
            raise DamagedData(f"{name}: expected a JSON object, found {data[:40]!r} ({error})") from None
        if isinstance(root, list):
            raise NotAContext(
                f'{name}: a DeepRecurse manifest, which counts lines: open it with unit="lines", or make a context in '
                f"characters at another prefix with `monocontext index`"
            )
        if not isinstance(root, dict) or "format" not in root:
            raise NotAContext(f'{name}: JSON, but not the manifest of a context (no field "format")')
        min_reader = root.get("min_reader", root["format"])
        if not isinstance(min_reader, int) or min_reader > _FORMAT:
            raise UnsupportedFormat(
                f"{name}: has format {min_reader!r} (this version reads formats up to {_FORMAT}): upgrade monocontext"
            )
        requires = root.get("requires")
        if requires and requires != [DIRECTORIES]:
            raise UnsupportedFormat(
                f"{name}: needs the features {requires!r}, and this version lacks some of them: upgrade monocontext"
            )
        if root.get("crc32c") != computed:
            raise DamagedData(f"{name}: crc32c differs: expected {root.get('crc32c')!r}, found {computed!r}")
        try:
            manifest = cls._from_object(root)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DamagedData(f"{name}: a field is missing or has the wrong type: {error!r}") from None
        manifest.check()
        return manifest

    @classmethod
    def _from_object(cls, root: dict[str, Any]) -> Manifest:
        """The manifest of a JSON object. Raises errors of any type for a missing field or a wrong value."""
        known = {"format", "min_reader", "requires", "characters", "bytes", "newlines", "frames", "crc32c"}
        known |= {*cls.__match_args__, "open_frames"}  # the fields of this class, and one of earlier versions
        filters = refs.parse_filters(root.get("filters", ()))
        has_earlier_filters = len(filters) < len(root.get("filters", ()))
        # Directories of a root with filters of an earlier version name such filters too.
        directories = () if has_earlier_filters else root.get("filter_directories", ())
        fields: dict[str, Any] = {name: str(root[name]) for name in ("write_id", "created", "codec")}
        fields |= {name: refs.count_of(root[name]) for name in ("generation", "stored_bytes", "frame_bytes")}
        fields |= {name: str(root.get(name, "")) for name in ("text", "head", "tail")}
        history = root.get("history", {})
        generations = {name: refs.count_of(history.get(name, 0)) for name in _GENERATION_FIELDS}
        manifest = cls(
            **fields,
            pages=refs.parse_entries(root["pages"], refs.PageRef, refs.PageDirectory),
            flags=refs.count_of(root.get("flags", 0)),
            filters=filters,
            has_earlier_filters=has_earlier_filters,
            filter_directories=refs.parse_entries(directories, refs.FilterDirectory, refs.FilterDirectory),
            final_newline=bool(root["final_newline"]),
            last_page=base64.b64decode(root["last_page"], validate=True) if root.get("last_page") else None,
            sources=tuple(str(source) for source in root["sources"]),
            documents=refs.parse_documents(root["documents"]) if root.get("documents") else None,
            history=History(tuple(map(str, history.get("ancestors", ()))), **generations),
            extra={key: value for key, value in root.items() if key not in known},
        )
        totals = (manifest.characters, manifest.text_bytes, manifest.newlines, manifest.frames)
        for name, total in zip(("characters", "bytes", "newlines", "frames"), totals, strict=True):
            if root[name] != total:
                raise ValueError(f"{name} is {root[name]!r}, but the pages add up to {total}")
        return manifest


def _parse_json(data: bytes) -> Any:
    """The JSON value of a root. The copy of its text, megabytes of base64, is cut out first, to save time."""
    start = data.find(_TEXT_FIELD) + len(_TEXT_FIELD)
    stop = data.find(b'"', start)
    if start >= len(_TEXT_FIELD) and stop >= 0 and data.find(b"\\", start, stop) < 0:
        without_text = data[:start] + _PLACEHOLDER + data[stop:]
        root = json.loads(without_text)
        # Another placeholder could be the text field of an inner object.
        is_only_one = without_text.count(b'"%b"' % _PLACEHOLDER) == 1
        if is_only_one and isinstance(root, dict) and root.get("text") == _PLACEHOLDER.decode():
            return root | {"text": str(memoryview(data)[start:stop], "utf-8")}
    return json.loads(data)


def checksum(root: dict[str, Any]) -> str:
    """The CRC-32C of the canonical form: keys sorted, no white space, ASCII only, without the field `crc32c`."""
    crc = google_crc32c.value(b"{")
    separator = ""
    for name in sorted(root.keys() - {"crc32c"}):
        value = root[name]
        crc = google_crc32c.extend(crc, f"{separator}{_CANONICAL.encode(name)}:".encode())
        if isinstance(value, str):
            crc = google_crc32c.extend(crc, b'"')
            for start in range(0, len(value), _CHECKSUM_PIECE):  # fresh memory for megabytes at once takes milliseconds
                piece = value[start : start + _CHECKSUM_PIECE]
                data = piece.encode("utf-8", "surrogatepass")
                if data.translate(None, _BASE64):  # long values are base64, which has nothing to escape
                    data = _CANONICAL.encode(piece)[1:-1].encode()
                crc = google_crc32c.extend(crc, data)
            crc = google_crc32c.extend(crc, b'"')
        else:
            crc = google_crc32c.extend(crc, _CANONICAL.encode(value).encode())
        separator = ","
    return f"{google_crc32c.extend(crc, b'}'):08x}"


# -- the roots of a store: readers call `find_root`, writers `read_newest`, `gc` and `history` `listed_generations` ----


class Root(NamedTuple):
    """A root, and the cost of reading it."""

    manifest: Manifest
    read_bytes: int
    gets: int


def find_root(store: Store, generation: int | None = None) -> Root:
    """Read the root of a generation, by default the newest. Raises `NotFound`, `NotAContext`, `DamagedData`, or
    `UnsupportedFormat`.

    Cost: 1 GET; 1 GET more if the root is damaged; 1 LIST and 1 GET more if `manifest.json` is missing."""
    if generation is not None:
        try:
            return _read_root(store, generation_key(check_int("generation", generation, 0)), generation)
        except NotFound:
            raise NotFound(f"no generation {generation} at {store.url}: `monocontext history` lists them") from None
    try:
        return _read_root(store, ROOT_KEY)
    except NotFound:
        root = None
        with suppress(Unsupported):  # web servers cannot list
            root = _read_newest_listed(store)  # raises its own error if even the bucket is missing
        if root is None:
            raise NotFound(f"no context at {store.url}: no text is stored there") from None
        return root._replace(gets=root.gets + 1)


def read_generation(store: Store, generation: int) -> Manifest:
    """Read one root by its number (1 GET). Raises `NotFound` if it was never committed, or `gc` removed it."""
    return find_root(store, generation).manifest


def read_newest_after(store: Store, manifest: Manifest) -> Manifest:
    """Read the newest root, given one that may be older (1 GET, and 1 for each generation in between)."""
    while True:
        try:
            manifest = find_root(store, manifest.generation + 1).manifest
        except NotFound:
            return manifest


def read_newest(store: Store) -> Manifest | None:
    """Read the newest root for a writer; `None` at an empty prefix (2 requests, and 1 for each generation after the one
    in `manifest.json`). Raises `NotAContext` and `UnsupportedFormat` for what a writer must not overwrite."""
    try:
        copy = _read_root(store, ROOT_KEY).manifest
    except UnsupportedFormat:  # also a `DamagedData`
        raise
    except (NotFound, DamagedData) as error:
        listed = _read_newest_listed(store)
        if listed is None and isinstance(error, DamagedData):
            raise
        return listed.manifest if listed else None
    return read_newest_after(store, copy)


def _read_newest_listed(store: Store) -> Root | None:
    """Read the newest of the stored roots (1 LIST for each thousand, 1 GET); `None` if there is none."""
    numbers = listed_generations(store)
    return _read_root(store, generation_key(numbers[-1]), numbers[-1]) if numbers else None


def listed_generations(store: Store) -> list[int]:
    """The numbers of the stored roots, rising (1 LIST for each thousand). Objects with other names are skipped."""
    numbers = (generation_in(info.key) for info in store.list("generations/"))
    return sorted(number for number in numbers if number is not None)


def generation_in(key: str) -> int | None:
    """The number in the key of a root; `None` for another key."""
    match = _GENERATION_KEY.fullmatch(key)
    return int(match[1]) if match else None


def _read_root(store: Store, key: str, generation: int | None = None) -> Root:
    """Read one root, and once more if the response is damaged or not a root: the stored object may be intact. Raises
    `DamagedData` if its generation is not that of its key: else a search for the newest might never end."""
    data, read_bytes = b"", 0
    for gets in (1, 2):
        try:
            data = store.get(key, most_bytes=MOST_ROOT_BYTES).data
            read_bytes += len(data)
            root = Manifest.from_bytes(data, f"{store.url}/{key}")
            if generation is not None and root.generation != generation:
                raise DamagedData(f"{store.url}/{key}: expected generation {generation}, found {root.generation}")
            return Root(root, read_bytes, gets)
        except (DamagedData, NotAContext) as error:
            is_deeprecurse = isinstance(error, NotAContext) and data.lstrip().startswith(b"[")
            if gets == 2 or is_deeprecurse:
                raise
    raise AssertionError("unreachable")
