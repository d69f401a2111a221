"""Record the costs of compiling a project: `compiled/<project>/spent.json`, dollars and calls by day (UTC).

It is written after each call by compare-and-swap: a machine that dies loses only the call in progress, and two that
compile the same project at once lose nothing.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from monocontext.errors import AlreadyExists, DamagedData, NotFound, StoreFailure
from monocontext.sessions.names import COMPILED
from monocontext.stores.protocol import Store, get_bounded, put_own

_MOST_BYTES = 1 << 20
"""The largest account that is read."""
_KEPT_DAYS = 400
"""Older days are dropped."""
_ATTEMPTS = 10
"""The most tries to add to an account that others write, too."""


def today() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of a project's models by day."""

    days: dict[str, tuple[float, int]]
    """Dollars and calls by day, such as `2026-11-23`."""

    def dollars(self, day: str | None = None) -> float:
        """Dollars spent on one day, or without `day` in all."""
        return sum(dollars for each, (dollars, _) in self.days.items() if day in (None, each))

    def calls(self, day: str | None = None) -> int:
        return sum(calls for each, (_, calls) in self.days.items() if day in (None, each))


class CostLedger:
    """The costs of one project."""

    def __init__(self, store: Store, project_part: str) -> None:
        self._store = store
        self._key = f"{COMPILED}/{project_part}/spent.json"
        self._etag: str | None = None
        self.spent = Costs({})
        """The costs at the last `load` or `add`."""

    def load(self) -> Costs:
        """The costs so far (1 GET). Raises `DamagedData`."""
        try:
            blob = get_bounded(self._store, self._key, _MOST_BYTES)
        except NotFound:
            self._etag, self.spent = None, Costs({})
            return self.spent
        try:
            days = json.loads(blob.data)["days"]
            self.spent = Costs({day: (float(row["dollars"]), int(row["calls"])) for day, row in days.items()})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedData(f"{self._store.url}/{self._key} holds no valid costs: {error!r}") from None
        self._etag = blob.etag
        return self.spent

    def add(self, dollars: float) -> None:
        """Count one call that cost `dollars`, today (1 PUT; 1 GET more for each time that another machine was first).
        Raises `StoreFailure`."""
        day = today()
        for _ in range(_ATTEMPTS):
            days = dict(self.spent.days)
            before, calls = days.get(day, (0.0, 0))
            days[day] = before + dollars, calls + 1
            kept = dict(sorted(days.items())[-_KEPT_DAYS:])
            rows = {day: {"dollars": each, "calls": count} for day, (each, count) in kept.items()}
            try:
                body = json.dumps({"format": 1, "days": rows}).encode()
                self._etag = put_own(self._store, self._key, body, if_match=self._etag)
            except (AlreadyExists, NotFound):
                self.load()
                continue
            self.spent = Costs(kept)
            return
        raise StoreFailure(f"{self._store.url}/{self._key}: others kept writing it, {_ATTEMPTS} times in a row")
