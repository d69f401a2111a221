"""Give a text to `rlms` (alexzhang13/rlm) as its context, in its local and ipython environments, at any depth.

    from monocontext.adapters import rlms
    from rlm import RLM

    model = RLM(backend="openai", backend_kwargs={"model_name": "gpt-5"}, **rlms.arguments(context))
    print(model.completion(rlms.prompt(context), root_prompt="Who wrote it?").response)

`rlms` would copy a context through a file. So the text is passed as a custom tool, which setup code names `context`,
and the prompt is a placeholder of the same length (for documents: in bytes). Children of `rlm_query` get their own.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any, Self

from monocontext.text.lazy_kinds import LazyText

if TYPE_CHECKING:
    from monocontext.text.documents.shapes import DocumentDict, DocumentList
    from monocontext.text.monocontext import Monocontext

    Texts = Monocontext | DocumentList | DocumentDict

_NAME = "lazy_context"  # unlike the names that `rlms` reserves
_SETUP = f"""\
context_0 = context = {_NAME}
__builtins__ = __import__("monocontext.adapters.rlms", fromlist=["builtins_for"]).builtins_for(context, __builtins__)
"""
"""It sets `context_0` too, since `rlms` resets `context` to it after each cell."""


def builtins_for(context: Texts, namespace_builtins: Any) -> dict[str, Any]:
    """Builtins in which `isinstance`, `open`, `print` and the like also accept the text.

    `namespace_builtins`: what a namespace has as `__builtins__`. A dict of its own, as in the local environment, is
    changed in place; the module that all namespaces share, as in `ipython`, is copied.
    """
    is_own = isinstance(namespace_builtins, dict) and namespace_builtins is not vars(builtins)
    changed: dict[str, Any] = namespace_builtins if is_own else dict(vars(builtins))
    changed.update(context.repl_namespace().names)
    return changed


class Prompt(str):
    """A short `str` whose `len` is that of the context: `rlms` requires a `str`, and tells the model its length."""

    _characters: int

    def __new__(cls, characters: int) -> Self:
        created = super().__new__(cls, "(see the variable context)")
        created._characters = characters
        return created

    def __len__(self) -> int:
        return self._characters

    def __getnewargs__(self) -> Any:
        return (self._characters,)


def prompt(context: Texts) -> Prompt:
    """The prompt to pass to `completion` instead of the text (no GET)."""
    return Prompt(len(context) if isinstance(context, LazyText) else context.documents.table.text_bytes)


def arguments(context: Texts) -> dict[str, Any]:
    """Keyword arguments of `rlm.RLM` that give its code `context` (no GET). Append your own code to `setup_code`."""
    return {
        "custom_tools": {_NAME: {"tool": context, "description": _describe(context)}},
        "custom_sub_tools": {},  # children get their own prompt, not the whole text
        "environment_kwargs": {"setup_code": _SETUP},
    }


def _describe(context: Texts) -> str:
    if not isinstance(context, LazyText):
        kind = context.describe()
        return f"The same as `context`, which is {kind['sentence']}. {kind['access']}"
    return (
        f"The same text as `context`: {len(context):,} characters that are fetched where you look. It behaves as a "
        "str: context[a:b], context.find(x), `x in context`, context.lines[i:j], context.grep(pattern), "
        "re.finditer(pattern, context). Read parts: the whole does not fit into memory."
    )
