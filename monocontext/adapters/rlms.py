"""`rlms` (alexzhang13/rlm): its local and ipython environments, at any depth.

    from monocontext import Monocontext
    from monocontext.adapters import rlms
    from rlm import RLM

    context = Monocontext.open("s3://bucket/prefix")
    model = RLM(backend="openai", backend_kwargs={"model_name": "gpt-5"}, **rlms.arguments(context))
    print(model.completion(rlms.prompt(context), root_prompt="Who wrote it?").response)

`rlms` writes its context to a file and reads it back, and takes only `str`, `dict` and `list`. So the text comes in as
a custom tool, which is handed over as it is, and setup code gives it the name `context`; the prompt is a placeholder
that knows the true length. Children of `rlm_query` keep their own prompt as `context`.

The container and cloud environments start a new Python for each cell: see docs/hosts.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from monocontext.text import Monocontext

NAME = "lazy_context"
"""What the text is called beside `context`; it must not start as the names that `rlms` reserves."""

_SETUP = """\
context_0 = context = {name}
if type(__builtins__) is dict and __builtins__ is not vars(__import__("builtins")):
    __builtins__.update(context.repl_namespace().names)
"""
"""`context` is set back to `context_0` after each cell. A local environment has builtins of its own, which get those of
the namespace kit: `re`, `json`, `csv` and `io` that take lazy texts. IPython has those of the whole process."""


class Prompt(str):
    """A `str` that says how long the context is, and holds none of it.

    `rlms` tells the model the length of its prompt, and demands a `str`. What this one holds is a note, so nobody reads
    anything else out of it.
    """

    __slots__ = ("_characters",)
    _characters: int

    def __new__(cls, characters: int) -> Self:
        made = super().__new__(cls, "(see the variable context)")
        made._characters = characters
        return made

    def __len__(self) -> int:
        return self._characters

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._characters,)


def prompt(context: Monocontext) -> Prompt:
    """What `completion` takes where it asks for the context (no GET)."""
    return Prompt(len(context))


def arguments(context: Monocontext, name: str = NAME, *, setup_code: str = "") -> dict[str, Any]:
    """Keyword arguments of `rlm.RLM` that give its code `context` (no GET).

    `setup_code` of the caller's own runs after ours. Merge `environment_kwargs` by hand where you have others.
    """
    if not name.isidentifier() or name in ("context", "context_0"):
        raise ValueError(f"the name of a tool is an identifier other than context and context_0, not {name!r}")
    return {
        "custom_tools": {name: {"tool": context, "description": _described(context)}},
        "custom_sub_tools": {},  # children get the prompt that they are asked with, not the whole text
        "environment_kwargs": {"setup_code": _SETUP.format(name=name) + setup_code},
    }


def _described(context: Monocontext) -> str:
    return (
        f"The same text as `context`: {len(context):,} characters that are fetched where you look. It behaves as a "
        "str: context[a:b], context.find(x), `x in context`, context.lines[i:j], context.grep(pattern), "
        "re.finditer(pattern, context). Ask for parts: the whole of it does not fit into memory."
    )
