"""Record runs under the name that rlms uses: `from rlm.logger import RLMLogger`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RLMLogger:
    """`RLM(backend=..., logger=RLMLogger(log_dir="logs"))` writes one trajectory per run into that directory."""

    log_dir: str
    file_name: str = "rlm"
    """Accepted; files are named `rlm_...` in any case."""
