"""Choose the options of a resumed run: recorded ones, and those on the command line that override them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from rlm.calls.budget import Budget
from rlm.cli.context_argument import LOCAL_SESSIONS, UsageError, named_texts
from rlm.cli.options import choose_models, provider_of
from rlm.rlm import recorded_options

_MESSAGES_OF_FIXED = {  # by parameter that a resumed run cannot change
    "question": "a resumed run keeps its question: leave out QUESTION",
    "trajectory": "a resumed run appends to its own recording: leave out --trajectory",
}


def resumed_options(
    metadata: Mapping[str, Any], context: click.Context, model_options: dict[str, Any], limits: dict[str, Any]
) -> dict[str, Any]:
    """The keywords of `RLM`: recorded ones, overridden by `model_options` and `limits` if the command line sets them.
    Raises UsageError for an option that a resumed run cannot change."""
    source_of = context.get_parameter_source
    on_command_line = {name for name in context.params if source_of(name) is ParameterSource.COMMANDLINE}
    for name, message in _MESSAGES_OF_FIXED.items():
        if name in on_command_line:
            raise UsageError(message)
    options = {**limits, **recorded_options(metadata)}
    options |= {name: limits[name] for name in ("runner", "max_depth", "models") if name in on_command_line}
    budget: Budget = limits["budget"]
    new_limits = {name: limit for name, limit in asdict(budget).items() if f"max_{name}" in on_command_line}
    options["budget"] = replace(options["budget"], **new_limits)
    if on_command_line.intersection(model_options):
        new_options = {name: value if name in on_command_line else None for name, value in model_options.items()}
        options |= _choose_models(metadata, new_options)
    return options


def _choose_models(metadata: Mapping[str, Any], model_options: dict[str, Any]) -> dict[str, Any]:
    """The keywords of `RLM` for models: those of `model_options`, and recorded ones where it has None. The recorded
    endpoint, sub-model and sampling hold for the recorded provider only."""
    options = dict(model_options)
    recorded_provider, recorded_model = str(metadata["backend"]), str(metadata["backend_kwargs"]["model_name"])
    if not (options["model"] or options["preset"]):
        options["model"] = f"{options['backend'] or recorded_provider}:{recorded_model}"
    is_same_provider = provider_of(options) == recorded_provider
    if options["base_url"] is None and is_same_provider:
        options["base_url"] = recorded_options(metadata).get("base_url")
    if options["sub_model"] is None and not options["preset"] and is_same_provider:
        sub_provider, sub_model = metadata.get("sub_backend"), metadata.get("sub_model")
        if sub_provider:
            options["sub_model"] = f"{sub_provider}:{sub_model}"
        elif sub_model != recorded_model:
            options["sub_model"] = sub_model
    options["sub_base_url"] = metadata.get("sub_base_url")
    recorded = metadata if is_same_provider else {}
    chosen = choose_models(options, sampling=recorded.get("sampling"), sub_sampling=recorded.get("sub_sampling"))
    # The models have these options already: the recorded ones must not be applied on top.
    return chosen | {"base_url": None, "sampling": None, "sub_sampling": None}


def recorded_location(metadata: Mapping[str, Any], path: Path) -> str | None:
    """The path or URL of a recorded run's context; None if the recording contains the context, or does not name it.
    Paths are looked up from here, then from the folder of the recording. Raises UsageError if neither exists."""
    location: str | None = None if "context_value" in metadata else metadata.get("source")
    if location is None or location in ("-", LOCAL_SESSIONS) or "://" in location or named_texts(location):
        return location
    if Path(location).exists():
        return location
    beside_recording = path.resolve().parent / location
    if beside_recording.exists():
        return str(beside_recording)
    elsewhere = "" if os.path.isabs(location) else f", nor at {beside_recording}"
    raise UsageError(f"the context of this run is no longer at {location}{elsewhere}: give CONTEXT before --resume")


def absolute_location(location: str) -> str:
    """The absolute path of a file or directory, so that a run can be resumed from any folder. URLs are not changed."""
    if texts := named_texts(location):
        return shlex.join(f"{name}={absolute_location(text)}" for name, text in texts.items())
    return location if location in ("-", LOCAL_SESSIONS) or "://" in location else os.path.abspath(location)
