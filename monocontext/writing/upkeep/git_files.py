"""Files of a git commit as sources of a sync, and the files that git does not ignore."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from monocontext.errors import NotFound
from monocontext.writing.document_names import displayable
from monocontext.writing.input_options import InputOptions
from monocontext.writing.upkeep.sync_source import decode_source

_GIT = ["git", "-c", "core.fsmonitor=false"]
"""The configuration of a repository may name a program to run as file monitor: without it git runs no foreign code."""
_GIT_ENVIRONMENT = {"GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}
_REMOTE = re.compile(r"(?:(?:https?|ssh|git)://(?:[^/@]*@)?(?P<host>[\w.-]+)(?::\d+)?/|(?:[^/@:]*@)?(?P<ssh_host>[\w.-]+):)"
                     r"(?P<path>[^?#\s]+?)(?:\.git)?/?")  # fmt: skip
"""An address of a repository, as `https://host/path.git` or `git@host:path.git`."""
_SITES = {
    "github.": "blob/{}",
    "gitlab.": "-/blob/{}",
    "bitbucket.org": "src/{}",
    "codeberg.org": "src/commit/{}",
    "gitea.": "src/commit/{}",
}
"""The part of a file's web address between the repository and the path, by a part of the host; {} is the commit."""


def _git(path: Path, *arguments: str) -> bytes:
    """Run a git command and return its output. Raises `NotFound`, with the reason that git prints."""
    try:
        command = [*_GIT, "-C", str(path), *arguments]
        found = subprocess.run(command, capture_output=True, env={**os.environ, **_GIT_ENVIRONMENT})
    except OSError as error:
        raise NotFound(f"{path}: git cannot be run: {error}") from None
    if found.returncode:
        raise NotFound(f"{path}: {os.fsdecode(found.stderr).strip() or 'git failed'}")
    return found.stdout


def not_ignored(path: Path) -> set[str] | None:
    """The paths of files in a git repository that git does not ignore. None for a folder that is no repository."""
    if not (path / ".git").exists():
        return None
    try:
        listed = _git(path, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    except NotFound as error:
        raise NotFound(f"{error}; ignored=True (--no-ignore) takes all files without asking git") from None
    return {os.fsdecode(name) for name in listed.split(b"\0") if name}


def commit_files(path: Path, prefix: str, commit: str, options: InputOptions, stack: ExitStack) -> Iterator[GitFile]:
    """Yield the files below a folder of a git repository as they were at a commit, without links and submodules."""
    if not path.is_dir():
        raise NotFound(f"{path} is a file, but a commit needs a git repository, or a folder in one")
    number = _git(path, "rev-parse", "--verify", "--end-of-options", f"{commit}^{{commit}}").split()[-1].decode()
    listed = _git(path, "ls-tree", "-r", "-z", "--long", number)
    blobs = stack.enter_context(_BlobReader(path))
    address = _web_address(path, number)
    for row in listed.split(b"\0"):
        if not row:
            continue
        about, _, raw = row.partition(b"\t")
        mode, _, blob, size = about.split()
        name = os.fsdecode(raw)
        if mode.startswith(b"100") and options.selects(name):
            url = f"{address}{urllib.parse.quote(raw)}" if address else None
            yield GitFile(displayable(prefix + name), blobs, blob.decode(), int(size), url)


def _web_address(path: Path, commit: str) -> str | None:
    """The web address of a folder at a commit, to which the paths of its files are appended.

    It comes from the remote `origin`, without user and password. None if there is no remote, or if its site is unknown.
    """
    try:
        remote = _git(path, "remote", "get-url", "origin").decode().strip()
        folder = _git(path, "rev-parse", "--show-prefix").rstrip(b"\n")
    except NotFound:
        return None
    found = _REMOTE.fullmatch(remote)
    if found is None:
        return None
    host, repository = (found["host"] or found["ssh_host"]).lower(), urllib.parse.quote(found["path"], safe="/%")
    form = next((form for site, form in _SITES.items() if site in host), None)
    return form and f"https://{host}/{repository}/{form.format(commit)}/{urllib.parse.quote(folder)}"


class _BlobReader:
    """Reads the contents of files from one `git cat-file` process. Safe for use by many threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def __enter__(self) -> _BlobReader:
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


class GitFile:
    """A file at a commit."""

    facts_are_certain = True

    def __init__(self, name: str, blobs: _BlobReader, blob: str, size_bytes: int, url: str | None) -> None:
        self.name = name
        self._blobs, self._blob = blobs, blob
        self.facts: dict[str, Any] = {"file": {"bytes": size_bytes, "git": blob}} | ({"url": url} if url else {})

    def is_text(self, options: InputOptions) -> bool:
        return self.text(options) is not None

    def text(self, options: InputOptions) -> str | None:
        return decode_source(self._blobs.read(self._blob), self.name, options)
