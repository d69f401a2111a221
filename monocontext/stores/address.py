"""Where a URL points: its scheme, its place, and the path inside that place. Opens nothing."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote_to_bytes

from monocontext.errors import InvalidUrl
from monocontext.stores.checks import usable_key

Scheme = Literal["s3", "file", "memory"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
_FORMS = "s3://bucket/prefix, file:///directory, a directory path, or memory://name"


@dataclass(frozen=True, slots=True)
class Address:
    """One place, or one object, that a store can reach."""

    scheme: Scheme
    place: str
    """The bucket, or the name in memory; empty for directories."""
    path: str
    """Below the place and without slashes at its ends; for directories the absolute path."""

    def __str__(self) -> str:
        if self.scheme == "file":
            return Path(self.path).as_uri()
        return f"{self.scheme}://{self.place}/{self.path}".removesuffix("/")


def parse(url: str | os.PathLike[str]) -> Address:
    """Take a URL or a path apart. Raises `InvalidUrl`, in one line that names the forms there are."""
    text = os.fspath(url)
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidUrl(f"not a place: {text!r}; expected {_FORMS}")
    found = None if isinstance(url, os.PathLike) else _SCHEME.match(text)
    if found is None:
        return _directory(os.path.expanduser(text))
    scheme, rest = found[1].lower(), text[found.end() - 1 :]
    if scheme == "file":
        return _file_url(text, rest)
    if scheme not in ("s3", "memory") or not rest.startswith("//"):
        raise InvalidUrl(f"not a URL that a store can be opened on: {text!r}; expected {_FORMS}")
    place, _, path = rest[2:].partition("/")
    if not place:
        what = "bucket" if scheme == "s3" else "name"
        raise InvalidUrl(f"no {what} in {text!r}; expected {_FORMS}")
    if scheme == "s3" and not _BUCKET.fullmatch(place):
        raise InvalidUrl(f"not a bucket name: {place!r} in {text!r}")
    path = path.removesuffix("/")
    if path:
        usable_key(path)
    return Address("s3" if scheme == "s3" else "memory", place, path)


def _file_url(text: str, rest: str) -> Address:
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host not in ("", "localhost") or not slash:
            raise InvalidUrl(f"a file URL names no host: {text!r}; expected file:///directory")
        rest = "/" + path
    return _directory(os.fsdecode(unquote_to_bytes(rest)))


def _directory(path: str) -> Address:
    # abspath takes `..` away as text, which is another directory than the system's where a link stands before it.
    parts = path.split(os.sep)
    return Address("file", "", os.path.realpath(path) if ".." in parts else os.path.abspath(path))


def split_object(url: str | os.PathLike[str]) -> tuple[str, str]:
    """Split the URL of one object into the URL of a store and the key in it.

    `s3://bucket/a/b.txt` gives `("s3://bucket", "a/b.txt")`, `/data/b.txt` gives `("file:///data", "b.txt")`.
    Raises `InvalidUrl` when the URL names no object.
    """
    address = parse(url)
    root, key = Address(address.scheme, address.place, ""), address.path
    if address.scheme == "file":
        folder, key = os.path.split(address.path)
        root = Address("file", "", folder)
    if not key or os.fspath(url).endswith("/"):
        raise InvalidUrl(f"{os.fspath(url)!r} names a place, not an object")
    return str(root), usable_key(key)


def is_within(url: str | os.PathLike[str], place: str | os.PathLike[str]) -> bool:
    """Whether the object at `url` lies in `place`: the same bucket, the same name in memory, the same folder or below.

    Folders are compared after links are followed and `..` is taken away, part by part: `/data/ctx-evil` is not in
    `/data/ctx`. What is not a proper URL lies nowhere.
    """
    try:
        inner, outer = parse(url), parse(place)
    except InvalidUrl:
        return False
    if inner.scheme != outer.scheme:
        return False
    if inner.scheme != "file":
        return inner.place == outer.place
    return path_is_within(os.path.realpath(inner.path), os.path.realpath(outer.path))


def path_is_within(path: str, folder: str) -> bool:
    """Whether a real path is `folder` or below it, part by part."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
