"""What the sandbox of `dspy` runs: the source of a proxy. It stands alone, whatever Python runs it."""

from typing import Any, NamedTuple


class LazyHit(NamedTuple):
    offset: int
    line_number: int
    line: str


class LazyText:
    """A text that lies elsewhere: slices and searches are carried out there, and results are real str."""

    def __init__(self, n: int, read: Any, find: Any, count: Any, lines: Any, grep: Any) -> None:
        self.n = n
        self._read, self._find, self._count, self._grep = read, find, count, grep
        self.lines = LazyLines(lines)

    def __len__(self) -> int:
        return self.n

    def __bool__(self) -> bool:
        return self.n > 0

    def __repr__(self) -> str:
        return f"<LazyText of {self.n:,} characters: slice, find, grep it>"

    def __str__(self) -> str:
        if self.n > 1_000_000:
            raise MemoryError(f"str(context) would be {self.n:,} characters: take a slice, context[a:b]")
        return str(self[:])

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, slice):
            at = key + self.n if key < 0 else key
            if not 0 <= at < self.n:
                raise IndexError("string index out of range")
            return self._read(start=at, stop=at + 1)
        start, stop, step = key.indices(self.n)
        if step == 1:
            return self._read(start=start, stop=stop) if start < stop else ""
        at = range(start, stop, step)
        if not at:
            return ""
        low, high = min(at[0], at[-1]), max(at[0], at[-1])
        return self._read(start=low, stop=high + 1)[start - low :: step] if step < 0 else self[low : high + 1][::step]

    def _within(self, start: Any, stop: Any) -> dict[str, int]:
        start, stop, _ = slice(start, stop).indices(self.n)
        return {"start": start, "stop": max(start, stop)}

    def find(self, sub: str, start: Any = None, stop: Any = None) -> Any:
        return self._find(sub=sub, **self._within(start, stop))

    def index(self, sub: str, start: Any = None, stop: Any = None) -> Any:
        at = self.find(sub, start, stop)
        if at < 0:
            raise ValueError("substring not found")
        return at

    def count(self, sub: str, start: Any = None, stop: Any = None) -> Any:
        return self._count(sub=sub, **self._within(start, stop))

    def __contains__(self, sub: str) -> bool:
        return bool(self.find(sub) >= 0)

    def startswith(self, prefix: str, start: int = 0) -> Any:
        return self[start : start + len(prefix)] == prefix

    def endswith(self, suffix: str) -> Any:
        return not suffix or self[-len(suffix) :] == suffix

    def grep(self, pattern: str, max_hits: Any = None) -> Any:
        at, wanted, batch = 0, self.n if max_hits is None else max_hits, 20
        while wanted > 0:
            found = self._grep(pattern=pattern, max_hits=min(wanted, batch), start=at)
            yield from (LazyHit(*hit) for hit in found)
            if len(found) < min(wanted, batch):
                return
            at, wanted, batch = found[-1][0] + 1, wanted - len(found), 1000

    def __iter__(self) -> Any:
        for at in range(0, self.n, 100_000):
            yield from self[at : min(at + 100_000, self.n)]

    def splitlines(self, keepends: bool = False) -> Any:
        for line in self.lines:
            yield from line.splitlines(keepends)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr("", name):
            raise AttributeError(name)
        raise AttributeError(f"context has no {name}: take a slice first, context[a:b].{name}(...)")


class LazyLines:
    """The same text by line, which keeps its end; a slice of lines is their text, as in the original."""

    def __init__(self, read: Any) -> None:
        self._read = read

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            if (key.start or 0) < 0 or key.stop is None or key.stop < 0 or key.step not in (None, 1):
                raise ValueError("lines are sliced with bounds from 0 on, context.lines[a:b]")
            return self._read(start=key.start or 0, stop=key.stop)
        if key < 0:
            raise ValueError("lines are counted from 0 on, context.lines[i]")
        found = self._read(start=key, stop=key + 1)
        if not found:
            raise IndexError("line out of range")
        return found

    def __iter__(self) -> Any:
        at = 0
        while found := self._read(start=at, stop=at + 500):
            ends = found.split("\n")
            yield from (line + "\n" for line in ends[:-1])
            if ends[-1]:
                yield ends[-1]
            at += 500
