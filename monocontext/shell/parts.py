"""Parts of documents for `head`, `tail`, `sed -n` and `wc`, without reading the rest of them."""

from __future__ import annotations

import getopt
import re
from collections.abc import Iterable

from monocontext.format.documents import Document
from monocontext.shell.call import NOT_OURS, ShellCall
from monocontext.shell.tree import MOST_READ_BYTES
from monocontext.text.monocontext import Monocontext

_SED = re.compile(r"(\d+|\$)(?:,(\+?\d+|\$))?p(?:;\s*(\d+)q)?")
_NUMBER = re.compile(r"([+-]?)(\d+)([kKMG]?)")
_UNITS = {"": 1, "k": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


async def document(call: ShellCall) -> int:
    """Answer `NAME ARGUMENT...` if all operands are documents and the options are those known here."""
    name, arguments = call.name, call.arguments
    if name in ("head", "tail"):
        arguments = [re.sub(r"^-(\d+)$", r"-n\1", item) for item in arguments[:1]] + arguments[1:]
    letters = {"head": "n:c:", "tail": "n:c:", "sed": "n", "wc": "lcm"}[name]
    try:
        options, operands = getopt.gnu_getopt(arguments, letters, ["lines=", "bytes="])
    except getopt.GetoptError:
        return NOT_OURS
    option, value = options[-1] if options else ("-n", "10")
    if name == "head" and not operands and option != "-c" and value.isdecimal():
        return await _head_of_stdin(call, int(value))
    script = operands.pop(0) if name == "sed" and operands else ""
    documents = [call.document(operand) for operand in operands]
    records = [item[1] for item in documents if item is not None]
    if not records or len(records) < len(documents) or (name != "wc" and len(records) > 1):
        return NOT_OURS
    if name == "wc":
        return await _count(call, {option[1] for option, _ in options}, operands, records)
    assert documents[0] is not None
    view = documents[0][0].view(records[0])
    parts = _sed(script, view) if name == "sed" and options else _end(name, option, value, view)
    if parts is None:
        return NOT_OURS
    for piece in parts:
        await call.write(piece)
    return 0


async def _head_of_stdin(call: ShellCall, count: int) -> int:
    """Print the first lines of stdin: the shell's own command takes 10 s for 50,000 lines."""
    pieces = call.stdin()
    while count and (piece := await anext(pieces, None)) is not None:
        lines = piece.split("\n", count)
        await call.write(piece.removesuffix(lines[-1]) if len(lines) > count else piece)
        count -= len(lines) - 1
    return 0


def _end(name: str, option: str, value: str, view: Monocontext) -> Iterable[str] | None:
    """The lines or bytes of `head` or `tail`; None for a value that is left to the shell."""
    match = _NUMBER.fullmatch(value)
    if match is None or name == "sed":
        return None
    number, is_head = int(match[2]) * _UNITS[match[3]], name == "head"
    if option in ("-c", "--bytes"):
        if match[1] == ("-" if is_head else "+") or number > MOST_READ_BYTES:
            return None
        part = view.view(0, number) if is_head else view.view(max(0, len(view) - number))
        data = b"".join(chunk.encode() for chunk in part.chunks())  # as many characters as bytes, or fewer
        return [(data[:number] if is_head else data[max(0, len(data) - number) :]).decode(errors="surrogateescape")]
    total = len(view.lines)
    if is_head:
        cut = total - number if match[1] == "-" else number
    else:
        cut = number - 1 if match[1] == "+" else total - number
    character = view.span.line_start(min(max(0, cut), total))
    return (view.view(0, character) if is_head else view.view(character, len(view))).chunks()


def _sed(script: str, view: Monocontext) -> Iterable[str] | None:
    """The lines that a script prints; None for a script that is more than a range of lines."""
    match = _SED.fullmatch(script.strip().replace(" ", ""))
    if match is None:
        return None
    first, last, quit_after = match.groups()
    size = len(view.lines)
    start = size if first == "$" else int(first)
    if last is None or last.startswith("+"):
        stop = start + int(last or 0)
    else:
        stop = size if last == "$" else max(start, int(last))
    stop = min(stop, int(quit_after or size), size)
    begin = min(max(0, start - 1), stop)
    return view.view(view.span.line_start(begin), view.span.line_start(stop)).chunks()


async def _count(call: ShellCall, letters: set[str], operands: list[str], records: list[Document]) -> int:
    """Print numbers of lines, characters and bytes, which the table of documents has."""
    if not letters:
        return NOT_OURS
    counts = [{"l": record.newlines, "m": len(record), "c": record.bytes} for record in records]
    rows = [[row[letter] for letter in "lmc" if letter in letters] for row in counts]
    if len(rows) > 1:
        rows.append([sum(column) for column in zip(*rows, strict=True)])
    total_bytes = sum(record.bytes for record in records)
    width = len(str(total_bytes)) if len(rows) > 1 or len(letters) > 1 else 1
    for row, operand in zip(rows, [*operands, "total"], strict=False):
        await call.write(" ".join(f"{count:>{width}}" for count in row) + f" {operand}\n")
    return 0
