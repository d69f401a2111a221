"""`import` for one namespace: shims replace four modules."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any


def importer() -> Callable[..., ModuleType]:
    """Make an `__import__` that returns shims, which belong to it alone. It calls the `__import__` of the process
    first."""
    shims: dict[str, ModuleType] = {}

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
        if imported not in _OVERRIDES or module is not sys.modules.get(imported):
            return module
        if imported not in shims:
            shims[imported] = shim(module, _OVERRIDES[imported]())
        return shims[imported]

    return __import__


def shim(real: ModuleType, overrides: Mapping[str, Any]) -> ModuleType:
    """A module with the attributes of `overrides`. Its other attributes are those of `real`, looked up on access."""
    module = ModuleType(real.__name__, real.__doc__)
    for name in ("__spec__", "__loader__", "__package__"):
        setattr(module, name, getattr(real, name, None))
    vars(module).update(overrides)
    # These are C callables, so the traceback of a missing attribute has no frame of ours.
    vars(module)["__getattr__"] = partial(getattr, real)
    vars(module)["__dir__"] = partial(dir, real)
    return module


def _re() -> dict[str, Any]:
    from monocontext.text import regex

    return {name: vars(regex)[name] for name in re.__all__ if name in vars(regex)}


def _json() -> dict[str, Any]:
    from monocontext.text.namespace.json_shim import dump, dumps, load, loads

    return {"dump": dump, "dumps": dumps, "load": load, "loads": loads}


def _io() -> dict[str, Any]:
    from monocontext.text.namespace.files import open_file
    from monocontext.text.namespace.string_io import StringIO

    return {"StringIO": StringIO, "open": open_file}


def _csv() -> dict[str, Any]:
    from monocontext.text.namespace.csv_shim import Sniffer

    return {"Sniffer": Sniffer}


_OVERRIDES: dict[str, Callable[[], dict[str, Any]]] = {"re": _re, "json": _json, "io": _io, "csv": _csv}
