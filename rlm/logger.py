"""The name under which code written for rlms asks for a record of its runs: `from rlm.logger import RLMLogger`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RLMLogger:
    """`RLM(backend=..., logger=RLMLogger(log_dir="logs"))` writes one trajectory per run into that directory."""

    log_dir: str
    file_name: str = "rlm"
    """Accepted; files are named `rlm_...` in any case."""
