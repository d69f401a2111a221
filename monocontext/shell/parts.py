"""Parts of documents for `head`, `tail`, `sed -n` and `wc`, without reading the rest of them."""

from __future__ import annotations

import re

from monocontext.shell.call import LeftToShell, ShellCall
from monocontext.shell.tree import MOST_READ_BYTES
from monocontext.text.monocontext import Monocontext

_COUNTS = {"l": "lines", "m": "chars", "c": "bytes"}
_SED = re.compile(r"(\d+|\$)(?:,(\+?)(\d+|\$))?p(?:;(\d+)q)?")
_NUMBER = re.compile(r"([+-]?)(\d+)([kKMG]?)")
_UNITS = {"": 1, "k": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


async def head_or_tail(call: ShellCall) -> int:
    """Print the first or last lines or bytes of a document."""
    call.arguments[:1] = [re.sub(r"^-(\d+)$", r"-n\1", item) for item in call.arguments[:1]]
    options, operands = call.options({"n:": "lines=", "c:": "bytes="})
    unit, value = options[-1] if options else ("lines", "10")
    number = _NUMBER.fullmatch(value)
    if number is None:
        raise LeftToShell
    view, is_head = _view(call, operands), call.name == "head"
    sign, count = number[1], int(number[2]) * _UNITS[number[3]]
    if unit == "bytes":
        if sign == ("-" if is_head else "+") or count > MOST_READ_BYTES:
            raise LeftToShell
        part = view.view(0, count) if is_head else view.view(max(0, len(view) - count))
        data = "".join(part.chunks()).encode()  # as many characters as bytes, or fewer
        data = data[:count] if is_head else data[max(0, len(data) - count) :]
        await call.write(data.decode(errors="surrogateescape"))
        return 0
    size = len(view.lines)
    if is_head:
        return await _write_lines(call, view, 0, size - count if sign == "-" else count)
    return await _write_lines(call, view, count - 1 if sign == "+" else size - count, size)


async def sed(call: ShellCall) -> int:
    """Print a range of lines of a document: `sed -n 10,20p FILE`."""
    options, operands = call.options({"n": "quiet"})
    script = _SED.fullmatch(operands.pop(0).replace(" ", "")) if operands else None
    if script is None or not options:
        raise LeftToShell
    view = _view(call, operands)
    size = len(view.lines)
    first, sign, last, quit_after = script.groups()
    start = size if first == "$" else int(first)
    stop = size if last == "$" else int(last or 0)
    stop = min(start + stop if sign else max(start, stop), int(quit_after or size))
    return await _write_lines(call, view, min(start - 1, stop), stop)


async def wc(call: ShellCall) -> int:
    """Print numbers of lines, characters and bytes, which the table of documents has."""
    options, operands = call.options(_COUNTS)
    units = [unit for unit in _COUNTS.values() if (unit, "") in options]
    documents = [stored[1] for operand in operands if (stored := call.document(operand)) is not None]
    if not units or not documents or len(documents) < len(operands):
        raise LeftToShell
    counts = [{"lines": item.newlines, "chars": len(item), "bytes": item.bytes} for item in documents]
    rows = [[count[unit] for unit in units] for count in counts]
    if len(rows) > 1:
        rows.append([sum(column) for column in zip(*rows, strict=True)])
    width = len(str(sum(item.bytes for item in documents))) if len(rows) > 1 or len(units) > 1 else 1
    for row, operand in zip(rows, [*operands, "total"], strict=False):
        await call.write(" ".join(f"{count:>{width}}" for count in row) + f" {operand}\n")
    return 0


def _view(call: ShellCall, operands: list[str]) -> Monocontext:
    """The text of the one document that is named. Raises `LeftToShell` for anything else."""
    stored = call.document(operands[0]) if len(operands) == 1 else None
    if stored is None:
        raise LeftToShell
    return stored[0].view(stored[1])


async def _write_lines(call: ShellCall, view: Monocontext, start: int, stop: int) -> int:
    """Print lines [start, stop) of a view, as many as there are; returns 0."""
    size = len(view.lines)
    first, last = (view.span.line_start(min(max(0, line), size)) for line in (start, stop))
    for chunk in view.view(first, last).chunks():
        await call.write(chunk)
    return 0
