"""Parts of documents for `head`, `tail`, `sed -n` and `wc`, without reading the rest of them."""

from __future__ import annotations

import getopt
import re

from monocontext.shell.call import NOT_OURS, ShellCall
from monocontext.shell.tree import MOST_READ_BYTES
from monocontext.text.monocontext import Monocontext

_LETTERS = {"head": "n:c:", "tail": "n:c:", "sed": "n", "wc": "lcm"}
_SED = re.compile(r"(\d+|\$)(?:,(\+?)(\d+|\$))?p(?:;(\d+)q)?")
_NUMBER = re.compile(r"([+-]?)(\d+)([kKMG]?)")
_UNITS = {"": 1, "k": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


async def document(call: ShellCall) -> int:
    """Answer `NAME ARGUMENT...` if all operands are documents and the options are those known here."""
    arguments = list(call.arguments)
    if call.name in ("head", "tail"):
        arguments[:1] = [re.sub(r"^-(\d+)$", r"-n\1", item) for item in arguments[:1]]
    try:
        options, operands = getopt.gnu_getopt(
            arguments, _LETTERS[call.name], [] if call.name == "wc" else ["lines=", "bytes="]
        )
    except getopt.GetoptError:
        return NOT_OURS
    if call.name == "wc":
        return await _count(call, {option[1] for option, _ in options}, operands)
    option, value = options[-1] if options else ("-n", "10")
    script = operands.pop(0).replace(" ", "") if call.name == "sed" and operands else ""
    found = call.document(operands[0]) if len(operands) == 1 else None
    if found is None or (call.name == "sed" and not options):
        return NOT_OURS
    view = found[0].view(found[1])
    part: Monocontext | str | None
    if option in ("-c", "--bytes"):
        part = _bytes(call.name, value, view)
    else:
        size = len(view.lines)
        lines = _sed(script, size) if call.name == "sed" else _end(call.name, value, size)
        part = lines and view.view(*(view.span.line_start(min(max(0, line), size)) for line in lines))
    if part is None:
        return NOT_OURS
    for chunk in [part] if isinstance(part, str) else part.chunks():
        await call.write(chunk)
    return 0


def _bytes(name: str, value: str, view: Monocontext) -> str | None:
    """The first or last bytes; None for what is left to the shell."""
    match, is_head = _NUMBER.fullmatch(value), name == "head"
    number = int(match[2]) * _UNITS[match[3]] if match else 0
    if match is None or match[1] == ("-" if is_head else "+") or number > MOST_READ_BYTES:
        return None
    part = view.view(0, number) if is_head else view.view(max(0, len(view) - number))
    data = "".join(part.chunks()).encode()  # as many characters as bytes, or fewer
    return (data[:number] if is_head else data[max(0, len(data) - number) :]).decode(errors="surrogateescape")


def _end(name: str, value: str, size: int) -> tuple[int, int] | None:
    """The lines [start, stop) of `head` or `tail`."""
    match = _NUMBER.fullmatch(value)
    if match is None:
        return None
    number = int(match[2]) * _UNITS[match[3]]
    if name == "head":
        return 0, size - number if match[1] == "-" else number
    return number - 1 if match[1] == "+" else size - number, size


def _sed(script: str, size: int) -> tuple[int, int] | None:
    """The lines [start, stop) that a script prints; None for a script that is more than a range of lines."""
    match = _SED.fullmatch(script)
    if match is None:
        return None
    first, sign, last, quit_after = match.groups()
    start = size if first == "$" else int(first)
    stop = size if last == "$" else int(last or 0)
    stop = min(start + stop if sign else max(start, stop), int(quit_after or size))
    return min(start - 1, stop), stop


async def _count(call: ShellCall, letters: set[str], operands: list[str]) -> int:
    """Print numbers of lines, characters and bytes, which the table of documents has."""
    found = [item for item in map(call.document, operands) if item is not None]
    if not letters or not found or len(found) < len(operands):
        return NOT_OURS
    counts = [{"l": record.newlines, "m": len(record), "c": record.bytes} for _, record in found]
    rows = [[row[letter] for letter in "lmc" if letter in letters] for row in counts]
    if len(rows) > 1:
        rows.append([sum(column) for column in zip(*rows, strict=True)])
    width = len(str(sum(record.bytes for _, record in found))) if len(rows) > 1 or len(letters) > 1 else 1
    for row, operand in zip(rows, [*operands, "total"], strict=False):
        await call.write(" ".join(f"{count:>{width}}" for count in row) + f" {operand}\n")
    return 0
