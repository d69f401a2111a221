"""Turn parse trees of `re` into our nodes and back. Only this file uses the private `re._parser` and `re._compiler`.

It uses `parse`, and `compile` for a tree, as `re.Scanner` does; these are the same in CPython 3.11 to 3.13. If an
import fails, or a tree has an unknown opcode, `parse` returns None, and the pattern cannot be streamed.
"""

from __future__ import annotations

import importlib
import re
import warnings
from dataclasses import dataclass
from typing import Any

try:
    _parser: Any = importlib.import_module("re._parser")
    _compiler: Any = importlib.import_module("re._compiler")
    _op: Any = importlib.import_module("re._constants")
except ImportError:  # pragma: no cover  (a Python later than those that this was written for)
    _parser = _compiler = _op = None

_PARSER_FLAGS = int(re.I | re.M | re.S | re.X | re.A | re.U)
_TYPE_FLAGS = int(re.A | re.L | re.U)


@dataclass(frozen=True, slots=True)
class Char:
    """A node that matches one character: a literal, a class such as `[a-z]`, or a dot."""

    raw: Any
    """The node of `re`."""
    literal: str
    """The character, if it is a literal; else empty."""
    flags: int
    """The flags that are in force at this place."""

    @property
    def key(self) -> str:
        """A string that is equal for nodes that match the same characters."""
        return f"{self.flags}{self.raw}"


@dataclass(frozen=True, slots=True)
class Repeat:
    low: int
    high: int | None
    """None for no limit."""
    kind: str
    """`greedy`, `lazy` or `possessive`."""
    body: Seq


@dataclass(frozen=True, slots=True)
class Group:
    number: int | None
    """None for a group that does not capture."""
    add: int
    """Flags that it sets for its body."""
    drop: int
    """Flags that it clears for its body."""
    body: Seq


@dataclass(frozen=True, slots=True)
class Branch:
    options: tuple[Seq, ...]


@dataclass(frozen=True, slots=True)
class Look:
    ahead: bool
    negative: bool
    body: Seq


@dataclass(frozen=True, slots=True)
class At:
    """A position: an anchor or a word boundary."""

    raw: Any
    """The node of `re`."""
    where: str
    """`begin`, `end` (also before a last newline), `end_string` or `boundary`."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A back-reference, which matches the text of a group again."""

    group: int
    ignore_case: bool


@dataclass(frozen=True, slots=True)
class Cond:
    """`(?(group)yes|no)`."""

    group: int
    yes: Seq
    no: Seq


@dataclass(frozen=True, slots=True)
class Atomic:
    body: Seq


@dataclass(frozen=True, slots=True)
class Fail:
    """A node that never matches."""


Node = Char | Repeat | Group | Branch | Look | At | Ref | Cond | Atomic | Fail
Seq = tuple[Node, ...]


class UnknownOpcode(Exception):
    """An opcode that this file does not know."""


def parse(pattern: re.Pattern[str]) -> Seq | None:
    """The tree of a compiled pattern; None for a pattern of bytes, or one that this file does not know."""
    if _parser is None or not isinstance(pattern.pattern, str):
        return None
    tree = _raw_tree(pattern)
    try:
        return _nodes(tree, tree.state.flags)
    except UnknownOpcode:
        return None


def any_character() -> Group:
    """A node that matches any character, whatever flags are in force."""
    return Group(None, int(re.S), 0, (Char((_op.ANY, None), "", int(re.S)),))


def with_own_flags(char: Char) -> Group:
    """A node that matches the same characters at any place, where other flags may be in force."""
    return Group(None, char.flags & int(re.I | re.S | re.A | re.U), 0, (char,))


def end_of_string() -> At:
    r"""The node of `\Z`, which matches at the end of a window."""
    return At((_op.AT, _op.AT_END_STRING), "end_string")


def marker_group(pattern: re.Pattern[str]) -> int:
    """The number that a group added to this pattern gets."""
    return pattern.groups + 1


def build(nodes: Seq, pattern: re.Pattern[str]) -> re.Pattern[str]:
    """Compile a tree that was made from that of `pattern`, with one group more than it has."""
    tree = _raw_tree(pattern)
    state = tree.state
    marker = state.opengroup()
    state.closegroup(marker, _parser.SubPattern(state, []))
    built: re.Pattern[str] = _compiler.compile(_raw(nodes, state), 0)
    return built


