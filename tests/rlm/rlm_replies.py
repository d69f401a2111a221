"""What models say in many tests, and what answers code."""

from __future__ import annotations

from pathlib import Path

from rlm import ScriptedLM
from rlm.calls.subcalls import SubCalls
from rlm.calls.usage import Usage

ASK = [{"role": "user", "content": "hi"}]


def repl(code: str) -> str:
    return f"```repl\n{code}\n```"


def calls() -> SubCalls:
    return SubCalls(ScriptedLM(str.upper), Usage())


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
