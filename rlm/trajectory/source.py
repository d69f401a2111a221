"""A place of the context that an answer rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

_WORDS_CHARACTERS = 100
NONE_RECORDED = "No sources were recorded for this answer."


@dataclass(frozen=True, slots=True)
class Source:
    """Characters of the context, half-open."""

    start: int
    stop: int
    lines: tuple[int, int] | None
    """The first and the last, from 1, of the document where there is one; None where the context does not know."""
    document: str | None
    """The name of the document; None where the context has none."""
    text: str
    """The text there; head and tail of a long one."""
    how: Literal["cited", "read"]
    """`cited`: the model said so, and it was read back. `read`: a cell that the answer rests on read it."""
    generation: int | None = None
    """Generation of a context in storage."""
    sha256: str = ""
    """SHA-256 of the characters as UTF-8; empty if some were not read back."""

    @property
    def place(self) -> str:
        """`src/a.py:12`, or what is known of that."""
        if self.lines is None:
            return f"{self.document or 'characters'}:{self.start}-{self.stop}"
        return f"{self.document or 'line'}:{self.lines[0]}"

    @property
    def reference(self) -> str:
        """For `monocontext cite URL REFERENCE`, which tells whether it still stands."""
        generation = "" if self.generation is None else f"@{self.generation}"
        return f"{self.start}-{self.stop}{generation}" + (f"#{self.sha256[:16]}" if self.sha256 else "")

    def to_dict(self) -> dict[str, Any]:
        """For a trajectory and for JSON."""
        return asdict(self) | {"lines": None if self.lines is None else list(self.lines), "reference": self.reference}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Source:
        """The source that `to_dict` gave."""
        lines = row.get("lines")
        return cls(
            row["start"], row["stop"], None if lines is None else (lines[0], lines[1]), row.get("document"),
            row["text"], row["how"], row.get("generation"), row.get("sha256", ""),
        )  # fmt: skip


def format_sources(sources: Sequence[Source]) -> str:
    """A line for each: place, how, reference, and how it begins."""
    lines = [f"{each.place}  {each.how}  {each.reference}  {_first_words(each.text)}" for each in sources]
    return "\n".join(["Sources:", *lines]) if lines else NONE_RECORDED


def _first_words(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WORDS_CHARACTERS else f"{line[:_WORDS_CHARACTERS]}..."
