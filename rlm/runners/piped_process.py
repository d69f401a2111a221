"""Talk to a worker over the standard streams of its process, and wait for its end."""

from __future__ import annotations

import os
import subprocess

from rlm.runners.channel import MOST_HEAD_BYTES, MOST_MESSAGE_BYTES, Channel

_END_SECONDS = 20.0
"""The time that a process gets to end before it is killed."""


class PipedProcess:
    """A process whose standard input and output are the channel to its worker."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        """Takes the streams of `popen`, which must be pipes."""
        assert popen.stdin
        assert popen.stdout
        read_fd, write_fd = os.dup(popen.stdout.fileno()), os.dup(popen.stdin.fileno())
        popen.stdout.close()
        popen.stdin.close()
        popen.stdin = popen.stdout = None
        self._popen = popen
        self._how_ended = ""
        self.channel = Channel(read_fd, write_fd, head_bytes=MOST_HEAD_BYTES, message_bytes=MOST_MESSAGE_BYTES)
        self.stderr_lines: list[str] = []
        """The lines on its stderr, once it has ended."""

    def end(self, *, gone: bool = False) -> str:
        """Kill it, and describe its end in a few words. `gone`: its channel has closed by itself. Idempotent."""
        if not self._how_ended:
            self.channel.close()
            by_itself = gone and self._ends_by_itself()
            if not by_itself:
                self.kill()
            try:
                stderr = self._popen.communicate(timeout=_END_SECONDS)[1]
            except subprocess.TimeoutExpired:
                self._popen.kill()
                stderr = self._popen.communicate()[1]
            self.stderr_lines = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines()]
            self._how_ended = self.describe_exit() if by_itself else "ended"
        return self._how_ended

    @property
    def complaint(self) -> str:
        """The last line on its stderr, once it has ended; docker recommends its --help after it."""
        lines = [line for line in self.stderr_lines if line and "--help" not in line]
        return "".join(filter(str.isprintable, lines[-1]))[:500] if lines else ""

    def kill(self) -> None:
        """Make the process end."""
        self._popen.kill()

    def _ends_by_itself(self) -> bool:
        """Whether the process ends within a second, since its channel has closed."""
        try:
            self._popen.wait(1.0)
        except subprocess.TimeoutExpired:
            return False
        return True

    def describe_exit(self) -> str:
        """How the process ended by itself, in a few words."""
        return f"exit status {self._popen.returncode}"
