"""Run the `memory` tool that models call: one command in, one reply out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from monocontext.errors import AlreadyExists, InvalidParameters, MonocontextError, NotFound, UnknownTool
from monocontext.memory.commands import Command, CommandRefused, key_before_meta, parse
from monocontext.memory.entry import Entry
from monocontext.memory.memory import Memory

NAME = "memory"
_ABOUT = "A persistent key-value store with lifetimes, shared by all agents that have this tool."


class _Field(NamedTuple):
    """A field of a tool call."""

    name: str
    type: str  # its type in JSON
    description: str


_FIELDS = (
    _Field("command", "string", "P <key> <value> [ttl], G <key> [META], L [start*] [META], D <key>, C, T A, SPEC"),
    _Field("key", "string", "The key, instead of in the command: kept as it is, spaces too."),
    _Field("value", "string", "With P and key: the value, kept as it is."),
    _Field("ttl", "integer", "With P: lifetime in seconds."),
    _Field("if_absent", "boolean", "With P: only where there is no such key."),
    _Field("if_match", "string", "With P: only over the version with this etag."),
)

SPECIFICATION = """\
Memory tool quick-reference
Keys and values that outlive this conversation. Everyone with this tool sees the same ones.

P <key> <value> [ttl]   store; the value may hold spaces; a number at its end is the lifetime in seconds
P <key> "<text>" [ttl]  store a text that ends in a number: write it as a JSON string
G <key>                 read; G <key> META also says when it was stored and when it expires
L                       list keys; L <start>* those that begin so; L META with times
D <key>                 delete
C                       delete everything
T A                     bytes in all; T K of the keys, T V of the values
SPEC                    this text

Long texts and keys with spaces go in fields of their own, kept as they are:
{"command": "P", "key": "report", "value": "any text", "ttl": 3600}
To claim a task nobody else has: {"command": "P task:7 me", "if_absent": true}; ERR:EXISTS means it is taken.
To change what you have read: {"command": "P", "key": ..., "value": ..., "if_match": <etag of G key META>}; \
ERR:CONFLICT means that someone wrote in between: read again.
A reply has success, output and error. ERR:NOT_FOUND: no such key, or it has expired."""


class MemoryTool:
    """The `memory` tool in CloudLLM's protocol, over one memory. Safe for use by many threads."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    protocol_name = NAME

    def list_tools(self) -> list[dict[str, Any]]:
        """The description of the tool, as a list of one, for a registry that shows it to models."""
        parameters = [
            {**field._asdict(), "required": field.name == "command", "default": None, "items": None, "properties": None}
            for field in _FIELDS
        ]
        return [{"name": NAME, "description": _ABOUT, "parameters": parameters, "protocol_metadata": {}}]

    @property
    def schema(self) -> dict[str, Any]:
        """The description of the tool as a function for chat-completion APIs."""
        properties = {field.name: {"type": field.type, "description": field.description} for field in _FIELDS}
        parameters = {"type": "object", "properties": properties, "required": ["command"]}
        return {"type": "function", "function": {"name": NAME, "description": _ABOUT, "parameters": parameters}}

    def execute(self, parameters: Mapping[str, Any], *, tool: str = NAME) -> dict[str, Any]:
        """Run one call, and return `{"success", "output", "error", "metadata"}`, also for a call that fails.

        Raises `InvalidParameters` for a call without a command, and `UnknownTool` for the name of another tool.
        """
        if tool != NAME:
            raise UnknownTool(f"Tool not found: {tool}")
        try:
            return _reply(self._run(parse(parameters)))
        except CommandRefused as refused:
            return _reply(error=str(refused))
        except InvalidParameters:
            raise
        except (MonocontextError, OSError) as error:
            is_no_key = isinstance(error, NotFound) and str(error).startswith("no key ")  # else there is no bucket
            return _reply(error=f"ERR:{'NOT_FOUND' if is_no_key else ' '.join(str(error).split())}")

    def _run(self, command: Command) -> dict[str, Any]:
        match command.verb:
            case "P":
                return self._put(command)
            case "G":
                return self._get(command)
            case "L":
                return self._list(command)
            case "D":
                if not self.memory.delete(command.key):
                    raise CommandRefused("ERR:NOT_FOUND")
                return {"status": "OK"}
            case "C":
                self.memory.clear()
                return {"status": "OK"}
            case "T":
                return self._total(command.scope)
        return {"specification": SPECIFICATION}

    def _put(self, command: Command) -> dict[str, Any]:
        try:
            self.memory.put(
                command.key, command.value, command.ttl_seconds, create=command.if_absent, if_match=command.if_match
            )
        except (AlreadyExists, NotFound) as error:
            if command.if_match is None and isinstance(error, NotFound):  # no bucket
                raise
            raise CommandRefused("ERR:EXISTS" if command.if_absent else "ERR:CONFLICT") from None
        return {"status": "OK", "expires_in": command.ttl_seconds} if command.reports_ttl else {"status": "OK"}

    def _get(self, command: Command) -> dict[str, Any]:
        with_times = command.with_times
        try:
            entry = self.memory.entry(command.key)
        except NotFound:
            key = key_before_meta(command.key)
            if key is None:
                raise
            entry, with_times = self.memory.entry(key), True
        return {"value": entry.value, **(_times(entry) if with_times else {})}

    def _list(self, command: Command) -> dict[str, Any]:
        damaged = list[str]()
        entries = self.memory.entries(command.prefix, tell=damaged.append)
        keys = [{"key": entry.key, **_times(entry)} if command.with_times else entry.key for entry in entries]
        return {"keys": keys, "damaged": damaged} if damaged else {"keys": keys}

    def _total(self, scope: str) -> dict[str, Any]:
        sizes = self.memory.total()
        parts = {"A": {}, "K": {"keys_bytes": sizes.keys_bytes}, "V": {"values_bytes": sizes.values_bytes}}
        return {**parts[scope], "total_bytes": sizes.total_bytes}


def _times(entry: Entry) -> dict[str, Any]:
    """The times and the version of an entry, as `META` shows them."""
    remaining, expires = entry.remaining_seconds, entry.expires_utc
    return {
        "added_utc": entry.added_utc.isoformat(timespec="microseconds"),
        "expires_in": entry.ttl_seconds,
        "expires_at": expires.isoformat(timespec="microseconds") if expires else None,
        "remaining": None if remaining is None else math.ceil(remaining),
        "etag": entry.etag,
    }


def _reply(output: dict[str, Any] | None = None, error: str | None = None) -> dict[str, Any]:
    return {"success": error is None, "output": output, "error": error, "metadata": {}}
