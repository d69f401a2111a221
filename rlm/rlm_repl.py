"""`RLM_REPL`, under its name in rlm-minimal and DeepRecurse: `from rlm.rlm_repl import RLM_REPL`."""

from __future__ import annotations

from rlm.compat.rlm_minimal import RLM_REPL as RLM_REPL
