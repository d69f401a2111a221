"""Confine this process, start the worker in a child, and wait for it: the program of a fresh process.

The process gets nothing from the host but standard streams: the channel of its worker, and stderr. When its standard
input closes, however the host ends, it kills the worker. If it fails before the worker says hello, it prints one line
on stderr.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Literal, NoReturn, TypedDict

from rlm.runners import worker
from rlm.runners.confine import MECHANISMS, Mechanism, bubblewrap, landlock, limits, namespaces, seccomp, system
from rlm.runners.confine.limits import Limits
from rlm.runners.confine.view import DEVICES, FolderView
from rlm.runners.link import WorkerLink

FAILED = 70  # exit status of a worker that could not be confined: EX_SOFTWARE of sysexits
_POLL_SECONDS = 0.05  # how often to look whether the child has ended, on kernels without `pidfd_open`


class LaunchPlan(TypedDict, total=False):
    """How a launcher starts its worker. It is passed as JSON."""

    confinement: Literal[Mechanism, "inside bubblewrap", "container"]
    """How to confine the worker. The last two confine this launcher already: `bwrap` or a container runs it."""
    limits: dict[str, Any]  # the fields of `Limits`
    view: dict[str, Any]  # the fields of `FolderView`; missing in a container
    bwrap: str  # the path of the program `bwrap`; only `bubblewrap` needs it


def main() -> NoReturn:
    """Start a worker as the first argument says, a `LaunchPlan` in JSON."""
    plan: LaunchPlan = json.loads(sys.argv[1])
    os.umask(0o022)
    bounds = Limits(**plan["limits"])
    try:
        match plan["confinement"]:
            case "inside bubblewrap":
                _run_worker(plan, bounds)  # which never returns, nor does `_run_and_watch`
            case "container":
                system.hide_memory()  # this process has no filter, and the same user and /proc as the worker
                _run_and_watch(lambda: _run_worker(plan, bounds))
            case "namespaces":
                namespaces.enter()  # before the fork in `_run_and_watch`: the worker is the first process in there
        _run_and_watch(lambda: _confine(plan, FolderView(**plan["view"]), bounds))
    except OSError as exc:
        _give_up(exc)


def command(plan: LaunchPlan, view: FolderView) -> list[str]:
    """The command line of a launcher: the Python of `view`, which imports only from its `import_path`."""
    code = f"import sys; sys.path[:] = {list(view.import_path)!r}; from rlm.runners.launcher import main; main()"
    return [view.python, "-I", "-S", "-X", "utf8", "-c", code, json.dumps(plan)]


def make_container_plan(limits: Limits) -> str:
    """The plan for a launcher in a container, as JSON."""
    return json.dumps(LaunchPlan(confinement="container", limits=asdict(limits)))


def _confine(plan: LaunchPlan, view: FolderView, bounds: Limits) -> NoReturn:
    """Confine this process by the mechanism of the plan, then run the worker."""
    match plan["confinement"]:
        case "bubblewrap":
            inner = command(LaunchPlan({**plan, "confinement": "inside bubblewrap"}), view)
            program = bubblewrap.command(plan["bwrap"], view, bounds, inner)
            os.execve(program[0], program, {})
        case "namespaces":
            namespaces.build_view(view, bounds)
            namespaces.become_ordinary_user()
            namespaces.check_readable(view)
        case "landlock":
            os.chdir("/")
            system.no_new_privileges()
            system.drop_capabilities()
            landlock.restrict(view.readable, [path for path in DEVICES if os.path.exists(path)])
        case unknown:
            raise system.SystemFailed(f"no such mechanism {unknown!r}: choose from {', '.join(MECHANISMS)}")
    _run_worker(plan, bounds)


def _run_worker(plan: LaunchPlan, bounds: Limits) -> NoReturn:
    """Apply the restrictions that all mechanisms share, then run the worker."""
    confinement = plan["confinement"].removeprefix("inside ")
    worker.prepare()
    system.no_new_privileges()
    system.drop_capabilities()
    system.prctl("parent death signal", system.PR_SET_PDEATHSIG, signal.SIGKILL)  # a change of user takes it back
    system.no_huge_pages()
    limits.apply(bounds, has_own_user=confinement in ("namespaces", "bubblewrap"))
    seccomp.install(has_view=confinement != "landlock")
    link = WorkerLink(os.dup(0), os.dup(1))  # cells must not find the channel where their output would go
    worker.main(worker.MainThread(link), confinement=confinement)


def _run_and_watch(work: Callable[[], object]) -> NoReturn:
    """Run `work` in a child process, kill the child when the host is gone, and exit with the child's status."""
    null = os.open("/dev/null", os.O_RDWR)  # before the child changes the view of files, which it shares
    child = os.fork()
    if not child:
        os.close(null)
        os.setsid()
        try:
            work()
        except BaseException as exc:
            _give_up(exc)
        os._exit(FAILED)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.closerange(3, 256)  # `null`, and what a container's engine left open, which has low numbers; not the child's
    poll = select.poll()
    poll.register(0, select.POLLHUP)
    wait_ms: float | None = None
    try:
        poll.register(os.pidfd_open(child), select.POLLIN)
    except OSError:  # before Linux 5.3
        wait_ms = _POLL_SECONDS * 1000
    while True:
        events = poll.poll(wait_ms)
        if any(fd == 0 for fd, _ in events):
            os.kill(child, signal.SIGKILL)
        done, status = os.waitpid(child, 0 if events else os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)  # negative: the signal that killed it
            os._exit(code if code >= 0 else 128 - code)


def _give_up(exc: BaseException) -> NoReturn:
    """Print the reason as a line on stderr, and end this process with `FAILED`."""
    reason = str(exc)
    if isinstance(exc, OSError) and exc.strerror:
        reason = f"{exc.filename}: {exc.strerror}" if exc.filename else exc.strerror
    os.write(2, f"{reason}\n".encode())
    os._exit(FAILED)


if __name__ == "__main__":
    main()
