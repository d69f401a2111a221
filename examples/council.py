"""Let a council share one memory: members store findings and votes in parallel, then one stores the decision.

    python examples/council.py s3://bucket/council

Each member has its own store and conversation, as on its own machine; they share only the memory. All try to claim the
decision, and the store lets one of them write it. Without `--model` scripted models play the members.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from memory_agent import CALLS, Agent

from monocontext.memory import Memory, MemoryTool
from rlm import LM, OpenAILM, ScriptedLM

MEMBERS = {
    "analyst": ("You look at figures.", "Option A has the best return", "option_A"),
    "strategist": ("You look at five years ahead.", "Option A aligns with the plan", "option_A"),
    "implementer": ("You look at what can be built.", "Option B is ready sooner", "option_B"),
}
PROMPT = """\
You are the {name}. {task} The members are: {members}.

All members share one memory: what one stores, all see at once. {calls}

1. Before you speak, read what the others left: L, then G of what concerns you.
2. Store your findings under your own name, for example P analyst_findings "Trend is up" 3600. Never write over a key \
of another member.
3. Refer to the keys that your view builds on.
4. A task that only one of you should do is claimed first: \
{{"command": "P claimed:task_1 analyst", "if_absent": true}}. ERR:EXISTS means that another has it.
5. Who closes the discussion stores the decision without a lifetime: P final_decision ..."""
QUESTION = "Which option do we take, A or B? Store your findings and your vote (vote_<your name>)."
CLOSING = "Everyone has voted. Claim the minutes (claimed:minutes); who has the claim stores final_decision."


def scripted(name: str) -> Callable[[list[dict[str, str]]], str]:
    """A function that answers like a member who follows the prompt."""
    _, finding, vote = MEMBERS[name]

    def call(command: str, **fields: object) -> str:
        return json.dumps({"tool_call": {"name": "memory", "parameters": {"command": command, **fields}}})

    def reply(messages: list[dict[str, str]]) -> str:
        said, before = messages[-1]["content"], messages[-2]["content"]
        if said == QUESTION:
            return call("L")
        if said == CLOSING:
            return call(f"P claimed:minutes {name}", if_absent=True)
        if before == call("L"):
            return call(f'P {name}_findings "{finding}" 3600')
        if f"P {name}_findings" in before:
            return call(f"P vote_{name} {vote} 3600")
        if f"P vote_{name}" in before:
            return f"I vote for {vote}."
        if "P claimed:minutes" in before:
            return "Another member writes the minutes." if "ERR:EXISTS" in said else call("L vote_*")
        votes = re.findall(r'"value": "(option_[AB])"', " ".join(m["content"] for m in messages))
        keys = re.findall(r"vote_[a-z]+", next(m["content"] for m in messages[::-1] if '"keys"' in m["content"]))
        if len(votes) < len(keys):
            return call(f"G {keys[len(votes)]}")
        if "P final_decision" in before:
            return "The decision is recorded."
        winner = max(sorted(set(votes)), key=votes.count)
        return call(f"P final_decision {winner} with {votes.count(winner)} of {len(votes)} votes")

    return reply


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="the place of the memory: s3://bucket/prefix, or a directory")
    parser.add_argument("--model", help="a model behind OPENAI_BASE_URL instead of the scripts")
    given = parser.parse_args(arguments)

    def member(name: str) -> Agent:
        lm: LM = OpenAILM(given.model) if given.model else ScriptedLM(scripted(name))
        prompt = PROMPT.format(name=name, task=MEMBERS[name][0], members=", ".join(MEMBERS), calls=CALLS)
        return Agent(lm, prompt, MemoryTool(Memory.open(given.url)), name=name)

    council = [member(name) for name in MEMBERS]
    with ThreadPoolExecutor(len(council)) as threads:
        for question in (QUESTION, CLOSING):
            answers = threads.map(Agent.say, council, [question] * len(council))
            for agent, answer in zip(council, answers, strict=True):
                print(f"{agent.name}: {answer}")
    print("the record:")
    print(json.dumps(council[0].tool.execute({"command": "L META"})["output"], indent=2))
    print(f"decision: {council[0].tool.memory.get('final_decision')}")
    for agent in council:
        agent.tool.memory.close()


if __name__ == "__main__":
    main()
