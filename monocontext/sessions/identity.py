"""Who uploads, from where."""

from __future__ import annotations

import getpass
import os
import socket


def user_at_machine() -> str:
    """`name@machine`: `MONOCONTEXT_USER`, else the account and the host."""
    told = os.environ.get("MONOCONTEXT_USER")
    if told:
        return told
    try:
        name = getpass.getuser()
    except (OSError, KeyError):  # no account of that number, as in containers
        name = str(os.getuid())
    return f"{name}@{socket.gethostname()}"
