"""Name the keywords of `RLM` once, in four groups."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypedDict

from rlm.calls.budget import Budget
from rlm.calls.cache import SubCache
from rlm.calls.prices import Prices
from rlm.models.lm import LM
from rlm.models.sampling import Sampling
from rlm.trajectory.step import Step


class LMOptions(TypedDict, total=False):
    """The models, as objects."""

    lm: LM | None
    sub_lm: LM | None


class ModelOptions(TypedDict, total=False):
    """The models by name, their endpoints and prices."""

    base_url: str | None
    api_key: str | None
    headers: Mapping[str, str] | None
    sampling: Sampling | None
    sub_sampling: Sampling | None
    preset: str | None
    models: Collection[str] | None
    prices: Prices | None


class LimitOptions(TypedDict, total=False):
    """The limits of a run."""

    budget: Budget | None
    max_iterations: int | None
    max_calls: int | None
    max_tokens: int | None
    max_dollars: float | None
    max_seconds: float | None
    max_depth: int
    max_retries: int
    cell_timeout: float | None
    output_limit: int | None
    window_tokens: int | None
    prompt_characters: int | None
    compaction: bool


class RunningOptions(TypedDict, total=False):
    """The place where code runs, and its options."""

    runner: str | None
    runner_options: Mapping[str, Any] | None
    custom_tools: Mapping[str, object] | None
    persistent: bool
    outline: bool
    sub_cache: SubCache | str | os.PathLike[str] | bool | None
    cache_dir: str | os.PathLike[str] | None


class RecordingOptions(TypedDict, total=False):
    """The record of a run, and its callbacks."""

    trajectory: str | os.PathLike[str] | None
    on_step: Callable[[Step], object] | None
    on_delta: Callable[[str], object] | None
    verbose: bool


class RunOptions(ModelOptions, LimitOptions, RunningOptions, RecordingOptions, total=False):
    """All keywords of `RLM` but its models."""


class RLMOptions(LMOptions, RunOptions, total=False):
    """All keywords of `RLM` but `model` and `sub_model`."""
