"""Compare a hundred documents: a folder becomes a dict, and a small model reads one clause of each.

    python examples/compare_documents.py                          # a hundred contracts, made up here
    python examples/compare_documents.py --folder contracts/ --url s3://bucket/contracts --model gpt-5

Without `--model` scripts play both models. The root model never reads a contract: its code finds the clause in each,
and the sub-model gets that alone.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path

from monocontext import Monocontext, publish
from monocontext.errors import AlreadyExists
from rlm import LM, RLM, OpenAILM, ScriptedLM

QUESTION = "How many days of notice do these contracts ask for, and which differ from the rest?"

ASK_EACH = """Each contract has a clause about notice; I ask about that alone.
```repl
clauses = {name: next(line for line in text.split("\\n") if "notice" in line) for name, text in context.items()}
prompts = [f"How many days of notice? Answer with a number.\\n{clause}" for clause in clauses.values()]
days = dict(zip(clauses, map(int, llm_query_batched(prompts))))
print(len(days), sorted(set(days.values())))
```"""
COMPARE = """```repl
from collections import Counter
(usual, count), *_ = Counter(days.values()).most_common(1)
odd = sorted(f"{name}: {number}" for name, number in days.items() if number != usual)
FINAL(f"{count} of {len(days)} contracts ask for {usual} days. The others: {', '.join(odd)}")
```"""


def main() -> None:
    """Upload the folder, ask, and print the answer and its cost."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, help="your documents; without it contracts are made up")
    parser.add_argument("--url", help="the place of the upload: s3://bucket/prefix, or a directory")
    parser.add_argument("--model")
    parser.add_argument("--sub-model")
    parser.add_argument("--base-url")
    parser.add_argument("--runner", default="subprocess")
    given = parser.parse_args()
    root: LM = ScriptedLM([ASK_EACH, COMPARE])
    sub: LM = ScriptedLM(read_number)
    if given.model:
        root = OpenAILM(given.model, base_url=given.base_url)
        sub = OpenAILM(given.sub_model or given.model, base_url=given.base_url)
    with tempfile.TemporaryDirectory() as place:
        folder = given.folder or write_contracts(Path(place) / "contracts")
        compare(folder, given.url or f"{place}/kept", root, sub, given.runner)


def compare(folder: Path, url: str, root: LM, sub: LM, runner: str) -> None:
    try:
        publish({path.name: path.read_text("utf-8") for path in sorted(folder.glob("*.txt"))}, url)
    except AlreadyExists:
        print("The contracts are there already.")
    with Monocontext.open(url, shape="dict") as contracts:
        completion = RLM(lm=root, sub_lm=sub, runner=runner).completion(QUESTION, contracts)
    print(completion.answer)
    usage = completion.usage
    print(f"{completion.iterations} turns, {usage.calls} calls of models, {usage.tokens:,} tokens")


def write_contracts(folder: Path) -> Path:
    """Write a hundred contracts of some pages, three of them with another notice; returns the folder."""
    folder.mkdir()
    for number in range(100):
        days = {17: 90, 42: 14, 77: 60}.get(number, 30)
        page = "The supplier delivers what the annex lists, at the prices of the annex, and invoices monthly.\n" * 40
        clause = f"Either party may end this contract with a notice of {days} days to the end of a month.\n"
        (folder / f"contract_{number:03}.txt").write_text(f"Contract {number}\n{page}{clause}{page}", "utf-8")
    return folder


def read_number(prompt: str) -> str:
    """The answer that a sub-model would give."""
    (days,) = re.findall(r"(\d+) days", prompt)
    return str(days)


if __name__ == "__main__":
    main()
