"""Define the options of commands that ask models: the models, and the limits."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import wraps
from typing import Annotated, Any

from monocontext.cli.options import one_of, with_options
from monocontext.cli.parameters import Option
from monocontext.cli.settings import SETTINGS, from_file
from rlm.calls.budget import Budget
from rlm.errors import UnknownOption
from rlm.models import registry as backends
from rlm.runners import RUNNERS
from rlm.runners.runner import DEFAULT_RUNNER

ModelChoice = dict[str, Any]
"""Keywords of `choose_models`: a command with a parameter `who` gets them by `with_models`."""
Limits = dict[str, Any]
"""Keywords of `RLM`: a command with a parameter `limits` gets them by `with_limits`."""


def model_flags(
    model: Annotated[
        str | None, Option(help="The root model, as MAKER:NAME or NAME; else gpt-5.6, or that of the preset.")
    ] = None,
    sub_model: Annotated[
        str | None, Option(help="The model of sub-calls, also of another maker; by default the root model.")
    ] = None,
    preset: Annotated[
        str | None,
        Option(help=f"A pair of models: {', '.join(backends.PRESETS)}.", autocompletion=one_of(*backends.PRESETS)),
    ] = None,
    backend: Annotated[
        str | None,
        Option(
            help=f"The maker: {', '.join(backends.BACKENDS)}, and with any-llm many more.",
            autocompletion=one_of(*backends.BACKENDS),
        ),
    ] = None,
    base_url: Annotated[
        str | None, Option(help="The endpoint of the root's maker; for OpenAI's also OPENAI_BASE_URL.")
    ] = None,
    temperature: Annotated[float | None, Option(help="Of all calls.")] = None,
    option: Annotated[
        list[str] | None,
        Option(metavar="NAME=VALUE", help="A field of each request, such as reasoning_effort=low; repeatable."),
    ] = None,
    sub_option: Annotated[list[str] | None, Option(metavar="NAME=VALUE", help="The same, of sub-calls alone.")] = None,
    header: Annotated[
        list[str] | None, Option(metavar="NAME:VALUE", help="A header for the root's maker; repeatable.")
    ] = None,
) -> ModelChoice:
    """The choice of models on the command line."""
    return dict(locals())


@wraps(model_flags)
def model_choice(**flags: Any) -> ModelChoice:
    """The choice of models on the command line, else in the file of settings."""
    return with_settings(model_flags(**flags))


def with_settings(who: ModelChoice) -> ModelChoice:
    """Fill in the options that the command line leaves open. Models of the file are those of one maker, and a base_url
    belongs to that maker."""
    model, sub_model = from_file("models.model"), from_file("models.sub_model")
    theirs = _maker(model) or "openai"
    maker = maker_of(who) if who["model"] else who["backend"]
    if not who["preset"] and who["base_url"] is None and maker in (None, theirs):
        who |= {"model": who["model"] or model, "sub_model": who["sub_model"] or sub_model}
    root = maker_of(who)
    return who | {
        "base_url": _base_url(root) if who["base_url"] is None else who["base_url"],  # an empty one is an error
        "sub_base_url": _base_url(_maker(who["sub_model"]) or root),
    }


def _base_url(maker: str) -> str | None:
    key = f"{maker}.base_url"
    return str(found) if key in SETTINGS and (found := from_file(key)) else None


def _maker(model: str | None) -> str | None:
    """The maker in the name of a model."""
    return backends.split_maker(model)[0] if model else None


def maker_of(who: ModelChoice) -> str:
    """The maker of the root model."""
    return _maker(who["model"]) or who["backend"] or who["preset"] or "openai"


def choose_models(
    who: ModelChoice, *, sampling: Mapping[str, Any] | None = None, sub_sampling: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The keywords of `RLM` for the models; `sampling` and `sub_sampling` are overridden by the options. Raises
    UnknownOption."""
    said = {**who}
    temperature = {} if said["temperature"] is None else {"temperature": said["temperature"]}
    ours = {**(sampling or {})} | temperature | _parse_fields(said["option"])
    theirs = {**(sub_sampling or {})} | _parse_fields(said["sub_option"])
    maker = maker_of(said)
    is_other = _maker(said["sub_model"]) not in (None, maker)
    base_url = said["base_url"]
    if base_url is None and maker == "openai":
        base_url = os.environ.get("OPENAI_BASE_URL") or None
    chosen = backends.choose(
        said["model"], said["sub_model"], backend=said["backend"], preset=said["preset"], sampling=ours,
        sub_sampling=temperature | theirs if is_other else theirs, sub_base_url=said["sub_base_url"],
        headers=_parse_headers(said["header"]),
        base_url=base_url,
    )  # fmt: skip
    return {"lm": chosen.root, "sub_lm": chosen.sub, "sub_model": chosen.sub_model}


