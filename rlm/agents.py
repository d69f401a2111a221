"""Agents that call tools, and councils of them, over any `LM`: for runs that keep their state in a shared memory.

    registry = ToolRegistry(MemoryTool(Memory.open("s3://bucket/team")))
    analyst = Agent("a1", "Analyst", lm, tools=registry, instructions="You analyse.")
    analyst.send("Which option has the best return? Keep your finding as analyst_findings.")
    Council("c", "Board", [analyst, strategist]).vote("Which option?", ["A", "B"]).winner

A model calls a tool by a reply that holds `{"tool_call": {"name": "memory", "parameters": {"command": "L"}}}`, as in
CloudLLM, so that any model can. No code runs here, and nothing is retried: see `rlm.RLM` for both.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from rlm.errors import RLMError
from rlm.models.lm import LM, Message, check_whole

Mode = Literal["parallel", "round_robin", "hierarchical"]
MOST_CALLS = 20
"""Tool calls of one turn of an agent."""
_HOW = """\
To call a tool, write this object and nothing else; its result is the next message:
{"tool_call": {"name": "<tool>", "parameters": {...}}}
A reply without one is your answer. Tools:
"""


class ToolProtocol(Protocol):
    """The interface of a set of tools, such as `monocontext.memory.MemoryTool`."""

    @property
    def protocol_name(self) -> str: ...

    def list_tools(self) -> list[dict[str, Any]]:
        """A description of each: `name`, `description`, `parameters`."""
        ...

    def execute(self, parameters: Mapping[str, Any], *, tool: str) -> dict[str, Any]:
        """Call a tool. Returns a dict with `success`, `output`, `error` and `metadata`.

        Raises `ValueError` or `LookupError` for an invalid call.
        """
        ...


class ToolRegistry:
    """Tools by name. One registry may serve many agents, from many threads."""

    def __init__(self, *tools: ToolProtocol) -> None:
        """Raises `ValueError` if two tools have the same name."""
        self._tools: dict[str, tuple[ToolProtocol, dict[str, Any]]] = {}
        for each in tools:
            for metadata in each.list_tools():
                if metadata["name"] in self._tools:
                    raise ValueError(f"two tools are named {metadata['name']!r}")
                self._tools[metadata["name"]] = each, metadata

    def list_tools(self) -> list[dict[str, Any]]:
        """The descriptions of all tools."""
        return [metadata for _, metadata in self._tools.values()]

    def get_tool_metadata(self, name: str) -> dict[str, Any]:
        """The description of a tool. Raises `LookupError`."""
        return self._find(name)[1]

    def protocol_name(self, name: str) -> str:
        """The protocol that a tool speaks. Raises `LookupError`."""
        return self._find(name)[0].protocol_name

    def execute_tool(self, name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool. Returns a dict with `success`, `output`, `error` and `metadata`.

        Raises `LookupError` for an unknown tool, and the errors of the tool.
        """
        return self._find(name)[0].execute(parameters, tool=name)

    def _find(self, name: str) -> tuple[ToolProtocol, dict[str, Any]]:
        if name not in self._tools:
            raise LookupError(f"no tool {name!r}; there are {', '.join(map(repr, self._tools)) or 'none'}")
        return self._tools[name]


