"""Encode and parse the JSON of a root, whose field `text` may be megabytes of base64.

To pass that field through a JSON parser would take most of the time of an open. So the parser gets a placeholder in its
place, and the field is a view of the bytes of the root.
"""

from __future__ import annotations

import json
from typing import Any

import google_crc32c

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_LONG_BYTES = 4096
"""The length above which the field `text` is not given to the JSON parser."""
_PIECE_BYTES = 64 << 10
_TEXT_FIELD = b'\n  "text": "'
_PLACEHOLDER = b"of 7d1c6f0e4b"
_ESCAPED = bytes(range(32)) + b'"\\\x7f'
"""ASCII bytes that JSON escapes."""


def encode(root: dict[str, Any], text: bytes | memoryview) -> bytes:
    """The JSON of a root: a line for each field and each page, the last one with a checksum. `text` is that field."""
    root = {**root, "crc32c": checksum(root, text if _is_long_and_plain(text) else b"")}
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in root.items() if key != "pages"]
    pages = ",\n".join(f"    {json.dumps(page)}" for page in root["pages"])
    lines.insert(-1, f'  "pages": [\n{pages}\n  ]' if pages else '  "pages": []')
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def parse(data: bytes) -> tuple[Any, str]:
    """The parsed JSON of a root, and the checksum of its fields. Raises `ValueError`, `RecursionError`.

    A long `text` is a view of `data`. If escapes or DEL could make that wrong, the parser gets everything.
    """
    start = data.find(_TEXT_FIELD) + len(_TEXT_FIELD)
    text = memoryview(data)[start : data.find(b'"', start)] if start >= len(_TEXT_FIELD) else memoryview(b"")
    if len(text) > _LONG_BYTES and data.isascii() and b"\x7f" not in data and b"\\" not in data:
        short = data[:start] + _PLACEHOLDER + data[start + len(text) :]
        root = json.loads(short)
        if isinstance(root, dict) and root.get("text") == _PLACEHOLDER.decode() and short.count(_PLACEHOLDER) == 1:
            return root | {"text": text}, checksum(root, text)
    root = json.loads(data)
    return root, checksum(root) if isinstance(root, dict) else ""


def checksum(root: dict[str, Any], text: bytes | memoryview = b"") -> str:
    """The CRC-32C of the canonical form: keys sorted, no white space, ASCII only, without the field `crc32c`.

    `text` is the field of that name if it is long and needs no escapes in JSON.
    """
    fields = {key: value for key, value in root.items() if key != "crc32c"}
    if text:
        pieces = _CANONICAL.encode(fields | {"text": _PLACEHOLDER.decode()}).encode().split(_PLACEHOLDER)
        if len(pieces) == 2:
            result = google_crc32c.value(pieces[0])
            for offset in range(0, len(text), _PIECE_BYTES):  # the library takes only `bytes`: copy a piece at a time
                result = google_crc32c.extend(result, bytes(text[offset : offset + _PIECE_BYTES]))
            return f"{google_crc32c.extend(result, pieces[1]):08x}"
    return f"{google_crc32c.value(_CANONICAL.encode(fields).encode()):08x}"


def _is_long_and_plain(text: bytes | memoryview) -> bool:
    """Whether a text is long, and needs no escapes in JSON."""
    data = bytes(text)
    return len(data) > _LONG_BYTES and data.isascii() and len(data.translate(None, _ESCAPED)) == len(data)
