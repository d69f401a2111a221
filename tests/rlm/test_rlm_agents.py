"""Agents, councils and registries of tools: the flows of CloudLLM's guide to its memory tool, over scripted models."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monocontext.memory import Memory, MemoryTool
from rlm import Agent, Council, LLMError, RLMError, ScriptedLM, ToolRegistry
from rlm.agents import find_tool_call


def call(command: str, name: str = "memory") -> str:
    return json.dumps({"tool_call": {"name": name, "parameters": {"command": command}}})


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory.open(tmp_path)


@pytest.fixture
def registry(memory: Memory) -> ToolRegistry:
    return ToolRegistry(MemoryTool(memory))


def last_result(agent: Agent) -> Any:
    results = [json.loads(one["content"])["tool_result"] for one in agent.messages if "tool_result" in one["content"]]
    return results[-1]


# -- the registry ------------------------------------------------------------------------------------------------------


class Clock:
    protocol_name = "clock"

    def list_tools(self) -> list[dict[str, Any]]:
        return [{"name": "now", "description": "The time.", "parameters": []}]

    def execute(self, parameters: Any, *, tool: str) -> dict[str, Any]:
        return {"success": True, "output": {"tool": tool, **parameters}, "error": None, "metadata": {}}


def test_a_registry_lists_and_calls_tools(memory: Memory) -> None:
    registry = ToolRegistry(MemoryTool(memory), Clock())
    assert [tool["name"] for tool in registry.list_tools()] == ["memory", "now"]
    assert registry.get_tool_metadata("memory")["parameters"][0]["name"] == "command"
    assert (registry.protocol_name("memory"), registry.protocol_name("now")) == ("memory", "clock")
    assert registry.execute_tool("memory", {"command": "P doc_name Important_Report 3600"})["output"]["status"] == "OK"
    assert registry.execute_tool("memory", {"command": "G doc_name"})["output"] == {"value": "Important_Report"}
    assert registry.execute_tool("now", {"zone": 1})["output"] == {"tool": "now", "zone": 1}
    for work in (registry.get_tool_metadata, registry.protocol_name, lambda name: registry.execute_tool(name, {})):
        with pytest.raises(LookupError, match="no tool 'other'; there are 'memory', 'now'"):
            work("other")
    with pytest.raises(ValueError, match="two tools are named 'now'"):
        ToolRegistry(Clock(), Clock())
    assert MemoryTool(memory).get_tool_metadata("memory") == MemoryTool(memory).metadata


# -- one agent: snapshots and recovery --------------------------------------------------------------------------------


def test_an_agent_resumes_from_its_recovery_point(tmp_path: Path, registry: ToolRegistry) -> None:
    first = Agent(
        "a",
        "Summarizer",
        ScriptedLM(
            [
                call("P doc_name TechArticle_25pages 7200"),
                "I write down where I am.\n```json\n"
                + call("P current_section Pages_1_to_5_summarized 7200")
                + "\n```",
                call("P recovery_point Resume_at_page_6 7200"),
                "Pages 1 to 5 are done.",
                LLMError("gone"),
            ]
        ),
        tools=registry,
        instructions="You summarize.",
    )
    assert first.send("Summarize pages 1 to 5.") == "Pages 1 to 5 are done."
    before = list(first.messages)
    with pytest.raises(LLMError, match="gone"):
        first.send("Go on.")
    assert first.messages == before, "a turn that failed is not part of the conversation"
    system = before[0]["content"]
    assert system.startswith("You summarize.\n\nTo call a tool, ")
    assert '"name": "memory"' in system

    again = ToolRegistry(MemoryTool(Memory.open(tmp_path)))  # another process, later

    def model(messages: Any) -> str:
        told = messages[-1]["content"]
        return (
            call("G recovery_point")
            if "tool_result" not in told
            else json.loads(told)["tool_result"]["output"]["value"]
        )

    second = Agent("a", "Summarizer", ScriptedLM(model), tools=again)
    assert second.send("Where were we?") == "Resume_at_page_6"


def test_what_fails_goes_back_to_the_model(registry: ToolRegistry) -> None:
    agent = Agent(
        "a",
        "A",
        ScriptedLM([call("G nothing"), call("L", "other"), '{"tool_call": {"name": "memory"}}', "done"]),
        tools=registry,
    )
    assert agent.send("Try.") == "done"
    errors = [
        json.loads(one["content"])["tool_result"]["error"] for one in agent.messages if "tool_result" in one["content"]
    ]
    assert errors[0] == "ERR:NOT_FOUND"
    assert errors[1] == "no tool 'other'; there are 'memory'"
    assert "Missing 'command' field" in errors[2]
    with pytest.raises(RLMError, match="has called tools 20 times and given no answer"):
        Agent("b", "B", ScriptedLM([call("L")] * 30), tools=registry).send("Loop.")
    assert Agent("c", "C", ScriptedLM([call("L")])).send("No tools.") == call("L"), "without tools it is an answer"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("no call", None),
        ("{", None),
        ('{"tool_call": 5}', None),
        ('{"a": {"tool_call": {"name": "x", "parameters": {}}}}', ("x", {})),
        ('so: {"b"} then {"tool_call": {"name": "x", "parameters": {"n": {"m": 1}}}} end', ("x", {"n": {"m": 1}})),
        ('{"tool_call": {"name": "x", "parameters": "text"}}', ("x", {})),
    ],
)
def test_a_tool_call_is_found_in_a_reply(text: str, found: object) -> None:
    assert find_tool_call(text) == found


# -- councils ----------------------------------------------------------------------------------------------------------


def agents(registry: ToolRegistry | None, *scripts: list[str] | Callable[[Any], str]) -> list[Agent]:
    return [Agent(f"agent{i}", f"Agent {i}", ScriptedLM(script), tools=registry) for i, script in enumerate(scripts, 1)]


def test_voting_through_the_shared_memory(memory: Memory, registry: ToolRegistry) -> None:
    def tally(messages: Any) -> str:
        told = messages[-1]["content"]
        if "tool_result" not in told:
            return call("L vote_*")
        keys = json.loads(told)["tool_result"]["output"].get("keys")
        return call("P consensus option_A 3600") if keys else "option_A has the majority."

    one, two, three = agents(
        registry,
        [call("P vote_agent1 option_A 3600"), "I vote for A."],
        [call("P vote_agent2 option_A 3600"), "A too."],
        tally,
    )
    said = Council("c", "Voters", [one, two, three]).discuss("Choose an option.")
    assert [(each.agent, each.round) for each in said] == [("Agent 1", 1), ("Agent 2", 1), ("Agent 3", 1)]
    assert said[-1].text == "option_A has the majority."
    assert memory.get("consensus") == "option_A"
    assert memory.list("vote_") == ["vote_agent1", "vote_agent2"]
    asked = [message["content"] for message in three.messages if "Said so far" in message["content"]]
    assert asked == ["Choose an option.\n\nSaid so far:\n\nAgent 1 (1): I vote for A.\n\nAgent 2 (1): A too."]


def test_hierarchical_decisions(memory: Memory, registry: ToolRegistry) -> None:
    workers = agents(
        registry, [call("P worker1_analysis Finding_X 1800"), "X"], [call("P worker2_analysis Finding_Y 1800"), "Y"]
    )
    supervisor = Agent(
        "s",
        "Supervisor",
        ScriptedLM([call("L META"), call("P supervisor_summary Both_X_and_Y_important 3600"), "both"]),
        tools=registry,
    )
    executive = Agent(
        "e",
        "Executive",
        ScriptedLM([call("G supervisor_summary"), call("P executive_decision Proceed_with_both 7200"), "go"]),
        tools=registry,
    )
    council = Council("c", "Board", mode="hierarchical")
    council.add_agent(executive, level=3)
    council.add_agent(supervisor, level=2)
    for worker in workers:
        council.add_agent(worker)
    said = council.discuss("What now?")
    assert [(each.round, each.text) for each in said] == [(1, "X"), (1, "Y"), (2, "both"), (3, "go")]
    assert memory.get("executive_decision") == "Proceed_with_both"
    listed = next(m["content"] for m in supervisor.messages if "tool_result" in m["content"])
    keys = json.loads(listed)["tool_result"]["output"]["keys"]
    assert {(each["key"], each["expires_in"]) for each in keys} == {
        ("worker1_analysis", 1800),
        ("worker2_analysis", 1800),
    }
    assert last_result(executive)["output"]["status"] == "OK"


def test_consensus_over_rounds() -> None:
    def follows(messages: Any) -> str:
        content = messages if isinstance(messages, str) else messages[-1]["content"]
        return "I see.\nOption A" if "Agent 1 (1): A" in content else "B."

    council = Council("c", "Board", agents(None, lambda messages: "A", follows, follows), mode="parallel")
    first = council.vote("Which option?", ["A", "B"])
    assert (first.votes, first.winner, first.is_unanimous) == (
        {"agent1": "A", "agent2": "B", "agent3": "B"},
        "B",
        False,
    )
    agreed = council.vote("Which option?", ["A", "B"], rounds=5)
    assert (agreed.winner, agreed.is_unanimous) == ("A", True)
    assert len(council.agents[0].messages) == 2 * 3, "no round more than it takes"


def test_unclear_votes_count_as_none() -> None:
    council = Council("c", "Board", agents(None, ["yes"], ["yes or no"], ["maybe"], ["**Yes**"]))
    vote = council.vote("Go?", ["yes", "no"])
    assert vote.votes == {"agent1": "yes", "agent4": "yes"}
    assert vote.unclear == {"agent2": "yes or no", "agent3": "maybe"}
    assert (vote.winner, vote.is_unanimous) == (None, False)


def test_a_parallel_round_asks_all_at_once() -> None:
    barrier = threading.Barrier(3, timeout=60)

    def together(messages: Any) -> str:
        barrier.wait()
        return "here"

    said = Council("c", "Crowd", agents(None, together, together, together), mode="parallel").discuss("Go.", rounds=2)
    assert [each.round for each in said] == [1, 1, 1, 2, 2, 2]


def test_what_is_no_council_is_refused() -> None:
    (one,) = agents(None, ["a"])
    with pytest.raises(ValueError, match="mode is 'parallel', 'round_robin' or 'hierarchical', not 'debate'"):
        Council("c", "C", mode="debate")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'agent1' is in the council already"):
        Council("c", "C", [one, one])
    with pytest.raises(ValueError, match="has no agents"):
        Council("c", "C").discuss("q")
    with pytest.raises(ValueError, match="two different options"):
        Council("c", "C", [one]).vote("q", ["a"])
    with pytest.raises(ValueError, match="rounds must be 1 or more, not 0"):
        Council("c", "C", [one]).vote("q", ["a", "b"], rounds=0)
