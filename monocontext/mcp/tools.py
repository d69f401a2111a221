"""Define the tools of the server as plain methods, without the SDK.

Annotations are real objects here, not strings: the SDK reads them from functions that it wraps.
"""

import inspect
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar

from monocontext.errors import NotFound, ToolRefusal
from monocontext.mcp.catalog import MEMORY, SESSIONS_PREFIX, Served
from monocontext.memory.commands import parse
from monocontext.memory.tool import MemoryTool
from monocontext.sessions.reader import SessionFile
from monocontext.sessions.readers import discover_sessions, find_sessions
from monocontext.sessions.session_info import SessionInfo
from monocontext.sessions.upload import upload_session
from monocontext.shell.call import Output
from monocontext.text.monocontext import Monocontext
from monocontext.text_tools.functions import TextTools, check_query, search_words
from monocontext.text_tools.keep import DAY_SECONDS, KeepTool
from monocontext.text_tools.outputs import Info, Kept, Listed, Matches, Slice, Text, ToolReply
from monocontext.text_tools.replies import MAX_REPLY_BYTES, fit_error, list_reply
from monocontext.text_tools.shell import Shell

if TYPE_CHECKING:
    from monocontext.sessions.archive import Sessions

Method = TypeVar("Method", bound=Callable[..., Any])
_CUT_NOTE_BYTES = 500  # room in a reply for the note that it was cut


