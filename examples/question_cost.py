"""Measure the cost of five questions: tokens from runs on this machine, dollars from the table of `genai-prices`.

    python examples/question_cost.py                     # no key: a script plays the model, four models are priced
    python examples/question_cost.py --model gpt-5-mini  # with its key: a model asks and answers, the row is real

Tokens are estimated at four characters each. To the script's code 300 tokens a turn are added for what a model thinks
and says: the median of public runs. No prompt cache is counted; endpoints that cache take a third to a half off.
"""

from __future__ import annotations

import argparse
import sysconfig
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ask_a_log import log_lines

from monocontext import Monocontext, publish
from rlm import RLM, ScriptedLM
from rlm.calls.usage import cost_of
from rlm.models.lm import Reply
from rlm.models.registry import PRESETS

DEFAULT = PRESETS["openai"]
MODELS = (tuple(DEFAULT), *((name, name) for name in ("gpt-5-mini", "gemini-3.8-flash", "claude-sonnet-5-5")))
"""Root model and model of sub-calls; first those of `rlm run` without options."""
THOUGHT_TOKENS = 300
TOKENS_A_SECOND, CALL_SECONDS, SUB_CALL_SECONDS, AT_ONCE = 60, 0.8, 3.3, 20


@dataclass(frozen=True)
class Question:
    """A question, and the code of each turn of a script that answers it."""

    name: str
    text: str
    ask: str
    cells: tuple[str, ...]


QUESTIONS = (
    Question("a fact in a log", "memory://log", "Which service ran out of disk, and how often?", (
        "print(context[:500])",
        "hits = list(context.grep('No space left'))\nprint(len(hits), [hit.line for hit in hits])",
        "FINAL(f'{hits[0].line.split()[1]}, {len(hits)} times')",
    )),
    Question("who calls a function", "memory://code", "Who calls `_finalize_request` or its like in urllib?", (
        "print(context.outline())",
        "print(context.search('urllib request open url', k=5))",
        "hits = list(context.grep('def .*request'))[:40]\nprint([(hit.document, hit.line) for hit in hits])",
        "calls = list(context.grep(r'\\._?request\\('))[:40]\nprint([(hit.document, hit.line) for hit in calls])",
        "at = context.find('def _request')\nprint(context[at - 2_000 : at + 2_000])",
        "FINAL(str(sorted({hit.document for hit in calls})))",
    )),
    Question("explain a part of a code base", "memory://code", "How does the event loop of asyncio run callbacks?", (
        "print(context.outline())",
        *(f"at = context.find({word!r})\nprint(context[at - 1_000 : at + 5_000])" for word in (
            "class BaseEventLoop", "def run_forever", "def _run_once", "class Handle", "def call_soon",
            "def call_later", "def _process_events", "class Task", "def __step", "def run_in_executor",
        )),
        "FINAL('Callbacks wait in _ready; _run_once runs those of one round.')",
    )),
    Question("compare two documents", "memory://code", "What do http/client.py and http/server.py do differently?", (
        "print(context.outline())",
        "parts = [context.documents[n] for n in ('http/client.py', 'http/server.py')]\n"
        "pieces = [str(p[at : at + 20_000]) for p in parts for at in range(0, len(p), 20_000)]\n"
        "notes = llm_query_batched([f'What is special here?\\n{piece}' for piece in pieces])\nprint(notes)",
        "FINAL(llm_query('Say the differences:\\n' + '\\n'.join(notes)))",
    )),
    Question("read 2 MB and sum up", "memory://code", "Which modules have known limits, and which?", (
        "print(context.outline())",
        "pieces = [str(context[at : at + 90_000]) for at in range(0, 2_000_000, 90_000)]\n"
        "notes = llm_query_batched([f'List limits that this code names.\\n{piece}' for piece in pieces])\n"
        "print(len(notes))",
        "FINAL(llm_query('Sum these up:\\n' + '\\n'.join(notes)))",
    )),
)  # fmt: skip


