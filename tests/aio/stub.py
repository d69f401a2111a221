"""Write `monocontext/aio/methods.pyi`: the types of the methods that an asynchronous text has from the other one."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

from monocontext.aio import methods

STUB = Path(methods.__file__).with_suffix(".pyi")
RESULTS = {
    "Monocontext": "Self", "list[str] | LazyList": "list[str] | AsyncItems", "Iterator[str]": "AsyncIterator[str]",
    "Sequence[str | Self]": "Sequence[str] | AsyncItems", "GrepHits": "AsyncIterator[Hit]", "LineView": "AsyncItems",
    "Documents[Monocontext]": "AsyncDocuments", "Text": "str",
}  # fmt: skip
"""Results that are asynchronous in place of synchronous."""
KNOWN = {
    "Self": "typing", "AsyncItems": "monocontext.aio.text", "AsyncDocuments": "monocontext.aio.text",
    "AsyncIterator": "collections.abc", "Hit": "monocontext.text.search.hits", "Sequence": "collections.abc",
}  # fmt: skip


@cache
def imports_of(module: str) -> dict[str, str]:
    """The names that a module imports, and the modules that they come from."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return {alias.name: str(node.module) for node in reversed(imports) for alias in node.names}


def source_of(name: str, module: str) -> str | None:
    """The module that a name of a module comes from; None for a builtin."""
    return imports_of(module).get(name, module if hasattr(importlib.import_module(module), name) else None)


def signature(method: Any) -> inspect.Signature:
    real = inspect.signature(inspect.unwrap(method))
    first, *others = real.parameters.values()
    shown = RESULTS.get(real.return_annotation, real.return_annotation)
    return real.replace(
        parameters=[first.replace(annotation=inspect.Parameter.empty), *others], return_annotation=shown
    )


def stub() -> str:
    """The text of the stub."""
    imports: dict[str, set[str]] = defaultdict(set, {"enum": {"Enum"}})
    bodies: list[str] = []
    for owner in ("TextMethods", "LineMethods", "DocumentMethods"):
        rows = []
        for mode, words in getattr(methods, owner)._names.items():
            for name in words.split():
                method = vars(getattr(methods, owner))[name]
                prefix = "async def" if mode is methods.Mode.AWAITED else "def"
                if isinstance(method, property):
                    prefix, method = "@property\n    def", method.fget
                text = str(signature(method)).replace("'", "")
                if name == "items":  # `Mapping` has no types
                    text = "(self) -> AsyncIterator[tuple[str, str]]"
                for word in set(re.findall(r"[A-Za-z_]\w*", text)):
                    module = KNOWN.get(word) or source_of(word, inspect.unwrap(method).__module__)
                    if module and word in re.sub(r"(\w+):|= \w+", "", text):
                        imports[module].add(word)
                rows.append(f"    {prefix} {name}{text}: ...\n")
        bodies.append(f"\nclass {owner}:\n{''.join(rows)}")
    head = "# Written by tests/aio/stub.py: do not edit.\n# ruff: noqa\n# fmt: off\n"
    lines = [f"from {module} import {', '.join(sorted(names))}\n" for module, names in sorted(imports.items())]
    return "".join([head, *lines, *bodies, "\nclass Mode(Enum):\n    AWAITED = ...\n"])


if __name__ == "__main__":
    STUB.write_text(stub())
