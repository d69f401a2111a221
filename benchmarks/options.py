"""What the commands share: how amounts and lists are given, and how a table is printed."""

from __future__ import annotations

import argparse
import re
from typing import TypeAlias

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def amount(text: str) -> int:
    """Bytes of `0.2GB`, `100MB/s`, `64M` or `1000`. Raises `ValueError`."""
    found = re.fullmatch(r"([\d.]+)([KMGT]?)B?(?:/s)?", text)
    if found is None:
        raise ValueError(f"{text!r} is no amount of bytes, as 64M or 0.2GB")
    return round(float(found[1]) * _UNITS[found[2]])


def parse_list(names: str) -> tuple[str, ...]:
    """`code,prose` as a tuple."""
    return tuple(filter(None, names.split(",")))


def head_line(*names: str) -> str:
    """The first two lines of a table in Markdown: names on the left, then figures."""
    return f"{row_line(*names)}\n|---|" + "---:|" * (len(names) - 1)


def row_line(*cells: object) -> str:
    """A line of it."""
    return f"| {' | '.join(map(str, cells))} |"
