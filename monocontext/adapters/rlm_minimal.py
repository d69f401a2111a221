"""A text, or a list or dict of documents, as the context of rlm-minimal.

This works with any class that has `setup_context(context, query)` and a `repl_env`:

    from monocontext import Monocontext
    from monocontext.adapters import rlm_minimal
    from rlm.rlm_repl import RLM_REPL

    model = rlm_minimal.lazy(RLM_REPL)(model="gpt-5", recursive_model="gpt-5-nano")
    print(model.completion(Monocontext.open("s3://bucket/prefix"), "Who wrote it?"))

rlm-minimal would write the context to a JSON file. So its REPL starts with an empty text, and gets the variable
`context` afterwards. Contexts of other types work as before.
"""

from __future__ import annotations

from typing import Any, TypeVar

from monocontext.text.documents import DocumentDict, DocumentList
from monocontext.text.lazy_kinds import LazyText

T = TypeVar("T")


def lazy(repl_class: type[T]) -> type[T]:
    """Make a subclass whose `setup_context` and `completion` also take a `Monocontext` or its documents (no GET)."""

    def setup_context(self: Any, context: Any, query: str | None = None) -> Any:
        parent: Any = super(created, self)
        if not isinstance(context, (LazyText, DocumentList, DocumentDict)):
            return parent.setup_context(context, query)
        messages = parent.setup_context("", query)
        place(self.repl_env, context)
        return messages

    created: Any = type(
        repl_class.__name__, (repl_class,), {"setup_context": setup_context, "__doc__": repl_class.__doc__}
    )
    result: type[T] = created
    return result


def place(environment: Any, context: Any) -> None:
    """Set the variable `context` of a `REPLEnv`, with `re`, `json`, `csv` and `io` that take lazy texts."""
    environment.locals["context"] = context
    environment.globals["__builtins__"].update(context.repl_namespace().names)
