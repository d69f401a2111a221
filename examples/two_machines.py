"""Evaluate a model on two machines: ask forty questions over one log, and count the right answers.

    python examples/two_machines.py                       # two worker processes on this machine
    python examples/two_machines.py s3://bucket/log --dask tcp://host:8786 --model gpt-5 --out results.jsonl

Needs Dask: pip install -e '.[dask]'. The workers of a cluster read the log from the bucket themselves. Begun
again with the same `--out`, it asks only what has no result yet. Without `--model` a script plays the model.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from functools import partial
from pathlib import Path

from distributed import Client, LocalCluster

from monocontext import Monocontext, publish
from monocontext.errors import AlreadyExists
from rlm import RLM, OpenAILM, ScriptedLM
from rlm.batch import Question, run_batch

ASKED = range(100, 4_100, 100)


def main() -> None:
    """Upload the log unless it exists, ask all questions, and print the score."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url", nargs="?", help="the place of the log: s3://bucket/prefix, or a directory")
    parser.add_argument("--dask", help="the address of a scheduler; without it two processes are started here")
    parser.add_argument("--model")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--runner", default="subprocess")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url, out = given.url or f"{folder}/log", given.out or Path(folder) / "results.jsonl"
        try:
            publish((f"request {n:06} took {milliseconds(n)} ms\n" for n in range(5_000)), url)
        except AlreadyExists:
            print("The log is there already.")
        cluster = (
            None if given.dask else LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address="127.0.0.1:0")
        )
        with Client(given.dask or cluster) as client:
            evaluate(url, out, client, given.model, given.runner)
        if cluster:
            cluster.close()


def evaluate(url: str, out: Path, client: Client, model: str | None, runner: str) -> None:
    questions = [Question(f"{n}", f"How many milliseconds did request {n:06} take?", n) for n in ASKED]
    make, read = partial(make_rlm, model, runner), partial(Monocontext.open, url)
    rows = run_batch(questions, out, make, read, executor=client.get_executor(pure=False)).rows
    right = sum(row["answer"] == str(milliseconds(int(row["id"]))) for row in rows)
    calls = sum(row["spent"]["calls"] for row in rows)
    print(f"{right} of {len(rows)} answers are right; {calls} calls by {len(client.nthreads())} workers")


def make_rlm(model: str | None, runner: str) -> RLM:
    """The RLM of one worker, whose environment has the keys."""
    return RLM(lm=OpenAILM(model) if model else ScriptedLM(play), runner=runner)


def play(messages: list[dict[str, str]]) -> str:
    """The code that a model would write: it looks for the request in the question."""
    (request,) = set(re.findall(r"did (request \d+) take", str(messages)))
    return f'```repl\nat = context.find("{request} took ")\nFINAL(context[at:at + 40].split()[3])\n```'


def milliseconds(number: int) -> int:
    return number * 7_919 % 1_000


if __name__ == "__main__":
    main()
