"""What models say in many tests."""

from __future__ import annotations

ASK = [{"role": "user", "content": "hi"}]


def repl(code: str) -> str:
    return f"```repl\n{code}\n```"
