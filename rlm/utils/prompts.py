"""Name the prompts as rlm-minimal does: `from rlm.utils.prompts import build_system_prompt`."""

from __future__ import annotations

from rlm.compat.rlm_minimal_prompts import DEFAULT_QUERY as DEFAULT_QUERY
from rlm.compat.rlm_minimal_prompts import REPL_SYSTEM_PROMPT as REPL_SYSTEM_PROMPT
from rlm.compat.rlm_minimal_prompts import USER_PROMPT as USER_PROMPT
from rlm.compat.rlm_minimal_prompts import build_system_prompt as build_system_prompt
from rlm.compat.rlm_minimal_prompts import next_action_prompt as next_action_prompt
