"""Keywords that are spelled otherwise elsewhere, and what they are called here. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from rlm.errors import UnknownOption

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
    "backend_kwargs": "model, base_url and api_key, or backend= beside it",
    "environment": "runner, or backend= beside it",
    "environment_kwargs": "cell_timeout and output_limit, or backend= beside it",
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


def refuse_unknown(given: Iterable[str], known: Iterable[str]) -> None:
    """Raise UnknownOption for the first keyword given, naming ours."""
    for name in given:
        ours = _OURS.get(name) or next(iter(difflib.get_close_matches(name, list(known), 1)), None)
        raise UnknownOption(f"RLM has no keyword {name!r}" + (f"; here it is {ours}" if ours else ""))
