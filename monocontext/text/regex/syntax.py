"""Parse patterns with the private `re._parser`, and walk their trees.

A tree is a sequence of nodes, each an opcode of `re` and its arguments. CPython 3.11 to 3.14 make the same trees.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, cast

try:
    from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
except ImportError:  # pragma: no cover  (a later Python: `parse` returns None, and no other name is used)
    _compiler = _constants = _parser = cast("Any", None)

opcode: Any = _constants

_KNOWN_OPCODES = """ANY ASSERT ASSERT_NOT AT ATOMIC_GROUP BRANCH FAILURE GROUPREF GROUPREF_EXISTS IN LITERAL MAX_REPEAT
    MIN_REPEAT NOT_LITERAL POSSESSIVE_REPEAT SUBPATTERN"""
_PARSER_FLAGS = int(re.I | re.M | re.S | re.X | re.A | re.U)
_TYPE_FLAGS = int(re.A | re.L | re.U)
REPEATS = _parser and (opcode.MAX_REPEAT, opcode.MIN_REPEAT, opcode.POSSESSIVE_REPEAT)
CHARACTERS = _parser and (opcode.ANY, opcode.IN, opcode.LITERAL, opcode.NOT_LITERAL)
"""The opcodes of nodes that match one character. Unset, as the other tables, where `parse` cannot parse."""
ANY_CHARACTER = _parser and (
    opcode.IN,
    [(opcode.CATEGORY, opcode.CATEGORY_SPACE), (opcode.CATEGORY, opcode.CATEGORY_NOT_SPACE)],
)
r"""The node of `[\s\S]`."""

Node = tuple[Any, Any]  # an opcode, and its arguments
Tree = Any  # a sequence of nodes, with the flags and groups of its pattern as `state`


def parse(pattern: re.Pattern[Any]) -> Tree | None:
    """The tree of a pattern; None for one of bytes, and on a Python that lacks this parser or has other opcodes."""
    if _parser is None or not isinstance(pattern.pattern, str):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the first compilation has warned already
        tree = _parser.parse(pattern.pattern, pattern.flags & _PARSER_FLAGS)
    known = {getattr(opcode, name) for name in _KNOWN_OPCODES.split()}
    return tree if all(op in known for (op, _), _ in walk(tree, tree.state.flags)) else None


def compile_nodes(nodes: list[Node], state: Any, flags: int) -> re.Pattern[str]:
    """Compile these nodes alone into a pattern, with these flags in force."""
    scoped = (None, flags, state.flags & ~flags, subtree(nodes, state))
    return cast("re.Pattern[str]", _compiler.compile(subtree([(opcode.SUBPATTERN, scoped)], state)))


def subtree(nodes: list[Node], state: Any) -> Tree:
    """A tree of some nodes of another tree, whose `state` they share."""
    return _parser.SubPattern(state, nodes)


def bodies(value: Any) -> list[Tree]:
    """The trees in the arguments of a node: one for each branch of `a|b`, one for a group or a repeat."""
    if isinstance(value, tuple | list):
        return [body for item in value for body in bodies(item)]
    return [value] if isinstance(value, _parser.SubPattern) else []


def inner_flags(op: Any, value: Any, flags: int) -> int:
    """The flags in force inside a node, given those in force around it."""
    if op is not opcode.SUBPATTERN:
        return flags
    _, add, drop, _ = value
    return ((flags & ~_TYPE_FLAGS if add & _TYPE_FLAGS else flags) | int(add)) & ~int(drop)


def walk(nodes: Iterable[Node], flags: int) -> Iterator[tuple[Node, int]]:
    """All nodes of a tree at any depth, each with the flags in force there."""
    for op, value in nodes:
        yield (op, value), flags
        for body in bodies(value):
            yield from walk(body, inner_flags(op, value, flags))


def is_unbounded(op: Any, value: Any) -> bool:
    """Whether a node is a repeat without a limit, such as `a*`."""
    return op in REPEATS and value[1] == opcode.MAXREPEAT
