"""`import` for one namespace: it gives `re`, `json`, `io`, `csv` and `ast` that take lazy texts."""

from __future__ import annotations

import ast
import builtins
import csv
import io
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any

from monocontext.text import regex
from monocontext.text.lazy_kinds import LazyItems, LazyMapping, LazyText
from monocontext.text.namespace.output import open_file
from monocontext.text.str_methods import StrLike

_SAMPLE_CHARACTERS = 64 << 10
"""The characters of a lazy text that `csv.Sniffer` sees: its patterns take seconds for a megabyte."""


def make_importer() -> Callable[..., ModuleType]:
    """Make an `__import__` that calls the real one, and replaces the modules in `_OURS`."""
    replacements: dict[str, ModuleType] = {}

    def __import__(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        module = builtins.__import__(name, globals, locals, fromlist, level)
        # The result decides, since `import json.decoder` returns `json`, and `from json.decoder import x` does not.
        imported = getattr(module, "__name__", None)
        if imported not in _OURS or module is not sys.modules.get(imported):
            return module
        if imported not in replacements:
            replacements[imported] = _module_like(module, _OURS[imported]())
        return replacements[imported]

    return __import__


def _module_like(real: ModuleType, names: Mapping[str, Any]) -> ModuleType:
    """A module with these names. Others are those of `real`, looked up on access."""
    module = ModuleType(real.__name__, real.__doc__)
    for name in ("__spec__", "__loader__", "__package__"):
        setattr(module, name, getattr(real, name, None))
    # These are C callables, so the traceback of a missing attribute has no frame of ours.
    vars(module).update(names, __getattr__=partial(getattr, real), __dir__=partial(dir, real))
    return module


def _loads(s: Any, **options: Any) -> Any:
    """`json.loads`. Takes a lazy text up to its limit."""
    if isinstance(s, LazyText):
        instead = "if it holds one JSON value a line: for line in context.lines: json.loads(line)"
        s = s._whole("json.loads(context)", instead)
    return json.loads(s, **options)


def _load(fp: Any, **options: Any) -> Any:
    """`json.load`. Takes a file over a lazy text, up to its limit."""
    return _loads(fp.read(), **options)


def _dumps(obj: Any, *, default: Callable[[Any], Any] | None = None, **options: Any) -> str:
    """`json.dumps`. Lazy values may be in it at any depth, each up to its limit."""
    return json.dumps(obj, default=_make_default(default, options), **options)


def _dump(obj: Any, fp: Any, *, default: Callable[[Any], Any] | None = None, **options: Any) -> None:
    """`json.dump`. Lazy values may be in it, as in `dumps`."""
    json.dump(obj, fp, default=_make_default(default, options), **options)


def _make_default(default: Callable[[Any], Any] | None, options: Mapping[str, Any]) -> Callable[[Any], Any]:
    other = default or (options.get("cls") or json.JSONEncoder)().default

    def convert(value: Any) -> Any:
        if isinstance(value, LazyText):
            return str(value)
        return value.copy() if isinstance(value, LazyItems | LazyMapping) else other(value)

    return convert


def _literal_eval(node_or_string: Any) -> Any:
    """`ast.literal_eval`. Takes a lazy text up to its limit; the real one would call any such text malformed."""
    return ast.literal_eval(str(node_or_string) if isinstance(node_or_string, LazyText) else node_or_string)


class _StringIO(io.StringIO):
    """`io.StringIO`. Over a text above its limit it is a `ContextFile`; `write` takes lazy texts up to their limit."""

    def __new__(cls, initial_value: Any = "", newline: str | None = "\n") -> Any:
        if isinstance(initial_value, LazyText) and initial_value.is_large and newline == "\n":
            return initial_value.file()
        return super().__new__(cls)

    def __init__(self, initial_value: Any = "", newline: str | None = "\n"):
        super().__init__(str(initial_value) if isinstance(initial_value, LazyText) else initial_value, newline)

    def write(self, s: Any, /) -> int:
        return super().write(str(s) if isinstance(s, LazyText) else s)


_StringIO.__name__ = _StringIO.__qualname__ = "StringIO"


class _Sniffer(csv.Sniffer):
    """`csv.Sniffer` that looks only at the first lines of a lazy text, up to 65,536 characters."""

    def sniff(self, sample: Any, delimiters: Any = None) -> Any:
        return super().sniff(_first_lines(sample), delimiters)

    def has_header(self, sample: Any) -> bool:
        return super().has_header(_first_lines(sample))


def _first_lines(sample: Any) -> Any:
    if not isinstance(sample, StrLike):
        return sample
    text = sample.span.read(0, min(len(sample), _SAMPLE_CHARACTERS))
    return text if len(sample) <= len(text) else text[: text.rfind("\n") + 1 or len(text)]


_OURS: dict[str, Callable[[], dict[str, Any]]] = {
    "ast": lambda: {"literal_eval": _literal_eval},
    "re": lambda: {name: vars(regex)[name] for name in re.__all__ if name in vars(regex)},
    "json": lambda: {"dump": _dump, "dumps": _dumps, "load": _load, "loads": _loads},
    "io": lambda: {"StringIO": _StringIO, "open": open_file},
    "csv": lambda: {"Sniffer": _Sniffer},
}
