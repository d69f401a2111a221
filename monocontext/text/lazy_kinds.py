"""Marker base classes for lazy values."""

from __future__ import annotations

from typing import ClassVar


class LazyText:
    """A text that stands for a `str`: `Monocontext`, and nothing else in this package."""

    __slots__ = ()
    kinds: ClassVar[set[type]] = set()
    """All classes of such texts, for hot loops: a look-up in a set is fast."""
    suspects: ClassVar[set[type]] = {list, tuple, dict}
    """These, and the containers that may hold such texts."""
    shapes: ClassVar[set[type]] = set()
    """Lazy lists and dicts among them that can become real ones."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        LazyText.kinds.add(cls)
        LazyText.suspects.add(cls)


class LazyItems:
    """A lazy list of strings that stands for a `list`: what `split` and `splitlines` give for large texts, and the
    documents of a context."""

    __slots__ = ()

    def _materialize(self) -> list[str] | None:
        """The real list, where it is known to be small."""
        return None


class LazyMapping:
    """A lazy mapping from strings to strings that stands for a `dict`: the documents of a context."""

    __slots__ = ()

    def _materialize(self) -> dict[str, str] | None:
        """The real dict, where it is known to be small."""
        return None
