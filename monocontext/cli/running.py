"""Run a command line as a process does: its exit status, and one line at most for Ctrl-C, errors and closed streams."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from monocontext.cli.printing import fail, note, say
from monocontext.errors import MonocontextError

if TYPE_CHECKING:
    import click

INTERRUPTED = 130
"""The exit status after Ctrl-C, as of a shell: 128 + SIGINT."""
CLOSED_PIPE = 141
"""The exit status where the reader of stdout has gone: 128 + SIGPIPE."""


def run_program(name: str, version: str, load: Callable[[], click.Group]) -> NoReturn:
    """Run the program that `load` imports, with the arguments of this process, and exit.

    Exits with the status of the command, and with 2 after one line for an error that a user can mend. A bug keeps its
    traceback.
    """
    _leave_on_interrupt(name)
    if sys.stdout is None:
        _leave(name, "standard output is closed", 2)
    if sys.argv[1:] == ["--version"]:
        print(f"{name} {version}")
        sys.exit(0)
    warnings.showwarning = lambda message, *_: note(str(message))
    try:
        load().main(prog_name=name)
    except (MonocontextError, OSError) as error:
        fail(name, error)
        sys.exit(2)
    sys.exit(0)


def call_command(function: Callable[..., None], given: dict[str, Any], program: str) -> int:
    """Call the function of a command, and return the exit status: 130 after Ctrl-C, 141 if nothing reads stdout."""
    global _has_begun
    _has_begun = True
    try:
        function(**given)
        if not sys.stdout.closed:  # the protocol of `mcp` closes it
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except BaseException as error:
        if (interrupt := _find_interrupt(error)) is None:
            raise
        say(f"{program}: {str(interrupt) or 'interrupted'}", err=True)
        return INTERRUPTED
    return 0


_has_begun = False
"""While a command runs, Ctrl-C raises KeyboardInterrupt, so that the command can remove a half-made result."""


def _leave_on_interrupt(name: str) -> None:
    """End the process with one line at Ctrl-C until a command runs, and later where no code can catch it.

    An interrupt inside an import can become another error. One inside a callback of the interpreter is swallowed.
    """

    def interrupt(*_: object) -> None:
        if _has_begun:
            raise KeyboardInterrupt
        _leave(name, "interrupted", INTERRUPTED)

    def leave_or_show(unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            _leave(name, "interrupted", INTERRUPTED)
        show(unraisable)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    show, sys.unraisablehook = sys.unraisablehook, leave_or_show


def _find_interrupt(error: BaseException) -> KeyboardInterrupt | None:
    """The Ctrl-C that an exception is, or that caused it, as in the import of a class."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return cause


def _leave(name: str, why: str, status: int) -> NoReturn:
    """End the process without the interpreter's own end, which another Ctrl-C could disturb."""
    try:
        os.write(2, f"{name}: {why}\n".encode())
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError, RuntimeError):
        pass  # a stream is closed, or was being written to
    os._exit(status)
