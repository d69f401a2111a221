"""What kind of thing a context is, and how much of it there is: said to the model, and recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Literal

from rlm.excerpt import bounded_repr

Kind = Literal["lazy text", "str", "list", "dict", "nothing", "object"]


@dataclass(frozen=True, slots=True)
class Held:
    """A context, described without reading it: the costliest look at a lazy one is `len`."""

    kind: Kind
    type_name: str
    length: int | None
    """Of the whole: characters for text, items for a list, keys for a dict. None where there is no length."""
    lines: int | None
    """Of text."""
    sentence: str
    """For the model: "a str of 1,200 characters in 30 lines"."""
    uri: str | None = None
    """Where a lazy text lives, if it says so."""
    offers: frozenset[str] = frozenset()
    """Which of the operations that are worth a word a lazy text has."""

    def to_dict(self) -> dict[str, Any]:
        """For the metadata line of a trajectory."""
        chars = self.length if self.kind in ("lazy text", "str") else None
        return {"uri": self.uri, "type": self.type_name, "chars": chars, "lines": self.lines, "length": self.length}


_WORTH_A_WORD = ("chunks", "find", "grep", "lower", "split", "repl_namespace")


def describe(context: object) -> Held:
    """Look at `context` from outside. Lines of a plain str are counted; of a lazy text only `len(.lines)`."""
    name = type(context).__name__
    if context is None:
        return Held("nothing", name, None, None, "nothing: the question stands alone, and `context` is None")
    if isinstance(context, str):
        count = context.count("\n") + (not context.endswith("\n") and bool(context))
        sentence = f"a {name} of {_counted(len(context), 'character')} in {_counted(count, 'line')}"
        return Held("str", name, len(context), count, sentence)
    if isinstance(context, Mapping):
        keys = bounded_repr([key for key, _ in zip(context, range(50), strict=False)], 300)
        sentence = f"a {name} with {_counted(len(context), 'key')}, first {keys}"
        return Held("dict", name, len(context), None, sentence)
    if isinstance(context, (list, tuple)):
        sentence = f"a {name} of {_counted(len(context), 'item')}{_items(context)}"
        return Held("list", name, len(context), None, sentence)
    if isinstance(context, Sized) and hasattr(context, "lines") and hasattr(context, "__getitem__"):
        lines = _length(context.lines)
        size = _counted(len(context), "character") + ("" if lines is None else f" in {_counted(lines, 'line')}")
        sentence = f"a {name}: text of {size}, kept in storage and read where you look"
        uri = next((str(u) for u in (getattr(context, "url", None), getattr(context, "uri", None)) if u), None)
        offers = frozenset(word for word in _WORTH_A_WORD if hasattr(context, word))
        return Held("lazy text", name, len(context), lines, sentence, uri, offers)
    return Held("object", name, _length(context), None, f"a {name}: {bounded_repr(context, 300)}")


def _items(items: Sequence[object]) -> str:
    kinds = sorted({type(item).__name__ for item in items[:1000]})
    lengths = [len(item) for item in items if isinstance(item, str)]
    if lengths and len(lengths) == len(items):
        return f", all str, {sum(lengths):,} characters together, the longest {max(lengths):,}"
    return f", of type {', '.join(kinds)}" if kinds else ""


def _length(value: object) -> int | None:
    return len(value) if isinstance(value, Sized) else None


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
