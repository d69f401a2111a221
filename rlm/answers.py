"""One final answer, in any of three dialects.

- the dict: `answer["content"] = ...; answer["ready"] = True`, also by `update` or by binding `answer` anew. It is
  looked at when the cell ends, so content that comes after `ready` counts and an exception does not lose it;
- calls: `FINAL(value)`, `FINAL_VAR("name")`, `SUBMIT(value)` end the cell at once;
- text in a reply without code: see `rlm.replies`; the runner looks the name of a `FINAL_VAR(name)` up here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, NoReturn

from rlm.errors import AnswerRefused


class FinalAnswer(BaseException):
    """Ends the cell. No `Exception`, so that `except Exception` in the model's code lets it pass."""


class Answers:
    """Where a run's final answer arrives."""

    def __init__(self, context: object) -> None:
        self._context = context
        self._called: str | None = None
        self.slot: dict[str, Any] = {"content": "", "ready": False}
        """The `answer` dict of the namespace."""

    def functions(self, namespace: Mapping[str, Any]) -> dict[str, Callable[..., NoReturn]]:
        """The calls that give an answer, by name; `namespace` is where `FINAL_VAR` looks."""

        def final(value: object) -> NoReturn:
            """End the run with `value` as the answer."""
            self._called = self.text_of(value)
            raise FinalAnswer

        def final_var(name_or_value: object) -> NoReturn:
            """End the run with the variable of this name, or with this value, as the answer."""
            final(self._value_of(name_or_value, namespace))

        def submit(*values: object, **fields: object) -> NoReturn:
            """End the run with a value, or with several fields by name, as the answer."""
            if bool(values) == bool(fields):
                raise TypeError("SUBMIT takes the answer either by position or by keyword")
            given = list(values or fields.values())
            final(given[0] if len(given) == 1 else fields or given)

        calls = {"FINAL": final, "FINAL_VAR": final_var, "SUBMIT": submit}
        for name, call in calls.items():
            call.__name__ = call.__qualname__ = name
        return calls

    def collect(self, namespace: Mapping[str, Any]) -> str | None:
        """The final answer at the end of a cell, or None. Raises AnswerRefused, once per offer."""
        if self._called is not None:
            called, self._called = self._called, None  # taken: another question may follow in this namespace
            return called
        slot = namespace.get("answer")
        if not isinstance(slot, Mapping) or not slot.get("ready"):
            return None
        try:
            return self.text_of(slot.get("content"))
        except AnswerRefused:
            for refused in (slot, self.slot):
                if isinstance(refused, MutableMapping):
                    refused["ready"] = False
            raise

    def adopt(self, rebound: object) -> None:
        """Take over what a cell bound `answer` to, so that nothing is lost when the name is restored."""
        if isinstance(rebound, Mapping):
            self.slot.update(rebound)
        else:
            self.slot["content"] = rebound

    def named(self, name: str, namespace: Mapping[str, Any]) -> str:
        """The text of the variable `name`. Raises AnswerRefused."""
        if name not in namespace:
            raise AnswerRefused(f"there is no variable {name!r}: assign it in a cell first, or use FINAL(your answer)")
        return self.text_of(namespace[name])

    def text_of(self, value: object) -> str:
        """`value` as the text of an answer. Raises AnswerRefused for the context itself and for what has no text."""
        if value is self._context and value is not None:
            raise AnswerRefused("`context` itself is no answer: give a slice such as context[a:b], or your own words")
        if isinstance(value, str):
            return str(value)
        try:
            return str(value)
        except Exception as exc:  # model-made and lazy objects alike: any fault here is the model's to repair
            raise AnswerRefused(f"this {type(value).__name__} has no text: {type(exc).__name__}: {exc}") from exc

    def _value_of(self, name_or_value: object, namespace: Mapping[str, Any]) -> object:
        """A str is a name where a variable has it, else a value where a variable holds it or no name looks like it."""
        if not isinstance(name_or_value, str):
            return name_or_value
        if name_or_value in namespace:
            return namespace[name_or_value]
        held = any(value is name_or_value for value in namespace.values())
        if name_or_value.isidentifier() and not held:
            raise AnswerRefused(f"there is no variable {name_or_value!r}; a literal answer is FINAL({name_or_value!r})")
        return name_or_value
