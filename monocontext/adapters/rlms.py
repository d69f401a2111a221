"""A text as the context of `rlms` (alexzhang13/rlm), in its local and ipython environments, at any depth.

    from monocontext import Monocontext
    from monocontext.adapters import rlms
    from rlm import RLM

    context = Monocontext.open("s3://bucket/prefix")
    model = RLM(backend="openai", backend_kwargs={"model_name": "gpt-5"}, **rlms.arguments(context))
    print(model.completion(rlms.prompt(context), root_prompt="Who wrote it?").response)

A list or dict of documents, `Monocontext.open(url, shape="list")`, works in the same way.

`rlms` accepts only `str`, `dict` and `list` as a context, and copies it through a file. So the text comes in as a
custom tool, which `rlms` passes on unchanged, and setup code names it `context`. The prompt is a placeholder with the
true length. Cells run in the text's `repl_namespace()`, in which `isinstance(context, str)` is true, and `re`, `json`,
`csv` and `io` take the text. Children of `rlm_query` keep their own prompt as `context`.

The container and cloud environments start a new Python for each cell: see docs/hosts.md.
"""

from __future__ import annotations

import builtins
import sys
from typing import TYPE_CHECKING, Any, Self

from monocontext.text.lazy_kinds import LazyText

if TYPE_CHECKING:
    from monocontext.text.documents import DocumentDict, DocumentList
    from monocontext.text.monocontext import Monocontext

NAME = "lazy_context"
"""The tool's name. It must not begin like the names that `rlms` reserves."""

_SETUP = """\
context_0 = context = {name}
__import__("monocontext.adapters.rlms", fromlist=["enter"]).enter(context)
"""
"""It sets `context_0` too, since `rlms` resets `context` to it after each cell."""


def enter(context: Monocontext | DocumentList | DocumentDict) -> None:
    """Patch the caller's namespace for a text: add names. It changes no object that other namespaces share."""
    names = sys._getframe(1).f_globals  # a local environment has no `globals`
    patch = context.repl_namespace()
    own = names["__builtins__"]
    if type(own) is dict and own is not vars(builtins):
        own.update(patch.names)
    elif "get_ipython" in names:
        names["__builtins__"] = vars(builtins) | patch.names  # a copy, for this namespace alone


class Prompt(str):
    """A short `str` whose `len` is that of the context: `rlms` requires a `str`, and tells the model its length."""

    __slots__ = ("_characters",)
    _characters: int

    def __new__(cls, characters: int) -> Self:
        created = super().__new__(cls, "(see the variable context)")
        created._characters = characters
        return created

    def __len__(self) -> int:
        return self._characters

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._characters,)


def prompt(context: Monocontext | DocumentList | DocumentDict) -> Prompt:
    """The prompt to pass to `completion` instead of the text (no GET).

    For a list or dict its length is that of all documents together, in bytes.
    """
    return Prompt(len(context) if isinstance(context, LazyText) else context.documents.text_bytes)


def arguments(
    context: Monocontext | DocumentList | DocumentDict, name: str = NAME, *, setup_code: str = ""
) -> dict[str, Any]:
    """Keyword arguments of `rlm.RLM` that give its code `context` (no GET).

    `setup_code` runs after ours. If you pass `environment_kwargs` of your own, merge the two by hand.
    """
    if not name.isidentifier() or name in ("context", "context_0"):
        raise ValueError(f"name must be an identifier other than context and context_0, not {name!r}")
    return {
        "custom_tools": {name: {"tool": context, "description": _describe(context)}},
        "custom_sub_tools": {},  # children get their own prompt, not the whole text
        "environment_kwargs": {"setup_code": _SETUP.format(name=name) + setup_code},
    }


def _describe(context: Monocontext | DocumentList | DocumentDict) -> str:
    if not isinstance(context, LazyText):
        facts = context.describe()
        return f"The same as `context`, which is {facts['sentence']}. {facts['access']}"
    return (
        f"The same text as `context`: {len(context):,} characters that are fetched where you look. It behaves as a "
        "str: context[a:b], context.find(x), `x in context`, context.lines[i:j], context.grep(pattern), "
        "re.finditer(pattern, context). Read parts: the whole does not fit into memory."
    )
