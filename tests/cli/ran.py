"""What a command left behind, and how to say what it should have been."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, object]:
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found

    def fine(self) -> Ran:
        assert (self.code, self.err) == (0, "")
        return self

    def refused(self, *said: str) -> Ran:
        """One line that says what is wrong, exit 2, nothing on stdout."""
        assert (self.code, self.out) == (2, ""), self
        assert self.err.startswith("monocontext: ")
        assert self.err.endswith("\n")
        assert self.err.count("\n") == 1, self.err
        for each in said:
            assert each in self.err
        return self

    def misused(self, *said: str) -> Ran:
        """The complaint of the option parser: usage and reason, exit 2."""
        assert (self.code, self.out) == (2, ""), self
        assert "Traceback" not in self.err
        assert self.err.startswith("Usage: ")
        for each in said:
            assert each in self.err
        return self


Cli = Callable[..., Ran]