@dataclass(frozen=True, slots=True)
class MemoryReply:
    """A reply in the memory's own protocol; `metadata` says how to read on where the output was cut."""

    success: bool
    output: dict[str, Any] | None  # None if the command failed
    error: str | None  # None if it succeeded
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a model. Some clients show these fields to their model, and not the text of the reply."""

    answer: str
    sources: list[str]  # each with its first words
    unfinished: str | None  # why the run ended early; None if it did not
    dollars: float | None  # None if the price is not known


def _described_as(tool: Callable[..., Any], *, also: str = "", sentence: str = "") -> Callable[[Method], Method]:
    """A decorator that gives a method the docstring of `tool`, which clients show to their models.

    `tool` is a function over one text, so `context` is described before its parameters. `also` describes one more
    parameter, and `sentence` is added to the summary.
    """
    summary, _, parameters = (inspect.getdoc(tool) or "").partition("\n\nArgs:\n")
    rows = ["    context: The name of the text; may be left out where there is one only.", parameters]
    rows += [f"    {also}"] if also else []

    def decorate(method: Method) -> Method:
        method.__doc__ = f"{summary}{sentence}\n\nArgs:\n" + "\n".join(filter(None, rows))
        return method

    return decorate


class Tools:
    """The tools over the served texts: each public method but `by_name` is a tool, and its docstring is for models."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def context_list(self, after: str = "") -> ToolReply[Listed]:
        """List the texts that can be read here, one name a line. Folders, sessions and the memory are texts too.

        after: a name; list only the names after it, to continue a list that was cut.
        """
        names = list(self._served.names())
        following = names[_index_after(names, after) :]
        return list_reply(((name, name) for name in following), nothing="[no context is served here]")

    @_described_as(TextTools.describe, sentence=" Looks for its newest version.")
    def context_info(self, context: str = "") -> ToolReply[Info]:
        name = context or self._served.only_name()
        return TextTools(self._served.context(name, fresh=True), name).describe()

    @_described_as(TextTools.read)
    def context_slice(
        self, context: str = "", start: int = 0, stop: int | None = None, unit: str = "characters", document: str = ""
    ) -> ToolReply[Slice]:
        return TextTools(self._text(context, start)).read(start, stop, unit, document)

    @_described_as(
        TextTools.grep,
        also="words: The pattern is words whose exact form is unknown: finds the passages that speak of them most, "
        "best first, ten at most, of the whole text; of sessions/PROJECT and of memory one for each session and key.",
    )
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
    ) -> ToolReply[Matches]:
        if not words:
            text = self._text(context, start)
            return TextTools(text).grep(pattern, ignore_case, fixed, max_hits, start, stop)
        if ignore_case or fixed or start or stop is not None:
            raise ToolRefusal("words=true searches all text in any case: leave out ignore_case, fixed, start and stop")
        check_query(pattern, max_hits)
        name = context or self._served.only_name()
        is_project = self._served.sessions is not None and name.startswith(SESSIONS_PREFIX) and name.count("/") == 1
        return search_words(self._text(name, 0), pattern, max_hits, per_document=is_project)

    @_described_as(TextTools.list_documents)
    def context_documents(self, context: str = "", glob: str = "", after: str = "") -> ToolReply[Listed]:
        return TextTools(self._text(context, 0)).list_documents(glob, after)

    @_described_as(TextTools.outline)
    def context_outline(self, context: str = "") -> ToolReply[Text]:
        return TextTools(self._text(context, 0)).outline()

    def bash(self, command: str) -> ToolReply[Output]:
        return self._served.shell().bash(command)

    bash.__doc__ = Shell.bash.__doc__

    def keep(self, text: str, name: str, ttl: int = DAY_SECONDS) -> ToolReply[Kept]:
        if self._served.kept is None:
            raise NotFound("nothing can be kept here: start the server with --keep URL")
        return self._served.kept.keep(text, name, ttl)

    keep.__doc__ = (KeepTool.keep.__doc__ or "").replace("ttl_seconds:", "ttl:")  # named as in `memory`

    def session_list(
        self, project: str = "", since: str = "", until: str = "", branch: str = "", tool: str = "", after: str = ""
    ) -> ToolReply[Listed]:
        """List the sessions of a project, one a line: id, agent, time, turns, title. Without a project, the projects.

        since, until: only sessions with a turn in that time, such as 2026-02-14 or 2026-02-14T10:00:00Z.
        branch: only sessions that ended on this git branch. tool: only sessions that called this tool.
        after: an id; list only the sessions after it, to continue a list that was cut.
        """
        sessions = self._sessions()
        if not project:
            names = sessions.projects()
            if len(names) != 1:
                following = names[_index_after(names, after) :]
                return list_reply(((name, name) for name in following), nothing="[no project has sessions here]")
            project = names[0]
        infos = sessions.project(project).sessions(
            since or None, until or None, branch=branch or None, tool=tool or None
        )
        rows = [(info.session_id, _session_row(info)) for info in infos]
        start = _index_after([session_id for session_id, _ in rows], after)
        return list_reply(iter(rows[start:]), nothing=f"[no such session of project {project}]")

    def session_read(
        self, session: str, project: str = "", start: int = 0, stop: int | None = None
    ) -> ToolReply[Slice]:
        """Read a session, or a part of it: characters [start, stop) of its turns as text.

        Returns about 20,000 bytes at most: a longer part is cut, and its last line states the next range.

        session: the id of the session, or its beginning.
        project: optional.
        """
        archived, session_id = self._sessions().find(session, project or None)
        text = self._served.context(f"{SESSIONS_PREFIX}{archived.name}/{session_id}", fresh=start == 0)
        return TextTools(text).read(start, stop)

    def memory(
        self,
        command: str,
        key: str | None = None,
        value: str | None = None,
        ttl: int | str | None = None,
        if_absent: bool | None = None,
        if_match: str | None = None,
    ) -> ToolReply[MemoryReply]:
        """Keep and find what should outlive this session: keys and values, shared by all agents that have this tool.

        command: P <key> <value> [ttl seconds], G <key> [META], `L [start*] [META]`, D <key>, C (removes all),
        T A, SPEC.
        key, value: fields instead of words of the command, kept exactly, with spaces.
        ttl: with P, the lifetime in seconds. if_absent: with P, only where there is no such key.
        if_match: with P, only over the version with this etag.
        """
        if self._served.memory is None:
            raise NotFound("no memory is served here: start the server with --memory URL")
        arguments = {"key": key, "value": value, "ttl": ttl, "if_absent": if_absent, "if_match": if_match}
        call = {"command": command} | {name: item for name, item in arguments.items() if item is not None}
        reply = MemoryTool(self._served.memory).execute(call)
        if not reply["success"]:
            reply = {**reply, "error": fit_error(str(reply["error"]))}
        else:
            reply = _fit_memory_reply(reply, parse(call).key)
        return ToolReply(json.dumps(reply, ensure_ascii=False), MemoryReply(**reply))

    def upload_context(self, session_id: str | None = None, project_dir: str | None = None,
                       thread_id: str | None = None) -> ToolReply[Text]:  # fmt: skip
        """Add a session of a coding agent on this machine to the shared sessions, without its secrets.

        session_id: the id of the session, or its beginning; default: the latest. project_dir: only sessions in this
        folder of ~/.claude/projects. thread_id: the project to add it to; default: that of its repository.
        """
        store = self._sessions().store
        uploads = [upload_session(store, file, project=thread_id) for file in _session_files(session_id, project_dir)]
        report = "\n".join(
            f"{done.session_id}: {done.records} new records, {done.turns} new turns, to project {done.project}; "
            f"secrets taken out: {len(done.findings)}"
            for done in uploads
        )
        return ToolReply(report, Text(report))

    def by_name(self, *, uploads: bool) -> dict[str, Callable[..., ToolReply[Any]]]:
        """The tools that this server offers, by name. `uploads`: whether `upload_context` may be among them."""
        served = self._served
        tools: list[Callable[..., ToolReply[Any]]] = [
            self.context_list, self.context_info, self.context_slice, self.context_search, self.context_documents,
            self.context_outline,
        ]  # fmt: skip
        if served.sessions is not None or not (served.has_texts or served.kept):  # with nothing, they say what to set
            tools += [self.session_list, self.session_read]
            if uploads:
                tools.append(self.upload_context)
        if served.memory is not None:
            tools.append(self.memory)
        if served.has_shell:
            tools.append(self.bash)
        if served.kept is not None:
            tools.append(self.keep)
        return {tool.__name__: tool for tool in tools}

    def _text(self, context: str, start: int) -> Monocontext:
        """The text with a name, or the only text, in the version that is open; a memory is reopened if `start` is 0."""
        name = context or self._served.only_name()
        is_memory = self._served.memory is not None and name.split("/")[0] == MEMORY
        return self._served.context(name, fresh=is_memory and start == 0)

    def _sessions(self) -> "Sessions":
        if self._served.sessions is None:
            raise NotFound("no sessions are served here: set MONOCONTEXT_URL, or start the server with --sessions URL")
        return self._served.sessions


