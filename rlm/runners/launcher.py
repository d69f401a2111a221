"""A fresh process that confines itself and becomes a worker: `python -I -S -c ... plan`.

It holds nothing of the host but the channel and the lifeline, a pipe that closes when the host ends, by whatever death.
The first process stays outside and waits; when the lifeline closes it kills the worker. Whatever fails before the
worker says hello is one line on stderr.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from rlm.runners import worker
from rlm.runners.confine import bubblewrap, landlock, limits, namespaces, seccomp, system
from rlm.runners.confine.limits import Limits
from rlm.runners.confine.view import DEVICES, View

FAILED = 70
"""Exit status of a worker that could not be confined: EX_SOFTWARE of sysexits."""
_LOOK_SECONDS = 0.05


def main() -> NoReturn:
    """What `bootstrap` calls."""
    plan = json.loads(sys.argv[1])
    view = View(**{**plan["view"], "links": [tuple(link) for link in plan["view"]["links"]]})
    bounds = Limits(**plan["limits"])
    os.umask(0o022)
    try:
        match plan["way"]:
            case "bubblewrap":
                inner = command(view.python, {**plan, "way": "inside bubblewrap"}, view)
                program = bubblewrap.command(plan["bwrap"], view, bounds, inner)
                _watch(plan["lifeline"], lambda: os.execve(program[0], program, {}))
            case "inside bubblewrap":
                _work(plan, bounds)
            case "namespaces":
                namespaces.enter()
                _watch(plan["lifeline"], lambda: _in_namespaces(plan, view, bounds))
            case "container":
                _work(plan, bounds)
            case "landlock":
                _watch(plan["lifeline"], lambda: _in_landlock(plan, view, bounds))
    except OSError as exc:
        _give_up(exc)
    raise SystemExit(FAILED)


def container_plan(limits: Limits) -> str:
    """The argument of a launcher that a container confines: it is given the channel as its standard streams."""
    view: dict[str, Any] = {"python": "", "readable": [], "links": [], "import_path": []}
    return json.dumps({"way": "container", "channel": [0, 1], "view": view, "limits": limits.to_dict()})


def command(python: str, plan: dict[str, Any], view: View) -> list[str]:
    """The command line of a launcher."""
    code = f"import sys; sys.path[:] = {list(view.import_path)!r}; from rlm.runners.launcher import main; main()"
    return [python, "-I", "-S", "-X", "utf8", "-c", code, json.dumps(plan)]


def _in_namespaces(plan: dict[str, Any], view: View, bounds: Limits) -> None:
    namespaces.build_view(view, bounds)
    namespaces.become_nobody()
    namespaces.check_readable(view)
    _work(plan, bounds)


def _in_landlock(plan: dict[str, Any], view: View, bounds: Limits) -> None:
    os.chdir("/")
    system.no_new_privileges()
    system.drop_capabilities()
    landlock.restrict(view.readable, [path for path in DEVICES if os.path.exists(path)])
    _work(plan, bounds)


def _work(plan: dict[str, Any], bounds: Limits) -> NoReturn:
    """Shut the doors that are left, and work."""
    worker.prepare()
    system.no_new_privileges()
    system.drop_capabilities()
    system.die_with_parent()  # after the user has changed, which takes it back
    limits.apply(bounds, counted_alone=plan["way"] in ("namespaces", "inside bubblewrap"))
    seccomp.install(has_view=plan["way"] != "landlock")
    read_fd, write_fd = plan["channel"]
    if read_fd == 0:  # pipes to a container: cells must not find them where their output would go
        read_fd, write_fd = os.dup(0), os.dup(1)
    worker.main(read_fd, write_fd, {"confinement": plan["way"].split()[-1]})
    os._exit(0)


def _watch(lifeline: int, work: Callable[[], object]) -> NoReturn:
    """Start the worker, and end with it, or when the host does."""
    child = os.fork()
    if not child:
        os.close(lifeline)
        os.setsid()
        try:
            work()
        except BaseException as exc:
            _give_up(exc)
        os._exit(FAILED)
    null = os.open("/dev/null", os.O_RDWR)
    keep = {0, 1, 2, lifeline, null}
    for fd in range(256):
        if fd not in keep:
            _close(fd)
    os.dup2(null, 2)
    ended = _descriptor_of(child)
    poll = select.poll()
    poll.register(lifeline, select.POLLHUP)
    if ended is not None:
        poll.register(ended, select.POLLIN)
    while True:
        events = poll.poll(None if ended is not None else _LOOK_SECONDS * 1000)
        if any(fd == lifeline for fd, _ in events):
            os.kill(child, signal.SIGKILL)
        done, status = os.waitpid(child, 0 if events else os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _descriptor_of(child: int) -> int | None:
    """What becomes readable when a process ends; None on old kernels."""
    try:
        return os.pidfd_open(child)
    except OSError:
        return None


def _close(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        pass  # there is none of this number


def _give_up(exc: BaseException) -> NoReturn:
    os.write(2, f"{exc.strerror if isinstance(exc, OSError) and exc.strerror else exc}\n".encode())
    os._exit(FAILED)


if __name__ == "__main__":
    main()
