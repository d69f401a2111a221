"""Record what a root says of the generations before it, so that old ones may be removed while writers and readers run.

Generations are numbered, and a number is taken by creating its object. Once an old root is removed its number could be
taken again, by a writer that slept. So roots are removed only below the `floor` that a newer root, of which
`manifest.json` is a copy, has announced; and a writer finds itself among the `ancestors` of that root, or not.
"""

from __future__ import annotations

from typing import Any

from monocontext.records import dataclass, replace

ANCESTORS = 16
"""Generations that a root names: a writer that was paused between two requests looks itself up there."""
_ID_DIGITS = 8


@dataclass(frozen=True, slots=True)
class History:
    """The record of earlier roots in a root."""

    lineage: str = ""
    """Random name of the text's first root. Roots of one lineage hold texts each of which begins with the one before;
    empty where an older version wrote the root."""
    ancestors: tuple[str, ...] = ()
    """First 8 digits of the `write_id` of the generations right before this one, the nearest last."""
    floor: int = 0
    """Generations below this one may have been removed."""
    fence: int = 0
    """The newest generation that `gc` committed before it removed objects younger than its safe grace period. A writer
    must not rely on an object that it stored, or found, before that."""
    replaced: tuple[str, ...] = ()
    """Keys of objects that the generation before names and this one does not, and that can never be stored again."""

    def after(self, write_id: str, before: History) -> History:
        """This history for a root that follows the root `write_id` with the history `before`."""
        return replace(
            self,
            ancestors=(*before.ancestors, write_id[:_ID_DIGITS])[-ANCESTORS:],
            floor=max(self.floor, before.floor),
            fence=max(self.fence, before.fence),
        )

    def descends_from(self, generation: int, write_id: str, own_generation: int) -> bool | None:
        """Whether the root `own_generation` with this history follows an earlier one; None: too long ago to tell."""
        if generation >= self.floor:
            return True  # no root of that number was removed, so none was written twice
        back = own_generation - generation
        if not 0 < back <= len(self.ancestors):
            return None
        return self.ancestors[-back] == write_id[:_ID_DIGITS]

    def as_object(self) -> dict[str, Any]:
        """The JSON form, without what is empty."""
        found: dict[str, Any] = {"lineage": self.lineage, "ancestors": list(self.ancestors), "floor": self.floor}
        found |= {"fence": self.fence, "replaced": list(self.replaced)}
        return {name: value for name, value in found.items() if value}

    @classmethod
    def from_object(cls, row: dict[str, Any]) -> History:
        """Raises `ValueError` or `TypeError` for what is none."""
        floor, fence = row.get("floor", 0), row.get("fence", 0)
        if not (isinstance(floor, int) and isinstance(fence, int) and floor >= 0 and fence >= 0):
            raise ValueError(f"history: not generations: {floor!r}, {fence!r}")
        return cls(
            str(row.get("lineage", "")),
            tuple(map(str, row.get("ancestors", ()))),
            floor,
            fence,
            tuple(map(str, row.get("replaced", ()))),
        )
