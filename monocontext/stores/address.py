"""Parse the URL or path of a store into scheme, place and path. Reads nothing but symbolic links."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote, unquote_to_bytes

from monocontext.errors import InvalidUrl
from monocontext.records import NamedTuple, dataclass
from monocontext.stores.protocol import check_key

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_MISTAKE = r"(?:(?P<scheme>s3|gs|az)|arn:[\w-]+:s3:[\w-]*:\d*):"
"""The start of a common mistake: `s3:bucket/key`, or the ARN of a bucket."""
_CHAINED = r"[A-Za-z][\w+.-]*:[^/]*://"
"""The start of what is a URL, but of no known form: fsspec's `simplecache::http://host`."""
_LOGIN = r"(?s)(:/+|\b(?:s3|gs|az|https?):(?!/))(?:[^/:]*:.*|[^/@]*)@|(//)[^/:]*:.*@"
"""A user, a password or a token before a host, with a scheme or without; a user may contain `@`, a password `/` too.
Patterns without `re.compile` are compiled at their first use: few URLs need them."""
_PARAMETER = r"(?s)(?<=[?&;#])([\w.%\[\]-]+)=((?:(?![?&;#][\w.%\[\]-]+=).)*)"
"""A parameter and its value, which ends where another parameter begins: a password may contain `&` and `#`."""
_SECRET_NAME = (
    r"(?i)sig|sas|sid|code|key|passcode|pwd|pw|otp|hmac|auth(?:orization)?|jwt|bearer|cookie|ticket|SAML\w+|session|csek"
    r"|x-(?:amz|goog|ms|oss)-.+|awsaccesskeyid|googleaccessid|phpsessid|(?:.*[-_.]|user|db)?pass"
    r"|.*(?:token|secret(?:key)?|pass[-_.]?w(?:or)?d|pass[-_.]?phrase|creds?|credentials?|signature|assertion|session[-_]?id"
    r"|access[-_.]?code|connection[-_.]?string)"
    r"|(?!(?:sort|primary|partition|foreign|object|public|cache|row)[-_.]key).*(?:[-_.]|api|app|access|account|auth|crypt|"
    r"cryption|customer|license|master|pass|private|shared|signing|sse|ssec|storage|subscription)key(?:[-_.]?(?:base64|hex))?"
)
"""The name of a parameter whose value lets its bearer in, as of a signed URL."""
_ESCAPE = r"(?i)%([2-7][0-9a-f])|\\{1,4}(?:u00([2-7][0-9a-f])|/)"
"""A character that a URL has percent-encoded, or that JSON has escaped."""
_MOST_ESCAPES = 4  # how often a URL in the parameter of another may be escaped
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\[^\\]")  # the start of a Windows path: a drive letter, or a network share


class _PlaceKind(NamedTuple):
    name: str
    """What a place of this kind is called in messages."""
    pattern: str


_PLACES = {
    "s3": _PlaceKind("bucket", r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}"),
    "gs": _PlaceKind("bucket", r"[a-z0-9][a-z0-9._-]{1,221}"),
    "az": _PlaceKind("container", r"[a-z0-9$][a-z0-9-]{1,62}(?:@[a-z0-9]{3,24}(?:\.[a-z0-9.-]+)?)?"),
    "https": _PlaceKind("host", r"[A-Za-z0-9._-]+(?::\d{1,5})?|\[[0-9a-f:]+\](?::\d{1,5})?"),
    "memory": _PlaceKind("name", r"(?s:.+)"),
}
_PLACES["http"] = _PLACES["https"]
_FSSPEC = re.compile(r"fsspec\+[a-z0-9.-]+|hf")
_FSSPEC_PLACE = _PlaceKind("place", r"(?:[^@:]+@)?[^@]*")  # a host with an optional user, a bucket, or nothing
_ALIASES = {"gcs": "gs", "azure": "az", "abfs": "az", "abfss": "az"}
_FORMS = (
    "s3://bucket/prefix, gs://bucket/prefix, az://container/prefix, https://host/path, file:///directory, "
    "a directory path, memory://name, hf://datasets/owner/name, or fsspec+PROTOCOL://place/path"
)


@dataclass(frozen=True, slots=True)
class Address:
    """The parsed URL of a place, or of an object in it."""

    scheme: str
    """`s3`, `gs`, `az`, `https`, `http`, `file`, `memory`, `hf`, or `fsspec+PROTOCOL`."""
    place: str
    """The bucket, the container (with `@account`), the host, or the name in memory; empty for a directory."""
    path: str
    """The path below the place, without slashes at its ends; for a directory the absolute path."""

    def __str__(self) -> str:
        if self.scheme == "file":
            return Path(self.path).as_uri()
        return f"{self.scheme}://{self.place}/{self.path}".removesuffix("/")


