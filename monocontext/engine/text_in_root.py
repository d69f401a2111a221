"""Read a small text from the copy that its root object holds, without a request."""

from __future__ import annotations

from monocontext.errors import DamagedData
from monocontext.format.index import Page
from monocontext.format.inline import text_in
from monocontext.format.manifest import Manifest
from monocontext.records import NamedTuple, replace
from monocontext.stores.protocol import Blob, CopyKeeper, RangeReader


class CopiedRun(NamedTuple):
    """Bytes [start, stop) of an object, and the first byte of their copy in the stored text of the root."""

    object: str
    start: int
    stop: int
    copy_start: int


class TextInRoot:
    """A store that answers from the copy of the text in a root, and asks another store for everything else.

    The reader verifies these answers like any other. Once the copy turns out to be damaged, it is no longer used. Safe
    for use by many threads.
    """

    def __init__(self, store: RangeReader, manifest: Manifest) -> None:
        """Raises `DamagedData` if the index page in the root is damaged."""
        self.store = store
        self._manifest = manifest
        self._runs = _copied_runs(manifest)

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        """Read a range, like `RangeReader.get_range` (no request if the root has a copy)."""
        for run in self._runs:
            if run.object == key and run.start <= start and start + length <= run.stop:
                first = run.copy_start + start - run.start
                try:
                    data = text_in(self._manifest, first, first + length)
                except DamagedData:
                    self._runs = []
                    break
                return Blob(data, "", run.stop, local=True, in_root=True)
        return self.store.get_range(key, start, length, etag=etag)

    def forget(self, key: str, start: int, length: int, *, etag: str | None = None) -> None:
        """Stop using the copy, because these bytes were damaged."""
        self._runs = []
        if isinstance(self.store, CopyKeeper):
            self.store.forget(key, start, length, etag=etag)

    def close(self) -> None:
        """Release the memory of the copy."""
        self._runs, self._manifest = [], replace(self._manifest, text="")


def _copied_runs(root: Manifest) -> list[CopiedRun]:
    """The runs of the only index page of a small text, and where their copies begin. The copies lie end to end."""
    assert root.last_page is not None  # by `Manifest.check`
    page = Page(root.last_page, root.pages[-1], None)
    results: list[CopiedRun] = []
    frames = 0
    for run in page.runs:
        copy_start, copy_stop = page.stored_starts[frames], page.stored_starts[frames + run.frames]
        results.append(CopiedRun(run.object, run.offset, run.offset + copy_stop - copy_start, copy_start))
        frames += run.frames
    return results
