"""A process that was started for a worker: take its standard streams as a channel, and wait for its end."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from rlm.runners.channel import HEAD_BYTES, MESSAGE_BYTES, Channel

if TYPE_CHECKING:
    from rlm.runners.template import Forked


def take_channel(popen: subprocess.Popen[bytes]) -> Channel:
    """The channel over stdin and stdout, which are the process's no more."""
    assert popen.stdin
    assert popen.stdout
    read_fd, write_fd = os.dup(popen.stdout.fileno()), os.dup(popen.stdin.fileno())
    popen.stdout.close()
    popen.stdin.close()
    popen.stdin = popen.stdout = None
    return Channel(read_fd, write_fd, head_bytes=HEAD_BYTES, message_bytes=MESSAGE_BYTES)


def wait_for_exit(popen: subprocess.Popen[bytes] | Forked) -> bool:
    """Whether it ended by itself; this waits a moment, since its channel closes a little earlier."""
    try:
        popen.wait(1.0)
    except subprocess.TimeoutExpired:
        return False
    return True