class Counted:
    """A script as a model that counts the tokens of each call. Sub-calls answer in 300 tokens."""

    def __init__(self, cells: Iterable[str]) -> None:
        self._root = ScriptedLM([f"```repl\n{cell}\n```" for cell in cells])
        self._sub = ScriptedLM(lambda prompt: "A limit is named here. " * 50)
        self._lock = threading.Lock()
        self.calls: list[tuple[Reply, bool]] = []
        """Each reply, and whether it is one of the root."""
        self.turn_tokens = 0

    def complete(self, messages: Sequence[Any], *, model: str | None = None, on_delta: Any = None) -> Reply:
        is_root = len(messages) > 1
        reply = (self._root if is_root else self._sub).complete(messages, model=model, on_delta=on_delta)
        spent = THOUGHT_TOKENS if is_root else 0
        counted = Reply(reply.text, reply.input_tokens, reply.output_tokens + spent, reply.model)
        with self._lock:
            self.calls.append((counted, is_root))
            self.turn_tokens += counted.output_tokens if is_root else 0
        return reply


def main() -> None:
    """Publish the two texts in memory, ask, and print a row for each question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="ask it in place of the script; its key is taken from the environment")
    given = parser.parse_args()
    publish(log_lines(200_000), "memory://log")
    library = Path(sysconfig.get_paths()["stdlib"])
    folders = [
        library / name for name in ("asyncio", "email", "http", "json", "urllib", "xml", "importlib", "unittest")
    ]
    publish([*folders, *sorted(library.glob("[a-t]*.py"))], "memory://code", include=["*.py"])
    ask = (lambda question: ask_a_model(question, given.model)) if given.model else ask_a_script
    heads = [
        "question",
        "turns",
        "sub-calls",
        "tokens in",
        "tokens out",
        "minutes",
        *([given.model] if given.model else (" + ".join(dict.fromkeys(pair)) for pair in MODELS)),
    ]
    print(f"| {' | '.join(heads)} |\n|---|{'---:|' * (len(heads) - 1)}")
    for question in QUESTIONS:
        print(f"| {question.name} | {' | '.join(ask(question))} |", flush=True)


def ask_a_script(question: Question) -> list[str]:
    """The row of a question for a script, with the dollars of each model."""
    lm, began = Counted(question.cells), time.monotonic()
    with Monocontext.open(question.text) as context:
        done = RLM(lm=lm, runner="subprocess").completion(question.ask, context)
    code_seconds = time.monotonic() - began
    sub_calls = len(lm.calls) - done.iterations
    seconds = code_seconds + done.iterations * CALL_SECONDS + lm.turn_tokens / TOKENS_A_SECOND
    seconds += -(-sub_calls // AT_ONCE) * SUB_CALL_SECONDS
    prices = [
        sum(
            cost_of(Reply("", call.input_tokens, call.output_tokens, root if is_root else sub), {}) or 0.0
            for call, is_root in lm.calls
        )
        for root, sub in MODELS
    ]
    tokens = [sum(call.input_tokens for call, _ in lm.calls), sum(call.output_tokens for call, _ in lm.calls)]
    counts = [done.iterations, sub_calls, *tokens]
    return [*(f"{count:,}" for count in counts), f"{seconds / 60:.1f}", *(f"${price:.3f}" for price in prices)]


def ask_a_model(question: Question, model: str) -> list[str]:
    """The row of a question for a model, whose answer is printed, too."""
    began = time.monotonic()
    with Monocontext.open(question.text) as context:
        done = RLM(model).completion(question.ask, context)
    print(f"<!-- {done.answer} -->")
    usage = done.usage
    return [
        str(done.iterations), str(usage.calls - done.iterations), f"{usage.input_tokens:,}", f"{usage.output_tokens:,}",
        f"{(time.monotonic() - began) / 60:.1f}", f"${usage.dollars or 0:.3f}",
    ]  # fmt: skip


if __name__ == "__main__":
    main()
