"""Read the file of `monocontext memory serve --grants`: which token may read or write which memory."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from monocontext.errors import AccessDenied
from monocontext.memory.access import holds_token
from monocontext.memory.memory import Memory
from monocontext.memory.tool import MemoryTool

Rights = Literal["read", "write"]
_NAMESPACE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
_FIELDS = {"token", "namespace", "rights"}


@dataclass(frozen=True, slots=True)
class Grant:
    """The rights of one token."""

    token: str
    namespace: str
    """The name of a memory below the served one; empty for the served one itself."""
    rights: Rights
    """`write` allows reading too."""

    def check(self) -> None:
        """Raise `AccessDenied` for an invalid token, namespace or right."""
        if not (self.token and self.token.isascii() and self.token.isprintable()):
            raise AccessDenied("a token must be printable ASCII, and not empty: it is sent in a header")
        if self.rights not in ("read", "write"):
            raise AccessDenied(f"rights must be 'read' or 'write', not {self.rights!r}")
        if self.namespace and (not _NAMESPACE.fullmatch(self.namespace) or self.namespace == "entries"):
            raise AccessDenied(
                f"a namespace must be of letters, digits and -_. but not 'entries', found {self.namespace!r:.80}"
            )


def read_grants(path: str | os.PathLike[str]) -> list[Grant]:
    """The grants in a file, a JSON list of objects. Raises `AccessDenied` for anything else, `OSError`."""
    try:
        rows = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise AccessDenied(f"{os.fspath(path)}: not JSON: {error}") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise AccessDenied(f"{os.fspath(path)}: expected a list of objects with {', '.join(sorted(_FIELDS))}")
    grants = []
    for number, row in enumerate(rows):
        if row.keys() - _FIELDS or not all(isinstance(value, str) for value in row.values()) or "token" not in row:
            raise AccessDenied(
                f"{os.fspath(path)}: grant {number}: expected texts under token, namespace and rights, "
                f"found {', '.join(map(repr, row)) or 'nothing'}"
            )
        grant = Grant(row["token"], row.get("namespace", ""), row.get("rights", "read"))
        try:
            grant.check()
        except AccessDenied as error:
            raise AccessDenied(f"{os.fspath(path)}: grant {number}: {error}") from None
        grants.append(grant)
    return grants


class Granted:
    """Gives each caller the tool of its token."""

    def __init__(self, grants: Iterable[Grant], open_namespace: Callable[[str], Memory]) -> None:
        """`open_namespace` opens the memory of a namespace. Raises `AccessDenied` if two grants have the same token."""
        self._tools: dict[str, MemoryTool] = {}
        self.memories: dict[str, Memory] = {}
        """The open memories by namespace."""
        given = list(grants)
        for grant in given:
            grant.check()
        if len({grant.token for grant in given}) < len(given):
            raise AccessDenied("two grants have the same token: a token belongs to one namespace")
        for grant in given:
            if grant.namespace not in self.memories:
                self.memories[grant.namespace] = open_namespace(grant.namespace)
            memory = self.memories[grant.namespace]
            self._tools[grant.token] = MemoryTool(memory, read_only=grant.rights == "read")

    def tool_of(self, header: bytes) -> MemoryTool | None:
        """The tool for an `Authorization` header, None for an unknown token; takes the same time for each wrong one."""
        held = [tool for token, tool in self._tools.items() if holds_token(header, token)]
        return held[0] if held else None
