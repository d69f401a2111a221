"""The record of earlier roots in a root, by which a writer finds out whether its own commit is part of the text.

Each commit of a text makes a root with the next generation number. `gc` removes old roots, so a number may become free
while a slow writer still wants it.
"""

from __future__ import annotations

from typing import Any

from monocontext.records import dataclass, replace

ANCESTORS = 16
"""The number of generations that a root names. A writer that was paused between requests looks for its own there."""
_ID_DIGITS = 8


@dataclass(frozen=True, slots=True)
class History:
    """The record of earlier roots in a root."""

    lineage: str = ""
    """A random name, given by the text's first root. Within a lineage, each text begins with the text before it. Empty
    if an older version wrote the root."""
    ancestors: tuple[str, ...] = ()
    """The first 8 digits of the `write_id` of the previous generations, the latest last."""
    floor: int = 0
    """Generations below this one may have been removed."""
    fence: int = 0
    """The newest generation that `gc` committed before it removed objects younger than its safe grace period. A writer
    must not rely on an object that it stored, or found, before that."""
    replaced: tuple[str, ...] = ()
    """Keys of objects that the previous generation names and this one does not, and that are never stored again."""

    def after(self, write_id: str, before: History) -> History:
        """This history for a root that follows the root `write_id` with the history `before`."""
        return replace(
            self,
            ancestors=(*before.ancestors, write_id[:_ID_DIGITS])[-ANCESTORS:],
            floor=max(self.floor, before.floor),
            fence=max(self.fence, before.fence),
        )

    def descends_from(self, generation: int, write_id: str, own_generation: int) -> bool | None:
        """Whether the root `own_generation`, which has this history, follows an earlier root.

        `None` if that is too long ago to tell.
        """
        if generation >= self.floor:
            return True  # that root was not removed, so its number was not used twice
        back = own_generation - generation
        if not 0 < back <= len(self.ancestors):
            return None
        return self.ancestors[-back] == write_id[:_ID_DIGITS]

    def as_object(self) -> dict[str, Any]:
        """The JSON form, without empty fields."""
        return {name: value for name in self.__match_args__ if (value := getattr(self, name))}

    @classmethod
    def from_object(cls, row: dict[str, Any]) -> History:
        """Parse the JSON form. Raises `ValueError` or `TypeError`."""
        floor, fence = row.get("floor", 0), row.get("fence", 0)
        if not (isinstance(floor, int) and isinstance(fence, int) and floor >= 0 and fence >= 0):
            raise ValueError(f"history: floor and fence must be generations, found {floor!r} and {fence!r}")
        return cls(
            str(row.get("lineage", "")),
            tuple(map(str, row.get("ancestors", ()))),
            floor,
            fence,
            tuple(map(str, row.get("replaced", ()))),
        )
