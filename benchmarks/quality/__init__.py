"""Measure answers: `rlm` over lazy texts against other ways to answer, at any size, with any model."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.options import Commands, amounts, at_least_1, parse_list
from benchmarks.quality.arms import ARMS
from benchmarks.quality.families import FAMILIES
from benchmarks.quality.running import BadPlan, Plan, report, run


def add(commands: Commands) -> None:
    plan = Plan()
    command = commands.add_parser("quality", help="answers, tokens and dollars of rlm and of other ways, by size")
    command.add_argument("--model", default=plan.model, help="as in `rlm run`; oracle: a scripted model")
    command.add_argument("--base-url", help="URL of an OpenAI-compatible endpoint")
    command.add_argument("--arms", type=parse_list, default=plan.arms, help=f"arms: {','.join(ARMS)}")
    command.add_argument("--sizes", type=amounts, default="1MB", help="sizes of the haystack, such as 1MB,10GB")
    command.add_argument("--families", type=parse_list, default=plan.families, help=f"families: {','.join(FAMILIES)}")
    command.add_argument("--each", type=at_least_1, default=plan.questions_per_family, help="questions of each family")
    command.add_argument("--seed", type=int, default=plan.seed, help="seed of the questions")
    command.add_argument("--max-dollars", type=float, help="cap on the cost of all runs in OUT")
    command.add_argument("--runner", default=plan.runner, help="where the code of the model runs")
    command.add_argument("--out", type=Path, default=Path("results/quality"), help="folder for report.md and the runs")
    command.set_defaults(run=main)


def main(arguments: argparse.Namespace) -> int:
    """Run and report. Returns 1 if the cap on dollars prevented runs, 2 for a plan that cannot be run."""
    plan = Plan(
        model=arguments.model, base_url=arguments.base_url, arms=tuple(arguments.arms),
        sizes_bytes=tuple(arguments.sizes.values()), families=tuple(arguments.families), seed=arguments.seed,
        questions_per_family=arguments.each, max_dollars=arguments.max_dollars, runner=arguments.runner,
    )  # fmt: skip
    try:
        rows, left_out = run(plan, arguments.out)
    except BadPlan as exc:
        print(f"quality: {exc}", file=sys.stderr)
        return 2
    (arguments.out / "report.md").write_text(report(rows, left_out))
    print(report(rows, left_out))
    return 1 if left_out else 0
