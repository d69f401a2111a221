"""Break lines of the product one at a time and see whether a test fails: what the suite is worth.

    make mutants                                        # says which test runs which line, then this
    python -m tests.mutation --count 200 --seed 1       # a line for each mutant, and the share that was caught

A mutant is one small change of one line that tests run: a comparison turned round, a number one off, a condition
negated, a result replaced by None, a statement left out. The tests of the line run in random order until one fails.
A mutant that makes the tests hang is caught; one with which pytest finds none of them, since their names have changed,
is not. The file is put back whatever happens; run it in a clone all the same.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import coverage
import pytest

CHECKOUT = Path(__file__).parents[1]
SWAPS: dict[type[ast.AST], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.Is: "is not",
    ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in", ast.Add: "-", ast.Sub: "+", ast.Mult: "//", ast.FloorDiv: "*",
    ast.And: "or", ast.Or: "and",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    path: str
    line: int
    before: str
    after: str
    start: int
    end: int
    """Offsets of the replaced text in the file, in bytes."""


def mutants_of(path: str, lines: set[int]) -> Iterator[Mutant]:
    """Every mutant of one file on the lines given."""
    source = (CHECKOUT / path).read_bytes()
    starts = [0]
    for row in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(row))

    def place(node: ast.expr | ast.stmt, end: bool = False) -> int:
        if end:
            return starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0)
        return starts[node.lineno - 1] + node.col_offset

    def mutant(node: ast.AST, start: int, end: int, after: str) -> Mutant:
        return Mutant(path, node.lineno, source[start:end].decode(), after, start, end)  # type: ignore[attr-defined]

    for node in ast.walk(ast.parse(source)):
        if getattr(node, "lineno", None) not in lines:
            continue
        if isinstance(node, ast.Compare):
            yield from between(mutant, node, source, place(node.left, True), place(node.comparators[0]), node.ops[0])
        elif isinstance(node, ast.BinOp):
            yield from between(mutant, node, source, place(node.left, True), place(node.right), node.op)
        elif isinstance(node, ast.BoolOp):
            yield from between(mutant, node, source, place(node.values[0], True), place(node.values[1]), node.op)
        elif isinstance(node, ast.Constant) and type(node.value) in (int, bool):
            other = str(not node.value) if isinstance(node.value, bool) else str(node.value + 1)
            yield mutant(node, place(node), place(node, True), other)
        elif isinstance(node, ast.If | ast.While | ast.IfExp):
            start, end = place(node.test), place(node.test, True)
            yield mutant(node, start, end, f"not ({source[start:end].decode()})")
        elif isinstance(node, ast.Return) and ast.unparse(node).strip() not in ("return", "return None"):
            yield mutant(node, place(node.value), place(node.value, True), "None")
        elif (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await)) or isinstance(
            node, ast.Raise
        ):
            yield mutant(node, place(node), place(node, True), "pass")


def between(mutant, node, source, start, end, operator):  # type: ignore[no-untyped-def]
    """The mutant that swaps the operator between two operands, if there is one to swap to."""
    after, middle = SWAPS.get(type(operator)), source[start:end].decode()
    if after and not any(mark in middle for mark in "()#\n"):
        yield mutant(node, start, end, f" {after} ")


def tests_by_line(data: coverage.CoverageData, path: str) -> dict[int, list[str]]:
    """The tests that run each line, as pytest names them; without names that a file of arguments cannot hold."""
    found = data.contexts_by_lineno(str(CHECKOUT / path))
    tests = {line: {name.rpartition("|")[0] for name in names if "::" in name} for line, names in found.items()}
    named = {line: sorted(filter(str.isprintable, names)) for line, names in tests.items()}
    return {line: names for line, names in named.items() if names}


def tests_of(data: coverage.CoverageData, mutant: Mutant) -> list[str]:
    """The tests that run the line of a mutant. A line that an import runs has those of its whole file: only the first
    test of a run imports it."""
    by_line = tests_by_line(data, mutant.path)
    nodes = ast.walk(ast.parse((CHECKOUT / mutant.path).read_bytes()))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    is_inside = any(node.body[0].lineno <= mutant.line <= (node.end_lineno or 0) for node in functions)
    return by_line[mutant.line] if is_inside else sorted(set().union(*by_line.values()))


def is_caught(mutant: Mutant, tests: list[str], seconds: float) -> str:
    """The test that fails with the mutant in place; empty: none does."""
    path = CHECKOUT / mutant.path
    source = path.read_bytes()
    try:
        path.write_bytes(source[: mutant.start] + mutant.after.encode() + source[mutant.end :])
        return first_failure(tests, seconds)
    except subprocess.TimeoutExpired:
        return "(time)"
    finally:
        path.write_bytes(source)


def first_failure(tests: list[str], seconds: float) -> str:
    """The line in which pytest reports a failure; empty if there is none. Functions of which a name is no test any more
    are left out: with one such name pytest runs nothing. Raises `TimeoutExpired`."""
    listed = CHECKOUT / ".mutant-tests"
    listed.write_text("\n".join(tests))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", f"@{listed}"]
    try:
        done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=seconds)
    finally:
        listed.unlink()
    not_found = rf"(?m)^ERROR: not found: {re.escape(str(CHECKOUT))}/(.+)$"
    if missing := set(re.findall(not_found, done.stdout + done.stderr)):
        functions = {name.partition("[")[0] for name in missing}
        others = [name for name in tests if name.partition("[")[0] not in functions]
        return first_failure(others, seconds) if others and len(others) < len(tests) else ""
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    is_passed = done.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    return "" if is_passed else (failed[-1] if failed else f"(exit {done.returncode})")


def draw(data: coverage.CoverageData, count: int, seed: int) -> list[Mutant]:
    """`count` mutants, each line of the product as likely as any other."""
    lines = [
        (path, line)
        for name in sorted(data.measured_files())
        for path in [str(Path(name).relative_to(CHECKOUT))]
        for line in tests_by_line(data, path)
    ]
    chance, drawn = random.Random(seed), []
    while len(drawn) < count:
        path, line = chance.choice(lines)
        if every := list(mutants_of(path, {line})):
            drawn.append(chance.choice(every))
    return drawn


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    options.add_argument("--count", type=int, default=200)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--tests", type=int, default=300, help="how many tests of a line to run at most")
    asked = options.parse_args()
    data = coverage.CoverageData()
    data.read()
    caught = 0
    for number, mutant in enumerate(draw(data, asked.count, asked.seed), 1):
        tests = tests_of(data, mutant)
        chosen = random.Random(number).sample(tests, min(len(tests), asked.tests))
        began = time.monotonic()
        by = is_caught(mutant, chosen, 300)
        caught += bool(by)
        said = f"{'caught' if by else 'MISSED'} {mutant.path}:{mutant.line} {mutant.before!r} -> {mutant.after!r}"
        ran = f"{len(chosen)} of {len(tests)} tests, {time.monotonic() - began:.0f} s"
        print(f"{number} {said} ({ran}) {by[:80]}", flush=True)
    print(f"{caught} of {asked.count} caught")


if __name__ == "__main__":
    main()
