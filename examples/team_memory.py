"""Share a team memory: one question stores what it finds, and the next one uses it, asked by another person.

    python examples/team_memory.py                     # in a directory that goes away
    python examples/team_memory.py s3://bucket/team    # run it on two machines: the second finds what the first wrote

Two tools are given to the model's code, `recall(key)` and `remember(key, value)`. Findings live for a week. A script
plays the model.
"""

from __future__ import annotations

import argparse
import tempfile

from monocontext import Monocontext, publish
from monocontext.errors import AlreadyExists
from monocontext.memory import Memory
from rlm import RLM, ScriptedLM

QUESTION = "Which release introduced the retry of logins?"
KEY = "finding:login_retry_release"
WEEK_SECONDS = 7 * 24 * 3600

TRY_MEMORY = f"""First what the team knows.
```repl
known = recall("{KEY}")
print(known)
if known:
    FINAL(known)
```"""
READ = f"""Nobody knows. I look into the notes, and tell the others.
```repl
at = context.find("logins are retried")
release = context[context.rfind("## ", 0, at) : at].split("\\n")[0].removeprefix("## ")
remember("{KEY}", release)
FINAL(release)
```"""


def main() -> None:
    """Ask twice, as two people would, and print the cost of each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url", nargs="?", help="the place of text and memory: s3://bucket/prefix, or a directory")
    parser.add_argument("--runner", default="subprocess")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = given.url or folder
        try:
            publish(release_notes(), f"{place}/notes")
        except AlreadyExists:
            print("The notes are there already.")
        for person in ("Ana", "Ben"):
            ask(person, place, given.runner)


def ask(person: str, place: str, runner: str) -> None:
    """Ask the question of one person, who shares only the bucket with the other."""
    with Monocontext.open(f"{place}/notes") as context, Memory.open(f"{place}/memory") as memory:

        def remember(key: str, value: str) -> None:
            memory.put(key, value, ttl=WEEK_SECONDS)

        tools = {"recall": memory.get, "remember": remember}
        rlm = RLM(lm=ScriptedLM([TRY_MEMORY, READ]), custom_tools=tools, runner=runner)
        completion = rlm.completion(QUESTION, context)
        read = context.stats.bytes_used
        print(f"{person}: {completion.answer}, after {completion.iterations} turns; {read:,} bytes of the notes read")


def release_notes() -> str:
    """The notes of 300 releases, one of which answers the question."""
    filler = "- faster start\n- fewer words in messages\n- a fault in the export is mended\n" * 20
    changes = {212: "- logins are retried once before they fail\n"}
    return "".join(f"## 1.{number}.0\n{filler}{changes.get(number, '')}{filler}" for number in range(300))


if __name__ == "__main__":
    main()
