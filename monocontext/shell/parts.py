"""The commands `head`, `tail`, `sed -n` and `wc` over documents: they read no more of them than they print."""

from __future__ import annotations

import re
from collections import Counter

from monocontext.shell.call import LeftToShell, ShellCall
from monocontext.shell.tree import MOST_READ_BYTES
from monocontext.text.monocontext import Monocontext

_SIZES = {"l": "lines", "m": "chars", "c": "bytes"}
_SED = re.compile(r"(\d+|\$)(?:,(\+?)(\d+|\$))?p(?:;(\d+)q)?")
_NUMBER = re.compile(r"([+-]?)(\d+)")


async def head_or_tail(call: ShellCall) -> int:
    """Print the first or last lines or bytes of a document."""
    old_form = r"^-(\d+)$" if call.name == "head" else r"^-(\d+)$|^(?=\+\d+$)"
    call.arguments[:1] = [re.sub(old_form, r"-n\1", word) for word in call.arguments[:1]]
    options, operands = call.options({"n:": "lines=", "c:": "bytes="})
    unit, value = options[-1] if options else ("lines", "10")
    number = _NUMBER.fullmatch(value)
    if number is None:
        raise LeftToShell
    view, sign, count = _view(call, operands), number[1], int(number[2])
    if unit == "bytes":
        if sign or count > MOST_READ_BYTES:
            raise LeftToShell
        return await _write_bytes(call, view, count)
    size = len(view.lines)
    if call.name == "head":
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
    """Print numbers of lines, characters and bytes, which the table of documents has; returns 1 for a missing file."""
    options, operands = call.options(_SIZES)
    units = [unit for unit in _SIZES.values() if (unit, "") in options]
    stored = [(operand, call.document(operand)) for operand in operands]
    missing = [operand for operand, item in stored if item is None]
    if not units or len(missing) == len(stored) or any(call.files.exists(call.path(name)) for name in missing):
        raise LeftToShell
    for operand in missing:
        await call.complain(f"{operand}: No such file or directory")
    records = [(operand, item[1]) for operand, item in stored if item is not None]
    rows = [(name, Counter(lines=item.newlines, chars=len(item), bytes=item.bytes)) for name, item in records]
    if len(stored) > 1:
        rows.append(("total", sum((sizes for _, sizes in rows), Counter())))
    width = len(str(rows[-1][1]["bytes"])) if len(stored) > 1 or len(units) > 1 else 1
    for name, sizes in rows:
        await call.write(" ".join(f"{sizes[unit]:>{width}}" for unit in units) + f" {name}\n")
    return int(bool(missing))


def _view(call: ShellCall, operands: list[str]) -> Monocontext:
    """The text of the one document that is named. Raises `LeftToShell` for anything else."""
    stored = call.document(operands[0]) if len(operands) == 1 else None
    if stored is None:
        raise LeftToShell
    return stored[0].view(stored[1])


async def _write_bytes(call: ShellCall, view: Monocontext, count: int) -> int:
    """Print the first bytes of a view, or for `tail` the last; returns 0."""
    is_head = call.name == "head"
    part = view.view(0, count) if is_head else view.view(max(0, len(view) - count))
    data = "".join(part.chunks()).encode()  # at least the bytes that are asked for, if there are as many
    data = data[:count] if is_head else data[max(0, len(data) - count) :]
    await call.write(data.decode(errors="surrogateescape"))
    return 0


async def _write_lines(call: ShellCall, view: Monocontext, start: int, stop: int) -> int:
    """Print lines [start, stop) of a view, as many as there are; returns 0."""
    size = len(view.lines)
    first, last = (view.span.line_start(min(max(0, line), size)) for line in (start, stop))
    for chunk in view.view(first, last).chunks():
        await call.write(chunk)
    return 0
