"""Use a text with `rlms` (alexzhang13/rlm), in its local and ipython environments, at any depth.

    from monocontext import Monocontext
    from monocontext.adapters import rlms
    from rlm import RLM

    context = Monocontext.open("s3://bucket/prefix")
    model = RLM(backend="openai", backend_kwargs={"model_name": "gpt-5"}, **rlms.arguments(context))
    print(model.completion(rlms.prompt(context), root_prompt="Who wrote it?").response)

A list or dict of documents, `Monocontext.open(url, shape="list")`, goes the same way.

`rlms` writes its context to a file and reads it back, and takes only `str`, `dict` and `list`. So the text comes in as
a custom tool, which `rlms` passes on unchanged, and setup code names it `context`; the prompt is a placeholder with the
true length. Cells get the names and the rewriting of the namespace kit, in which `isinstance(context, str)`
is true and `re`, `json`, `csv` and `io` take the text. Children of `rlm_query` keep their own prompt as `context`.

The container and cloud environments start a new Python for each cell: see docs/hosts.md.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from monocontext.text.lazy_kinds import LazyText

if TYPE_CHECKING:
    from monocontext.text.documents import DocumentDict, DocumentList
    from monocontext.text.monocontext import Monocontext
    from monocontext.text.namespace import NamespacePatch

NAME = "lazy_context"
"""The tool's name; it must not begin as the names that `rlms` reserves do."""

_SETUP = """\
context_0 = context = {name}
__import__("monocontext.adapters.rlms", fromlist=["enter"]).enter(context)
"""
"""`rlms` sets `context` to `context_0` after each cell."""


def enter(context: Monocontext | DocumentList | DocumentDict) -> None:
    """Give the calling namespace the namespace kit of a text: its names, and its rewriting of each cell.

    In a local environment, found by its `SHOW_VARS`, this replaces `execute_code`; IPython has a list of transformers.
    No object that other namespaces share changes.
    """
    names = sys._getframe(1).f_globals  # a local environment has no `globals`
    kit = context.repl_namespace()
    own = names["__builtins__"]
    if type(own) is dict and own is not vars(builtins):
        own.update(kit.names)
        repl = names["SHOW_VARS"].__self__
        repl.execute_code = partial(_execute, kit, repl.execute_code)
    elif "get_ipython" in names:
        names["__builtins__"] = vars(builtins) | kit.names  # for this namespace alone
        names["get_ipython"]().ast_transformers.append(_CellTransformer(kit))


def _execute(kit: NamespacePatch, execute: Callable[[Any], Any], code: str) -> Any:
    """Run a cell of a local environment as `kit` transforms it; the environment's `exec` takes compiled code too."""
    try:
        cell: Any = compile(kit.transform(ast.parse(code)), "<string>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):  # the environment reports the error in its own words
        cell = code
    return execute(cell)


class _CellTransformer:
    """Rewrites cells, in the form that IPython takes."""

    def __init__(self, kit: NamespacePatch):
        self._kit = kit

    def visit(self, tree: ast.Module) -> ast.Module:
        return self._kit.transform(tree)


class Prompt(str):
    """A `str` with the length of the context and without its text.

    `rlms` demands a `str` as its prompt and tells the model its length. This one holds a short note.
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


def prompt(context: Monocontext | DocumentList | DocumentDict) -> Prompt:
    """The prompt to pass to `completion` instead of the text (no GET). Its length is that of all documents of a list or
    dict together, in bytes."""
    return Prompt(len(context) if isinstance(context, LazyText) else context.documents.text_bytes)


def arguments(
    context: Monocontext | DocumentList | DocumentDict, name: str = NAME, *, setup_code: str = ""
) -> dict[str, Any]:
    """Keyword arguments of `rlm.RLM` that give its code `context` (no GET).

    `setup_code` of the caller's own runs after ours. Merge `environment_kwargs` by hand where you have others.
    """
    if not name.isidentifier() or name in ("context", "context_0"):
        raise ValueError(f"the name of a tool is an identifier other than context and context_0, not {name!r}")
    return {
        "custom_tools": {name: {"tool": context, "description": _describe(context)}},
        "custom_sub_tools": {},  # children get their own prompt, not the whole text
        "environment_kwargs": {"setup_code": _SETUP.format(name=name) + setup_code},
    }


def _describe(context: Monocontext | DocumentList | DocumentDict) -> str:
    if not isinstance(context, LazyText):
        told = context.describe()
        return f"The same as `context`, which is {told['sentence']}. {told['access']}"
    return (
        f"The same text as `context`: {len(context):,} characters that are fetched where you look. It behaves as a "
        "str: context[a:b], context.find(x), `x in context`, context.lines[i:j], context.grep(pattern), "
        "re.finditer(pattern, context). Read parts: the whole does not fit into memory."
    )
