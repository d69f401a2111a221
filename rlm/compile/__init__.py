"""Compile new sessions of agents into the brief with which the next session begins."""

from __future__ import annotations

from rlm.compile.compiling import BRIEF_CHARACTERS, CompileResult, compile_sessions

__all__ = ["BRIEF_CHARACTERS", "CompileResult", "compile_sessions"]
