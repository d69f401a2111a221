"""`import` for one namespace: four modules stand in for those of their names, all others are the real ones."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any


def importer() -> Callable[..., ModuleType]:
    """An `__import__` with shims of its own. What it imports goes through the process's `__import__` first."""
    shims: dict[str, ModuleType] = {}

    def __import__(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        module = builtins.__import__(name, globals, locals, fromlist, level)
        # Told by what came back: `import json.decoder` gives `json`, `from json.decoder import x` does not.
        own = getattr(module, "__name__", None)
        if own not in _OVERRIDES or module is not sys.modules.get(own):
            return module
        if own not in shims:
            shims[own] = shim(module, _OVERRIDES[own]())
        return shims[own]

    return __import__


def shim(real: ModuleType, overrides: Mapping[str, Any]) -> ModuleType:
    """A module with `overrides`, whose every other attribute is that of `real`, looked up when it is asked for."""
    module = ModuleType(real.__name__, real.__doc__)
    for name in ("__spec__", "__loader__", "__package__"):
        setattr(module, name, getattr(real, name, None))
    vars(module).update(overrides)
    # C callables: no frame of ours in the traceback of an attribute that `real` does not have either.
    vars(module)["__getattr__"] = partial(getattr, real)
    vars(module)["__dir__"] = partial(dir, real)
    return module


def _re() -> dict[str, Any]:
    from monocontext import regex

    return {name: vars(regex)[name] for name in re.__all__ if name in vars(regex)}


def _json() -> dict[str, Any]:
    from monocontext.namespace.json_shim import dump, dumps, load, loads

    return {"dump": dump, "dumps": dumps, "load": load, "loads": loads}


def _io() -> dict[str, Any]:
    from monocontext.namespace.files import open_file
    from monocontext.namespace.string_io import StringIO

    return {"StringIO": StringIO, "open": open_file}


def _csv() -> dict[str, Any]:
    from monocontext.namespace.csv_shim import Sniffer

    return {"Sniffer": Sniffer}


_OVERRIDES: dict[str, Callable[[], dict[str, Any]]] = {"re": _re, "json": _json, "io": _io, "csv": _csv}
