"""A string that lives in S3.

    from monocontext import Monocontext, publish

    publish("some text", "s3://bucket/prefix")
    context = Monocontext.open("s3://bucket/prefix")
    context[10:20], len(context), "needle" in context

Importing this loads neither boto3 nor numpy: names are resolved on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from monocontext.errors import ContextTooLarge, MonocontextError
    from monocontext.manifest import Manifest
    from monocontext.retained import keep_memory
    from monocontext.text import Monocontext
    from monocontext.writer import append, publish

__version__ = "0.1.0"

_HOMES = {
    "ContextTooLarge": "errors",
    "Manifest": "manifest",
    "Monocontext": "text",
    "MonocontextError": "errors",
    "append": "writer",
    "keep_memory": "retained",
    "publish": "writer",
}

__all__ = ["ContextTooLarge", "Manifest", "Monocontext", "MonocontextError", "append", "keep_memory", "publish"]


def __getattr__(name: str) -> object:
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_HOMES[name]}")
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
