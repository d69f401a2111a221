"""Name the user and host of an upload."""

from __future__ import annotations

import getpass
import os
import socket


def user_at_machine() -> str:
    """`MONOCONTEXT_USER` if it is set, else `account@host`."""
    if user := os.environ.get("MONOCONTEXT_USER"):
        return user
    try:
        name = getpass.getuser()
    except (OSError, KeyError, ImportError):  # no such account, as in containers; no module `pwd`
        name = str(os.getuid()) if hasattr(os, "getuid") else "user"
    return f"{name}@{socket.gethostname()}"
