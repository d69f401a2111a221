"""Run the `memory` tool that models call: one command in, one reply out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from monocontext.errors import AlreadyExists, InvalidParameters, MonocontextError, NotFound, UnknownTool
from monocontext.memory.commands import Command, CommandRefused, key_before_meta, parse
from monocontext.memory.entry import Entry
from monocontext.memory.memory import Memory
from monocontext.memory.prompts import SPECIFICATION

NAME = "memory"
_OK = {"status": "OK"}
_NOT_FOUND = "ERR:NOT_FOUND"


class MemoryTool:
    """Speaks CloudLLM's protocol over a memory. Safe for use by many threads."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def __repr__(self) -> str:
        return f"<MemoryTool {self.memory!r}>"

    @property
    def metadata(self) -> dict[str, Any]:
        """The description that a registry of tools shows to models."""
        fields = (
            (
                "command",
                "string",
                "P <key> <value> [ttl], G <key> [META], L [start*] [META], D <key>, C, T A, SPEC",
            ),
            ("key", "string", "The key, instead of in the command: kept as it is, spaces too."),
            ("value", "string", "With P and key: the value, kept as it is."),
            ("ttl", "integer", "With P: lifetime in seconds."),
            ("if_absent", "boolean", "With P: only where there is no such key."),
            ("if_match", "string", "With P: only over the version with this etag."),
        )
        parameters = [
            {
                **{"name": name, "type": kind, "description": text, "required": name == "command"},
                **{"default": None, "items": None, "properties": None},
            }
            for name, kind, text in fields
        ]
        about = "A persistent key-value store with lifetimes, shared by all agents that have this tool."
        return {"name": NAME, "description": about, "parameters": parameters, "protocol_metadata": {}}

    protocol_name = NAME

    def list_tools(self) -> list[dict[str, Any]]:
        """The descriptions of all tools: a list of one."""
        return [self.metadata]

    def get_tool_metadata(self, name: str) -> dict[str, Any]:
        """The description of a tool. Raises `UnknownTool`."""
        if name != NAME:
            raise UnknownTool(f"Tool not found: {name}")
        return self.metadata

    @property
    def schema(self) -> dict[str, Any]:
        """The description of the tool as a function for chat-completion APIs."""
        about = self.metadata
        properties = {p["name"]: {"type": p["type"], "description": p["description"]} for p in about["parameters"]}
        parameters = {"type": "object", "properties": properties, "required": ["command"]}
        function = {"name": NAME, "description": about["description"], "parameters": parameters}
        return {"type": "function", "function": function}

    def execute(self, parameters: Mapping[str, Any], *, tool: str = NAME) -> dict[str, Any]:
        """Carry out one call; returns `{"success", "output", "error", "metadata"}`, also for an error.

        Raises `InvalidParameters` for a call without a command, and `UnknownTool` for the name of another tool.
        """
        if tool != NAME:
            raise UnknownTool(f"Tool not found: {tool}")
        try:
            return _success(self._run(parse(parameters)))
        except CommandRefused as refused:
            return _failure(str(refused))
        except NotFound as error:
            return _failure(_NOT_FOUND if "no key" in str(error) else _error_line(error))
        except InvalidParameters:
            raise
        except (MonocontextError, OSError) as error:
            return _failure(_error_line(error))

    def _run(self, command: Command) -> dict[str, Any]:
        memory = self.memory
        if command.verb == "P":
            return self._put(command)
        if command.verb == "G":
            return self._get(command)
        if command.verb == "L":
            if command.meta:
                return {"keys": [{"key": entry.key, **_times(entry)} for entry in memory.entries(command.prefix)]}
            return {"keys": memory.list(command.prefix)}
        if command.verb == "D":
            if not memory.delete(command.key):
                raise CommandRefused(_NOT_FOUND)
            return dict(_OK)
        if command.verb == "C":
            memory.clear()
            return dict(_OK)
        if command.verb == "T":
            sizes = memory.total()
            scoped = {"A": {}, "K": {"keys_bytes": sizes.keys_bytes}, "V": {"values_bytes": sizes.values_bytes}}
            return {**scoped[command.scope], "total_bytes": sizes.total_bytes}
        return {"specification": SPECIFICATION}

    def _put(self, command: Command) -> dict[str, Any]:
        try:
            self.memory.put(
                command.key,
                command.value,
                command.ttl_seconds,
                create=command.if_absent,
                if_match=command.if_match,
            )
        except AlreadyExists:
            raise CommandRefused("ERR:EXISTS" if command.if_absent else "ERR:CONFLICT") from None
        except NotFound:
            if command.if_match is None:
                raise
            raise CommandRefused("ERR:CONFLICT") from None
        return {**_OK, "expires_in": command.ttl_seconds} if command.reports_ttl else dict(_OK)

    def _get(self, command: Command) -> dict[str, Any]:
        meta = command.meta
        try:
            entry = self.memory.entry(command.key)
        except NotFound:
            other = key_before_meta(command.key)
            if other is None:
                raise
            entry, meta = self.memory.entry(other), True
        return {"value": entry.value, **(_times(entry) if meta else {})}


def _times(entry: Entry) -> dict[str, Any]:
    """The times and the version of an entry, as `META` shows them."""
    remaining = entry.remaining_seconds
    return {
        "added_utc": _rfc3339(entry.added_utc),
        "expires_in": entry.ttl_seconds,
        "expires_at": _rfc3339(entry.expires_utc) if entry.expires_utc else None,
        "remaining": None if remaining is None else math.ceil(remaining),
        "etag": entry.etag,
    }


def _rfc3339(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds")


def _success(output: dict[str, Any]) -> dict[str, Any]:
    return {"success": True, "output": output, "error": None, "metadata": {}}


def _failure(error: str) -> dict[str, Any]:
    return {"success": False, "output": None, "error": error, "metadata": {}}


def _error_line(error: Exception) -> str:
    return f"ERR:{' '.join(str(error).split())}"
