"""Take the standard streams of a process as a channel, and wait for its end."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from rlm.runners.channel import HEAD_BYTES, MESSAGE_BYTES, Channel

if TYPE_CHECKING:
    from rlm.runners.template import Forked


def take_channel(popen: subprocess.Popen[bytes]) -> Channel:
    """The channel over stdin and stdout of a process, which `popen` no longer has."""
    assert popen.stdin
    assert popen.stdout
    read_fd, write_fd = os.dup(popen.stdout.fileno()), os.dup(popen.stdin.fileno())
    popen.stdout.close()
    popen.stdin.close()
    popen.stdin = popen.stdout = None
    return Channel(read_fd, write_fd, head_bytes=HEAD_BYTES, message_bytes=MESSAGE_BYTES)


def wait_for_exit(popen: subprocess.Popen[bytes] | Forked) -> bool:
    """Whether a process whose channel has closed ends by itself within a second."""
    try:
        popen.wait(1.0)
    except subprocess.TimeoutExpired:
        return False
    return True
