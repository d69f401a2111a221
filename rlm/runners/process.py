"""Run cells in a confined process of this machine: the runner `subprocess`."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Unpack

from rlm.calls.subcalls import SubCalls
from rlm.errors import RunnerUnavailable
from rlm.runners.channel import MOST_HEAD_BYTES, MOST_MESSAGE_BYTES, Channel
from rlm.runners.confine import WAYS, bubblewrap
from rlm.runners.confine.kills import memory_kills, why_killed
from rlm.runners.confine.limits import Limits
from rlm.runners.confine.view import FolderView, python_view
from rlm.runners.launcher import FAILED, LaunchPlan, command
from rlm.runners.piped_process import wait_for_exit
from rlm.runners.remote import RemoteRunner, SharedOptions, receive_hello
from rlm.runners.runner import NothingConfines

_END_SECONDS = 5.0
"""The time that a launcher gets to end before it is killed."""
_BUFFER_BYTES = 4 << 20
"""The socket buffer of each direction."""
_lock = threading.Lock()
_working_way: dict[tuple[str, ...], str] = {}
"""The way of confining that worked, for each list of ways: tried once in a process."""


class ProcessRunner(RemoteRunner):
    """Runs cells in a process of this machine, confined in the strongest way that works here."""

    name = "subprocess"

    def __init__(
        self,
        context: object,
        subcalls: SubCalls,
        *,
        limits: Limits | None = None,
        ways: Sequence[str] = WAYS,
        scratch: str | None = None,
        **shared: Unpack[SharedOptions],
    ) -> None:
        """`ways`: of confining, tried in order. `scratch`: a path that cells may write below, where the way of
        confining gives a worker paths of its own."""
        self._limits = limits or Limits()
        self._ways = tuple(ways)
        self._scratch = scratch
        super().__init__(context, subcalls, **shared)

    def launch(self) -> tuple[Process, Mapping[str, Any]]:
        """A worker, confined in the first way that works here. Raises RunnerUnavailable, with the reasons of all."""
        view = python_view()
        if self._scratch:
            view = view.with_scratch(self._scratch)
        with _lock:
            known = _working_way.get(self._ways)
        ways = [known] if known else list(self._ways)
        if os.geteuid() == 0:  # with namespaces, its worker is a user of its own, not a mapped root
            ways.sort(key=lambda way: way != "namespaces")
        reasons = []
        for way in ways:
            if way == "landlock" and self._scratch:
                reasons.append(f"landlock: it gives a worker no {self._scratch} to write to")
                continue
            try:
                process, hello = _start_worker(way, view, self._limits)
            except RunnerUnavailable as exc:
                reasons.append(f"{way}: {exc}")
                continue
            with _lock:
                _working_way[self._ways] = way
            return process, hello
        raise NothingConfines(
            f"nothing here can confine the code of a model ({'; '.join(reasons)}); to run it with your own rights use "
            f"--runner local"
        )


class Process:
    """A worker's process and its channel."""

    def __init__(self, popen: subprocess.Popen[bytes], channel: Channel, lifeline: int) -> None:
        self.channel = channel
        self._popen = popen
        self._lifeline = lifeline
        self._how_ended = "ended"

    def end(self, *, gone: bool = False) -> str:
        """Close the lifeline, at which the launcher kills the worker."""
        self.channel.close()
        if self._lifeline >= 0:
            lifeline, self._lifeline = self._lifeline, -1
            died_by_itself = gone and wait_for_exit(self._popen)
            os.close(lifeline)
            try:
                self._popen.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self._popen.kill()
                self._popen.wait()
            if died_by_itself:
                self._how_ended = _describe_exit(self._popen.returncode)
                if self._popen.returncode == FAILED and (complaint := self.complaint()):
                    self._how_ended += f": {complaint}"  # after the certain facts: a cell may have written it
            if self._popen.stderr:
                self._popen.stderr.close()
        return self._how_ended

    def complaint(self) -> str:
        """The last line on its stderr, without terminal control sequences."""
        if not self._popen.stderr or self._popen.stderr.closed:
            return ""
        os.set_blocking(self._popen.stderr.fileno(), False)
        lines = (self._popen.stderr.read(4000) or b"").decode("utf-8", "replace").strip().splitlines()
        return "".join(character for character in lines[-1] if character.isprintable())[:300] if lines else ""


def _describe_exit(code: int | None) -> str:
    assert code is not None  # it has ended
    if 0 <= code <= 128:
        return f"exit status {code}"
    number = code - 128 if code > 128 else -code  # the launcher reports the worker's signal as a shell does
    match number:
        case signal.SIGXCPU:
            return "SIGXCPU: its CPU time is used up"
        case signal.SIGKILL:
            return "SIGKILL: killed"
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _start_worker(way: str, view: FolderView, limits: Limits) -> tuple[Process, Mapping[str, Any]]:
    """A worker that is confined in this way. Raises RunnerUnavailable, with the reason alone."""
    program = bubblewrap.find() if way == "bubblewrap" else None
    if way == "bubblewrap" and program is None:
        raise RunnerUnavailable("bwrap is not installed")
    kills = memory_kills()
    ours, theirs = socket.socketpair()
    lifeline_end, lifeline = os.pipe()
    try:
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
        plan: LaunchPlan = {
            "way": way, "channel": [theirs.fileno()] * 2, "lifeline": lifeline_end, "bwrap": program or "",
            "view": asdict(view), "limits": asdict(limits),
        }  # fmt: skip
        popen = subprocess.Popen(
            command(view.python, plan, view),
            env={},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(theirs.fileno(), lifeline_end),
            start_new_session=True,
        )
    except BaseException as exc:
        ours.close()
        os.close(lifeline)
        if isinstance(exc, OSError):
            raise RunnerUnavailable(f"cannot start {view.python}: {exc}") from exc
        raise
    finally:
        theirs.close()
        os.close(lifeline_end)
    fd = ours.detach()
    process = Process(popen, Channel(fd, fd, head_bytes=MOST_HEAD_BYTES, message_bytes=MOST_MESSAGE_BYTES), lifeline)
    hello = receive_hello(process)
    if hello is None:
        wait_for_exit(popen)  # so that its stderr is complete
        complaint = process.complaint()
        how_ended = process.end(gone=True)
        if how_ended.startswith("SIGKILL"):
            how_ended += f" from outside, {why_killed(kills)}"
        raise RunnerUnavailable(complaint or f"it did not start ({how_ended})")
    return process, hello