def build_plain(nodes: Seq) -> re.Pattern[str]:
    """Compile a tree that captures nothing, under no flags."""
    state = _parser.State()
    state.str = ""
    state.flags = int(re.U)
    built: re.Pattern[str] = _compiler.compile(_raw(nodes, state), 0)
    return built


def _raw_tree(pattern: re.Pattern[str]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the first compilation has warned already
        return _parser.parse(pattern.pattern, pattern.flags & _PARSER_FLAGS)


def _nodes(tree: Any, flags: int) -> Seq:
    return tuple(_node(op, value, flags) for op, value in tree)


def _node(op: Any, value: Any, flags: int) -> Node:
    if op is _op.LITERAL:
        return Char((op, value), chr(value), flags)
    if op in (_op.NOT_LITERAL, _op.IN, _op.ANY, _op.CATEGORY):
        return Char((op, value), "", flags)
    if op in _KINDS:
        low, high, body = value
        return Repeat(low, None if high is _op.MAXREPEAT else high, _KINDS[op], _nodes(body, flags))
    if op is _op.SUBPATTERN:
        number, add, drop, body = value
        inner = flags & ~_TYPE_FLAGS if add & _TYPE_FLAGS else flags
        return Group(number, add, drop, _nodes(body, (inner | add) & ~drop))
    if op is _op.BRANCH:
        return Branch(tuple(_nodes(option, flags) for option in value[1]))
    if op in (_op.ASSERT, _op.ASSERT_NOT):
        return Look(value[0] >= 0, op is _op.ASSERT_NOT, _nodes(value[1], flags))
    if op is _op.AT and value in _PLACES:
        return At((op, value), _PLACES[value])
    if op is _op.GROUPREF:
        return Ref(value, bool(flags & re.I))
    if op is _op.GROUPREF_EXISTS:
        return Cond(value[0], _nodes(value[1], flags), _nodes(value[2] or [], flags))
    if op is _op.ATOMIC_GROUP:
        return Atomic(_nodes(value, flags))
    if op is _op.FAILURE:
        return Fail()
    raise UnknownOpcode(str(op))


def _raw(nodes: Seq, state: Any) -> Any:
    return _parser.SubPattern(state, [_raw_node(node, state) for node in nodes])


def _raw_node(node: Node, state: Any) -> Any:
    match node:
        case Char(raw) | At(raw):
            return raw
        case Repeat(low, high, kind, body):
            return (_OPCODES[kind], (low, _op.MAXREPEAT if high is None else high, _raw(body, state)))
        case Group(number, add, drop, body):
            return (_op.SUBPATTERN, (number, add, drop, _raw(body, state)))
        case Branch(options):
            return (_op.BRANCH, (None, [_raw(option, state) for option in options]))
        case Look(ahead, negative, body):
            return (_op.ASSERT_NOT if negative else _op.ASSERT, (1 if ahead else -1, _raw(body, state)))
        case Ref(group):
            return (_op.GROUPREF, group)
        case Cond(group, yes, no):
            return (_op.GROUPREF_EXISTS, (group, _raw(yes, state), _raw(no, state)))
        case Atomic(body):
            return (_op.ATOMIC_GROUP, _raw(body, state))
        case Fail():
            return (_op.FAILURE, ())


_KINDS: dict[Any, str] = {}
_OPCODES: dict[str, Any] = {}
_PLACES: dict[Any, str] = {}
if _op is not None:
    _KINDS = {_op.MAX_REPEAT: "greedy", _op.MIN_REPEAT: "lazy", _op.POSSESSIVE_REPEAT: "possessive"}
    _OPCODES = {kind: op for op, kind in _KINDS.items()}
    _PLACES = {
        _op.AT_BEGINNING: "begin",
        _op.AT_BEGINNING_STRING: "begin",
        _op.AT_END: "end",
        _op.AT_END_STRING: "end_string",
        _op.AT_BOUNDARY: "boundary",
        _op.AT_NON_BOUNDARY: "boundary",
    }
