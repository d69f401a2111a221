"""Find the documents of a text by number, character or name, and fetch the pages of their records on demand."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property

from monocontext.engine.fetch.cache import CachedBytes
from monocontext.engine.fetch.fetcher import Fetcher
from monocontext.engine.fetch.requests import FetchItem
from monocontext.errors import DamagedData
from monocontext.format.directories import Directory, expand_documents
from monocontext.format.document_names import bucket_bytes, bucket_of, check_bucket, find_in_bucket, name_hash
from monocontext.format.documents import Document, DocumentPage
from monocontext.format.refs import DocumentPageRef, DocumentsRef, NameTableRef, documents_key

_MOST_AHEAD = 16  # the most pages that are fetched at once: 65,536 documents, some 10 MB in memory
_PAGE_GROWTH = 8  # a page takes some 8 times its stored bytes in memory, since it is compressed
_OBJECT_OVERHEAD_BYTES = 200  # the memory that the Python objects around cached bytes take


class DocumentTable:
    """The documents of one text: none, unless a subclass loads their pages. Safe for use by many threads."""

    def __init__(
        self, last: DocumentPageRef | None = None, *, name_count: int | None = 0, first_duplicate: int | None = None
    ):
        """- `last`: the entry of the last page; None for a text without documents
        - `name_count`: the number of distinct names; None if it is not known
        - `first_duplicate`: the first document with the name of an earlier one of the same upload, if any
        """
        self.count, self.text_bytes = (last.documents, last.bytes) if last else (0, 0)
        self.name_count, self.first_duplicate = name_count, first_duplicate
        self._last: DocumentPage | None = None  # the page that was used last
        self._ahead: dict[int, DocumentPage] = {}  # pages that were fetched with the page before them, by number
        self._expected_page = -1  # the page after those fetched last: a caller that wants it reads in order
        self._group_size = 1  # the number of pages that the last fetch asked for

    def _load_page_refs(self) -> Sequence[DocumentPageRef]:
        """The entries of all pages, in order."""
        return ()

    def _load_pages(self, numbers: Sequence[int]) -> list[DocumentPage]:
        """Pages by number; those that are not in memory are fetched together."""
        return []

    def find(self, name: str) -> int | None:
        """The number of the last document named `name`; None if there is none."""
        return None

    @cached_property
    def page_refs(self) -> Sequence[DocumentPageRef]:
        """The entries of all pages (above 8 million documents 1 GET for each directory of them)."""
        return self._load_page_refs()

    @cached_property
    def _counts(self) -> list[int]:
        """For each page, the number of documents up to its end."""
        return [page.documents for page in self.page_refs]

    @cached_property
    def _ends(self) -> list[int]:
        """For each page, the first character after its last document."""
        return [page.characters for page in self.page_refs]

    def page(self, number: int) -> DocumentPage:
        """A page by its number (at most 1 GET; a pass over the pages fetches up to 16 at once)."""
        result = self._ahead.pop(number, None)
        if result is not None:
            return result
        self._group_size = min(2 * self._group_size, _MOST_AHEAD) if number == self._expected_page else 1
        numbers = range(number, min(number + self._group_size, len(self.page_refs)))
        page, *later_pages = self._load_pages(numbers)
        self._ahead = dict(zip(numbers[1:], later_pages, strict=True))
        self._expected_page = numbers.stop
        return page

    def pages(self) -> Iterator[DocumentPage]:
        """All pages, in order (1 GET each, up to 16 at once)."""
        return map(self.page, range(len(self.page_refs)))

    def page_of_document(self, number: int) -> DocumentPage:
        """The page with the record of a document (GETs: see `page`)."""
        page = self._last
        if page is None or not 0 <= number - page.first < len(page):
            page = self._last = self.page(bisect_right(self._counts, number))
        return page

    def document(self, number: int) -> Document:
        """The record of a document (GETs: see `page`)."""
        page = self.page_of_document(number)
        return page[number - page.first]

    def first_ending_after(self, characters: Sequence[int]) -> list[int]:
        """For each character, the first document that ends after it; `count` if none does (1 GET for each page)."""
        by_page: dict[int, list[int]] = {}
        for character in characters:
            by_page.setdefault(bisect_right(self._ends, character), []).append(character)
        by_page.pop(len(self.page_refs), None)
        pages, results = list(by_page), dict[int, int]()
        for i in range(0, len(pages), _MOST_AHEAD):
            for page, number in zip(self._load_pages(pages[i : i + _MOST_AHEAD]), pages[i:], strict=False):
                for character in by_page[number]:
                    results[character] = page.first + page.first_ending_after(character)
        return [results.get(character, self.count) for character in characters]


def _fetch_directory(ref: Directory, fetcher: Fetcher) -> bytes:
    """The stored bytes of a directory (1 GET)."""

    def decode(body: memoryview) -> CachedBytes:
        return CachedBytes(bytes(body), len(body) + _OBJECT_OVERHEAD_BYTES)

    item = FetchItem(("directory", ref.id), ref.key, 0, ref.size_bytes, ref.size_bytes, decode)
    result: CachedBytes = fetcher.fetch_one(item)
    return result.body


class StoredDocuments(DocumentTable):
    """The documents of a stored text. Making this takes no GET."""

    def __init__(self, ref: DocumentsRef, fetcher: Fetcher):
        has_one_table = len(ref.names) == 1 and ref.named == ref.documents
        name_count = ref.names[0].names if has_one_table else None
        super().__init__(ref.pages[-1], name_count=name_count, first_duplicate=ref.doubled)
        self._ref = ref
        self._fetcher = fetcher
        self._inline_page: DocumentPage | None = None  # the last page, if the root holds it
        self._numbers_by_page: dict[int, dict[bytes, int]] = {}
        """The numbers of documents by name, for each page that no stored table of names covers."""
        if ref.last_page is not None:
            before = ref.pages[-2] if len(ref.pages) > 1 else None
            self._inline_page = DocumentPage(ref.last_page, ref.pages[-1], before)

    def _load_page_refs(self) -> Sequence[DocumentPageRef]:
        """The entries of all pages (1 GET for each directory of them)."""
        return expand_documents(self._ref, lambda directory: _fetch_directory(directory, self._fetcher)).pages

    def _load_pages(self, numbers: Sequence[int]) -> list[DocumentPage]:
        """Pages by number (1 GET for each that is not in memory, in parallel). Raises `ContextClosed`."""
        last = len(self.page_refs) - 1 if self._inline_page else -1
        self._fetcher.check_open()
        wanted = [number for number in numbers if number != last]
        pages = dict(zip(wanted, self._fetcher.fetch_all([self._page_item(number) for number in wanted]), strict=True))
        if self._inline_page:
            pages[last] = self._inline_page
        return [pages[number] for number in numbers]

    def find(self, name: str) -> int | None:
        """The number of the last document named `name`, or None (at most 2 GETs if one upload stored all documents)."""
        raw_name = name.encode("utf-8", "surrogatepass")
        document = self._find_in_pages(raw_name)
        return self._find_in_tables(raw_name) if document is None else document

    def _find_in_pages(self, raw_name: bytes) -> int | None:
        """The last document with this name among those that no table of names covers, or None (1 GET for each page)."""
        refs = self.page_refs
        for number in range(len(refs) - 1, -1, -1):
            if refs[number].documents <= self._ref.named:
                break
            if number not in self._numbers_by_page:
                page = self.page(number)
                self._numbers_by_page[number] = {page.raw_name(i): page.first + i for i in range(len(page))}
            document = self._numbers_by_page[number].get(raw_name)
            if document is not None:
                return document
        return None

    def _find_in_tables(self, raw_name: bytes) -> int | None:
        """The last document with this name in the tables of names; None if there is none (1 GET for each table, 1 for
        the page of the document). Raises `DamagedData` if the document has another name."""
        hashed, tables = name_hash(raw_name), self._ref.names
        buckets = self._fetcher.fetch_all([_bucket_item(table, bucket_of(hashed, table)) for table in tables])
        for table, bucket in zip(reversed(tables), reversed(buckets), strict=True):
            document = find_in_bucket(bucket.body, hashed)
            if document is None:
                continue
            page = self.page_of_document(document) if document < self.count else None
            if page is None or page.raw_name(document - page.first) != raw_name:
                shown = raw_name.decode("utf-8", "surrogatepass")
                found = f"only {self.count} documents" if page is None else repr(page[document - page.first].name)
                problem = f"expected document {document} to be {shown!r}, found {found}"
                raise DamagedData(f"{documents_key(table.id)}: {problem}; `monocontext verify` lists all damage")
            return document
        return None

    def _page_item(self, number: int) -> FetchItem:
        refs = self.page_refs
        ref, before = refs[number], refs[number - 1] if number else None
        return FetchItem(
            ("documents", number), documents_key(ref.id), 0, ref.size_bytes, _PAGE_GROWTH * ref.size_bytes,
            lambda body: DocumentPage(bytes(body), ref, before),
        )  # fmt: skip


def _bucket_item(table: NameTableRef, bucket: int) -> FetchItem:
    length = bucket_bytes(table)

    def decode(body: memoryview) -> CachedBytes:
        return CachedBytes(check_bucket(bytes(body), bucket, table), length + _OBJECT_OVERHEAD_BYTES)

    return FetchItem(("names", table.id, bucket), documents_key(table.id), bucket * length, length, length, decode)
