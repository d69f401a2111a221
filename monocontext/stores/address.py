"""Parse the URL or path of a store into an `Address`, and open that store. Parsing reads only symbolic links."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

from monocontext.errors import InvalidUrl
from monocontext.options import StoreOptions
from monocontext.records import NamedTuple, dataclass
from monocontext.stores.protocol import Store, check_key
from monocontext.stores.secrets_in_urls import without_secrets

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")  # `s3:/`, the start of any URL
_MISTAKE = r"(?:(?P<scheme>s3|gs|az)|arn:[\w-]+:s3:[\w-]*:\d*):"
"""The start of a common mistake: `s3:bucket/key`, or `arn:aws:s3:::bucket`."""
_CHAINED = r"[A-Za-z][\w+.-]*:[^/]*://"
"""The start of a URL that is not supported: `simplecache::http://` of fsspec."""
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\[^\\]")  # the start of a Windows path: `C:\`, or a share such as `\\server`


class _Authority(NamedTuple):
    """The syntax of the part between `scheme://` and the next slash."""

    name: str
    """The noun for this part in messages, such as `bucket`."""
    pattern: str


_AUTHORITIES = {
    "s3": _Authority("bucket", r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}"),
    "gs": _Authority("bucket", r"[a-z0-9][a-z0-9._-]{1,221}"),
    "az": _Authority("container", r"[a-z0-9$][a-z0-9-]{1,62}(?:@[a-z0-9]{3,24}(?:\.[a-z0-9.-]+)?)?"),
    "https": _Authority("host", r"[A-Za-z0-9._-]+(?::\d{1,5})?|\[[0-9a-f:]+\](?::\d{1,5})?"),
    "memory": _Authority("name", r"(?s:.+)"),
}
_AUTHORITIES["http"] = _AUTHORITIES["https"]
_FSSPEC = re.compile(r"fsspec\+[a-z0-9.-]+|hf")  # the schemes of fsspec
_FSSPEC_AUTHORITY = _Authority("host", r"(?:[^@:]+@)?[^@]*")  # a host with an optional user, a bucket, or nothing
_ALIASES = {"gcs": "gs", "azure": "az", "abfs": "az", "abfss": "az"}
_FORMS = (
    "s3://bucket/prefix, gs://bucket/prefix, az://container/prefix, https://host/path, file:///directory, "
    "a directory path, memory://name, hf://datasets/owner/name, or fsspec+PROTOCOL://place/path"
)


@dataclass(frozen=True, slots=True)
class Address:
    """The parsed URL or path of a store, or of an object in one."""

    scheme: str
    """`s3`, `gs`, `az`, `https`, `http`, `file`, `memory`, `hf`, or `fsspec+PROTOCOL`."""
    authority: str
    """The bucket, the container (with `@account`), the host, or the name in memory; empty for a directory."""
    path: str
    """The path below the authority, without slashes at its ends; for a directory the absolute path."""

    def __str__(self) -> str:
        if self.scheme == "file":
            return Path(self.path).as_uri()
        return f"{self.scheme}://{self.authority}/{self.path}".removesuffix("/")

    @property
    def option_names(self) -> tuple[str, ...]:
        """The names of the options that `open_store` accepts for this scheme."""
        if self.scheme == "s3":
            return tuple(StoreOptions.__annotations__)
        return ("endpoint", "anonymous") if self.scheme in ("gs", "az") else ()

    def open(self, options: StoreOptions) -> Store:
        """Import the module of the store, and open it (no request). Raises `TypeError` for options of other schemes."""
        arguments: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        for name in arguments:
            if name not in self.option_names:
                hint = f"options are {', '.join(self.option_names)}" if self.option_names else "this store has none"
                raise TypeError(f"unknown option {name!r} for {self}: {hint}")
        if self.scheme == "memory":
            from monocontext.stores.memory import MemoryStore

            return MemoryStore(self.authority, self.path)
        if self.scheme == "file":
            from monocontext.stores.local import LocalStore

            return LocalStore(self.path)
        if _FSSPEC.fullmatch(self.scheme):
            from monocontext.stores.filesystem import FilesystemStore

            return FilesystemStore(str(self))
        if self.scheme == "s3":
            from monocontext.stores.s3.store import S3Store

            return S3Store(self.authority, self.path, **arguments)
        from monocontext.stores.cloud import CloudStore

        return CloudStore(str(self), **arguments)


def parse(url: str | os.PathLike[str]) -> Address:
    """Parse the URL or the path of a store or an object. Raises `InvalidUrl`, whose message names the valid forms.

    A `Path` is never a URL. A URL with a password or a secret parameter is refused, and no message shows the secret: an
    address may be printed and stored.
    """
    text = os.fspath(url)
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidUrl(f"not a URL or a path: {without_secrets(str(text))!r}; expected {_FORMS}")
    if _WINDOWS.match(text):
        return _windows_directory(text, text)
    if isinstance(url, os.PathLike):
        return _directory(os.path.expanduser(text))
    match = _SCHEME.match(text)
    if match is None:
        _check_path(text)
        return _directory(os.path.expanduser(text))
    scheme, rest = match[1].lower(), text[match.end() - 1 :]
    if scheme == "file":
        return _file_url(text, rest)
    scheme = _ALIASES.get(scheme, scheme)
    expected = _FSSPEC_AUTHORITY if _FSSPEC.fullmatch(scheme) else _AUTHORITIES.get(scheme)
    authority, _, path = rest.removeprefix("//").partition("/")
    if expected is None or not rest.startswith("//") or not re.fullmatch(expected.pattern, authority):
        raise InvalidUrl(_describe_fault(text, scheme, expected, rest))
    if scheme != "memory" and ("?" in rest or "#" in rest or ";" in rest or "%" in rest):
        _check_parameters(text, rest)
    path = path.removesuffix("/")
    return Address(scheme, authority, check_key(path) if path else "")


def _check_path(text: str) -> None:
    """Raise `InvalidUrl` for a path that was meant as a URL: `s3:bucket/key`, an ARN, or a chained URL of fsspec."""
    mistake = re.match(_MISTAKE, text)
    if mistake:
        meant = without_secrets(f"{mistake['scheme'] or 's3'}://{text[mistake.end() :]}")
        raise InvalidUrl(f"not a URL or a path: {without_secrets(text)!r}; did you mean {meant}?")
    if re.match(_CHAINED, text):
        raise InvalidUrl(f"not a URL: {without_secrets(text)!r}; expected {_FORMS}")


def _describe_fault(text: str, scheme: str, expected: _Authority | None, rest: str) -> str:
    """The message for a URL with an unknown scheme or an invalid authority. `rest` is the part after `scheme:`."""
    display = without_secrets(text)
    if expected is None:
        return f"unknown scheme in the URL {display!r}; expected {_FORMS}"
    if not rest.startswith("//"):
        meant = without_secrets(f"{text.partition(':')[0].lower()}:/{rest}")
        return f"not a URL or a path: {display!r}; did you mean {meant}?"
    authority = rest[2:].partition("/")[0]
    if not authority:
        return f"no {expected.name} in {display!r}; expected {_FORMS}"
    if expected is _FSSPEC_AUTHORITY and display != text:
        return "the URL must not contain a password: put it in the configuration of fsspec (~/.config/fsspec)"
    if "@" in authority and scheme in ("http", "https"):
        return "the URL must not contain a user or a password"
    return f"not a {expected.name} name: " + (repr(display) if display != text else f"{authority!r} in {text!r}")


def _check_parameters(text: str, rest: str) -> None:
    """Raise `InvalidUrl` if a URL has a parameter with a credential. `rest` is the part after `scheme:`."""
    first = re.search("[?#;%]", rest)
    parameters = rest[first.start() :] if first else ""
    parameters = re.sub("(?i)(?<=[?&;#])key=", "", parameters)  # `a?key=5` may be an object
    if without_secrets(parameters) != parameters:
        raise InvalidUrl(f"a URL must not contain credentials: {without_secrets(text)!r}; set them in the environment")


def _file_url(text: str, rest: str) -> Address:
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host not in ("", "localhost") or not slash:
            raise InvalidUrl(f"a file URL must not name a host: {without_secrets(text)!r}; write file:///directory")
        rest = "/" + path
    path = os.fsdecode(unquote_to_bytes(rest))
    return _windows_directory(path[1:], text) if _WINDOWS.match(path[1:]) else _directory(path)


def _windows_directory(path: str, text: str) -> Address:
    if os.name != "nt":
        raise InvalidUrl(
            f"{text!r} is a Windows path, and this system is not Windows; for a folder of that name write ./{path}"
        )
    return _directory(path)


def _directory(path: str) -> Address:
    # `abspath` removes `..` and the part before it, which is wrong if that part is a symbolic link.
    parts = path.replace(os.altsep or os.sep, os.sep).split(os.sep)
    return Address("file", "", os.path.realpath(path) if ".." in parts else os.path.abspath(path))


def split_object(url: str | os.PathLike[str]) -> tuple[str, str]:
    """Split the URL of one object into the URL of a store and the key in it.

    The result is `("s3://bucket", "a/b.txt")` for `s3://bucket/a/b.txt`, and `("file:///data", "b.txt")` for
    `/data/b.txt`. Web URLs are percent-encoded, keys are not. Raises `InvalidUrl` if the URL names no object.
    """
    address = parse(url)
    root, key = Address(address.scheme, address.authority, ""), address.path
    if address.scheme == "file":
        folder, key = os.path.split(address.path)
        root = Address("file", "", folder)
    if address.scheme in ("http", "https"):
        key = unquote(key)
    if not key or os.fspath(url).endswith("/"):
        raise InvalidUrl(f"{os.fspath(url)!r} names a bucket or a folder, not an object: add its key")
    return str(root), check_key(key)


def is_within(url: str | os.PathLike[str], place: str | os.PathLike[str]) -> bool:
    """Whether `url` is in the same bucket or memory as `place`, or at or below its folder. False for an invalid URL.

    Links and `..` are resolved, then folders are compared part by part: `/data/ctx-evil` is not in `/data/ctx`.
    """
    try:
        inner, outer = parse(url), parse(place)
    except InvalidUrl:
        return False
    if inner.scheme != outer.scheme:
        return False
    if inner.scheme == "file":
        return _path_is_within(os.path.realpath(inner.path), os.path.realpath(outer.path))
    if inner.authority != outer.authority:
        return False
    # The authority of fsspec may be empty or shared by all users, so paths count too.
    return not _FSSPEC.fullmatch(inner.scheme) or _path_is_within(f"/{inner.path}", f"/{outer.path}")


def _path_is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
