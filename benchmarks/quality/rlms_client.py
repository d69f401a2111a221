"""Ask one question with the package rlms, in an environment that has it: JSON on stdin, a line of JSON on stdout.

Imports nothing of this repository: rlms has a package named `rlm` too. Its OpenAI client reads OPENAI_API_KEY.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from typing import Any


def main() -> None:
    """Answer the question of stdin."""
    asked = json.load(sys.stdin)
    backend = {"model_name": asked["model"], "api_key": os.environ.get("OPENAI_API_KEY", "none")}
    if asked["base_url"]:
        backend["base_url"] = asked["base_url"]
    rlms: Any = import_module("rlm")
    done = rlms.RLM(backend="openai", backend_kwargs=backend, environment="local").completion(
        asked["text"], root_prompt=asked["query"]
    )
    used = done.usage_summary.to_dict()["model_usage_summaries"].values()
    tokens = sum(each["total_input_tokens"] + each["total_output_tokens"] for each in used)
    turns = sum(each["total_calls"] for each in used)
    print(json.dumps({"answer": done.response, "tokens": tokens, "turns": turns}))


if __name__ == "__main__":
    main()
