"""Ask a real small model on this machine easy questions of five kinds: does it get into the loop, and is it right?

Strong models are not needed to see whether the words of the prompt are understood: whether code runs in the first turn,
whether an answer is one. A folder of source, logs and notes of each size; the facts are planted by a seed. A run is a
file, OUT/<arm>-<size>-<question>.json, and what is there is not asked again.
"""

from __future__ import annotations

import argparse
import ast
import json
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from benchmarks import local_model
from benchmarks.harness import amount
from benchmarks.logs import Logs
from benchmarks.machine import describe_machine
from benchmarks.quality import arms
from benchmarks.quality.families import _word
from benchmarks.quality.questions import Question, Rule
from benchmarks.quality.scoring import is_right
from benchmarks.search import parse_list
from monocontext import Monocontext, publish
from rlm import RLM, LLMError, OpenAILM

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

ARMS = ("rlm", "rlm-str", "rlms")
KINDS = ("needle", "count", "code", "hop", "document")
_LOG_BYTES = 250_000
_SAMPLING = {"temperature": 0, "seed": 0, "max_tokens": 200}
_TURNS, _CALLS = 4, 10
"""Of a run; a small model may ask itself about each piece of a text."""
_COUNTED = (3, 40)
"""The least and most lines of a question that counts."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A question, and what is planted for it: lines in logs, or files of their own."""

    question: Question
    log_lines: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()


def make_facts(each: int, seed: int) -> list[Fact]:
    """`each` facts of every kind."""
    dice = Random(f"small {seed}")
    makers = (_needle, _count, _code(seed), _hop, _document)
    return [maker(number, dice) for number in range(each) for maker in makers]


def _fact(kind: str, number: int, query: str, answer: str, rule: Rule = "text", *, lines: Sequence[str] = (),
          files: Sequence[tuple[str, str]] = ()) -> Fact:  # fmt: skip
    question = Question(f"{kind}-{number}", kind, "exact", query, answer, rule, (), ())
    return Fact(question, tuple(lines), tuple(files))


def _needle(number: int, dice: Random) -> Fact:
    volume, host = _word(dice).lower(), f"db-{_word(dice).lower()}-{dice.randint(10, 99)}"
    line = (
        f"2026-03-01T12:{dice.randint(10, 59)}:07Z WARN  volume /srv/{volume} ran full on host {host}, writes stopped"
    )
    return _fact("needle", number, f"On which host did the volume /srv/{volume} run full?", host, lines=[line])


def _count(number: int, dice: Random) -> Fact:
    job, times = f"{_word(dice).lower()}-sync", dice.randint(*_COUNTED)
    lines = [
        f"2026-03-0{dice.randint(1, 9)}T08:00:{dice.randint(10, 59)}Z ERROR {job}: batch given up" for _ in range(times)
    ]
    return _fact("count", number, f"How often does the log say ERROR {job}?", str(times), "number", lines=lines)


def _code(seed: int) -> Callable[[int, Random], Fact]:
    """Functions of the standard library whose name is defined once."""
    root = Path(sysconfig.get_paths()["stdlib"])
    defined: dict[str, list[str]] = {}
    for folder in ("http", "email", "json", "logging", "urllib", "xml"):
        for path in sorted((root / folder).rglob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.FunctionDef) and len(node.name) > 9:
                    defined.setdefault(node.name, []).append(path.relative_to(root).as_posix())
    once = sorted(name for name, paths in defined.items() if len(paths) == 1)
    chosen = Random(f"code {seed}").sample(once, 20)

    def make(number: int, dice: Random) -> Fact:
        path = defined[chosen[number]][0]
        query = f"In which file is the function {chosen[number]} defined? Answer with its path."
        text = (root / path).read_text(encoding="utf-8")
        return _fact("code", number, query, f"src/{path}", files=[(f"src/{path}", text)])

    return make


def _hop(number: int, dice: Random) -> Fact:
    service, team, person = _word(dice), _word(dice), f"{_word(dice)} {_word(dice)}"
    files = [
        (f"ops/services-{number}.md", f"# Services\n\nThe service {service} is run by team {team} since May.\n"),
        (f"ops/rota-{number}.md", f"# Rota\n\nTeam {team}: {person} is on call this week.\n"),
    ]
    return _fact("hop", number, f"Who is on call for the service {service}?", person, files=files)