def parse(url: str | os.PathLike[str]) -> Address:
    """Parse the URL or the path of a place. Raises `InvalidUrl`, whose message names the valid forms.

    A path object is never a URL. A URL with a password or a secret parameter is refused, and no message shows it: what
    is not in an address can neither be printed nor stored with it.
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
    kind = _FSSPEC_PLACE if _FSSPEC.fullmatch(scheme) else _PLACES.get(scheme)
    place, _, path = rest.removeprefix("//").partition("/")
    if kind is None or not rest.startswith("//") or not re.fullmatch(kind.pattern, place):
        raise InvalidUrl(_fault_of(text, scheme, kind, rest))
    if scheme != "memory" and ("?" in rest or "#" in rest or ";" in rest or "%" in rest):
        _check_parameters(text, rest)
    path = path.removesuffix("/")
    return Address(scheme, place, check_key(path) if path else "")


def _check_path(text: str) -> None:
    """Raise `InvalidUrl` for a text without `scheme:/` that was meant to be a URL."""
    mistake = re.match(_MISTAKE, text)
    if mistake:
        meant = without_secrets(f"{mistake['scheme'] or 's3'}://{text[mistake.end() :]}")
        raise InvalidUrl(f"not a URL or a path: {without_secrets(text)!r}; did you mean {meant}?")
    if re.match(_CHAINED, text):
        raise InvalidUrl(f"not a URL: {without_secrets(text)!r}; expected {_FORMS}")


def _fault_of(text: str, scheme: str, kind: _PlaceKind | None, rest: str) -> str:
    """The message for a URL without a valid place. `rest` is the part of the URL after `scheme:`."""
    display = without_secrets(text)
    if kind is None:
        return f"unknown scheme in the URL {display!r}; expected {_FORMS}"
    if not rest.startswith("//"):
        meant = without_secrets(f"{text.partition(':')[0].lower()}:/{rest}")
        return f"not a URL or a path: {display!r}; did you mean {meant}?"
    place = rest[2:].partition("/")[0]
    if not place:
        return f"no {kind.name} in {display!r}; expected {_FORMS}"
    if kind is _FSSPEC_PLACE and display != text:
        return "the URL must not contain a password: give it to fsspec in its own configuration"
    if "@" in place and scheme in ("http", "https"):
        return "the URL must not contain a user or a password"
    return f"not a {kind.name} name: " + (repr(display) if display != text else f"{place!r} in {text!r}")


def _check_parameters(text: str, rest: str) -> None:
    """Raise `InvalidUrl` if a URL has a parameter with a credential. `rest` is the part after `scheme:`."""
    first = re.search("[?#;%]", rest)
    parameters = re.sub("(?i)(?<=[?&;#])key=", "", rest[first.start() :] if first else "")  # `a?key=5` may be an object
    if without_secrets(parameters) != parameters:
        raise InvalidUrl(f"the URL must not contain credentials: {without_secrets(text)!r}; give them in options")


def without_secrets(text: str) -> str:
    r"""A URL, or a word that may hold one, for a message: without passwords and values of secret parameters.

    If only its unescaped form shows a secret (`https:\/\/user:password@host`, `?next=https%3A%2F%2F...`), the result is
    that form.
    """
    shown = unescaped = _hide_plain(text)
    for _ in range(_MOST_ESCAPES):
        unescaped = re.sub(_ESCAPE, _unescape, unescaped)
        hidden = _hide_plain(unescaped)
        if hidden != unescaped:
            shown = unescaped = hidden
    return shown


def _hide_plain(text: str) -> str:
    before, at, after = text.rpartition("@")  # the last one: a search for it always succeeds
    return re.sub(_PARAMETER, _hide_value, re.sub(_LOGIN, r"\1\2***@", before + at) + after)


def _hide_value(parameter: re.Match[str]) -> str:
    name = re.sub(_ESCAPE, _unescape, parameter[1]).partition("[")[0]
    is_shown = parameter[2].startswith("***") or not re.fullmatch(_SECRET_NAME, name)  # hidden before, or no secret
    return parameter[0] if is_shown else f"{parameter[1]}=***"


def _unescape(escape: re.Match[str]) -> str:
    digits = escape[1] or escape[2]
    return chr(int(digits, 16)) if digits else "/"


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
    root, key = Address(address.scheme, address.place, ""), address.path
    if address.scheme == "file":
        folder, key = os.path.split(address.path)
        root = Address("file", "", folder)
    if address.scheme in ("http", "https"):
        key = unquote(key)
    if not key or os.fspath(url).endswith("/"):
        raise InvalidUrl(f"{os.fspath(url)!r} names a bucket or a folder, not a single object")
    return str(root), check_key(key)


def is_within(url: str | os.PathLike[str], place: str | os.PathLike[str]) -> bool:
    """Whether the object at `url` is in the bucket or memory of `place`, or in or below its folder.

    Links and `..` are resolved, then folders are compared part by part: `/data/ctx-evil` is not in `/data/ctx`. False
    for an invalid URL.
    """
    try:
        inner, outer = parse(url), parse(place)
    except InvalidUrl:
        return False
    if inner.scheme != outer.scheme:
        return False
    if _FSSPEC.fullmatch(inner.scheme):  # the place may be empty or shared by all users, so paths count too
        return inner.place == outer.place and path_is_within(f"/{inner.path}", f"/{outer.path}")
    if inner.scheme != "file":
        return inner.place == outer.place
    return path_is_within(os.path.realpath(inner.path), os.path.realpath(outer.path))


def path_is_within(path: str, folder: str) -> bool:
    """Whether a real path is `folder` or below it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
