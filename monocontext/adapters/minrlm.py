"""`minrlm`, its local REPL, where the text is called `input_0`.

    from minrlm import RLM
    from monocontext import Monocontext
    from monocontext.adapters import minrlm

    context = Monocontext.open("s3://bucket/prefix")
    print(minrlm.lazy(RLM)(model="gpt-5-mini").completion("Who wrote it?", context).response)

It takes any object, but its own `RLM` compresses the whole context in pieces of 500 characters before the first prompt,
to tell the model where it is dense (measured: hours for 4 GiB). And after each cell it takes `str()` of every variable
to show the beginning. So the prompt is made from a note that says what the text is, and the variable is the text, with
a low limit for what becomes one `str`. With `use_docker=True` the context is written into a container: no object gets
there. Its own `search(input_0, word)` reads all that search filters cannot exclude, in lower case.
"""

from __future__ import annotations

from typing import Any, TypeVar

from monocontext.kinds import LazyText

T = TypeVar("T")

MATERIALIZE_LIMIT = 1 << 20
"""Characters: above it `str(input_0)` is refused, and a slice of no model's printing is longer."""
NAME = "input_0"


def lazy(rlm_class: type[T]) -> type[T]:
    """The class, able to take a `Monocontext` as the context of `completion` (no GET). Others go their usual way."""

    def completion(self: Any, task: str, context: Any = "") -> Any:
        above: Any = super(made, self)
        if not isinstance(context, LazyText):
            return above.completion(task, context)
        note = described(context)
        text = context.view(materialize_limit=MATERIALIZE_LIMIT)  # type: ignore[attr-defined]
        repl = self._repl
        given = repl.set_variable

        def set_variable(name: str, value: Any, *arguments: Any, **options: Any) -> None:
            given(name, text if name == NAME and value is note else value, *arguments, **options)

        repl.set_variable = set_variable
        try:
            return above.completion(task, note)
        finally:
            del repl.set_variable  # the method of the class is there again

    made: Any = type(rlm_class.__name__, (rlm_class,), {"completion": completion, "__doc__": rlm_class.__doc__})
    result: type[T] = made
    return result


def described(context: Any) -> str:
    """What the prompt is made of in place of the text (no GET)."""
    return (
        f"[{NAME} is not this note but a text of {len(context):,} characters that is fetched where you look. It "
        f"behaves as a str: {NAME}[a:b], {NAME}.find(x), x in {NAME}, {NAME}.lines[i:j], {NAME}.grep(pattern). "
        f"re.findall takes slices of it.]"
    )
