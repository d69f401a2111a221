"""Run a command line as a process: set its exit status, and print one line for Ctrl-C and for expected errors."""

from __future__ import annotations

import io
import os
import signal
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

from monocontext.cli.printing import print_error, print_line, print_note
from monocontext.errors import MonocontextError

INTERRUPTED = 130  # the exit status after Ctrl-C, as a shell reports it: 128 + SIGINT
CLOSED_PIPE = 141  # the exit status if the reader of stdout has closed the pipe: 128 + SIGPIPE


def run_program(name: str, version: str) -> NoReturn:
    """Run the commands of the package `name` with the arguments of this process, and exit with the command's status.

    An error that the user can correct is printed in one line, with status 2. A bug keeps its traceback.
    """
    _leave_on_interrupt(name)
    if sys.stdout is None:
        _exit_at_once(name, "standard output is closed", 2)
    sys.stdin = sys.stdin or open(os.devnull, "w")  # noqa: SIM115  # a closed stdin: reading it raises
    if sys.argv[1:] == ["--version"]:
        sys.exit(call_command(lambda: print(f"{name} {version}"), {}, name))
    warnings.showwarning = lambda message, *_: print_note(str(message))
    try:
        import_module(f"{name}.cli.commands").app.main(prog_name=name)
    except (MonocontextError, OSError) as error:
        is_stdin_closed = isinstance(error, io.UnsupportedOperation)  # see the stdin above
        print_error(name, "standard input is closed" if is_stdin_closed else error)
        sys.exit(2)
    sys.exit(0)


def call_command(function: Callable[..., None], arguments: dict[str, Any], program: str) -> int:
    """Call the function of a command. Returns the exit status: 130 after Ctrl-C, 141 after a closed pipe, else 0."""
    global _has_begun
    _has_begun = True
    try:
        function(**arguments)
        if not sys.stdout.closed:  # the MCP server closes it
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except BaseException as error:
        if (interrupt := _find_interrupt(error)) is None:
            raise
        print_line(f"{program}: {str(interrupt) or 'interrupted'}", err=True)
        return INTERRUPTED
    return 0


_has_begun = False  # whether a command is running: then Ctrl-C raises KeyboardInterrupt, so that it can clean up


def _leave_on_interrupt(name: str) -> None:
    """Let Ctrl-C end the process with one line, also during imports and in callbacks of the interpreter."""

    def interrupt(*_: object) -> None:
        if _has_begun:
            raise KeyboardInterrupt
        _exit_at_once(name, "interrupted", INTERRUPTED)

    show = sys.unraisablehook

    def leave_or_show(unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            _exit_at_once(name, "interrupted", INTERRUPTED)
        show(unraisable)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    sys.unraisablehook = leave_or_show


def _find_interrupt(error: BaseException) -> KeyboardInterrupt | None:
    """The KeyboardInterrupt that an exception is, or that caused it."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return cause


def _exit_at_once(name: str, message: str, status: int) -> NoReturn:
    """End the process at once: another Ctrl-C could disturb the interpreter's shutdown."""
    try:
        os.write(2, f"{name}: {message}\n".encode())
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError, RuntimeError):
        pass  # the stream is closed, or in the middle of a write
    os._exit(status)
