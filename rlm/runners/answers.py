"""Accept the final answer of a run, or refuse it and tell the model what to write instead.

A model can answer in three ways:

- by the dict `answer`: `answer["content"] = ...; answer["ready"] = True`. It counts as it is at the end of the cell, so
  the order does not matter, and an exception does not lose the answer.
- by a call: `FINAL(value)`, `FINAL_VAR("name")` or `SUBMIT(value)`, which ends the cell at once.
- by text in a reply without code, which `rlm.prompts.replies` reads.

Values without content are refused: None, blank text, a placeholder, NaN, an error, an iterator, an object without a
text of its own. Empty lists and dicts, 0 and False are answers.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence
from numbers import Number
from typing import Any, NoReturn

from monocontext.text.lazy_kinds import LazyContext
from rlm.context.excerpt import bounded_repr
from rlm.context.lazy import lazy_texts
from rlm.errors import AnswerRefused
from rlm.runners.claims import Claim, read_claims

MOST_ANSWER_BYTES = 63 << 20  # the largest answer in UTF-8: a worker sends it in one message with its cell's output

_SLOT_KEYS = {"content", "ready"}  # of the dict `answer`
_PLACEHOLDERS = frozenset(("...", "context", "value", "variable_name", "your own words"))
"""Placeholders that a model copies from the instructions instead of giving its answer."""
_PLACEHOLDER = re.compile(
    r"(?:insert |put |write |type )?(?:(?:the|your|my) )?(?:final |actual |own |computed )*"
    r"(?:answer|(?<=your )(?:text|value|response)|(?<=final )(?:text|value|response)|result)"
    r"(?: (?:goes )?here| in words| (?:string|text|value|variable))?"
)
"""Similar ones, such as "your final answer here", not "the answer is 4"; in lower case, with spaces for underscores."""


class FinalAnswer(BaseException):
    """Ends the cell. It is not an `Exception`, since `except Exception` in the model's code would catch it."""


class Answers:
    """Collects the answer of the cells of one namespace, given by a call of one of `functions` or in `slot`."""

    def __init__(self, context: object, namespace: Mapping[str, Any], texts: Sequence[LazyContext] = ()) -> None:
        """`namespace`: that of the cells. `texts`: stored texts that the caller gave, in `context` or tools."""
        self._context, self._namespace, self._texts = context, namespace, texts
        self._called: str | None = None  # the answer that a call gave in this cell
        self._refused: AnswerRefused | None = None  # why the value of that call was refused
        self._claimed: object = None  # the `sources` of that call, as the model wrote them
        self.slot: dict[str, Any] = {"content": "", "ready": False}  # the `answer` dict of the namespace

        # Plain functions: an error about their arguments names them as the model calls them, without `self`.
        def final(value: object, *, sources: object = None) -> NoReturn:
            """End the run with `value` as the answer. `sources`: its evidence, (start, stop) offsets and quotes."""
            self._offer(lambda: value, sources)

        def final_var(name_or_value: object, *, sources: object = None) -> NoReturn:
            """End the run with the variable of this name, or with this value, as the answer. `sources` as in FINAL."""
            self._offer(lambda: self._value_of(name_or_value), sources)

        def submit(*values: object, **fields: object) -> NoReturn:
            """End the run with a value, or with several fields by name, as the answer."""
            if bool(values) == bool(fields):
                raise TypeError(f"SUBMIT takes values or name=value, not {'both' if values else 'nothing'}")
            items = list(values or fields.values())
            value: object = items[0] if len(items) == 1 else fields or items
            final(value)

        self.functions = {"FINAL": final, "FINAL_VAR": final_var, "SUBMIT": submit}  # calls that answer, by name
        for name, call in self.functions.items():
            call.__name__ = call.__qualname__ = name

    def collect(self) -> tuple[str | None, tuple[Claim, ...]]:
        """The final answer of the last cell (None if it gave none) and its citations. Raises AnswerRefused."""
        answer, refused, claimed = self._called, self._refused, self._claimed
        self._called = self._refused = self._claimed = None  # another question may follow in this namespace
        slot = self._namespace.get("answer")
        if answer is None:
            if refused is not None:
                raise refused
            if not isinstance(slot, Mapping) or not slot.get("ready"):
                return None, ()
            try:
                answer = self.text_of(slot.get("content"))
            except AnswerRefused:
                for refused_slot in (slot, self.slot):
                    if isinstance(refused_slot, MutableMapping):
                        refused_slot["ready"] = False
                raise
        if claimed is None and isinstance(slot, MutableMapping):
            claimed = slot.pop("sources", None)
        return answer, read_claims(claimed)

    def text_of(self, value: object) -> str:
        """`value` as the text of an answer. Raises AnswerRefused for a value without content."""
        is_slot = isinstance(value, dict) and (value is self.slot or value.keys() - {"sources"} == _SLOT_KEYS)
        if is_slot and value is not self._context:
            slot: Any = value
            value = slot["content"]  # FINAL(answer) means its content
            if value is None or value is slot or (isinstance(value, str) and not value):
                raise AnswerRefused("`answer` holds no content yet: write FINAL(value) with the value that you found")
        if value is self._context and value is not None:
            raise AnswerRefused("`context` is not an answer: give a slice such as context[a:b], or your own words")
        if any(value is text for text in self._texts):
            raise AnswerRefused("a whole stored text is not an answer: give a slice of it, or your own words")
        try:
            refusal = _refusal_of_value(value) or _refusal_of_items(value, self.slot)
            text = "" if refusal else str(value)
        except Exception as exc:  # an object that the model made, or a lazy one: the model can give another
            raise AnswerRefused(
                f"str() of this {type(value).__name__} raised {exc!r}: give a part of it, or your own words"
            ) from exc
        if refusal:
            raise AnswerRefused(refusal)
        check_text(text)
        return text

    def _offer(self, get: Callable[[], object], sources: object) -> NoReturn:
        """Keep the value that `get` returns as the answer, unless the cell has given one, and end the cell. A refused
        answer counts too: code that catches `FinalAnswer` goes on, and might then offer what it has for "not found"."""
        slot = self._namespace.get("answer")
        is_given = isinstance(slot, Mapping) and slot.get("ready")
        if not is_given and self._called is None and self._refused is None:
            self._claimed = sources
            try:
                self._called = self.text_of(get())
            except AnswerRefused as exc:
                self._refused = exc
        raise FinalAnswer

    def _value_of(self, name_or_value: object) -> object:
        """The value that FINAL_VAR means. Raises AnswerRefused if no variable has that name, or if two may be meant."""
        if not isinstance(name_or_value, str):
            return name_or_value
        namespace = self._namespace
        is_value = any(value is name_or_value for value in namespace.values())
        if name_or_value in namespace:
            # After `name = "result"`, FINAL_VAR(name) may mean either.
            if is_value and namespace[name_or_value] is not name_or_value:
                raise AnswerRefused(
                    f"{name_or_value!r} is the value of one variable and the name of another: write "
                    f"FINAL({name_or_value}) for the variable, or FINAL({name_or_value!r}) for the text"
                )
            return namespace[name_or_value]
        if name_or_value.isidentifier() and not is_value:
            raise AnswerRefused(f"there is no variable {name_or_value!r}: write FINAL({name_or_value!r}) for that text")
        return name_or_value


