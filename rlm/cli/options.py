"""Define the options for models and limits that commands share, and print errors as one line."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any

import click

from monocontext.cli.options import one_of
from monocontext.cli.parameters import AT_LEAST_1, NOT_NEGATIVE, Argument, Option, OptionGroup
from monocontext.cli.printing import is_quiet, is_verbose, print_error, print_line, shows_progress
from monocontext.errors import MonocontextError
from rlm.calls.budget import Budget
from rlm.calls.usage import cost_of
from rlm.errors import RLMError, UnknownOption
from rlm.models import registry as backends
from rlm.models.lm import Reply
from rlm.runners import RUNNERS, check_runner
from rlm.runners.runner import DEFAULT_RUNNER

Context = Annotated[str, Argument(help="URL or directory of a context, a text file, or - for stdin.")]
Shape = Annotated[
    str, Option(help="What `context` is: text, list, dict.", shell_complete=one_of("text", "list", "dict"))
]
Trajectory = Annotated[str | None, Option(help="Record the run in this .jsonl file, or in a new file in this folder.")]
Runner = Annotated[str, Option(
    help="Where the model's code runs: confined (subprocess, or else wasm), subprocess, wasm, docker, or local (with "
    "your rights, no sandbox).", shell_complete=one_of(*RUNNERS),
)]  # fmt: skip
_PROVIDERS = f"The provider of the models: {', '.join(backends.BACKENDS)}, and with any-llm many more."
_RIGHTS = "Code that the model writes runs on this machine with your rights (runner: local, no sandbox)."
_CONFINED = "Code that the model writes runs confined, without your keys, files and network (runner: {})."
_DEFAULT_DOLLARS = 1.0  # the limit of the cost of a question, unless the user sets one


def model_flags(
    model: Annotated[str | None, Option(help="The root model, as PROVIDER:NAME or NAME; by default gpt-5.6.")] = None,
    sub_model: Annotated[str | None, Option(help="Model of sub-calls; by default --model, or gpt-5.4-mini.")] = None,
    preset: Annotated[str | None, Option(help="Both models at once.", shell_complete=one_of(*backends.PRESETS))] = None,
    backend: Annotated[str | None, Option(help=_PROVIDERS, shell_complete=one_of(*backends.BACKENDS))] = None,
    base_url: Annotated[str | None, Option(help="Endpoint of the root model's provider, as OPENAI_BASE_URL.")] = None,
    temperature: Annotated[float | None, Option(help="Sampling temperature of all calls.")] = None,
    option: Annotated[list[str] | None, Option(metavar="NAME=VALUE", help="A field of each request.")] = None,
    sub_option: Annotated[list[str] | None, Option(metavar="NAME=VALUE", help="The same for sub-calls.")] = None,
    header: Annotated[list[str] | None, Option(metavar="NAME:VALUE", help="A header for --base-url.")] = None,
) -> dict[str, Any]:
    """The values of the options for models, by name."""
    return dict(locals())


ModelOptions = Annotated[dict[str, Any], OptionGroup(model_flags)]


def provider_of(flags: Mapping[str, Any]) -> str:
    """The provider of the root model that `flags` (of `model_flags`) name. Raises UnknownOption."""
    return backends.root_names(flags["model"], flags["backend"], flags["preset"])[0]


def choose_models(
    flags: dict[str, Any], *, sampling: Mapping[str, Any] | None = None, sub_sampling: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The keywords of `RLM` for the models that `flags` (of `model_flags`) name. Options in `flags` override `sampling`
    and `sub_sampling`. Raises UnknownOption."""
    temperature = {} if flags["temperature"] is None else {"temperature": flags["temperature"]}
    provider = provider_of(flags)
    root_sampling = {**(sampling or {}), **temperature, **_parse_fields(flags["option"])}
    sub_fields = {**(sub_sampling or {}), **_parse_fields(flags["sub_option"])}
    if backends.split_provider(flags["sub_model"] or "")[0] not in (None, provider):
        sub_fields = temperature | sub_fields  # only a model of the same provider gets it from the root's options
    base_url = flags["base_url"]
    if base_url is None and provider == "openai":
        base_url = os.environ.get("OPENAI_BASE_URL") or None
    chosen = backends.choose(
        flags["model"], flags["sub_model"], backend=flags["backend"], preset=flags["preset"], base_url=base_url,
        sub_base_url=flags.get("sub_base_url"), headers=_parse_headers(flags["header"]), sampling=root_sampling,
        sub_sampling=sub_fields,
    )  # fmt: skip
    return {"lm": chosen.root, "sub_lm": chosen.sub, "sub_model": chosen.sub_model}


