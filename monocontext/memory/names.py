"""Turn keys into names of objects, and back. Does no I/O.

Invariants:
- two keys never share a name, on file systems that fold case or compose accents neither: a name is made of lower-case
  letters, digits and `-_.%+/` only, everything else is escaped byte by byte;
- no name leaves its folder: `/` is escaped, and no part of a name is `.`, `..` or hidden;
- no part of a name is longer than a file system takes: long ones go on in a folder;
- the names of keys with a common beginning have one too, so that a prefix is one LIST.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from monocontext.errors import InvalidEntry

FOLDER = "entries/"  # the folder of all objects of a memory; nothing else below its URL is touched
_LITERAL = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_.")
_ESCAPED = {byte: chr(byte) if byte in _LITERAL else f"%{byte:02x}" for byte in range(256)}
_PART_CHARACTERS = 200  # file systems take 255 bytes for a name, and the store's temporary files need some of them
_SEPARATOR = "+/+"  # between the parts of a long name, so that `a` and `a+/+b` can both be objects in a directory
_NAME = re.compile(r"(?:[a-z0-9\-_.%]|\+/\+)+")  # such as `a-b%20c` or `long+/+name`, not `A` or `a/b`


def name_of(key: str, most_bytes: int) -> str:
    """The name of a key's object. Raises `InvalidEntry` where the name would take more than `most_bytes`."""
    if not isinstance(key, str):
        raise InvalidEntry(f"a key must be a str, not {type(key).__name__}")
    if not key:
        raise InvalidEntry("a key must have at least one character")
    name = prefix_of(key) if len(key) <= most_bytes else key
    if len(name) > most_bytes:
        raise InvalidEntry(
            f"the key {key[:40]!r}... is too long: the name of its object would have {len(name):,} bytes or more, and "
            f"the limit is {most_bytes:,}"
        )
    return name


def prefix_of(prefix: str) -> str:
    """The prefix of the names of all objects whose keys begin with `prefix`. Raises `InvalidEntry` for a prefix that is
    not a `str`, or that UTF-8 cannot encode."""
    if not isinstance(prefix, str):
        raise InvalidEntry(f"a prefix must be a str, not {type(prefix).__name__}")
    try:
        data = prefix.encode()
    except UnicodeEncodeError:
        raise InvalidEntry(f"a key or prefix must have a UTF-8 form, which {prefix[:40]!r} lacks") from None
    escaped = "".join([_ESCAPED[byte] for byte in data])
    if escaped.startswith("."):
        escaped = "%2e" + escaped[1:]
    return FOLDER + _SEPARATOR.join(
        escaped[start : start + _PART_CHARACTERS] for start in range(0, len(escaped), _PART_CHARACTERS)
    )


def key_of(name: str) -> str | None:
    """The key of the entry in the object with this name; None for an object that is not an entry."""
    rest = name.removeprefix(FOLDER)
    if rest == name or not _NAME.fullmatch(rest):
        return None
    try:
        key = unquote_to_bytes(rest.replace(_SEPARATOR, "")).decode()
    except UnicodeDecodeError:
        return None
    return key if key and prefix_of(key) == name else None
