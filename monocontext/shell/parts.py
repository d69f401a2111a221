"""Parts of documents for `cat`, `head`, `tail`, `sed -n` and `wc`, without reading the rest of them."""

from __future__ import annotations

import getopt
import re

from monocontext.shell.call import Call
from monocontext.text.monocontext import Monocontext

NOT_OURS = 125
"""The exit code of a call that the command of the shell is to answer."""
PRELUDE = "\n".join(
    f'{name}() {{ __document {name} "$@"; local c=$?; [ $c = {NOT_OURS} ] || return $c; command {name} "$@"; }}'
    for name in ("cat", "head", "tail", "sed", "wc")
)
"""Functions that ask `document` first, and then the command of the shell."""
_SED = re.compile(r"(\d+|\$)(?:,(\+?\d+|\$))?p(?:;\s*(\d+)q)?")


async def document(call: Call) -> int:
    """Answer `NAME ARGUMENT...` if all operands are documents and the options are those known here."""
    name, arguments = call.name, call.arguments
    try:
        if name in ("head", "tail"):
            arguments = [re.sub(r"^-(\d+)$", r"-n\1", item) for item in arguments]
        options, operands = getopt.gnu_getopt(
            arguments, {"head": "n:", "tail": "n:", "sed": "n", "wc": "lcm"}.get(name, ""), ["lines="]
        )
    except getopt.GetoptError:
        return NOT_OURS
    script = operands.pop(0) if name == "sed" and operands else ""
    found = [call.document(operand) for operand in operands]
    documents = [item for item in found if item is not None]
    if not documents or len(documents) < len(found) or (name not in ("cat", "wc") and len(found) > 1):
        return NOT_OURS
    if name == "wc":
        return await _count(call, {option[1] for option, _ in options}, operands)
    for files, record in documents:
        view = files.view(record)
        start, stop = 0, record.newlines + 1
        if name in ("head", "tail"):
            value = options[-1][1] if options else "10"
            if not re.fullmatch(r"[+-]?\d+", value):
                return NOT_OURS
            start, stop = _ends(name, value, len(view.lines))
        elif name == "sed":
            match = _SED.fullmatch(script.strip().replace(" ", ""))
            if match is None or not options:
                return NOT_OURS
            start, stop = _sed_lines(match, len(view.lines))
        await _write_lines(call, view, start, stop)
    await call.flush()
    return 0


def _ends(name: str, value: str, count: int) -> tuple[int, int]:
    """The lines [start, stop) of `head -n VALUE` or `tail -n VALUE`."""
    number = int(value)
    if name == "head":
        return 0, max(0, count + number) if value.startswith("-") else number
    return (max(0, number - 1) if value.startswith("+") else max(0, count - abs(number))), count


def _sed_lines(match: re.Match[str], count: int) -> tuple[int, int]:
    """The lines [start, stop) that a script prints."""
    first, last, quit_after = match.groups()
    start = count if first == "$" else int(first)
    if last is None:
        stop = start
    elif last.startswith("+"):
        stop = start + int(last)
    else:
        stop = count if last == "$" else max(start, int(last))
    return max(0, start - 1), min(stop, int(quit_after)) if quit_after else stop


async def _write_lines(call: Call, view: Monocontext, start: int, stop: int) -> None:
    count = len(view.lines)
    start, stop = min(start, count), min(stop, count)
    if start < stop:
        for chunk in view.view(view.span.line_start(start), view.span.line_start(stop)).chunks():
            await call.write(chunk)


async def _count(call: Call, letters: set[str], operands: list[str]) -> int:
    """Print numbers of lines, characters and bytes, which the table of documents has."""
    if not letters:
        return NOT_OURS
    rows: list[tuple[list[int], str]] = []
    for operand in operands:
        match = call.document(operand)
        assert match is not None
        record = match[1]
        counts = {"l": record.newlines, "m": len(record), "c": record.bytes}
        rows.append(([counts[letter] for letter in "lmc" if letter in letters], operand))
    total_bytes = sum(item[1].bytes for operand in operands if (item := call.document(operand)))
    if len(rows) > 1:
        rows.append(([sum(column) for column in zip(*(counts for counts, _ in rows), strict=True)], "total"))
    width = len(str(total_bytes)) if len(rows) > 1 or len(letters) > 1 else 1
    for row, operand in rows:
        await call.write(" ".join(f"{count:>{width}}" for count in row) + f" {operand}\n")
    await call.flush()
    return 0
