"""A `str` of any size that lives in a bucket: only what the code looks at is fetched.

    from monocontext import Monocontext, publish

    publish("some text", "s3://bucket/prefix")
    context = Monocontext.open("s3://bucket/prefix")
    context[10:20], len(context), "needle" in context

Importing this package loads neither boto3 nor numpy, since names are resolved on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from monocontext.errors import ContextTooLarge, MonocontextError
    from monocontext.format.manifest import Manifest
    from monocontext.text.monocontext import Monocontext
    from monocontext.text_tools.functions import tools
    from monocontext.writing.documents import documents
    from monocontext.writing.publish import append, publish
    from monocontext.writing.upkeep.edit import delete, replace, update

__version__ = "0.3.0"

_HOMES = {
    "ContextTooLarge": "errors", "Manifest": "format.manifest", "Monocontext": "text", "MonocontextError": "errors",
    "append": "writing.publish", "delete": "writing.upkeep.edit", "documents": "writing.documents",
    "publish": "writing.publish", "replace": "writing.upkeep.edit", "tools": "text_tools.functions",
    "update": "writing.upkeep.edit",
}  # fmt: skip
"""The module that defines each public name, relative to this package."""

__all__ = [
    "ContextTooLarge", "Manifest", "Monocontext", "MonocontextError", "append", "delete", "documents",
    "publish", "replace", "tools", "update",
]  # fmt: skip


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
