"""Make a root the next generation: a new number, random id, and time."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

from monocontext.format.manifest import History, Manifest
from monocontext.records import replace


def as_generation(root: Manifest, number: int, history: History | None = None, **changes: Any) -> Manifest:
    """A root with these changes as generation `number`, created now. Without a history it begins a new lineage."""
    write_id = uuid.uuid4().hex
    return replace(
        root,
        generation=number,
        write_id=write_id,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        history=history or History(write_id),
        extra={},
        **changes,
    )