def limits(
    runner: Runner = DEFAULT_RUNNER,
    max_iterations: Annotated[int, Option(type=AT_LEAST_1, help="Turns after which the model must answer.")] = 30,
    max_calls: Annotated[int | None, Option(type=AT_LEAST_1, help="Limit of model calls, sub-calls included.")] = None,
    max_tokens: Annotated[int | None, Option(type=AT_LEAST_1, help="Limit of tokens, in and out.")] = None,
    max_dollars: Annotated[float | None, Option(type=NOT_NEGATIVE, help="Limit of cost; 1 in run, chat, mcp.")] = None,
    max_seconds: Annotated[float | None, Option(type=NOT_NEGATIVE, help="Limit of time for each question.")] = None,
    max_depth: Annotated[int, Option(type=AT_LEAST_1, help="Depth of nested runs; 2 lets it start child runs.")] = 1,
    window_tokens: Annotated[int | None, Option(type=AT_LEAST_1, help="Context window of the root model.")] = None,
    prompt_characters: Annotated[int | None, Option(type=AT_LEAST_1, help="The longest prompt of a sub-call.")] = None,
    models: Annotated[list[str] | None, Option(metavar="NAME", help="Another model for the code; repeatable.")] = None,
    cache_dir: Annotated[str | None, Option(help="Folder that keeps answers of sub-calls for later runs.")] = None,
) -> dict[str, Any]:
    """The keywords of `RLM` for the limits of a run."""
    return {
        "runner": runner, "max_depth": max_depth, "models": models, "sub_cache": cache_dir,
        "window_tokens": window_tokens, "prompt_characters": prompt_characters,
        "budget": Budget(max_iterations, max_calls, max_tokens, max_dollars, max_seconds),
    }  # fmt: skip


Limits = Annotated[dict[str, Any], OptionGroup(limits)]


def run_options(flags: dict[str, Any], limits: dict[str, Any]) -> dict[str, Any]:
    """The keywords of `RLM` for a run. If a price is known, the limit of cost is 1 dollar unless `limits` has one."""
    chosen = choose_models(flags)
    budget: Budget = limits["budget"]
    names = chosen["lm"].model, chosen["sub_model"] or chosen["sub_lm"].model
    if budget.dollars is None and any(cost_of(Reply("", 1, 1, name), {}) is not None for name in names):
        budget = replace(budget, dollars=_DEFAULT_DOLLARS)
    return chosen | limits | {"budget": budget}


class _StderrLines(logging.Handler):
    """Prints each log record as one line, with the endpoint's own message (its attribute `said`) at the end."""

    def emit(self, record: logging.LogRecord) -> None:
        words = (record.getMessage(), getattr(record, "said", ""))
        print_line(f"rlm: {' '.join(': '.join(filter(None, words)).split())}", err=True)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Decorate a command: print an error that its user can correct as one line, and exit with 2; a bug keeps its
    traceback. Each retry, and each workaround for an option that an endpoint refuses, is printed as a line too, unless
    a terminal shows a live line instead, or `--verbose` prints the log."""
    logger, lines = logging.getLogger("rlm"), _StderrLines(logging.INFO)
    before = logger.level
    prints_retries = not (shows_progress() or is_verbose() or is_quiet())
    if prints_retries:
        logger.addHandler(lines)
        logger.setLevel(logging.INFO)
    try:
        yield
    except (RLMError, MonocontextError, OSError) as error:
        print_error("rlm", str(error))
        raise click.exceptions.Exit(2) from None
    finally:
        if prints_retries:
            logger.removeHandler(lines)
            logger.setLevel(before)


def _parse_fields(items: list[str] | None) -> dict[str, Any]:
    """The fields of options NAME=VALUE. A value is JSON, as in `stop=["a"]`, else text, as in `effort=low`."""
    fields: dict[str, Any] = {}
    for item in items or ():
        name, equals, value = item.partition("=")
        if not (name and equals):
            raise UnknownOption(f"an option must be NAME=VALUE, as in seed=1, not {item!r}")
        try:
            fields[name] = json.loads(value)
        except ValueError:
            fields[name] = value
    return fields


def _parse_headers(items: list[str] | None) -> dict[str, str] | None:
    headers = {}
    for item in items or ():
        name, colon, value = item.partition(":")
        if not (name.strip() and colon):
            # The message does not repeat the header, which may contain a key.
            raise UnknownOption("a header must be NAME:VALUE, as in X-Team:search")
        headers[name.strip()] = value.strip()
    return headers or None


def describe_rights(runner: str) -> str:
    """A line on the rights of the model's code. Raises RunnerUnavailable if it cannot work on this machine."""
    check_runner(runner)
    return _RIGHTS if runner == "local" else _CONFINED.format(runner)


def shows_steps() -> bool:
    """Whether to print the steps of a run: on a terminal, or with `--verbose`."""
    return shows_progress() or (is_verbose() and not is_quiet())
