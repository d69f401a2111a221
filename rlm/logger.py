"""The logger, under its name in rlms: `from rlm.logger import RLMLogger`."""

from __future__ import annotations

from rlm.compat.rlms import RLMLogger

__all__ = ["RLMLogger"]
