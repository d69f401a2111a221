"""Hold the turns of an archive against what a stand-in model saw."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from agents.stand_in import Call, Hang, Script, StandIn
from monocontext.sessions.turn import Turn

Row = tuple[str, str]
"""`user`, `assistant`, `call` or `result`, and the words, or the name of the tool."""


def seen_by(model: StandIn, without: Collection[str] = ()) -> list[Row]:
    """What was said in the session, without the threads that begin with these prompts."""
    rows: list[Row] = []
    for prompt, step, reply in model.heard:
        if prompt in without:
            continue
        rows.append(("user", prompt) if step == 0 else ("result", ""))
        if isinstance(reply, Call):
            rows.append(("call", reply.tool.rpartition(".")[2]))
        elif not isinstance(reply, Hang):
            rows.append(("assistant", reply))
    return rows


def rows_of(turns: Iterable[Turn], script: Script) -> list[Row]:
    """The turns that are words of the script, calls or results; what an agent adds of its own is left out."""
    said = {reply for replies in script.values() for reply in replies if isinstance(reply, str)}
    rows: list[Row] = []
    for turn in turns:
        if turn.kind == "tool_use":
            rows.append(("call", turn.tool))
        elif turn.kind == "tool_result":
            rows.append(("result", ""))
        elif turn.kind == "text" and turn.text.strip().strip('"') in (script if turn.role == "user" else said):
            rows.append((turn.role, turn.text.strip().strip('"')))
    return rows
