"""Ask a question over a log: the code of a model finds five lines in it, and reads only a small part.

    python examples/ask_a_log.py                                    # 50,000 lines in a directory that goes away
    python examples/ask_a_log.py s3://bucket/log --lines 60000000   # some 5 GB, uploaded once
    python examples/ask_a_log.py s3://bucket/log --model gpt-5      # with OPENAI_API_KEY; --base-url for others

Without `--model` a script plays the model: it writes the code that a model would.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator

from monocontext import Monocontext, publish
from monocontext.errors import AlreadyExists
from rlm import LM, RLM, OpenAILM, ScriptedLM

QUESTION = "Which service ran out of disk, how often, and what had changed just before the first time?"

LOOK = """I look at the form of a line, then for the failure.
```repl
print(context[:300])
hits = list(context.grep("No space left on device"))
print(len(hits), [hit.line for hit in hits])
```"""
BEFORE = """Now what that service did just before.
```repl
service = hits[0].line.split()[1]
at = hits[0].line_number
before = context.lines[at - 400 : at - 1].splitlines()
before = [line for line in before if f" {service} " in line and "served" not in line]
print(before)
```"""
ANSWER = """```repl
answer["content"] = f"{service} ran out of disk {len(hits)} times. Just before the first time: {before[-1]}"
answer["ready"] = True
```"""


def main() -> None:
    """Upload the log unless it exists, ask, and print the answer and its cost."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url", nargs="?", help="the place of the log: s3://bucket/prefix, or a directory")
    parser.add_argument("--lines", type=int, default=50_000)
    parser.add_argument("--model")
    parser.add_argument("--base-url")
    parser.add_argument("--runner", default="subprocess")
    given = parser.parse_args()
    lm: LM = OpenAILM(given.model, base_url=given.base_url) if given.model else ScriptedLM([LOOK, BEFORE, ANSWER])
    with tempfile.TemporaryDirectory() as folder:
        ask(given.url or folder, given.lines, lm, given.runner)


def ask(url: str, lines: int, lm: LM, runner: str) -> None:
    try:
        publish(log_lines(lines), url)
    except AlreadyExists:
        print("The log is there already.")
    with Monocontext.open(url) as context:
        completion = RLM(lm=lm, runner=runner).completion(QUESTION, context)
        print(completion.answer)
        print(f"{completion.iterations} turns over {len(context):,} characters: {context.stats}")


def log_lines(count: int) -> Iterator[str]:
    """A day of four services; one of them fills its disk after a change of its settings."""
    first, services = count * 3 // 5, ("auth", "billing", "search", "mail")
    for number in range(count):
        hour, minute = divmod(number * 24 * 60 // count, 60)
        stamp = f"2026-11-22T{hour:02}:{minute:02}"
        if number == first - 200:
            yield f"{stamp} billing INFO settings changed: keep_traces=forever (was 1 day)\n"
        elif number >= first and (number - first) % (count // 12) == 0:
            yield f"{stamp} billing ERROR write /var/traces: No space left on device\n"
        else:
            request = number * 2_654_435_761 % 2**32
            yield f"{stamp} {services[number % 4]} INFO request {request:08x} served in {request % 90} ms\n"


if __name__ == "__main__":
    main()
