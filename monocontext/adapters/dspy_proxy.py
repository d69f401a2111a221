"""A proxy for a text in the sandbox of `dspy`. Its operations run in the host: the process that holds the text.

The sandbox runs this source once for each input field, so it imports nothing of this package. The host identifies a
proxy by its steps: the operations, with their arguments, that lead from the text to the proxy.
"""

import builtins
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

PROXY_SMALL = 1_000_000
"""The most characters of a text that may become a real str in the sandbox."""


class ProxyHit(NamedTuple):
    """A line that `grep` found, with the fields of `monocontext`'s `Hit`."""

    offset: int
    line_number: int
    line: str


def _is_proxy(value: Any) -> bool:
    """Whether a value is a proxy of a text. `isinstance` would fail: each input field defines the classes again."""
    return hasattr(type(value), "is_context_proxy")


class ContextProxy:
    """A text in the host. Operations run in the host, and small results are real strings."""

    is_context_proxy = True

    def __init__(self, n: int, read: Any, find: Any, count: Any, lines: Any, grep: Any, call: Any) -> None:
        """`n` is the length of the text; the others are the tools of the host."""
        self.n = n
        self._read, self._find, self._count, self._grep, self._call = read, find, count, grep, call
        self._steps: list[Any] = []
        self.lines = LinesProxy(lines)

    def _ask(self, name: str, *arguments: Any) -> Any:
        """Run an operation in the host and return its result."""
        return _proxy_ask(self._call, self._steps, name, [self._encode(item) for item in arguments])

    @property
    def _is_small(self) -> bool:
        return self.n <= PROXY_SMALL

    def _encode(self, value: Any) -> Any:
        """Convert an argument to JSON."""
        if isinstance(value, tuple):
            return {"tuple": [self._encode(item) for item in value]}
        if _is_proxy(value):  # the host of this field does not know texts of other fields
            return {"steps": value._steps} if value._call is self._call else str(value)
        return value

    def _method(self, name: str, arguments: Any, options: Any) -> Any:
        """Run a method of `str`: in the sandbox for a small text, else in the host, which takes positional
        arguments."""
        if self._is_small or name in ("encode", "format", "format_map", "join", "maketrans"):
            return getattr(str(self) if name != "maketrans" else "", name)(*arguments, **options)
        if name == "translate":
            return self._ask(name, [[at, arguments[0][at]] for at in arguments[0]])
        for names in (("sep", "maxsplit"), ("keepends",), ("tabsize",), ("old", "new", "count")):
            missing = names[len(arguments) :]
            if options and options.keys() <= set(missing):
                values = {"sep": None, "maxsplit": -1} | options
                arguments, options = (*arguments, *(values[name] for name in missing if name in values)), {}
        if options:
            raise TypeError(f"{name}() takes no keyword {', '.join(options)} here: pass it by position")
        return self._ask(name, *arguments)

    def __hash__(self) -> int:
        return hash(str(self))

    def __radd__(self, other: Any) -> Any:
        return self._ask("__radd__", other) if isinstance(other, str) else NotImplemented

    def __mul__(self, times: Any) -> Any:
        return str(self) * times

    __rmul__ = __mul__

    def __mod__(self, values: Any) -> Any:
        return str(self) % values

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __bytes__(self) -> bytes:
        raise TypeError("string argument without an encoding")

    def __len__(self) -> int:
        return self.n

    def __bool__(self) -> bool:
        return self.n > 0

    def __repr__(self) -> str:
        return f"<ContextProxy of {self.n:,} characters: slice, find, grep it>"

    def __str__(self) -> str:
        if self.n > PROXY_SMALL:
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

    def _bounds(self, start: Any, stop: Any) -> dict[str, int]:
        start, stop, _ = slice(start, stop).indices(self.n)
        return {"start": start, "stop": max(start, stop)}

    def find(self, sub: str, start: Any = None, stop: Any = None) -> Any:
        return self._find(sub=sub, **self._bounds(start, stop))

    def index(self, sub: str, start: Any = None, stop: Any = None) -> Any:
        at = self.find(sub, start, stop)
        if at < 0:
            raise ValueError("substring not found")
        return at

    def count(self, sub: str, start: Any = None, stop: Any = None) -> Any:
        return self._count(sub=sub, **self._bounds(start, stop))

    def __contains__(self, sub: str) -> bool:
        return bool(self.find(sub) >= 0)

    def grep(self, pattern: str, max_hits: Any = None) -> Any:
        at, wanted, batch = 0, self.n if max_hits is None else max_hits, 20
        while wanted > 0:
            found = self._grep(pattern=pattern, max_hits=min(wanted, batch), start=at)
            yield from (ProxyHit(*hit) for hit in found)
            if len(found) < min(wanted, batch):
                return
            at, wanted, batch = found[-1][0] + 1, wanted - len(found), 1000

    def __iter__(self) -> Any:
        for at in range(0, self.n, 100_000):
            yield from self[at : min(at + 100_000, self.n)]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr("", name):
            raise AttributeError(name)
        return lambda *arguments, **options: self._method(name, arguments, options)


