"""The sources of a sync: files of folders, files of a git commit, objects of a store, and pages of the web."""

from __future__ import annotations

import http.client
import os
import re
import string
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Protocol

from monocontext import records
from monocontext.engine.fetch.threads import in_threads
from monocontext.errors import AccessDenied, InvalidText, NotFound, StoreFailure
from monocontext.options import StoreOptions
from monocontext.stores.protocol import ObjectInfo, Store
from monocontext.stores.regular_file import open_file
from monocontext.writing.decoding import HEAD_BYTES, is_binary, read_stream
from monocontext.writing.document_names import displayable, file_names
from monocontext.writing.folder import Folder
from monocontext.writing.input_options import InputOptions
from monocontext.writing.inputs import is_text
from monocontext.writing.place import open_store_at

_REQUESTS = 8
_PAGE_SECONDS = 60.0
"""The longest wait for the next bytes of a page."""
_WEB = ("https://", "http://")


class Source(Protocol):
    """A file, an object or a page that is to be a document."""

    name: str
    facts: dict[str, Any]
    """What the document's metadata record: `file`, which differs if the file has changed, and `url`, its web address if
    the name is not one. `text` updates the facts of a page."""
    is_certain: bool
    """Whether equal facts mean an equal text."""

    def is_text(self, options: InputOptions) -> bool:
        """Whether an upload would take it."""
        ...

    def text(self, options: InputOptions) -> str | None:
        """Its text; None if an upload leaves the file out."""
        ...


def find_sources(
    given: list[str | os.PathLike[str]],
    options: InputOptions,
    *,
    ignored: bool,
    commit: str | None,
    own: str,
    store_options: StoreOptions | None,
    stack: ExitStack,
) -> Iterator[Source]:
    """Yield the files below paths, the objects of stores and the pages of web addresses in `given`, as far as `options`
    select their names; objects of the context at `own` are left out.

    `ignored`: also files that git ignores. `commit`: files as they were at that commit. `stack` closes what the sources
    need. Raises `NotFound` for a missing one.
    """
    places = [each for each in given if isinstance(each, str) and "://" in each]
    paths = [Path(each) for each in given if each not in places]
    if commit is not None and places:
        raise ValueError(f"a commit needs a git repository on this machine, not {places[0]}")
    for path, prefix in file_names(paths, options):
        if commit is not None:
            yield from _commit_files(path, prefix, commit, options, stack)
        elif not path.is_dir():
            yield _File(prefix, str(path), None, "")
        else:
            folder = Folder(path, follow_links=options.follow_links)
            wanted = None if ignored else _not_ignored(path)
            for name in folder.files():
                if (wanted is None or name in wanted) and options.selects(name):
                    yield _File(displayable(prefix + name), os.path.join(folder.path, name), folder, name)
    pages = [place for place in places if place.startswith(_WEB)]
    yield from in_threads(_Page, pages, _REQUESTS, "monocontext-pages")
    for place in places:
        if place in pages:
            continue
        store = stack.enter_context(open_store_at(place, store_options))
        found = [
            _Object(store, info)
            for info in store.list()
            if options.selects(info.key) and not f"{store.url.rstrip('/')}/{info.key}".startswith(own.rstrip("/") + "/")
        ]
        if not found:
            raise NotFound(f"{place}: no object there to sync")
        yield from found


class _File:
    """A file, in a folder or named by itself."""

    is_certain = True

    def __init__(self, name: str, path: str, folder: Folder | None, relative: str) -> None:
        self.name = name
        self._path, self._folder, self._relative = path, folder, relative
        found = os.stat(path)
        self.facts: dict[str, Any] = {"file": {"bytes": found.st_size, "modified_ns": found.st_mtime_ns}}

    def is_text(self, options: InputOptions) -> bool:
        return self._folder is None or is_text(self._folder, self._relative, options)

    def text(self, options: InputOptions) -> str | None:
        if not self.is_text(options):
            return None
        with self._folder.open(self._relative) if self._folder else open_file(self._path) as file:
            return b"".join(data for data, _ in read_stream(file, self._path, options)).decode()


