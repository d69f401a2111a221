"""Confine a worker: the ways, from the strongest, and the limits that hold in each.

| way | files | processes, network | needs |
|---|---|---|---|
| `bubblewrap` | own view | own namespaces | the program `bwrap` |
| `namespaces` | own view | own namespaces | user namespaces, or root |
| `landlock` | host's view, all but Python's library out of reach | refused by seccomp | Linux 5.13 |

In each: no new privileges, no capabilities, a seccomp filter, limits of memory, CPU and files, an empty environment.
Nothing here runs in the host: a launcher, a fresh process without secrets, confines itself.
"""

from __future__ import annotations

WAYS = ("bubblewrap", "namespaces", "landlock")
"""In the order of choice."""
