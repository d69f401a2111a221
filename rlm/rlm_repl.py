"""Name `RLM_REPL` as rlm-minimal and DeepRecurse do: `from rlm.rlm_repl import RLM_REPL`."""

from __future__ import annotations

from rlm.compat.rlm_minimal import RLM_REPL as RLM_REPL
