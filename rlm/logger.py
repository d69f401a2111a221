"""Name the logger as rlms does: `from rlm.logger import RLMLogger`."""

from __future__ import annotations

from rlm.compat.rlms import RLMLogger

__all__ = ["RLMLogger"]