def _host_operator(name: str) -> Any:
    """Make an operator that runs in the host."""

    def method(self: Any, other: Any) -> Any:
        return self._ask(name, other) if isinstance(other, str) or _is_proxy(other) else NotImplemented

    return method


for _proxy_operator in ("__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__add__"):
    setattr(ContextProxy, _proxy_operator, _host_operator(_proxy_operator))


class DerivedProxy(ContextProxy):
    """A text that the host derives from another by steps."""

    def __init__(self, call: Any, steps: Any, n: Any) -> None:
        """`n` is the length; None until the host computes it."""
        self._call, self._steps, self._n = call, steps, n

    @property
    def n(self) -> int:  # type: ignore[override]
        if self._n is None:
            self._n = self._ask("__len__")
        return int(self._n)

    def __repr__(self) -> str:
        return "<ContextProxy made of another: slice, find, split it>"

    def __bool__(self) -> bool:
        return bool(self[:1] != "")

    @property
    def _is_small(self) -> bool:
        return bool(self._n is not None and self._n <= PROXY_SMALL)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice) and key.step in (None, 1) and (key.start or 0) >= 0 <= (key.stop or -1):
            return self._read(key.start or 0, key.stop)
        return super().__getitem__(key)

    def _read(self, start: int, stop: int) -> Any:
        return self._ask("slice", start, stop)

    def find(self, *arguments: Any) -> Any:
        return self._ask("find", *arguments)

    def index(self, *arguments: Any) -> Any:
        return self._ask("index", *arguments)

    def count(self, *arguments: Any) -> Any:
        return self._ask("count", *arguments)

    def __iter__(self) -> Any:
        at = 0
        while found := self[at : at + 100_000]:
            yield from found
            at += len(found)


class ListProxy(Sequence):  # type: ignore[type-arg]
    """A list in the host."""

    def __init__(self, call: Any, steps: Any) -> None:
        self._call, self._steps = call, steps

    def _ask(self, name: str, *arguments: Any) -> Any:
        return _proxy_ask(self._call, self._steps, name, [*arguments])

    def __len__(self) -> int:
        return int(self._ask("__len__"))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            return [self[at] for at in range(start, stop, step)] if step != 1 else list(self._items_from(start, stop))
        return self._ask("item", key)

    def _items_from(self, start: int, stop: Any = None) -> Any:
        while stop is None or start < stop:
            most = 500 if stop is None else min(500, stop - start)
            found = self._ask("batch", start, most)
            for at, item in enumerate(found, start):
                yield _proxy_reply(self._call, self._steps, ["item", [at]], item)
            if len(found) < most:
                return
            start += most

    def __iter__(self) -> Any:
        return self._items_from(0)

    def __eq__(self, other: Any) -> Any:
        return isinstance(other, list | ListProxy) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Any) -> Any:
        return [*self, *other]

    def __iadd__(self, other: Any) -> Any:
        raise TypeError("a lazy list cannot be changed: make a real one of it first, parts = list(parts)")

    def __repr__(self) -> str:
        return "<ListProxy: iterate or slice them>"


