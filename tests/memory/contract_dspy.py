"""The signatures and the agent in the real `dspy`, by a scripted model. A program for an environment that has it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import dspy

from monocontext import Monocontext
from monocontext import dspy as ours
from monocontext.errors import ContextTooLarge
from monocontext.memory import Memory
from monocontext.text.from_str import wrap_str
from tests.hosts.dspy_model import AsyncEngine, Engine, raises, step
from tests.virtual import virtual_context

FILLER = ("2026-01-05 the user asked for nothing new today, and all was well.\n" * 4000)[: 256 << 10]
PLANTED = "\n[KEY decision-17] the user prefers dark mode because of migraine; see KEY doctor-3\n"
SECOND = "\n[KEY doctor-3] the doctor said: avoid flicker\n"
FRAME = 256 << 10


class Scripted(dspy.LM):  # type: ignore[misc]
    """Answers from a list of cells; the last one is repeated. Keeps the prompts."""

    def __init__(self, *cells: str) -> None:
        super().__init__("scripted", engine=Engine(self.reply), async_engine=AsyncEngine(self.reply), cache=False)
        self.cells = list(cells)
        self.prompts: list[str] = []

    def reply(self, prompt: str) -> str:
        self.prompts.append(prompt)
        if "[[ ## code ## ]]" not in prompt:
            if "[[ ## exploration_strategy ## ]]" in prompt:  # out of steps: what is known so far
                known = {"exploration_strategy": "none", "relevant_memories": "[]", "confidence": "0"}
                return "".join(f"[[ ## {name} ## ]]\n{value}\n\n" for name, value in known.items())
            return "a sub-call's answer"
        return step(self.cells.pop(0) if len(self.cells) > 1 else self.cells[0])


def of_bytes(size: int) -> Monocontext:
    """Some `size` bytes of memories, two of which matter."""
    frames = size // FRAME
    plants = {frames // 2: PLANTED + FILLER[len(PLANTED) :], frames - 1: SECOND + FILLER[len(SECOND) :]}
    opened: Monocontext = Monocontext.open(virtual_context(frames, FILLER, plants, filters=True))
    return opened


def cells(field: str, submit: str) -> tuple[str, str]:
    """A look, then a search and what is submitted."""
    look = f"print(len({field}), {field}[:80])"
    search = f"hit = next({field}.grep('dark mode', max_hits=1))\nat = hit.offset\n"
    return look, f"{search}found = {field}[max(0, at - 40):at + 60]\nprint(found)\n{submit}"


RUNS: list[tuple[Any, str, dict[str, Any], str, str, Callable[[Any], object]]] = [
    (
        ours.ExploreMemory, "memory_context", {"query": "What does the user prefer?", "search_depth": 3},
        "exploration_strategy relevant_memories confidence",
        "SUBMIT(exploration_strategy='grep', relevant_memories=[found], confidence=0.9)",
        lambda done: "dark mode" in done.relevant_memories[0] and done.confidence == 0.9,
    ),
    (
        ours.MemoryChainReasoning, "memory_bank", {"question": "Why dark mode?"},
        "reasoning_chain connected_memories answer",
        "end = memory_bank.find('[KEY doctor-3]', at)\nlast = memory_bank[end:end + 45]\n"
        "SUBMIT(reasoning_chain='two hops', connected_memories=[found, last], answer=last)",
        lambda done: "avoid flicker" in done.answer and len(done.connected_memories) == 2,
    ),
    (
        ours.SynthesizeMemories, "memory_database", {"task": "Preferences", "temporal_range": "all time"},
        "search_plan synthesis supporting_evidence",
        "said = llm_query('Shorten: ' + found)\n"
        "SUBMIT(search_plan='grep', synthesis=said, supporting_evidence=[found])",
        lambda done: done.synthesis == "a sub-call's answer" and "migraine" in done.supporting_evidence[0],
    ),
    (
        ours.AgentMemoryRetrieval, "agent_memories", {"current_situation": "a theme", "goal": "please the user"},
        "memory_exploration relevant_experiences recommended_action",
        "SUBMIT(memory_exploration='grep', relevant_experiences=[found], recommended_action='dark mode')",
        lambda done: done.recommended_action == "dark mode",
    ),
]  # fmt: skip
"""A signature, its field with memories, its other inputs, its outputs, what is submitted, whether that came back."""


def signatures_run_over_a_gigabyte() -> list[tuple[str, int, int, int]]:
    """Each signature on 8 MB and on 1 GB: prompts of one size, and of the text only what the code looks at."""
    measured = []
    for signature, field, inputs, outputs, submit, right in RUNS:
        first, *rest = inputs
        assert [*signature.input_fields] == [first, field, *rest]
        assert " ".join(signature.output_fields) == outputs
        sizes = []
        for size in (8 << 20, 1 << 30):
            context = of_bytes(size)
            lm = Scripted(*cells(field, submit))
            with dspy.context(lm=lm):
                done = ours.MemoryRLM(signature)(**inputs, **{field: context})
            assert right(done), done
            assert f"{len(context):,}" in "".join(lm.prompts)
            sizes.append(sum(map(len, lm.prompts)))
            assert context.stats.bytes_fetched < 8 * FRAME, context.stats
        assert abs(sizes[0] - sizes[1]) < 200, sizes
        assert sizes[1] < 60_000, sizes
        measured.append((signature.__name__, sizes[0], sizes[1], context.stats.bytes_fetched))
    return measured


def agent_explores_and_synthesizes() -> None:
    """`acall` is the same, and several run at once."""
    look, explore = cells("memory_context", RUNS[0][4])
    _, synthesize = cells("memory_database", RUNS[2][4])
    lm, context = Scripted(look, explore, synthesize), of_bytes(1 << 30)
    with dspy.context(lm=lm):
        done = ours.MemoryAgent()(query="What does the user prefer?", memory_db=context)
    assert (done.exploration, len(lm.prompts)) == ("grep", 4)
    assert context.stats.bytes_fetched < 8 * FRAME

    async def ask() -> list[Any]:
        agent = ours.MemoryAgent()
        return await asyncio.gather(*(agent.acall(query="?", memory_db=of_bytes(8 << 20)) for _ in range(2)))

    with dspy.context(lm=Scripted(explore, explore, synthesize)):
        every = [done, *asyncio.run(ask())]
    assert ["dark mode" in each.memories[0] for each in every] == [True] * 3, every
    assert {each.synthesis for each in every} == {"a sub-call's answer"}


def explore(lm: Scripted, memory: object, depth: object) -> Any:
    with dspy.context(lm=lm):
        return ours.MemoryRLM(ours.ExploreMemory)(query="?", memory_context=memory, search_depth=depth)


def any_memory_will_do() -> None:
    memory = Memory.open("memory://dspy-contract")
    memory.put("theme", "the user prefers dark mode because of migraine, and this text goes on for a while longer")
    for given in (PLANTED * 1000, memory, memory.context()):
        done = explore(Scripted(*cells("memory_context", RUNS[0][4])), given, 1)
        assert "dark mode" in done.relevant_memories[0]
    with raises(TypeError, ""):
        explore(Scripted("pass"), 7, 1)


def depth_limits_what_is_spent() -> None:
    forever = Scripted("print(len('step'))")
    explore(forever, "nothing", 2)
    assert sum("[[ ## code ## ]]" in prompt for prompt in forever.prompts) == 6, forever.prompts
    for wrong in (0, -1, True, "3"):
        with raises(ValueError, ""):
            explore(forever, "nothing", wrong)


def a_prompt_holds_no_large_text() -> None:
    """`ChainOfThought` would put all of it into the prompt."""
    lm = Scripted("pass")
    for signature, field, inputs, *_ in RUNS:
        lm.prompts.clear()
        with dspy.context(lm=lm, adapter=dspy.ChatAdapter(use_json_adapter_fallback=False)):
            with raises(ContextTooLarge, "monocontext.dspy.MemoryRLM"):
                dspy.ChainOfThought(signature)(**inputs, **{field: of_bytes(64 << 20)})
            assert lm.prompts == []
            with raises(dspy.utils.exceptions.AdapterParseError, ""):  # the script answers in another form
                dspy.ChainOfThought(signature)(**inputs, **{field: wrap_str("user likes tea " * 10)})
            assert "user likes tea user likes tea" in lm.prompts[0]
            assert "MemoryText" not in lm.prompts[0]


if __name__ == "__main__":
    a_prompt_holds_no_large_text()
    figures = signatures_run_over_a_gigabyte()
    agent_explores_and_synthesizes()
    any_memory_will_do()
    depth_limits_what_is_spent()
    print(json.dumps(figures))