class Agent:
    """One model with instructions, tools and its conversation so far. For use by one thread at a time."""

    def __init__(
        self,
        id: str,
        name: str,
        lm: LM,
        *,
        tools: ToolRegistry | None = None,
        instructions: str = "",
        model: str | None = None,
    ) -> None:
        """`model`: the name of the model, where the `LM` has several."""
        self.id, self.name = id, name
        self._lm, self._tools, self._model = lm, tools, model
        descriptions = "\n".join(json.dumps(each, ensure_ascii=False) for each in tools.list_tools()) if tools else ""
        system = "\n\n".join(part for part in (instructions, descriptions and _HOW + descriptions) if part)
        self.messages: list[Message] = [{"role": "system", "content": system}] if system else []
        """The conversation so far, tool calls and their results too."""

    def send(self, message: str) -> str:
        """The answer to a message, after the tool calls that the model makes (1 call of the model for each, and 1).

        A call that fails goes back to the model as its result. Raises `LLMError`, after which the message is not part
        of the conversation, and `RLMError` after 20 calls without an answer.
        """
        messages = [*self.messages, {"role": "user", "content": message}]
        for _ in range(MOST_CALLS + 1):
            text = check_whole(self._lm.complete(messages, model=self._model)).text
            messages.append({"role": "assistant", "content": text})
            call = find_tool_call(text) if self._tools else None
            if call is None:
                self.messages = messages
                return text
            messages.append({"role": "user", "content": json.dumps({"tool_result": self._execute(*call)})})
        raise RLMError(f"agent {self.name!r} has called tools {MOST_CALLS} times and given no answer")

    def _execute(self, name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        assert self._tools is not None
        try:
            return self._tools.execute_tool(name, parameters)
        except (LookupError, ValueError) as error:
            return {"success": False, "output": None, "error": str(error), "metadata": {}}

    def __repr__(self) -> str:
        return f"<Agent {self.id!r} {self.name!r}, {len(self.messages)} messages>"


def find_tool_call(text: str) -> tuple[str, dict[str, Any]] | None:
    """The name and the parameters of the first tool call in a reply; None if it has none."""
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        try:
            found, _ = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            found = None
        match found:
            case {"tool_call": {"name": str(name), "parameters": dict(parameters)}}:
                return name, parameters
            case {"tool_call": {"name": str(name)}}:
                return name, {}
        at = text.find("{", at + 1)
    return None


@dataclass(frozen=True, slots=True)
class Said:
    """One statement of an agent to a council."""

    agent: str
    """The name of the agent."""
    round: int
    """The round, from 1; in a hierarchy the level of the agent."""
    text: str


@dataclass(frozen=True, slots=True)
class Vote:
    """The result of a vote."""

    votes: Mapping[str, str]
    """The option of each agent, by its id."""
    unclear: Mapping[str, str]
    """Replies that name no option, or several; they count as no vote."""

    @property
    def winner(self) -> str | None:
        """The option of more than half of all agents, including those with unclear replies; None if there is none."""
        most = Counter(self.votes.values()).most_common(1)
        return most[0][0] if most and 2 * most[0][1] > len(self.votes) + len(self.unclear) else None

    @property
    def is_unanimous(self) -> bool:
        return len(set(self.votes.values())) == 1 and not self.unclear


class Council:
    """Agents that answer one question together."""

    def __init__(self, id: str, name: str, agents: Iterable[Agent] = (), *, mode: Mode = "round_robin") -> None:
        """`mode`: `parallel` (at once, each by itself), `round_robin` (in turn, each with the earlier replies), or
        `hierarchical` (by level, each with the replies of the levels below)."""
        if mode not in ("parallel", "round_robin", "hierarchical"):
            raise ValueError(f"mode is 'parallel', 'round_robin' or 'hierarchical', not {mode!r}")
        self.id, self.name, self.mode = id, name, mode
        self._levels: dict[str, int] = {}
        self.agents: list[Agent] = []
        for agent in agents:
            self.add_agent(agent)

    def add_agent(self, agent: Agent, *, level: int = 1) -> None:
        """Add an agent; `level`, from 1, counts in a hierarchy only. Raises `ValueError` for an id that is taken."""
        if agent.id in self._levels:
            raise ValueError(f"an agent {agent.id!r} is in the council already")
        self._levels[agent.id] = level
        self.agents.append(agent)

    def discuss(self, prompt: str, *, rounds: int = 1) -> list[Said]:
        """The statements of all agents about a prompt, in order. In a hierarchy a round is one pass over all levels."""
        self._check(rounds)
        said: list[Said] = []
        for number in range(1, rounds + 1):
            if self.mode == "round_robin":
                for agent in self.agents:
                    said.append(Said(agent.name, number, agent.send(_ask(prompt, said))))
            elif self.mode == "parallel":
                said += self._all(self.agents, _ask(prompt, said), number)
            else:
                for level in sorted(set(self._levels.values())):
                    members = [agent for agent in self.agents if self._levels[agent.id] == level]
                    said += self._all(members, _ask(prompt, said), level)
        return said

    def vote(self, question: str, options: Sequence[str], *, rounds: int = 1) -> Vote:
        """Let all agents vote at once, up to `rounds` times, each with the votes before, until they are unanimous."""
        self._check(rounds)
        if len(set(options)) < 2:
            raise ValueError(f"a vote needs at least two different options, not {list(options)!r}")
        asked = f"{question}\nReply with one of these options and nothing else: {', '.join(options)}"
        said: list[Said] = []
        vote = Vote({}, {})
        for number in range(1, rounds + 1):
            said = self._all(self.agents, _ask(asked, said), number)
            replies = {agent.id: one.text for agent, one in zip(self.agents, said, strict=True)}
            votes = {id: option for id, text in replies.items() if (option := _option(text, options)) is not None}
            vote = Vote(votes, {id: text for id, text in replies.items() if id not in votes})
            if vote.is_unanimous:
                break
        return vote

    def _all(self, agents: Sequence[Agent], message: str, number: int) -> list[Said]:
        with ThreadPoolExecutor(len(agents)) as threads:
            texts = list(threads.map(lambda agent: agent.send(message), agents))
        return [Said(agent.name, number, text) for agent, text in zip(agents, texts, strict=True)]

    def _check(self, rounds: int) -> None:
        if not self.agents:
            raise ValueError(f"the council {self.name!r} has no agents")
        if rounds < 1:
            raise ValueError(f"rounds must be 1 or more, not {rounds}")

    def __repr__(self) -> str:
        return f"<Council {self.id!r} {self.name!r} of {len(self.agents)} agents, {self.mode}>"


def _ask(prompt: str, said: Sequence[Said]) -> str:
    """The prompt, and the earlier replies."""
    if not said:
        return prompt
    return "\n\n".join([prompt, "Said so far:", *(f"{one.agent} ({one.round}): {one.text}" for one in said)])


def _option(text: str, options: Sequence[str]) -> str | None:
    """The option that a reply names: the whole reply, or the only one on its last line."""
    plain = text.strip().strip(".!\"'`*").casefold()
    exact = [option for option in options if option.casefold() == plain]
    if exact:
        return exact[0]
    last = text.strip().rpartition("\n")[2].casefold()
    named = [option for option in options if re.search(rf"(?<![^\W_]){re.escape(option.casefold())}(?![^\W_])", last)]
    return named[0] if len(named) == 1 else None
