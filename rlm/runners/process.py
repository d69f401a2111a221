"""A worker in a process of this machine, kept in by the strongest way that the machine has."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rlm.errors import RunnerUnavailable
from rlm.runners.channel import HEAD_BYTES, MESSAGE_BYTES, Channel
from rlm.runners.confine import WAYS, bubblewrap
from rlm.runners.confine.limits import Limits
from rlm.runners.confine.view import View, python_view
from rlm.runners.launcher import command
from rlm.runners.remote import RemoteRunner, hello_of
from rlm.subcalls import SubCalls

_END_SECONDS = 5.0
_BUFFER_BYTES = 4 << 20
_lock = threading.Lock()
_chosen: dict[tuple[str, ...], str] = {}
"""The way that worked, for each list of ways: asked once in a process."""


class ProcessPlace:
    """Starts workers with `sys.executable`."""

    name = "subprocess"

    def __init__(self, *, limits: Limits, ways: Sequence[str] = WAYS, packages: tuple[str, ...] = ("rlm",)) -> None:
        """`packages`: that a worker must be able to import, beside what is installed."""
        self._limits = limits
        self._ways = tuple(ways)
        self._packages = packages

    def start(self) -> tuple[Process, Mapping[str, Any]]:
        """A worker, in the first way that works here. Raises RunnerUnavailable, with the reasons of all."""
        view = python_view(self._packages)
        with _lock:
            known = _chosen.get(self._ways)
        reasons = []
        for way in [known] if known else self._ordered():
            try:
                process, hello = _started(way, view, self._limits)
            except RunnerUnavailable as exc:
                reasons.append(f"{way}: {exc}")
                continue
            with _lock:
                _chosen[self._ways] = way
            return process, hello
        raise RunnerUnavailable(
            f"nothing here can confine the code of a model ({'; '.join(reasons)}); to run it with your own rights say "
            f"--runner local"
        )

    def _ordered(self) -> list[str]:
        """Root makes its own namespaces first: its worker is then a user that nobody else is, not a mapped root."""
        ways = list(self._ways)
        if os.geteuid() == 0 and "namespaces" in ways:
            ways.remove("namespaces")
            ways.insert(0, "namespaces")
        return ways


class ProcessRunner(RemoteRunner):
    """Runs cells in a confined process of this machine: the runner `subprocess`."""

    def __init__(
        self,
        context: object,
        subcalls: SubCalls,
        *,
        cell_timeout: float | None = 120.0,
        output_limit: int = 20_000,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        limits: Limits | None = None,
        ways: Sequence[str] = WAYS,
    ) -> None:
        """`limits`: what the worker may use up; `ways`: of confining it, the first that works is taken."""
        place = ProcessPlace(limits=limits or Limits(), ways=ways, packages=_packages_of(context))
        super().__init__(
            place, context, subcalls, cell_timeout=cell_timeout, output_limit=output_limit, functions=functions
        )


class Process:
    """A worker's process and its channel."""

    def __init__(self, popen: subprocess.Popen[bytes], channel: Channel, lifeline: int) -> None:
        self.channel = channel
        self._popen = popen
        self._lifeline = lifeline
        self._how = "ended"

    def end(self, *, gone: bool = False) -> str:
        """Let go of the lifeline, upon which the launcher ends the worker."""
        self.channel.close()
        if self._lifeline >= 0:
            lifeline, self._lifeline = self._lifeline, -1
            died_by_itself = gone and _exited(self._popen)
            os.close(lifeline)
            try:
                self._popen.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self._popen.kill()
                self._popen.wait()
            if self._popen.stderr:
                self._popen.stderr.close()
            self._how = _ending(self._popen.returncode) if died_by_itself else "ended"
        return self._how

    def complaint(self) -> str:
        """What it wrote on stderr before it gave up, in one line."""
        if not self._popen.stderr:
            return ""
        os.set_blocking(self._popen.stderr.fileno(), False)
        said = (self._popen.stderr.read(4000) or b"").decode("utf-8", "replace")
        return said.strip().splitlines()[-1] if said.strip() else ""


def _exited(popen: subprocess.Popen[bytes]) -> bool:
    """Whether it ended by itself; it gets a moment, since its channel closes a little earlier."""
    try:
        popen.wait(1.0)
    except subprocess.TimeoutExpired:
        return False
    return True


def _ending(code: int) -> str:
    import signal

    number = code - 128 if code > 128 else -code
    if code > 128 or code < 0:
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        meaning = {"SIGXCPU": "its CPU time is used up", "SIGKILL": "killed"}
        return f"{name}: {meaning[name]}" if name in meaning else name
    return f"exit status {code}"


def _started(way: str, view: View, limits: Limits) -> tuple[Process, Mapping[str, Any]]:
    """Raises RunnerUnavailable, with the reason alone."""
    program = bubblewrap.find() if way == "bubblewrap" else None
    if way == "bubblewrap" and program is None:
        raise RunnerUnavailable("bwrap is not installed")
    ours, theirs = socket.socketpair()
    held, lifeline = os.pipe()
    try:
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
        plan = {
            "way": way, "channel": [theirs.fileno()] * 2, "lifeline": held, "bwrap": program,
            "view": asdict(view), "limits": limits.to_dict(),
        }  # fmt: skip
        popen = subprocess.Popen(
            command(view.python, plan, view),
            env={},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(theirs.fileno(), held),
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
        os.close(held)
    fd = ours.detach()
    process = Process(popen, Channel(fd, fd, head_bytes=HEAD_BYTES, message_bytes=MESSAGE_BYTES), lifeline)
    hello = hello_of(process.channel)
    if hello is None:
        _exited(popen)  # so that all it has to say is there
        said = process.complaint()
        how = process.end(gone=True)
        raise RunnerUnavailable(said or f"it did not start ({how})")
    return process, hello


def _packages_of(context: object) -> tuple[str, ...]:
    """Ours, and the package that makes the worker's context."""
    serving = getattr(type(context), "serve", None)
    home = type(context).__module__.partition(".")[0] if callable(serving) else "rlm"
    return ("rlm", home) if home != "rlm" else ("rlm",)
