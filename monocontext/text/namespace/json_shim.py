"""`json` that takes lazy texts. Only these functions differ from the module."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from typing import Any

from monocontext.text.namespace.lazy_values import is_list, is_mapping, is_text, read_whole

_DEEPEST = 200
"""The levels of nesting down to which keys are looked at."""


def loads(s: Any, **options: Any) -> Any:
    """`json.loads`. Takes a lazy text up to its limit; above it raises `ContextTooLarge`."""
    if is_text(s):
        s = read_whole(
            s, "json.loads(context)", "if it holds one JSON value a line: for line in context.lines: json.loads(line)"
        )
    return json.loads(s, **options)


def load(fp: Any, **options: Any) -> Any:
    """`json.load`. Takes a file over a lazy text, up to its limit."""
    return loads(fp.read(), **options)


def dumps(obj: Any, *, cls: type[json.JSONEncoder] | None = None, **options: Any) -> str:
    """`json.dumps`. Lazy texts may be values or keys at any depth, each up to its limit."""
    return json.dumps(_real_keys(obj), cls=_encoder(cls) if cls else _Encoder, **options)


def dump(obj: Any, fp: Any, *, cls: type[json.JSONEncoder] | None = None, **options: Any) -> None:
    """`json.dump`. Takes what `dumps` takes."""
    json.dump(_real_keys(obj), fp, cls=_encoder(cls) if cls else _Encoder, **options)


def _real_keys(value: Any, within: tuple[int, ...] = ()) -> Any:
    """The value with a real `str` for each lazy key; the value itself if there is none."""
    if not isinstance(value, (dict, list, tuple)) or id(value) in within or len(within) > _DEEPEST:
        return value
    within = (*within, id(value))
    if not isinstance(value, dict):
        items = [_real_keys(item, within) for item in value]
        return items if any(map(operator.is_not, items, value)) else value
    real = {(str(key) if is_text(key) else key): _real_keys(item, within) for key, item in value.items()}
    is_same = all(map(operator.is_, real, value)) and all(map(operator.is_, real.values(), value.values()))
    return value if is_same else real


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
                return value._real("json.dumps")
            return _real_keys(self._default(value) if self._default else super().default(value))

    return Encoder


_Encoder = _encoder(json.JSONEncoder)