def limits(
    runner: Annotated[
        str,
        Option(
            autocompletion=one_of(*RUNNERS),
            help="Where the model's code runs: confined (subprocess, or wasm where that is not to be had), subprocess, "
            "wasm, docker, modal, local (with your rights).",
        ),
    ] = DEFAULT_RUNNER,
    max_iterations: Annotated[int, Option(min=1, help="Turns before an answer is forced.")] = 30,
    max_calls: Annotated[int | None, Option(min=1, help="Calls of models, sub-calls included.")] = None,
    max_tokens: Annotated[int | None, Option(min=1, help="Tokens, in and out, over all calls.")] = None,
    max_dollars: Annotated[float | None, Option(min=0, help="Dollars over all calls, by the price table.")] = None,
    max_seconds: Annotated[float | None, Option(min=0, help="Wall clock of a question.")] = None,
    max_depth: Annotated[int, Option(min=1, help="2 lets the model start child runs.")] = 1,
    window_tokens: Annotated[
        int | None, Option(min=1, help="The window of the root model, where its maker does not say.")
    ] = None,
    prompt_characters: Annotated[int | None, Option(min=1, help="What one sub-call may hold.")] = None,
    models: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="A model that code in cells may name, besides its own; repeatable."),
    ] = None,
    outline: Annotated[
        bool, Option("--outline", help="Tell the root model first what the context is (16 GETs).")
    ] = False,
    cache_dir: Annotated[str | None, Option(help="Keep answers of sub-calls there, and use them again.")] = None,
) -> Limits:
    """The limits of a run; the file of settings may give the missing ones."""
    return {
        "runner": runner, "max_depth": max_depth, "models": models, "cache_dir": cache_folder(cache_dir),
        "outline": outline, "window_tokens": window_tokens, "prompt_characters": prompt_characters,
        "budget": within(Budget(max_iterations, max_calls, max_tokens, max_dollars, max_seconds)),
    }  # fmt: skip


def within(budget: Budget) -> Budget:
    """The budget of the flags; the file of settings may give the missing parts."""
    open_parts = [name for name in ("calls", "tokens", "dollars", "seconds") if getattr(budget, name) is None]
    return replace(budget, **{name: from_file(f"limits.max_{name}") for name in open_parts})


def cache_folder(given: str | None) -> str | None:
    """The flag, else the value in the file of settings; a value that begins with `~` is below the home folder."""
    found = from_file("models.cache_dir") if given is None else None
    return os.path.expanduser(found) if found else given


with_models = with_options("who", model_choice)
with_limits = with_options("limits", limits)


def _parse_fields(given: list[str] | None) -> dict[str, Any]:
    """`temperature=0` as a number, `stop=["a"]` as JSON, `reasoning_effort=low` as text."""
    fields: dict[str, Any] = {}
    for each in given or ():
        name, equals, value = each.partition("=")
        if not (name and equals):
            raise UnknownOption(f"an option is NAME=VALUE, not {each!r}")
        try:
            fields[name] = json.loads(value)
        except ValueError:
            fields[name] = value
    return fields


def _parse_headers(given: list[str] | None) -> dict[str, str] | None:
    headers = {}
    for each in given or ():
        name, colon, value = each.partition(":")
        if not (name.strip() and colon):
            raise UnknownOption("a header is NAME:VALUE")  # not shown: it may be a key
        headers[name.strip()] = value.strip()
    return headers or None
