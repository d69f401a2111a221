"""Watch an archive, and compile each project with new sessions.

Any number of machines may watch one archive. They coordinate by the lease of each project, and by digests, which are
stored as soon as they are made. A watcher keeps only what it last saw. So another one can replace a watcher that was
killed, once its lease has expired.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any, cast

from monocontext.errors import MonocontextError
from monocontext.options import StoreOptions
from monocontext.sessions.archive import Project, Sessions
from monocontext.stores.protocol import Store
from rlm.compile.compiling import CompileResult, compile_sessions
from rlm.errors import BudgetSpent, RLMError

EVERY_SECONDS = 60.0
"""The wait between two looks at the archive."""
SETTLE_SECONDS = 600.0
"""A session without an end (its agent was killed, or reports none) is compiled once it has not grown for this long."""

OnOutcome = Callable[[str, CompileResult | Exception], object]
"""Gets the name of a project and its outcome. The name is empty for an archive that did not answer."""


def watch_sessions(
    place: str | Store,
    project: str | None = None,
    *,
    every_seconds: float = EVERY_SECONDS,
    for_seconds: float | None = None,
    once: bool = False,
    wake: threading.Event | None = None,
    on_outcome: OnOutcome = lambda project, outcome: None,
    settle_seconds: float = SETTLE_SECONDS,
    **options: Any,
) -> None:
    """Compile the projects of an archive, or one of them, whenever they have new sessions; errors go to `on_outcome`.

    It looks at once, then every `every_seconds` and when `wake` is set. `once`: look one time; `for_seconds`: begin no
    look after this time. `settle_seconds` and `options` are those of `compile_sessions`; limits are for each run of it.

    A look costs 2 LISTs a thousand objects of all projects, twice that for watched projects, and no GET if nothing is
    new. Errors of the store and of models are not raised: the next look tries again.
    """
    end = time.monotonic() + (math.inf if for_seconds is None else for_seconds)
    wake = wake or threading.Event()
    watcher = _Watcher(place, project, settle_seconds, on_outcome, options)
    watcher.look()
    while not once and (left := end - time.monotonic()) > 0:
        if wake.wait(min(every_seconds, left)) or left > every_seconds:
            wake.clear()
            watcher.look()


class _Watcher:
    """Looks at projects, and remembers the last state that it saw of each."""

    def __init__(
        self, place: str | Store, project: str | None, settle_seconds: float, on_outcome: OnOutcome, options: Any
    ) -> None:
        self._place = place
        self._project = project
        self._settle_seconds = settle_seconds
        self._on_outcome = on_outcome
        self._options = options
        self._seen: dict[str, object] = {}

    def look(self) -> None:
        try:
            reaching = cast(StoreOptions, self._options.get("store_options") or {})
            with Sessions.open(self._place, **reaching) as archive:
                for name in [self._project] if self._project else archive.projects():
                    try:
                        self._look_at(archive.project(name))
                    except (RLMError, MonocontextError, OSError) as error:  # the other projects go on
                        self._on_outcome(name, error)
        except (MonocontextError, OSError) as error:
            self._on_outcome(self._project or "", error)

    def _look_at(self, project: Project) -> None:
        settled = project.versions(resting_seconds=self._settle_seconds)
        versions = {name: version for name, version in settled.items() if "/subagents/" not in name}
        seen = versions, time.strftime("%Y-%m-%d", time.gmtime())  # a limit of a day ends with it
        if not versions or self._seen.get(project.name) == seen:
            return
        try:
            result = compile_sessions(self._place, project.name, settle_seconds=self._settle_seconds, **self._options)
        except BudgetSpent:
            self._seen[project.name] = seen
            raise
        if not result.holder:
            self._seen[project.name] = seen
        self._on_outcome(project.name, result)
