"""Use a text, or a list or dict of documents, as `input_0` in the local REPL of `minrlm`.

    from minrlm import RLM
    from monocontext import Monocontext
    from monocontext.adapters import minrlm

    context = Monocontext.open("s3://bucket/prefix")
    print(minrlm.lazy(RLM)(model="gpt-5-mini").completion("Who wrote it?", context).response)

`minrlm` takes any object, but its own `RLM` compresses the whole context in pieces of 500 characters before the first
prompt, to tell the model where it is dense (measured: hours for 4 GiB). After each cell it calls `str()` on every
variable to show the beginning. So the prompt comes from a note about the text, and the variable is the text, with a low
limit for what becomes one `str`. With `use_docker=True` the context is written into a container, which no object can
enter. The host's `search(input_0, word)` reads, in lower case, all that search filters cannot exclude.
"""

from __future__ import annotations

from typing import Any, TypeVar

from monocontext.adapters import description
from monocontext.text.lazy_kinds import LazyText

T = TypeVar("T")

MATERIALIZE_LIMIT = 1 << 20
"""Characters above which `str(input_0)` raises; no slice that a model prints is longer."""
NAME = "input_0"


def lazy(rlm_class: type[T]) -> type[T]:
    """The class, whose `completion` also takes a `Monocontext` (no GET), or a list or dict of documents (1 GET)."""

    def completion(self: Any, task: str, context: Any = "") -> Any:
        above: Any = super(made, self)
        if not description.is_lazy(context):
            return above.completion(task, context)
        note = described(context)
        given: Any = context
        if isinstance(given, LazyText):
            given = given.view(materialize_limit=MATERIALIZE_LIMIT)  # type: ignore[attr-defined]
        repl = self._repl
        set_any = repl.set_variable

        def set_variable(name: str, value: Any, *arguments: Any, **options: Any) -> None:
            set_any(name, given if name == NAME and value is note else value, *arguments, **options)

        repl.set_variable = set_variable
        try:
            return above.completion(task, note)
        finally:
            del repl.set_variable  # uncovers the method of the class

    made: Any = type(rlm_class.__name__, (rlm_class,), {"completion": completion, "__doc__": rlm_class.__doc__})
    result: type[T] = made
    return result


def described(context: Any) -> str:
    """The note that the prompt gets in place of the context (no GET; 1 for documents)."""
    return f"[{NAME} is not this note but {description.describe(context, NAME, 're.findall takes slices of it.')}]"
