"""The tools, as plain functions: what they take, what they answer. They know no SDK.

Annotations are real objects here, not strings: the SDK reads them from functions that it wraps.
"""

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from monocontext.errors import NotFound, ToolRefusal
from monocontext.mcp.replies import MAX_REPLY_BYTES, list_reply, search_reply, slice_reply
from monocontext.mcp.served import MEMORY, SESSIONS, Served

if TYPE_CHECKING:
    from monocontext.sessions import Sessions
    from monocontext.text import Monocontext

_HEAD_CHARACTERS = 500
"""Shown of the head and of the tail by `context_info`."""
_MOST_HITS = 1000


class Tools:
    """What a client can call, over what is served. Methods without an underscore are the tools."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def context_list(self, after: str = "") -> str:
        """List the texts that can be read here, one name a line. Folders, sessions and the memory are texts too.

        after: a name; only those behind it, to go on with a list that was cut.
        """
        names = list(self._served.names())
        return list_reply(names[_behind(names, after) :], nothing="[no context is served here]")

    def context_info(self, context: str = "") -> str:
        """Describe a text: its size in characters and lines, how it begins and ends. Looks for its newest version.

        context: its name; may be left out where there is one only.
        """
        name = context or self._served.the_only()
        text = self._served.context(name, fresh=True)
        size = len(text)
        facts = {
            "context": name,
            "url": text.url,
            "generation": text.generation,
            "characters": size,
            "lines": len(text.lines),
            "head": str(text[:_HEAD_CHARACTERS]),
            "tail": str(text[max(_HEAD_CHARACTERS, size - _HEAD_CHARACTERS) :]) if size > _HEAD_CHARACTERS else "",
        }
        return json.dumps(facts, ensure_ascii=False, indent=1)

    def context_slice(
        self, context: str = "", start: int = 0, stop: int | None = None, unit: str = "characters"
    ) -> str:
        """Read a part of a text: characters [start, stop), negative ones count from the end, as in Python.

        At most about 20,000 bytes at once: a longer part is cut, and its last line states the range to go on with.

        context: its name; may be left out where there is one only.
        unit: "characters", or "lines" to give start and stop in lines, counted from 0.
        """
        text = self._text(context, start)
        return slice_reply(text, *_range(text, start, stop, unit))

    def context_search(
        self,
        pattern: str,
        context: str = "",
        ignore_case: bool = False,
        fixed: bool = False,
        max_hits: int = 50,
        start: int = 0,
        stop: int | None = None,
    ) -> str:
        """Find the lines of a text that match, as grep does, each as `character:line number:line`.

        Texts of many GB are fine. A search that finds too much or takes too long says from where to go on.

        pattern: a Python regular expression; with fixed a text to be found as it is.
        context: its name; may be left out where there is one only.
        ignore_case: letters match in either case. max_hits: lines, at most 1000.
        start, stop: only lines that begin at characters [start, stop).
        """
        if not 0 < max_hits <= _MOST_HITS:
            raise ToolRefusal(f"max_hits is 1 to {_MOST_HITS}, not {max_hits}")
        text = self._text(context, start)
        first, last = _range(text, start, stop, "characters")
        try:
            return search_reply(
                text, pattern, ignore_case=ignore_case, fixed=fixed, max_hits=max_hits, start=first, stop=last
            )
        except (re.error, OverflowError, RecursionError) as error:
            raise ToolRefusal(f"not a regular expression: {error}") from None

    def session_list(self, project: str = "", since: str = "", until: str = "", after: str = "") -> str:
        """List the sessions of a project, one a line: id, agent, time, turns, title. Without a project, the projects.

        since, until: only sessions with a turn in that time, such as 2026-02-14 or 2026-02-14T10:00:00Z.
        after: an id; only those behind it, to go on with a list that was cut.
        """
        sessions = self._sessions()
        if not project:
            names = sessions.projects()
            if len(names) != 1:
                return list_reply(names[_behind(names, after) :], nothing="[no project has sessions here]")
            project = names[0]
        found = sessions.project(project).sessions(since or None, until or None)
        rows = (
            f"{info.session_id}  {info.agent or '?'}  {info.started or '?'}  {info.turns} turns  "
            f"{' '.join((info.title or info.first_prompt).split())}"
            for info in found[_behind([info.session_id for info in found], after) :]
        )
        return list_reply(rows, nothing=f"[no session of project {project} in that time]")

    def session_read(self, session: str, project: str = "", start: int = 0, stop: int | None = None) -> str:
        """Read a session, or a part of it: characters [start, stop) of its turns as text.

        At most about 20,000 bytes at once: a longer part is cut, and its last line states the range to go on with.

        session: its id, or how it begins.
        project: may be left out.
        """
        found, session_id = self._sessions().find(session, project or None)
        text = self._served.context(f"{SESSIONS}{found.name}/{session_id}", fresh=start == 0)
        return slice_reply(text, *_range(text, start, stop, "characters"))

    def memory(
        self,
        command: str,
        key: str | None = None,
        value: str | None = None,
        ttl: int | str | None = None,
        if_absent: bool | None = None,
        if_match: str | None = None,
    ) -> str:
        """Keep and find what should outlive this session: keys and values, shared by all agents that have this tool.

        command: P <key> <value> [ttl seconds], G <key> [META], L [start*] [META], D <key>, C (removes all), T A, SPEC.
        key, value: instead of in the command, kept as they are, spaces too.
        ttl: with P, seconds that it lives. if_absent: with P, only where there is no such key.
        if_match: with P, only over the version with this etag.
        """
        from monocontext.memory import MemoryTool
        from monocontext.memory.commands import parse

        if self._served.memory is None:
            raise NotFound("no memory is served here: start the server with --memory URL")
        given = {"key": key, "value": value, "ttl": ttl, "if_absent": if_absent, "if_match": if_match}
        call = {"command": command} | {name: each for name, each in given.items() if each is not None}
        reply = MemoryTool(self._served.memory).execute(call)
        return _envelope(reply, parse(call).key if reply["success"] else "")

    def upload_context(self, session_id: str | None = None, project_dir: str | None = None,
                       thread_id: str | None = None) -> str:  # fmt: skip
        """Add a session of a coding agent on this machine to the shared sessions, secrets taken out.

        session_id: its id, or how it begins; else the latest. project_dir: of a folder below ~/.claude/projects.
        thread_id: the project that it is kept under; else that of its repository.
        """
        from monocontext.mcp.uploading import upload

        return upload(self._sessions().store, session_id, project_dir, thread_id)

    # -- what is served ------------------------------------------------------------------------------------------------

    def _offered(self, *, uploads: bool) -> dict[str, Callable[..., str]]:
        """The tools that this server has something for, by name."""
        found: dict[str, Callable[..., str]] = {
            each.__name__: each for each in (self.context_list, self.context_info, self.context_slice)
        }
        found["context_search"] = self.context_search
        if self._served.sessions is not None:
            found |= {"session_list": self.session_list, "session_read": self.session_read}
            if uploads:
                found["upload_context"] = self.upload_context
        if self._served.memory is not None:
            found["memory"] = self.memory
        return found

    def _text(self, context: str, start: int) -> "Monocontext":
        """A text as it was opened first; a memory anew at each beginning, to find what others have just stored."""
        name = context or self._served.the_only()
        is_memory = self._served.memory is not None and name.split("/")[0] == MEMORY
        return self._served.context(name, fresh=is_memory and start == 0)

    def _sessions(self) -> "Sessions":
        if self._served.sessions is None:
            raise NotFound("no sessions are served here: start the server with --sessions URL")
        return self._served.sessions


def _behind(names: list[str], after: str) -> int:
    """Where a list goes on behind a name. Raises `NotFound` for one that it does not hold."""
    if not after:
        return 0
    if after not in names:
        raise NotFound(f"after={after!r} is not in the list")
    return names.index(after) + 1


def _range(text: "Monocontext", start: int, stop: int | None, unit: str) -> tuple[int, int]:
    """Characters [first, last) of the text, of what was asked for in either unit."""
    if unit in ("characters", "chars"):
        first, last, _ = slice(start, stop).indices(len(text))
        return first, last
    if unit != "lines":
        raise ToolRefusal(f'unit is "characters" or "lines", not {unit!r}')
    first, last, _ = slice(start, stop).indices(len(text.lines))
    return text.span.line_start(first), text.span.line_start(max(first, last))


def _envelope(reply: dict[str, Any], key: str) -> str:
    """A reply of the memory's protocol as JSON; what does not fit is cut, and `metadata` says how to go on."""
    told = json.dumps(reply, ensure_ascii=False)
    output = reply["output"]
    if len(told.encode()) <= MAX_REPLY_BYTES or not isinstance(output, dict):
        return told
    if isinstance(output.get("value"), str):
        whole = output["value"]
        kept = whole[: MAX_REPLY_BYTES // 8]  # a character takes at most 6 bytes of JSON here
        goes_on = {"context": f"{MEMORY}/{key}", "start": len(kept), "stop": len(whole)}
        more = {"cut": True, "characters": len(whole), "next": {"tool": "context_slice", **goes_on}}
        return json.dumps({**reply, "output": {**output, "value": kept}, "metadata": more}, ensure_ascii=False)
    keys, room = [], MAX_REPLY_BYTES - 500
    for each in output["keys"]:
        room -= len(json.dumps(each, ensure_ascii=False).encode()) + 2
        if room < 0:
            break
        keys.append(each)
    more = {"cut": True, "keys": len(output["keys"]), "next": "L <start of the key>* lists those that begin so"}
    return json.dumps({**reply, "output": {**output, "keys": keys}, "metadata": more}, ensure_ascii=False)
