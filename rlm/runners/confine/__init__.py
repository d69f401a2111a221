"""Confine a worker by one of three mechanisms.

| mechanism | files | processes, network | needs |
|---|---|---|---|
| `bubblewrap` | own view | own namespaces | the program `bwrap` |
| `namespaces` | own view | own namespaces | user namespaces, or root |
| `landlock` | host's view, access only to Python's library | refused by seccomp | Linux 5.13 |

Each adds: no new privileges, no capabilities, a seccomp filter, limits of memory, CPU and files, an empty
environment. A launcher, a fresh process without secrets, confines itself, never the host's own process.
"""

from __future__ import annotations

from typing import Literal

Mechanism = Literal["bubblewrap", "namespaces", "landlock"]
MECHANISMS: tuple[Mechanism, ...] = ("bubblewrap", "namespaces", "landlock")  # the strongest first