def _document(number: int, dice: Random) -> Fact:
    customer, name = _word(dice), f"letters/{_word(dice).lower()}.txt"
    text = f"Dear all,\n\nthe contract with {customer} was signed on Tuesday.\n\nYours, {_word(dice)}\n"
    return _fact("document", number, f"Which file says that the contract with {customer} was signed?", name,
                 files=[(name, text)])  # fmt: skip


def write_folder(place: Path, size_bytes: int, facts: Sequence[Fact], seed: int) -> None:
    """Half source and half logs, the planted files among them and the planted lines spread over the logs."""
    dice = Random(f"folder {seed}")
    planted = {name: text for fact in facts for name, text in fact.files}
    for name, text in planted.items():
        _write(place / name, text)
    room = size_bytes // 2 - sum(map(len, planted.values()))
    root = Path(sysconfig.get_paths()["stdlib"])
    found = sorted(path for path in root.rglob("*.py") if "site-packages" not in path.parts)
    Random(seed).shuffle(found)
    for path in found:
        name = f"src/{path.relative_to(root).as_posix()}"
        text = path.read_bytes().decode("utf-8", "ignore")
        if name not in planted and len(text) <= room:
            _write(place / name, text)
            room -= len(text)
    logs = max(1, size_bytes // 2 // _LOG_BYTES)
    lines = [line for fact in facts for line in fact.log_lines]
    where = [dice.randrange(logs) for _ in lines]
    for number in range(logs):
        log = b"".join(Logs(_LOG_BYTES, seed + number)).decode().splitlines()
        for line in (line for line, of in zip(lines, where, strict=True) if of == number):
            log.insert(dice.randrange(len(log)), line)
        _write(place / f"logs/app-{number:03}.log", "\n".join(log) + "\n")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@contextmanager
def published(size_bytes: int, facts: Sequence[Fact], seed: int, keep: Path) -> Iterator[Path]:
    """The folder as a context."""
    place = keep / f"text-{size_bytes}-{seed}-{len(facts)}"
    if not place.exists():
        with tempfile.TemporaryDirectory() as work:
            write_folder(Path(work) / "folder", size_bytes, facts, seed)
            publish(Path(work) / "folder", place, replace=True)
    yield place


def ask(
    arm: str, question: Question, lm: OpenAILM, place: Path, runner: str, rlms_python: str | None, base_url: str
) -> dict[str, Any]:
    """One run, and what came of it."""
    began = time.monotonic()
    with Monocontext.open(place, materialize_limit=1 << 40) as text:
        if arm == "rlms":
            setting = arms.Setting(
                lm, RLM, text, str(text), local_model.WINDOW_TOKENS, (str(rlms_python), lm.model, base_url)
            )
            run = arms.answer("rlms", question, setting, None)
            return {"answer": run.answer, "turns": run.turns, "reason": run.reason, "seconds": run.seconds,
                    "first_ran": None, "tokens": run.tokens, "transcript": []}  # fmt: skip
        try:
            with RLM(lm=lm, max_iterations=_TURNS, max_calls=_CALLS, runner=runner) as rlm:
                done = rlm.completion(question.query, str(text) if arm == "rlm-str" else text)
        except LLMError as exc:
            return {"answer": None, "turns": 0, "reason": f"failed: {exc}"[:300], "seconds": time.monotonic() - began,
                    "first_ran": False, "tokens": 0, "transcript": []}  # fmt: skip
    lines = done.trajectory[1:]
    return {
        "answer": done.answer, "turns": done.iterations, "reason": done.reason, "seconds": round(done.seconds, 1),
        "first_ran": bool(lines[0]["code_blocks"]), "tokens": done.usage.tokens, "notes": list(done.notes),
        "transcript": [
            {"reply": line["response"], "notice": line["notice"], "seconds": line["thinking_seconds"],
             "tokens": [line["prompt_tokens"], line["completion_tokens"]],
             "output": [[result["stdout"], result["stderr"][-300:], result.get("place")]
                        for result in (block["result"] for block in line["code_blocks"])]}
            for line in lines
        ],
    }  # fmt: skip


def is_code(answer: str | None) -> bool:
    """Whether an answer is an expression of Python rather than words: it calls, subscripts or fences."""
    if not answer or "```" in answer:
        return bool(answer)
    try:
        tree = ast.parse(answer.strip(), mode="eval")
    except (SyntaxError, ValueError):
        return False
    return any(isinstance(node, (ast.Call, ast.Subscript)) for node in ast.walk(tree))


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown: an arm and size a line."""
    heads = (
        "arm, size",
        "questions",
        "cells ran in the first reply",
        "right",
        *KINDS,
        "code as answer",
        "turns",
        "seconds",
    )
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    for arm, size in sorted({(row["arm"], row["size_bytes"]) for row in rows}):
        group = [row for row in rows if (row["arm"], row["size_bytes"]) == (arm, size)]
        ran = [row["first_ran"] for row in group if row["first_ran"] is not None]
        kinds = [[row["right"] for row in group if row["family"] == kind] for kind in KINDS]
        middle = sorted(row["seconds"] for row in group)[len(group) // 2]
        cells = [
            f"{arm}, {size / 1e6:g} MB", len(group), f"{sum(ran)} of {len(ran)}" if ran else "not known",
            sum(row["right"] for row in group), *(f"{sum(right)} of {len(right)}" for right in kinds),
            sum(is_code(row["answer"]) for row in group), f"{sum(row['turns'] for row in group) / len(group):.1f}",
            f"{middle:.0f}",
        ]  # fmt: skip
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def add(commands: Commands) -> None:
    """Add the sub-command."""
    command = commands.add_parser("small-model", help="does a real small model get into the loop; the model runs here")
    command.add_argument("--model", default="1.5b", choices=sorted(local_model.MODELS))
    command.add_argument("--base-url", help="of a server that has the model already")
    command.add_argument("--arms", type=parse_list, default=("rlm",), help=f"of {','.join(ARMS)}")
    command.add_argument("--sizes", type=parse_list, default=("1MB", "50MB"), help="of the folder")
    command.add_argument("--each", type=int, default=2, help="questions of each of five kinds")
    command.add_argument(
        "--seed", type=int, default=0, help="of the questions; the words of the prompt are tuned on others"
    )
    command.add_argument("--runner", default="confined", help="where the code of the model runs")
    command.add_argument("--rlms-python", help="Python of an environment with rlms")
    command.add_argument("--out", type=Path, default=Path("results/small-model"), help="gets a file a run")


def main(arguments: argparse.Namespace) -> int:
    """Run what OUT lacks, and print the table."""
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    facts = make_facts(arguments.each, arguments.seed)
    try:
        with _served(arguments) as base_url, local_model.model_at(base_url, arguments.model) as bare:
            lm = bare.with_sampling(_SAMPLING)
            for size in map(amount, arguments.sizes):
                with published(size, facts, arguments.seed, out) as place:
                    for fact in facts:
                        for arm in arguments.arms:
                            _run(arguments, arm, size, fact.question, lm, place, base_url)
    except local_model.Unavailable as exc:
        print(f"skipped: {exc}")
    print(table([json.loads(path.read_text()) for path in sorted(out.glob("*.json"))]))
    return 0


@contextmanager
def _served(arguments: argparse.Namespace) -> Iterator[str]:
    if arguments.base_url:
        yield arguments.base_url
    else:
        with local_model.serve_model(arguments.model) as base_url:
            yield base_url


def _run(arguments: argparse.Namespace, arm: str, size: int, question: Question, lm: OpenAILM, place: Path,
         base_url: str) -> None:  # fmt: skip
    path = arguments.out / f"{arm}-{size}-{question.id}.json"
    if path.exists():
        return
    came = ask(arm, question, lm, place, arguments.runner, arguments.rlms_python, base_url)
    right = is_right(question, came["answer"])
    about = {"arm": arm, "size_bytes": size, "question": question.id, "family": question.family,
             "query": question.query, "expected": question.answer, "right": right,
             "machine": describe_machine()}  # fmt: skip
    path.write_text(json.dumps(about | came, indent=1) + "\n")
    print(f"{arm} {size:,} {question.id}: {'right' if right else 'wrong'} {came['answer']!r} ({question.answer}), "
          f"{came['turns']} turns, {came['seconds']:.0f} s, {came['reason']}", flush=True)  # fmt: skip