def check_text(text: str) -> None:
    """Raise AnswerRefused for a text that is blank, or too long for a worker to send."""
    if not any(character.isprintable() and not character.isspace() for character in text):
        raise AnswerRefused("an empty text is not an answer: say in words what you found, or that you found nothing")
    # A character has at most six bytes (surrogates are escaped), so most texts are short enough without being encoded.
    size = len(text.encode("utf-8", "backslashreplace")) if 6 * len(text) > MOST_ANSWER_BYTES else 0
    if size > MOST_ANSWER_BYTES:
        raise AnswerRefused(f"an answer must have at most {MOST_ANSWER_BYTES:,} bytes, not {size:,}: shorten it")


def check_written_answer(text: str) -> None:
    """Raise AnswerRefused if the `text` of a written `FINAL(text)` is a placeholder, or if `check_text` refuses it."""
    check_text(text)
    plain = text.strip().lower()
    words = " ".join(plain.strip("<>[]{}()`*\"'. ").replace("_", " ").split())
    if plain in _PLACEHOLDERS or _PLACEHOLDER.fullmatch(words):
        raise AnswerRefused(
            f"FINAL({text.strip()}) holds no answer: write the answer itself between the parentheses, or "
            "FINAL_VAR(variable_name) for the value of a variable"
        )


def _refusal_of_value(value: object) -> str:
    """The reason to refuse a value; empty for one that may be an answer."""
    if value is None:
        return (
            "None is not an answer (print(...) and functions without `return` return None): write FINAL(value), or "
            'say in words that there is nothing, as in FINAL("not found")'
        )
    if value is ... or value is NotImplemented:
        return "`...` is a placeholder: write FINAL(value) with the value that you found"
    if isinstance(value, Number) and value != value:
        return "NaN is not an answer: check how it was computed, or say in words that there is no such number"
    return _refusal_of_type(value)


def _refusal_of_type(value: object) -> str:
    """The reason to refuse all values of this value's type; empty for a type that has a text."""
    name = type(value).__name__
    if isinstance(value, BaseException):
        return f"an exception ({name}) is not an answer: fix what raised it, or say in words what you know"
    if isinstance(value, Awaitable | AsyncIterable):
        return f"a {name} is not an answer: await it, and give its result"
    if isinstance(value, Iterator):
        return f"a {name} is not an answer, since it has no items yet: write FINAL(list(...)), or join them"
    if type(value).__str__ is object.__str__ and (callable(value) or bounded_repr(value).startswith("<")):
        return f"a {name} has no text of its own: call it, or give its items or attributes as text"
    return ""


def _refusal_of_items(value: object, slot: object) -> str:
    """The reason to refuse an item of a list, tuple, set or dict; else empty. Checks one item of each type."""
    if isinstance(value, dict):
        items: Any = value.values()
    elif isinstance(value, (list, tuple, set, frozenset)):
        items = value
    else:
        return ""
    if any(item is slot for item in items):
        return "`answer` itself is not an answer: write FINAL(value) with the value that you found"
    if next(lazy_texts([*items]), None) is not None:  # its repr would be in the answer, not its characters
        return f"this {type(value).__name__} holds a lazy text: give slices such as context[a:b], or str(...) of it"
    for item in {type(item): item for item in items}.values():
        if refusal := _refusal_of_type(item):
            return f"an item of this {type(value).__name__} is refused: {refusal}"
    return ""
