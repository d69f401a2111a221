"""Define the tools of the server as plain methods, which know no SDK.

Annotations are real objects here, not strings: the SDK reads them from functions that it wraps.
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from monocontext.errors import NotFound, ToolRefusal
from monocontext.mcp import search_process
from monocontext.mcp.catalog import MEMORY, SESSIONS, Served
from monocontext.mcp.outputs import Info, Listed, Matches, MemoryReply, Reply, Session, SessionList, Slice, Text
from monocontext.mcp.replies import (
    MAX_REPLY_BYTES,
    SEARCH_SECONDS,
    fit_error,
    list_reply,
    passages_reply,
    ranked_reply,
    search_reply,
    slice_reply,
)
from monocontext.text.search import ranked

if TYPE_CHECKING:
    from monocontext.sessions.archive import Sessions
    from monocontext.text.monocontext import Monocontext

_HEAD_CHARACTERS = 500
"""Shown of the head and of the tail by `context_info`."""
_MOST_PATTERN = 10_000
"""Characters of a pattern. To take a longer one apart would hold the server beyond the time of a search."""
_MOST_HITS = 1000
_MOST_PASSAGES = 10


class Tools:
    """The tools over the served texts. Methods without an underscore are the tools."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def context_list(self, after: str = "") -> Reply[Listed]:
        """List the texts that can be read here, one name a line. Folders, sessions and the memory are texts too.

        after: a name; only those behind it, to go on with a list that was cut.
        """
        names = list(self._served.names())
        return list_reply(names[_index_after(names, after) :], nothing="[no context is served here]")

    def context_info(self, context: str = "") -> Reply[Info]:
        """Describe a text: its size in characters and lines, how it begins and ends. Looks for its newest version.

        context: its name; may be left out where there is one only.
        """
        name = context or self._served.only_name()
        text = self._served.context(name, fresh=True)
        size = len(text)
        facts = Info(
            context=name,
            url=text.url,
            generation=text.generation,
            characters=size,
            lines=len(text.lines),
            head=str(text[:_HEAD_CHARACTERS]),
            tail=str(text[max(_HEAD_CHARACTERS, size - _HEAD_CHARACTERS) :]) if size > _HEAD_CHARACTERS else "",
        )
        return Reply(json.dumps(asdict(facts), ensure_ascii=False, indent=1), facts)

    def context_slice(
        self, context: str = "", start: int = 0, stop: int | None = None, unit: str = "characters"
    ) -> Reply[Slice]:
        """Read a part of a text: characters [start, stop), negative ones count from the end, as in Python.

        At most about 20,000 bytes at once: a longer part is cut, and its last line states the range to go on with.

        context: its name; may be left out where there is one only.
        unit: "characters", or "lines" to give start and stop in lines, counted from 0.
        """
        text = self._text(context, start)
        return slice_reply(text, *_character_range(text, start, stop, unit))

    def context_search(
        self,
        pattern: str,
        context: str = "",
        ignore_case: bool = False,
        fixed: bool = False,
        max_hits: int = 50,
        start: int = 0,
        stop: int | None = None,
        words: bool = False,
    ) -> Reply[Matches]:
        """Find the lines of a text that match, as grep does, each as `document:line number:character:line`.

        Line numbers are those of the document, characters those of the whole text, for context_slice. A text that
        holds no documents gives `character:line number:line`. Header lines between documents are not searched.

        Texts of many GB are fine. A search that finds too much or takes too long says from where to go on.

        pattern: a Python regular expression; with fixed a text to be found as it is. At most 10,000 characters.
        context: its name; may be left out where there is one only.
        ignore_case: letters match in either case. max_hits: lines, at most 1000.
        start, stop: only lines that begin at characters [start, stop).
        words: pattern is words whose exact form you do not know; the passages that speak of them most, best
            first, ten at most, of the whole text; of sessions/PROJECT and of memory one for each session and key.
        """
        if not 0 < max_hits <= _MOST_HITS:
            raise ToolRefusal(f"max_hits is 1 to {_MOST_HITS}, not {max_hits}")
        if len(pattern) > _MOST_PATTERN:
            raise ToolRefusal(f"a pattern has at most {_MOST_PATTERN:,} characters, this one has {len(pattern):,}")
        if words:
            if ignore_case or fixed or start or stop is not None:
                raise ToolRefusal(
                    "words=true searches the whole text in any case: leave ignore_case, fixed, start, stop out"
                )
            return self._search_words(pattern, context, min(max_hits, _MOST_PASSAGES))
        text = self._text(context, start)
        first, last = _character_range(text, start, stop, "characters")
        search = search_process.search if search_process.may_backtrack(pattern, fixed=fixed) else search_reply
        return search(
            text, pattern=pattern, ignore_case=ignore_case, fixed=fixed, max_hits=max_hits, start=first, stop=last
        )

    def session_list(
        self, project: str = "", since: str = "", until: str = "", branch: str = "", tool: str = "", after: str = ""
    ) -> Reply[SessionList]:
        """List the sessions of a project, one a line: id, agent, time, turns, title. Without a project, the projects.

        since, until: only sessions with a turn in that time, such as 2026-02-14 or 2026-02-14T10:00:00Z.
        branch: only sessions that ended on this git branch. tool: only those that called it.
        after: an id; only those behind it, to go on with a list that was cut.
        """
        sessions = self._sessions()
        if not project:
            names = sessions.projects()
            if len(names) != 1:
                listed = list_reply(names[_index_after(names, after) :], nothing="[no project has sessions here]")
                return Reply(listed, SessionList(None, listed.data.names, [], listed.data.after))
            project = names[0]
        found = sessions.project(project).sessions(
            since or None, until or None, branch=branch or None, tool=tool or None
        )
        rows = [
            Session(
                info.session_id, info.agent, info.started, info.turns,
                " ".join((info.title or info.first_prompt).split()),
            )
            for info in found[_index_after([info.session_id for info in found], after) :]
        ]  # fmt: skip
        listed = list_reply(
            (f"{row.id}  {row.agent or '?'}  {row.started or '?'}  {row.turns} turns  {row.title}" for row in rows),
            nothing=f"[no such session of project {project}]",
        )
        return Reply(listed, SessionList(project, [], rows[: len(listed.data.names)], listed.data.after))

    def session_read(self, session: str, project: str = "", start: int = 0, stop: int | None = None) -> Reply[Slice]:
        """Read a session, or a part of it: characters [start, stop) of its turns as text.

        At most about 20,000 bytes at once: a longer part is cut, and its last line states the range to go on with.

        session: its id, or how it begins.
        project: may be left out.
        """
        found, session_id = self._sessions().find(session, project or None)
        text = self._served.context(f"{SESSIONS}{found.name}/{session_id}", fresh=start == 0)
        return slice_reply(text, *_character_range(text, start, stop, "characters"))

    def memory(
        self,
        command: str,
        key: str | None = None,
        value: str | None = None,
        ttl: int | str | None = None,
        if_absent: bool | None = None,
        if_match: str | None = None,
    ) -> Reply[MemoryReply]:
        """Keep and find what should outlive this session: keys and values, shared by all agents that have this tool.

        command: P <key> <value> [ttl seconds], G <key> [META], `L [start*] [META]`, D <key>, C (removes all),
        T A, SPEC.
        key, value: instead of in the command, kept as they are, spaces too.
        ttl: with P, seconds that it lives. if_absent: with P, only where there is no such key.
        if_match: with P, only over the version with this etag.
        """
        from monocontext.memory.commands import parse
        from monocontext.memory.tool import MemoryTool

        if self._served.memory is None:
            raise NotFound("no memory is served here: start the server with --memory URL")
        given = {"key": key, "value": value, "ttl": ttl, "if_absent": if_absent, "if_match": if_match}
        call = {"command": command} | {name: each for name, each in given.items() if each is not None}
        reply = MemoryTool(self._served.memory).execute(call)
        if not reply["success"]:
            reply = {**reply, "error": fit_error(str(reply["error"]))}
        else:
            reply = _fit_memory_reply(reply, parse(call).key)
        return Reply(json.dumps(reply, ensure_ascii=False), MemoryReply(**reply))

    def upload_context(self, session_id: str | None = None, project_dir: str | None = None,
                       thread_id: str | None = None) -> Reply[Text]:  # fmt: skip
        """Add a session of a coding agent on this machine to the shared sessions, secrets taken out.

        session_id: its id, or how it begins; else the latest. project_dir: of a folder below ~/.claude/projects.
        thread_id: the project that it is kept under; else that of its repository.
        """
        from monocontext.mcp.upload_latest import upload_latest

        done = upload_latest(self._sessions().store, session_id, project_dir, thread_id)
        return Reply(done, Text(done))

    def _search_words(self, query: str, context: str, k: int) -> Reply[Matches]:
        """The best passage of each session of a project, or of each key of a memory."""
        name = context or self._served.only_name()
        memory = self._served.memory
        try:
            if memory is not None and name == MEMORY:
                return ranked_reply(memory.search_words(query, k))
            by_session = self._served.sessions is not None and name.startswith(SESSIONS) and name.count("/") == 1
            text = self._text(name, 0)
            return passages_reply(
                ranked.search(
                    text.span, query, k, None, SEARCH_SECONDS, documents=text._own_documents,
                    per_document=by_session, between=False,
                )
            )  # fmt: skip
        except ValueError as error:
            raise ToolRefusal(str(error)) from None

    # -- the served texts ----------------------------------------------------------------------------------------------

    def _tools_by_name(self, *, uploads: bool) -> dict[str, Callable[..., Reply[Any]]]:
        """The tools by name, of which this server has something to offer."""
        found: dict[str, Callable[..., Reply[Any]]] = {
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
        """A text as it was first opened; a memory as it is now where `start` is 0, to find the latest values."""
        name = context or self._served.only_name()
        is_memory = self._served.memory is not None and name.split("/")[0] == MEMORY
        return self._served.context(name, fresh=is_memory and start == 0)

    def _sessions(self) -> "Sessions":
        if self._served.sessions is None:
            raise NotFound("no sessions are served here: start the server with --sessions URL")
        return self._served.sessions


def _index_after(names: list[str], after: str) -> int:
    """The index after a name in a list; 0 without a name. Raises `NotFound` for one that is not in the list."""
    if not after:
        return 0
    if after not in names:
        raise NotFound(f"after={after!r} is not in the list")
    return names.index(after) + 1


def _character_range(text: "Monocontext", start: int, stop: int | None, unit: str) -> tuple[int, int]:
    """Characters [first, last) of a range in characters or lines."""
    if unit in ("characters", "chars"):
        first, last, _ = slice(start, stop).indices(len(text))
        return first, last
    if unit != "lines":
        raise ToolRefusal(f'unit is "characters" or "lines", not {unit!r}')
    first, last, _ = slice(start, stop).indices(len(text.lines))
    return text.span.line_start(first), text.span.line_start(max(first, last))


def _fit_memory_reply(reply: dict[str, Any], key: str) -> dict[str, Any]:
    """A reply of the memory's protocol; a reply that is too long is cut, and `metadata` says how to go on."""
    output = reply["output"]
    if len(json.dumps(reply, ensure_ascii=False).encode()) <= MAX_REPLY_BYTES or not isinstance(output, dict):
        return reply
    if isinstance(output.get("value"), str):
        whole = output["value"]
        part = whole[: MAX_REPLY_BYTES // 8]  # a character takes at most 6 bytes of JSON here
        goes_on = {"context": f"{MEMORY}/{key}", "start": len(part), "stop": len(whole)}
        more = {"cut": True, "characters": len(whole), "next": {"tool": "context_slice", **goes_on}}
        return {**reply, "output": {**output, "value": part}, "metadata": more}
    keys, room = [], MAX_REPLY_BYTES - 500
    for each in output["keys"]:
        room -= len(json.dumps(each, ensure_ascii=False).encode()) + 2
        if room < 0:
            break
        keys.append(each)
    more = {"cut": True, "keys": len(output["keys"]), "next": "L <start of the key>* lists those that begin so"}
    return {**reply, "output": {**output, "keys": keys}, "metadata": more}
