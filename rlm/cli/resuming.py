"""Combine the options of a recorded run with those on the command line that resumes it."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from rlm.calls.budget import Budget
from rlm.cli.context_argument import SESSIONS, UsageError
from rlm.cli.options import Limits, ModelOptions, choose_models, maker_of
from rlm.rlm import recorded_options

_MODELS = (
    "model", "sub_model", "preset", "backend", "base_url", "temperature", "option", "sub_option", "header",
)  # fmt: skip
_BUDGET = ("iterations", "calls", "tokens", "dollars", "seconds")
_OTHER = ("runner", "max_depth", "models")
_FIXED = {
    "question": "its QUESTION is in the recording: leave out QUESTION",
    "trajectory": "it appends to the file that it resumes: leave out --trajectory",
    "outline": "its opening message is already written: leave out --outline",
}
"""Options that a resumed run cannot change, with the reasons."""


def given_options(context: click.Context) -> set[str]:
    """The names of the parameters on the command line."""
    return {
        name for name in context.params
        if (source := context.get_parameter_source(name)) is not None and source.name == "COMMANDLINE"
    }  # fmt: skip


def resumed_options(
    metadata: Mapping[str, Any], given: Collection[str], flags: ModelOptions, limits: Limits
) -> dict[str, Any]:
    """The keywords of `RLM`: the recorded ones, overridden by the given ones. Raises UsageError for a fixed option."""
    for name, why in _FIXED.items():
        if name in given:
            raise UsageError(f"cannot change a resumed run: {why}")
    options = {**limits, **recorded_options(metadata)}
    options |= {name: limits[name] for name in _OTHER if name in given}
    limit: Budget = limits["budget"]
    parts = {name: getattr(limit, name) for name in _BUDGET if f"max_{name}" in given}
    options["budget"] = replace(options["budget"], **parts)
    if any(name in given for name in _MODELS):
        options |= _choose_models(metadata, {name: flags[name] if name in given else None for name in _MODELS})
    return options


def _choose_models(metadata: Mapping[str, Any], flags: ModelOptions) -> dict[str, Any]:
    """The keywords of `RLM` for models: those of `flags`, completed from the recording."""
    recorded = recorded_options(metadata)
    backend, name = str(metadata["backend"]), str(metadata["backend_kwargs"]["model_name"])
    if not (flags["model"] or flags["preset"]):
        flags["model"] = f"{flags['backend'] or backend}:{name}"
    is_same = maker_of(flags) == backend
    if flags["base_url"] is None and is_same:
        flags["base_url"] = recorded.get("base_url")
    if flags["sub_model"] is None and not flags["preset"]:
        sub_backend = metadata.get("sub_backend")
        sub = f"{sub_backend}:{metadata['sub_model']}" if sub_backend else metadata.get("sub_model")
        flags["sub_model"] = sub if is_same and sub != name else None
    flags["sub_base_url"] = metadata.get("sub_base_url")
    chosen = choose_models(
        flags, sampling=metadata.get("sampling") if is_same else None,
        sub_sampling=metadata.get("sub_sampling") if is_same else None,
    )  # fmt: skip
    return chosen | {"base_url": None, "sampling": None, "sub_sampling": None}


def recorded_place(metadata: Mapping[str, Any], path: Path) -> str | None:
    """The path or URL of a recorded run's context; None if the recording contains the context, or its place is unknown.

    A file may have moved with the recording. Raises UsageError if it is not found.
    """
    place: str | None = None if "context_value" in metadata else metadata.get("source")
    if place is None or place in ("-", SESSIONS) or "://" in place:
        return place
    if Path(place).exists():
        return place
    near = path.resolve().parent / place
    if near.exists():
        return str(near)
    where = "" if os.path.isabs(place) else f", nor at {near}"
    raise UsageError(f"the context of this run is no longer at {place}{where}: give CONTEXT before --resume")


def absolute_place(place: str) -> str:
    """The absolute path of a file or directory, so that a run can be resumed from any folder. A URL stays as it is."""
    return place if place in ("-", SESSIONS) or "://" in place else os.path.abspath(place)