def _index_after(names: list[str], after: str) -> int:
    """The index after a name in a list; 0 for an empty name. Raises `NotFound` if the list lacks the name."""
    if not after:
        return 0
    if after not in names:
        raise NotFound(f"after={after!r} is not in the list: pass the last name that was listed")
    return names.index(after) + 1


def _session_row(info: SessionInfo) -> str:
    title = " ".join((info.title or info.first_prompt).split())
    return f"{info.session_id}  {info.agent or '?'}  {info.started or '?'}  {info.turns} turns  {title}"


def _session_files(session_id: str | None, project_dir: str | None) -> list[SessionFile]:
    """The files of the session with this id and its subagents, by default the latest session. Raises `NotFound`."""
    if session_id and os.path.isfile(session_id):  # otherwise a model could upload any file of the user
        raise NotFound(f"session_id must be the id of a session, or its beginning, not the file {session_id!r}")
    files = find_sessions(session_id) if session_id else discover_sessions("claude-code")
    if project_dir:
        files = [file for file in files if project_dir in file.path.parts]
    if not files:
        advice = f" in {project_dir}: leave project_dir out to search all" if project_dir else ""
        raise NotFound(f"no session on this machine{advice}")
    if session_id:
        return files
    latest = files[0].session_id.partition("/")[0]
    return [file for file in files if file.session_id.partition("/")[0] == latest]


def _fit_memory_reply(reply: dict[str, Any], key: str) -> dict[str, Any]:
    """A reply with the `value` of `key`, or a list of `keys`, cut to fit a call; `metadata` says how to go on."""
    output = reply["output"]
    if _json_bytes(reply) <= MAX_REPLY_BYTES or not isinstance(output, dict):
        return reply
    value = output.get("value")
    if isinstance(value, str):
        part = value[: MAX_REPLY_BYTES // 8]  # a character takes at most 6 bytes of JSON here
        following = {"tool": "context_slice", "context": f"{MEMORY}/{key}", "start": len(part), "stop": len(value)}
        cut = {"cut": True, "characters": len(value), "next": following}
        return {**reply, "output": {**output, "value": part}, "metadata": cut}
    lengths_bytes = accumulate(_json_bytes(item) + len(", ") for item in output["keys"])
    keys = output["keys"][: sum(length <= MAX_REPLY_BYTES - _CUT_NOTE_BYTES for length in lengths_bytes)]
    cut = {"cut": True, "keys": len(output["keys"]), "next": "L <start of the key>* lists those that begin so"}
    return {**reply, "output": {**output, "keys": keys}, "metadata": cut}


def _json_bytes(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())