class MatchProxy:
    """A match in the host, with the methods of `re.Match`."""

    def __init__(self, text: Any, regs: Any, groups: Any, names: Any) -> None:
        self.string, self.regs, self._groups, self._names = text, [tuple(item) for item in regs], groups, names

    def group(self, *keys: Any) -> Any:
        found = tuple(self[key] for key in keys or (0,))
        return found if len(found) > 1 else found[0]

    def __getitem__(self, key: Any) -> Any:
        return self._groups[self._group_number(key)]

    def _group_number(self, key: Any) -> int:
        at = self._names.get(key, -1) if isinstance(key, str) else key
        if not 0 <= at < len(self._groups):
            raise IndexError("no such group")
        return int(at)

    def groups(self, default: Any = None) -> Any:
        return tuple(default if item is None else item for item in self._groups[1:])

    def groupdict(self, default: Any = None) -> Any:
        return {name: default if self[name] is None else self[name] for name in self._names}

    def span(self, key: Any = 0) -> Any:
        return self.regs[self._group_number(key)]

    def start(self, key: Any = 0) -> Any:
        return self.span(key)[0]

    def end(self, key: Any = 0) -> Any:
        return self.span(key)[1]

    def __repr__(self) -> str:
        return f"<re.Match object; span={self.span()}, match={self.group()!r:.50}>"


def _proxy_ask(call: Any, steps: Any, name: str, arguments: Any) -> Any:
    """Run an operation in the host on the value of the steps."""
    return _proxy_reply(call, steps, [name, arguments], call(steps=steps, operation=name, arguments=arguments))


def _proxy_reply(call: Any, steps: Any, step: Any, reply: Any) -> Any:
    """The value of a reply, or a proxy if the value stays in the host."""
    if "error" in reply:
        raise (re.error if reply["error"] == "re.error" else getattr(builtins, reply["error"]))(reply["message"])
    if "text" in reply:
        return DerivedProxy(call, [*steps, step], reply["text"])
    if "list" in reply:
        return ListProxy(call, [*steps, step])
    if "tuple" in reply:
        whole = [*steps, step]
        return tuple(_proxy_reply(call, whole, ["item", [at]], item) for at, item in enumerate(reply["tuple"]))
    return reply["value"]


def _proxy_re(name: str, real: Any) -> Any:
    """Wrap a function of `re`. The wrapper also takes a `ContextProxy`."""

    def function(pattern: Any, *arguments: Any, **options: Any) -> Any:
        at = 1 if name in ("sub", "subn") else 0  # the place of the text among the arguments
        text: Any = arguments[at] if len(arguments) > at else options.get("string")
        if not _is_proxy(text):
            return real(pattern, *arguments, **options)
        source, flags = pattern, options.get("flags", 0)
        if isinstance(pattern, re.Pattern):
            source, flags = pattern.pattern, pattern.flags & ~re.UNICODE.value
        has_only_flags = not arguments[1:] and options.keys() <= {"flags"}
        can_ask = name == "search" and has_only_flags and hasattr(text, "_finds")  # the host, without reading the text
        if can_ask and not text._finds(source, int(flags)):
            return None
        if text._is_small or "string" in options:
            options = {key: str(item) if item is text else item for key, item in options.items()}
            return real(pattern, *(str(item) if item is text else item for item in arguments), **options)
        if isinstance(pattern, re.Pattern):
            options = options | {"flags": flags}
        rest = [*arguments[:at], *arguments[at + 1 :]]
        if at and callable(rest[0]):
            raise MemoryError(f"re.{name} with a function takes at most {PROXY_SMALL:,} characters here: take a slice")
        request = [source, rest, {key: int(item) for key, item in options.items()}]
        if name != "finditer":
            found = text._ask(f"re.{name}", *request)
            return MatchProxy(text, *found) if found and name in ("search", "match", "fullmatch") else found
        matches = ListProxy(text._call, [*text._steps, ["re.finditer", request]])
        matches._ask("batch", 0, 0)  # raises an error of the pattern now
        return (MatchProxy(text, *found) for found in matches)

    return function


for _proxy_name in ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn"):
    if not hasattr(getattr(re, _proxy_name), "takes_context_proxy"):  # this is the `re` of the sandbox alone
        _proxy_function = _proxy_re(_proxy_name, getattr(re, _proxy_name))
        _proxy_function.takes_context_proxy = True
        setattr(re, _proxy_name, _proxy_function)


class LinesProxy:
    """The lines of the text, each with its end. A slice of lines is their text, as in `Monocontext.lines`."""

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