class _Object:
    """An object of a store."""

    is_certain = True

    def __init__(self, store: Store, info: ObjectInfo) -> None:
        self.name = info.key
        self._store, self._size_bytes = store, info.size_bytes
        self.facts: dict[str, Any] = {"file": {"bytes": info.size_bytes, "etag": info.etag}}

    def is_text(self, options: InputOptions) -> bool:
        if options.errors == "skip":
            return self.text(options) is not None
        head = min(HEAD_BYTES, self._size_bytes)
        return not is_binary(self._store.get_range(self.name, 0, head).data if head else b"", options.encoding)

    def text(self, options: InputOptions) -> str | None:
        return _decode(self._store.get(self.name).data, self.name, options)


# -- pages -------------------------------------------------------------------------------------------------------------


class _Page:
    """A page of the web, or any file that a server of it sends; named by its address."""

    def __init__(self, url: str) -> None:
        """Asks the server for its headers (1 HEAD)."""
        if "@" in urllib.parse.urlsplit(url).netloc:
            raise ValueError("an address here may not hold a user or a password: it would be stored as a name")
        self.name = self._url = url
        try:
            self._note(_request(url, "HEAD")[0])
        except StoreFailure:  # some servers answer only GET, so ask with that
            self._note(http.client.HTTPMessage())

    def _note(self, headers: http.client.HTTPMessage) -> None:
        known = {"etag": headers["ETag"], "modified": headers["Last-Modified"], "bytes": headers["Content-Length"]}
        self.facts: dict[str, Any] = {"file": {name: value for name, value in known.items() if value}}
        self.is_certain = bool(known["etag"] or known["modified"])

    def is_text(self, options: InputOptions) -> bool:
        return self.text(options) is not None

    def text(self, options: InputOptions) -> str | None:
        headers, data = _request(self._url, "GET")
        self._note(headers)
        charset = headers.get_content_charset()
        return _decode(data, self._url, records.replace(options, encoding=charset) if charset else options)


def _request(url: str, method: str) -> tuple[http.client.HTTPMessage, bytes]:
    """The headers and the body of a page. Raises `NotFound`, `AccessDenied` and `StoreFailure`, which name the page."""
    ascii_url = urllib.parse.quote(url, safe=string.punctuation)
    headers = {"User-Agent": "monocontext", "Accept": "text/*, */*"}
    try:
        request = urllib.request.Request(ascii_url, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=_PAGE_SECONDS) as response:
            if url.startswith("https:") and not response.url.startswith("https:"):
                raise AccessDenied(f"{url} leads to {response.url}, which is not encrypted")
            data = response.read()
            if method == "GET" and response.headers["Content-Encoding"] not in (None, "identity"):
                raise StoreFailure(
                    f"{url}: the server sent {response.headers['Content-Encoding']}, which was not asked for"
                )
            return response.headers, data
    except urllib.error.HTTPError as error:
        error.close()
        kinds = {404: NotFound, 410: NotFound, 401: AccessDenied, 403: AccessDenied}
        raise kinds.get(error.code, StoreFailure)(f"{url}: the server answered {error.code} {error.reason}") from None
    except http.client.IncompleteRead as error:
        raise StoreFailure(f"{url}: the page broke off after {len(error.partial):,} bytes") from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise StoreFailure(f"{url}: {reason}") from None


def _decode(data: bytes, name: str, options: InputOptions) -> str | None:
    """The text of some bytes; None if an upload leaves them out."""
    if is_binary(data[:HEAD_BYTES], options.encoding):
        return None
    try:
        return b"".join(text for text, _ in read_stream(BytesIO(data), name, options)).decode()
    except InvalidText:
        if options.errors != "skip":
            raise
        options.note(f"left out {name}, which is not {options.encoding}")
        return None


# -- git ---------------------------------------------------------------------------------------------------------------

