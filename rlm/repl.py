"""Name the REPL as rlm-minimal does: `from rlm.repl import REPLEnv, REPLResult, Sub_RLM`."""

from __future__ import annotations

from rlm.compat.rlm_minimal import REPLEnv as REPLEnv
from rlm.compat.rlm_minimal import REPLResult as REPLResult
from rlm.compat.rlm_minimal import Sub_RLM as Sub_RLM
