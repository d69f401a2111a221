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

_FIXED = {  # parameters that a resumed run cannot change -> the reason
    "question": "its QUESTION is in the recording: leave out QUESTION",
    "trajectory": "it appends to the file that it resumes: leave out --trajectory",
}


def resumed_options(
    metadata: Mapping[str, Any], context: click.Context, model_options: dict[str, Any], limits: dict[str, Any]
) -> dict[str, Any]:
    """The keywords of `RLM`: recorded ones, overridden by the command line. Raises UsageError for one of `_FIXED`."""
    source_of = context.get_parameter_source
    on_command_line = {name for name in context.params if source_of(name) is ParameterSource.COMMANDLINE}
    for name, reason in _FIXED.items():
        if name in on_command_line:
            raise UsageError(f"cannot change a resumed run: {reason}")
    options = {**limits, **recorded_options(metadata)}
    options |= {name: limits[name] for name in ("runner", "max_depth", "models") if name in on_command_line}
    budget: Budget = limits["budget"]
    parts = {name: limit for name, limit in asdict(budget).items() if f"max_{name}" in on_command_line}
    options["budget"] = replace(options["budget"], **parts)
    if on_command_line.intersection(model_options):
        chosen = {name: value if name in on_command_line else None for name, value in model_options.items()}
        options |= _choose_models(metadata, chosen)
    return options


def _choose_models(metadata: Mapping[str, Any], model_options: dict[str, Any]) -> dict[str, Any]:
    """The keywords of `RLM` for models: those of `model_options`, and recorded ones where it has None."""
    recorded, options = recorded_options(metadata), {**model_options}
    backend, name = str(metadata["backend"]), str(metadata["backend_kwargs"]["model_name"])
    if not (options["model"] or options["preset"]):
        options["model"] = f"{options['backend'] or backend}:{name}"
    is_same_provider = provider_of(options) == backend
    if options["base_url"] is None and is_same_provider:
        options["base_url"] = recorded.get("base_url")
    if options["sub_model"] is None and not options["preset"]:
        sub_backend = metadata.get("sub_backend")
        sub = f"{sub_backend}:{metadata['sub_model']}" if sub_backend else metadata.get("sub_model")
        options["sub_model"] = sub if is_same_provider and sub != name else None
    options["sub_base_url"] = metadata.get("sub_base_url")
    chosen = choose_models(
        options, sampling=metadata.get("sampling") if is_same_provider else None,
        sub_sampling=metadata.get("sub_sampling") if is_same_provider else None,
    )  # fmt: skip
    # The models have these options already: the recorded ones must not be applied on top.
    return chosen | {"base_url": None, "sampling": None, "sub_sampling": None}


def recorded_location(metadata: Mapping[str, Any], path: Path) -> str | None:
    """The path or URL of a recorded run's context; None if the recording contains the context, or does not name it.
    Paths are looked up from here, then from the folder of the recording. Raises UsageError if there is nothing."""
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
