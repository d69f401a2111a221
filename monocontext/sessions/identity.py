"""Name the user and host of an upload."""

from __future__ import annotations

import getpass
import os
import socket


def user_at_machine() -> str:
    """`name@machine`: `MONOCONTEXT_USER`, else the account and the host."""
    given = os.environ.get("MONOCONTEXT_USER")
    if given:
        return given
    try:
        name = getpass.getuser()
    except (OSError, KeyError, ImportError):  # no account of that number, as in containers; no `pwd`
        name = str(os.getuid()) if hasattr(os, "getuid") else "user"
    return f"{name}@{socket.gethostname()}"
