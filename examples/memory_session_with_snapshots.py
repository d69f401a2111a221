"""Let an agent store snapshots while it works through a document, so that a stopped run goes on from the last one.

    python examples/memory_session_with_snapshots.py s3://bucket/agent --stop-after 2
    python examples/memory_session_with_snapshots.py s3://bucket/agent

Without `--model` a scripted model plays the agent, so that it runs anywhere; with it, any OpenAI-compatible one does.
"""

from __future__ import annotations

import argparse
import json
import re

from memory_agent import CALLS, Agent

from monocontext.memory import Memory, MemoryTool
from rlm import LM, OpenAILM, ScriptedLM

DOCUMENT = [
    "Tides follow the moon. Water on the near side is pulled more strongly than the earth below it.",
    "The far side bulges too. There the earth is pulled away from the water.",
    "Twice a day is the rule. Basins and coasts make exceptions, down to a single tide a day.",
    "Spring tides come at new and full moon. Sun and moon pull along one line.",
    "Neap tides come between. Sun and moon pull at a right angle.",
]
PROMPT = f"""\
You summarise a document that is given to you section by section: one sentence each.

You have a memory that outlives this session. {CALLS}

Use it so that you, or whoever comes after you, can go on at any moment:
1. First look: L, and G recovery_point. If there is one, go on from there and do nothing twice.
2. When you begin, store what the task is (task_description), for example P task_description Summarize_report 7200.
3. After each step store how far you are (progress) and how to go on (recovery_point).
4. Store results and decisions without a lifetime, passing state with one: 60-300 s while you work, 600-7200 s for \
progress.
Give keys names that say what they hold, and keep values short."""


def scripted(messages: list[dict[str, str]]) -> str:
    """The answer of a model that follows its prompt."""

    def call(command: str) -> str:
        return json.dumps({"tool_call": {"name": "memory", "parameters": {"command": command}}})

    said, before = messages[-1]["content"], messages[-2]["content"]
    if said.startswith("Where do we stand"):
        return call("G recovery_point")
    if section := re.match(r"Section (\d+): (.*?\.)", said):
        return call(f'P summary_{section[1]} "{section[2]}"')
    if "G recovery_point" in before:
        found = re.search(r"Resume_at_section_(\d+)", said)
        return f"Go on with section {found[1] if found else 1}."
    if stored := re.search(r"P summary_(\d+)", before):
        return call(f"P recovery_point Resume_at_section_{int(stored[1]) + 1} 7200")
    return "The section is summarised."


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="the place of the memory: s3://bucket/prefix, or a directory")
    parser.add_argument("--model", help="a model behind OPENAI_BASE_URL instead of the script")
    parser.add_argument("--stop-after", type=int, metavar="N", help="end the session after N sections")
    given = parser.parse_args(arguments)
    lm: LM = OpenAILM(given.model) if given.model else ScriptedLM(scripted)
    with Memory.open(given.url) as memory:
        agent = Agent(lm, PROMPT, MemoryTool(memory))
        first = re.search(r"\d+", agent.say("Where do we stand? Name the number of the section to go on with."))
        start = int(first[0]) if first else 1
        print(f"the session begins at section {start} of {len(DOCUMENT)}")
        for done, number in enumerate(range(start, len(DOCUMENT) + 1)):
            if done == given.stop_after:
                print(f"the session is interrupted before section {number}")
                return
            agent.say(f"Section {number}: {DOCUMENT[number - 1]}")
        print("the whole document:")
        print(memory.context("summary_"))


if __name__ == "__main__":
    main()
