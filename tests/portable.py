"""A pytest plugin: the tests as they run where POSIX's own modules and calls are missing (`make test-portable`).

What a test itself needs of them skips it by name. What our code needs of them is a failure, but for the runner that
says in one line that it is not to be had. Windows itself is not here.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import filelock
import pytest

MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty")
CALLS = ("fork", "forkpty", "posix_spawn", "getuid", "geteuid", "setsid", "pread", "pidfd_open", "sched_getaffinity")
_TESTS = Path(__file__).parent
_BENCHMARKS = _TESTS.parent / "benchmarks"
_LACKS = re.compile(rf"(?:import of |No module named '?|module 'os' has no attribute ')({'|'.join(MODULES + CALLS)})\b")
_NO_RUNNER = "needs Linux, and this system"


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """Take them away, after pytest and its plugins have looked what system this is.

    `filelock` keeps its `fcntl`: it has a lock of each system's own, and without any it would take files for locks.
    """
    assert filelock.has_fcntl
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    for name in CALLS:
        if hasattr(os, name):
            delattr(os, name)


def _why_skipped(error: BaseException, trace: TracebackType | None) -> str:
    """What a test itself lacks, by name; empty where the fault lies elsewhere."""
    if _NO_RUNNER in str(error):
        return "the runner `subprocess`"
    found = _LACKS.search(str(error)) if isinstance(error, (ImportError, AttributeError)) else None
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = Path(trace.tb_frame.f_code.co_filename) if trace else Path()
    return found[1] if found and (place.is_relative_to(_TESTS) or place.is_relative_to(_BENCHMARKS)) else ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Iterator[None]:
    """A skip with a reason, of a test that needs what is missing."""
    report: Any = yield
    if report.failed and call.excinfo and (why := _why_skipped(call.excinfo.value, call.excinfo.tb)):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1] or 0, f"Skipped: needs {why}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """The same for a file of tests that imports what is missing."""
    report: Any = yield
    if report.failed and (excinfo := report.call.excinfo):
        error = excinfo.value.__cause__ or excinfo.value
        if why := _why_skipped(error, error.__traceback__):
            report.outcome = "skipped"
            report.longrepr = (str(collector.path), 0, f"Skipped: needs {why}")
    return report
