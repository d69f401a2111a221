"""Run cells in a confined process of this machine: the runner `subprocess`."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Unpack

from rlm.calls.subcalls import SubCalls
from rlm.errors import RunnerUnavailable
from rlm.runners.confine import WAYS, bubblewrap
from rlm.runners.confine.limits import Limits
from rlm.runners.confine.view import FolderView, python_view
from rlm.runners.launcher import LaunchPlan, command
from rlm.runners.piped_process import PipedProcess, receive_hello
from rlm.runners.remote import RemoteRunner, SharedOptions
from rlm.runners.runner import NothingConfines

_working_way: dict[tuple[str, ...], str] = {}  # what worked last, for each list of ways: the next worker tries it first


class ProcessRunner(RemoteRunner):
    """Runs cells in a process of this machine, confined in the strongest way that works here."""

    name = "subprocess"

    def __init__(
        self, context: object, subcalls: SubCalls, *, limits: Limits | None = None, ways: Sequence[str] = WAYS,
        scratch: str | None = None, **shared: Unpack[SharedOptions],
    ) -> None:  # fmt: skip
        """`ways`: to confine a worker, in order. `scratch`: a folder that cells may write to; rules out `landlock`."""
        self._limits = limits or Limits()
        self._ways = tuple(ways)
        self._scratch = scratch
        super().__init__(context, subcalls, **shared)

    def launch(self) -> tuple[Process, Mapping[str, Any]]:
        """A worker, confined in the first of the ways that works here. Raises RunnerUnavailable, with all reasons."""
        view = python_view()
        if self._scratch:
            view = view.with_scratch(self._scratch)
        reasons = []
        for way in self._ways_to_try():
            if way == "landlock" and self._scratch:
                reasons.append(f"landlock: it does not let cells write to {self._scratch}")
                continue
            try:
                process, hello = _start_worker(way, view, self._limits)
            except RunnerUnavailable as exc:
                reasons.append(f"{way}: {exc}")
            else:
                _working_way[self._ways] = way
                return process, hello
        raise NothingConfines(
            f"no way to confine the model's code works here ({'; '.join(reasons)}); to run it with your own rights, "
            "use --runner local"
        )

    def _ways_to_try(self) -> list[str]:
        """The way that worked last, then for root `namespaces`, whose worker has a user of its own, then the others."""
        preferred = [_working_way.get(self._ways), "namespaces" if os.geteuid() == 0 else None]
        return sorted(self._ways, key=lambda way: preferred.index(way) if way in preferred else len(preferred))


class Process(PipedProcess):
    """A launcher and its worker."""

    def kill(self) -> None:
        """Do nothing: the launcher kills the worker and ends, since its standard input has closed."""

    def describe_exit(self) -> str:
        code = self._popen.returncode
        if 0 <= code <= 128:
            return super().describe_exit()
        number = code - 128 if code > 128 else -code  # the launcher reports the worker's signal as a shell does
        if number not in set(signal.Signals):
            return f"signal {number}"
        about = {signal.SIGXCPU: ": its CPU time is used up", signal.SIGKILL: ": killed, perhaps for lack of memory"}
        return signal.Signals(number).name + about.get(signal.Signals(number), "")


def _start_worker(way: str, view: FolderView, limits: Limits) -> tuple[Process, Mapping[str, Any]]:
    """A worker that is confined in this way. Raises RunnerUnavailable, with the reason alone."""
    program = bubblewrap.find() if way == "bubblewrap" else None
    if way == "bubblewrap" and program is None:
        raise RunnerUnavailable("bwrap is not installed")
    plan: LaunchPlan = {"way": way, "bwrap": program or "", "view": asdict(view), "limits": asdict(limits)}
    try:
        process = Process(command(view.python, plan, view), env={}, cwd="/", start_new_session=True)
    except OSError as exc:
        raise RunnerUnavailable(f"cannot start {view.python}: {exc}") from exc
    return process, receive_hello(process)
