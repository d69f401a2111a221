"""Parse amounts and lists from the command line, and format tables in Markdown, for all commands."""

from __future__ import annotations

import argparse
import re
from typing import TypeAlias

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def amount(text: str) -> int:
    """The bytes in `0.2GB`, `100MB/s`, `64M` or `1000`. Raises `ValueError`."""
    result = re.fullmatch(r"([\d.]+)([KMGT]?)B?(?:/s)?", text)
    if result is None:
        raise ValueError(f"{text!r} is not an amount of bytes such as 64M or 0.2GB")
    return round(float(result[1]) * _UNITS[result[2]])


def parse_list(names: str) -> tuple[str, ...]:
    """`code,prose` as a tuple."""
    return tuple(filter(None, names.split(",")))


def head_line(*names: str) -> str:
    """The first two lines of a table: the left column holds names, the others figures."""
    return f"{row_line(*names)}\n|---|" + "---:|" * (len(names) - 1)


def row_line(*cells: object) -> str:
    """One row of a table."""
    return f"| {' | '.join(map(str, cells))} |"
