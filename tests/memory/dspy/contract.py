"""The signatures and the agent in the real `dspy`. Run as a program, in an environment that has it.

The model is a script: what it is shown is measured, and it can only know what its code has read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import dspy

from monocontext import Monocontext
from monocontext.dspy import (
    AgentMemoryRetrieval,
    ExploreMemory,
    MemoryAgent,
    MemoryChainReasoning,
    MemoryRLM,
    SynthesizeMemories,
)
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


RUNS: list[tuple[Any, str, dict[str, Any], str, Callable[[Any], object]]] = [
    (
        ExploreMemory,
        "memory_context",
        {"query": "What does the user prefer?", "search_depth": 3},
        "SUBMIT(exploration_strategy='grep', relevant_memories=[found], confidence=0.9)",
        lambda done: "dark mode" in done.relevant_memories[0] and done.confidence == 0.9,
    ),
    (
        MemoryChainReasoning,
        "memory_bank",
        {"question": "Why dark mode?"},
        "end = memory_bank.find('[KEY doctor-3]', at)\nlast = memory_bank[end:end + 45]\n"
        "SUBMIT(reasoning_chain='two hops', connected_memories=[found, last], answer=last)",
        lambda done: "avoid flicker" in done.answer and len(done.connected_memories) == 2,
    ),
    (
        SynthesizeMemories,
        "memory_database",
        {"task": "Preferences", "temporal_range": "all time"},
        "said = llm_query('Shorten: ' + found)\n"
        "SUBMIT(search_plan='grep', synthesis=said, supporting_evidence=[found])",
        lambda done: done.synthesis == "a sub-call's answer" and "migraine" in done.supporting_evidence[0],
    ),
    (
        AgentMemoryRetrieval,
        "agent_memories",
        {"current_situation": "choosing a theme", "goal": "please the user"},
        "SUBMIT(memory_exploration='grep', relevant_experiences=[found], recommended_action='dark mode')",
        lambda done: done.recommended_action == "dark mode",
    ),
]


def signatures_run_over_a_gigabyte() -> list[tuple[str, int, int, int]]:
    """Each signature on 8 MB and on 1 GB: prompts of one size, and of the text only what the code looks at."""
    measured = []
    for signature, field, inputs, submit, right in RUNS:
        sizes = []
        for size in (8 << 20, 1 << 30):
            context = of_bytes(size)
            lm = Scripted(*cells(field, submit))
            module = MemoryRLM(signature)
            with dspy.context(lm=lm):
                done = module(**inputs, **{field: context})
            assert right(done), done
            assert f"{len(context):,}" in "".join(lm.prompts)
            sizes.append(sum(map(len, lm.prompts)))
            assert context.stats.bytes_fetched < 8 * FRAME, context.stats
        assert abs(sizes[0] - sizes[1]) < 200, sizes
        assert sizes[1] < 60_000, sizes
        measured.append((signature.__name__, sizes[0], sizes[1], context.stats.bytes_fetched))
    return measured


def fields_are_those_of_the_notes() -> None:
    expected = {
        ExploreMemory: ("query memory_context search_depth", "exploration_strategy relevant_memories confidence"),
        MemoryChainReasoning: ("question memory_bank", "reasoning_chain connected_memories answer"),
        SynthesizeMemories: ("task memory_database temporal_range", "search_plan synthesis supporting_evidence"),
        AgentMemoryRetrieval: (
            "current_situation agent_memories goal",
            "memory_exploration relevant_experiences recommended_action",
        ),
    }
    for signature, (given, made) in expected.items():
        assert " ".join(signature.input_fields) == given
        assert " ".join(signature.output_fields) == made


def agent_explores_and_synthesizes() -> None:
    context = of_bytes(1 << 30)
    look, explore = cells("memory_context", RUNS[0][3])
    _, synthesize = cells("memory_database", RUNS[2][3])
    lm = Scripted(look, explore, synthesize)
    with dspy.context(lm=lm):
        done = MemoryAgent()(query="What does the user prefer?", memory_db=context)
    assert done.exploration == "grep"
    assert "dark mode" in done.memories[0]
    assert done.synthesis == "a sub-call's answer"
    assert len(lm.prompts) == 4
    assert context.stats.bytes_fetched < 8 * FRAME


def agent_runs_async() -> None:
    """`acall` is the same, and several run at once."""

    async def ask() -> list[Any]:
        agent = MemoryAgent()
        return await asyncio.gather(*(agent.acall(query="?", memory_db=of_bytes(8 << 20)) for _ in range(2)))

    explore, synthesize = cells("memory_context", RUNS[0][3])[1], cells("memory_database", RUNS[2][3])[1]
    lm = Scripted(explore, explore, synthesize)
    with dspy.context(lm=lm):
        done = asyncio.run(ask())
    assert ["dark mode" in each.memories[0] for each in done] == [True, True], done
    assert {each.synthesis for each in done} == {"a sub-call's answer"}


def any_memory_will_do() -> None:
    memory = Memory.open("memory://dspy-contract")
    memory.put("theme", "the user prefers dark mode because of migraine, and this text goes on for a while longer")
    for given in (PLANTED * 1000, memory, memory.context()):
        lm = Scripted(*cells("memory_context", RUNS[0][3]))
        with dspy.context(lm=lm):
            done = MemoryRLM(ExploreMemory)(query="?", memory_context=given, search_depth=1)
        assert "dark mode" in done.relevant_memories[0]
    refuses(TypeError, 7, 1)


def refuses(kind: type[Exception], memory: object, depth: object) -> None:
    try:
        MemoryRLM(ExploreMemory)(query="?", memory_context=memory, search_depth=depth)
    except kind:
        return
    raise AssertionError(f"no {kind.__name__}")


def depth_limits_what_is_spent() -> None:
    forever = Scripted("print(len('step'))")
    with dspy.context(lm=forever):
        MemoryRLM(ExploreMemory)(query="?", memory_context="nothing", search_depth=2)
    steps = sum("[[ ## code ## ]]" in prompt for prompt in forever.prompts)
    assert steps == 6, steps
    for wrong in (0, -1, True, "3"):
        refuses(ValueError, "nothing", wrong)


def a_prompt_holds_no_large_text() -> None:
    """`ChainOfThought` would put all of it into the prompt."""
    lm = Scripted("pass")
    for signature, field, inputs, _, _ in RUNS:
        for size, is_refused in ((64 << 20, True), (0, False)):
            lm.prompts.clear()
            context = of_bytes(size) if size else wrap_str("user likes tea " * 10)
            with dspy.context(lm=lm, adapter=dspy.ChatAdapter(use_json_adapter_fallback=False)):
                if is_refused:
                    with raises(ContextTooLarge, "monocontext.dspy.MemoryRLM"):
                        dspy.ChainOfThought(signature)(**inputs, **{field: context})
                    assert lm.prompts == []
                    continue
                with raises(dspy.utils.exceptions.AdapterParseError):  # the script answers in another form
                    dspy.ChainOfThought(signature)(**inputs, **{field: context})
                assert "user likes tea user likes tea" in lm.prompts[0]
                assert "MemoryText" not in lm.prompts[0]


if __name__ == "__main__":
    a_prompt_holds_no_large_text()
    fields_are_those_of_the_notes()
    figures = signatures_run_over_a_gigabyte()
    agent_explores_and_synthesizes()
    agent_runs_async()
    any_memory_will_do()
    depth_limits_what_is_spent()
    print(json.dumps(figures))
