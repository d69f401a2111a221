"""Translate the keyword `max_cost` of other packages, and name ours in errors about their other keywords."""

from __future__ import annotations

from typing import Any, NoReturn

from rlm.errors import UnknownOption
from rlm.rlm import RLM

_OURS = {
    "max_budget": "max_dollars",
    "max_timeout": "max_seconds",
    "timeout": "max_seconds (of a run) or cell_timeout (of a cell)",
    "max_errors": "max_retries (of a call) or max_iterations (of a run)",
    "max_iters": "max_iterations",
    "max_llm_calls": "max_calls",
    "max_output_chars": "output_limit",
    "model_name": "model",
    "recursive_model": "sub_model",
    "other_backends": "sub_model or sub_lm",
    "other_backend_kwargs": "sub_model or sub_lm",
    "backend_kwargs": "model, base_url and api_key, or backend= with it",
    "environment": "runner, or backend= with it",
    "environment_kwargs": "cell_timeout and output_limit, or backend= with it",
    "interpreter": "runner",
    "tools": "custom_tools",
    "custom_sub_tools": "custom_tools, which child runs have too",
    "setup_code": "custom_tools",
    "custom_system_prompt": "the question: instructions go there",
    "system_prompt": "the question: instructions go there",
    "logger": "trajectory",
    "log_dir": "trajectory",
    "enable_logging": "verbose",
    "compaction_threshold_pct": "window_tokens",
    "max_concurrent_subcalls": "llm_query_batched, which has 16 calls under way",
    "on_iteration_start": "on_step",
    "on_iteration_complete": "on_step",
    "on_subcall_start": "on_step",
    "on_subcall_complete": "on_step",
    "depth": "max_depth",
}
"""Keywords of other packages, with their names here."""


class WithPeerKeywords(RLM, keywords=(*_OURS, "max_cost")):
    """The class that `RLM(...)` makes if one of these keywords is given."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """`max_cost` is `max_dollars`. Raises UnknownOption for the others, with the name here."""
        for name in options.keys() & _OURS.keys():
            refuse(name)
        cost = options.pop("max_cost", None)
        if options.get("max_dollars") is None:
            options["max_dollars"] = cost
        super().__init__(*arguments, **options)


def refuse(name: str) -> NoReturn:
    """Raise UnknownOption for a keyword. The message names ours if there is one."""
    raise UnknownOption(f"unknown option {name!r}" + (f": here it is called {_OURS[name]}" if name in _OURS else ""))