_GIT = ["git", "-c", "core.fsmonitor=false"]
"""A repository's own configuration may name a program as its file monitor; nothing of it is run here."""
_GIT_ENVIRONMENT = {"GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}


_REMOTE = re.compile(r"(?:(?:https?|ssh|git)://(?:[^/@]*@)?(?P<host>[\w.-]+)(?::\d+)?/|(?:[^/@:]*@)?(?P<scp>[\w.-]+):)"
                     r"(?P<path>[^?#\s]+?)(?:\.git)?/?")  # fmt: skip
"""An address of a repository, as `https://host/path.git` or `git@host:path.git`."""
_SITES = {
    "github.": "blob/{}",
    "gitlab.": "-/blob/{}",
    "bitbucket.org": "src/{}",
    "codeberg.org": "src/commit/{}",
    "gitea.": "src/commit/{}",
}
"""Between the address of a repository and the path of a file, at a commit."""


def _git(path: Path, *arguments: str) -> bytes:
    """What a git command prints. Raises `NotFound`, with git's own reason."""
    try:
        command = [*_GIT, "-C", str(path), *arguments]
        found = subprocess.run(command, capture_output=True, env={**os.environ, **_GIT_ENVIRONMENT})
    except OSError as error:
        raise NotFound(f"{path}: git cannot be run: {error}") from None
    if found.returncode:
        raise NotFound(f"{path}: {os.fsdecode(found.stderr).strip() or 'git failed'}")
    return found.stdout


def _not_ignored(path: Path) -> set[str] | None:
    """The files of a git repository that git does not ignore; None for another folder."""
    if not (path / ".git").exists():
        return None
    try:
        listed = _git(path, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    except NotFound as error:
        raise NotFound(f"{error}; `ignored` takes all files") from None
    return {os.fsdecode(name) for name in listed.split(b"\0") if name}


def _commit_files(path: Path, prefix: str, commit: str, options: InputOptions, stack: ExitStack) -> Iterator[Source]:
    """The files below a folder of a git repository as they were at a commit; no links and no submodules."""
    if not path.is_dir():
        raise NotFound(f"{path} is a file: a commit is one of a git repository, or of a folder in one")
    number = _git(path, "rev-parse", "--verify", "--end-of-options", f"{commit}^{{commit}}").split()[-1].decode()
    listed = _git(path, "ls-tree", "-r", "-z", "--long", number)
    blobs = stack.enter_context(_Blobs(path))
    address = _web_address(path, number)
    for row in listed.split(b"\0"):
        if not row:
            continue
        about, _, raw = row.partition(b"\t")
        mode, _, blob, size = about.split()
        name = os.fsdecode(raw)
        if mode.startswith(b"100") and options.selects(name):
            url = f"{address}{urllib.parse.quote(raw)}" if address else None
            yield _Blob(displayable(prefix + name), blobs, blob.decode(), int(size), url)


def _web_address(path: Path, commit: str) -> str | None:
    """The address of a folder at a commit, from the remote `origin`; the names of its files are appended. None without
    a remote, or for an unknown site. Users and passwords of the remote are left out."""
    try:
        remote = _git(path, "remote", "get-url", "origin").decode().strip()
        folder = _git(path, "rev-parse", "--show-prefix").rstrip(b"\n")
    except NotFound:
        return None
    found = _REMOTE.fullmatch(remote)
    if found is None:
        return None
    host, repository = (found["host"] or found["scp"]).lower(), urllib.parse.quote(found["path"], safe="/%")
    form = next((form for site, form in _SITES.items() if site in host), None)
    return form and f"https://{host}/{repository}/{form.format(commit)}/{urllib.parse.quote(folder)}"


class _Blobs:
    """One `git cat-file` that prints the contents of files. Safe for use by many threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def __enter__(self) -> _Blobs:
        self._process = subprocess.Popen(
            [*_GIT, "-C", str(self._path), "cat-file", "--batch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **_GIT_ENVIRONMENT},
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def read(self, blob: str) -> bytes:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        with self._lock:
            try:
                stdin.write(f"{blob}\n".encode())
                stdin.flush()
                return _read_blob(stdout)
            except (OSError, ValueError) as error:
                raise NotFound(f"{self._path}: git cannot read {blob}: {error}") from None


def _read_blob(output: IO[bytes]) -> bytes:
    head = output.readline().split()
    if len(head) != 3:
        raise ValueError(b" ".join(head).decode() or "git ended early")
    data = output.read(int(head[2]) + 1)  # a newline follows
    if len(data) != int(head[2]) + 1:
        raise ValueError("git ended early")
    return data[:-1]


class _Blob:
    """A file at a commit."""

    is_certain = True

    def __init__(self, name: str, blobs: _Blobs, blob: str, size_bytes: int, url: str | None) -> None:
        self.name = name
        self._blobs, self._blob = blobs, blob
        self.facts: dict[str, Any] = {"file": {"bytes": size_bytes, "git": blob}} | ({"url": url} if url else {})

    def is_text(self, options: InputOptions) -> bool:
        return self.text(options) is not None

    def text(self, options: InputOptions) -> str | None:
        return _decode(self._blobs.read(self._blob), self.name, options)
