"""`json` that takes lazy texts. Only these functions differ from the module."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from monocontext.errors import ContextTooLarge
from monocontext.text.namespace.lazy_values import is_list, is_mapping, is_text, read_whole


def loads(s: Any, **options: Any) -> Any:
    """`json.loads`; of a lazy text up to its limit, above it `ContextTooLarge`."""
    if is_text(s):
        s = read_whole(
            s, "json.loads(context)", "if it holds one JSON value a line: for line in context.lines: json.loads(line)"
        )
    return json.loads(s, **options)


def load(fp: Any, **options: Any) -> Any:
    """`json.load`; of a file over a lazy text up to its limit."""
    return loads(fp.read(), **options)


def dumps(obj: Any, *, cls: type[json.JSONEncoder] | None = None, **options: Any) -> str:
    """`json.dumps`; a lazy text is a value at any depth, up to its limit. As a key it is refused, as by `json`."""
    return json.dumps(obj, cls=_encoder(cls) if cls else _Encoder, **options)


def dump(obj: Any, fp: Any, *, cls: type[json.JSONEncoder] | None = None, **options: Any) -> None:
    """`json.dump`, in the same way."""
    json.dump(obj, fp, cls=_encoder(cls) if cls else _Encoder, **options)


def _encoder(base: type[json.JSONEncoder]) -> type[json.JSONEncoder]:
    """An encoder that handles lazy values, and leaves all others to the caller's."""

    class Encoder(base):  # type: ignore[misc,valid-type]
        def __init__(self, *, default: Callable[[Any], Any] | None = None, **options: Any):
            super().__init__(**options)
            self._default = default

        def default(self, value: Any) -> Any:
            if is_text(value):
                return read_whole(value, "json.dumps", "dump parts, context[a:b]")
            if is_list(value) or is_mapping(value):
                real = value._materialize()
                if real is not None:
                    return real
                raise ContextTooLarge(f"json.dumps of {value!r}: dump a part of it, or item by item")
            return self._default(value) if self._default else super().default(value)

    return Encoder


_Encoder = _encoder(json.JSONEncoder)
