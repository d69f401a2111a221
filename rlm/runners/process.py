"""Run cells in a confined process of this machine: the runner `subprocess`."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Unpack

from rlm.calls.subcalls import SubCalls
from rlm.errors import RunnerUnavailable
from rlm.runners.confine import MECHANISMS, Mechanism, bubblewrap
from rlm.runners.confine.limits import Limits
from rlm.runners.confine.view import FolderView, python_view
from rlm.runners.launcher import LaunchPlan, command
from rlm.runners.piped_process import PipedProcess, receive_hello
from rlm.runners.remote import RemoteRunner, SharedOptions
from rlm.runners.runner import NothingConfines

_last_working: dict[tuple[Mechanism, ...], Mechanism] = {}  # mechanisms to try -> which of them worked last


class ProcessRunner(RemoteRunner):
    """Runs cells in a process of this machine, confined by the strongest mechanism that works here."""

    name = "subprocess"

    def __init__(
        self, context: object, subcalls: SubCalls, *, limits: Limits | None = None,
        mechanisms: Sequence[Mechanism] = MECHANISMS, scratch: str | None = None, **shared: Unpack[SharedOptions],
    ) -> None:  # fmt: skip
        """`mechanisms` are tried in order. `scratch`: a folder that cells may write to; rules out `landlock`."""
        self._limits = limits or Limits()
        self._mechanisms = tuple(mechanisms)
        self._scratch = scratch
        super().__init__(context, subcalls, **shared)

    def launch(self) -> tuple[Process, Mapping[str, Any]]:
        """Start a worker by the first mechanism that works here. Raises NothingConfines with the reason of each."""
        view = python_view()
        if self._scratch:
            view = view.with_scratch(self._scratch)
        reasons = []
        for mechanism in self._mechanisms_to_try():
            if mechanism == "landlock" and self._scratch:
                reasons.append(f"landlock: it does not let cells write to {self._scratch}")
                continue
            try:
                process, hello = _start_worker(mechanism, view, self._limits)
            except RunnerUnavailable as exc:
                reasons.append(f"{mechanism}: {exc}")
            else:
                _last_working[self._mechanisms] = mechanism
                return process, hello
        raise NothingConfines(
            f"nothing can confine the model's code here ({'; '.join(reasons)}); to run it with your own rights, "
            "use --runner local"
        )

    def _mechanisms_to_try(self) -> list[Mechanism]:
        """The mechanism that worked last, then for root `namespaces`, which give a worker its own user, then others."""
        first = [_last_working.get(self._mechanisms), "namespaces" if os.geteuid() == 0 else None]
        return sorted(self._mechanisms, key=lambda name: first.index(name) if name in first else len(first))


class Process(PipedProcess):
    """A launcher, with the worker that it started as its child."""

    def kill(self) -> None:
        """Do nothing: the launcher kills the worker and ends, since its standard input has closed."""

    def describe_exit(self) -> str:
        code = self._popen.returncode
        if 0 <= code <= 128:
            return super().describe_exit()
        number = code - 128 if code > 128 else -code  # the launcher reports the worker's signal as a shell does
        if number not in set(signal.Signals):
            return f"signal {number}"
        causes = {signal.SIGXCPU: ": its CPU time is used up", signal.SIGKILL: ": killed, perhaps for lack of memory"}
        return signal.Signals(number).name + causes.get(signal.Signals(number), "")


def _start_worker(mechanism: Mechanism, view: FolderView, limits: Limits) -> tuple[Process, Mapping[str, Any]]:
    """Start a worker that `mechanism` confines. Returns it and its first message. Raises RunnerUnavailable."""
    program = bubblewrap.find() if mechanism == "bubblewrap" else ""
    if program is None:
        raise RunnerUnavailable("bwrap is not installed")
    plan = LaunchPlan(confinement=mechanism, bwrap=program, view=asdict(view), limits=asdict(limits))
    try:
        process = Process(command(plan, view), env={}, cwd="/", start_new_session=True)
    except OSError as exc:
        raise RunnerUnavailable(f"cannot start {view.python}: {exc}") from exc
    return process, receive_hello(process)
