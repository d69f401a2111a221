"""Parts of documents for `head`, `tail`, `sed -n` and `wc`, without reading the rest of them."""

from __future__ import annotations

import getopt
import re
from collections.abc import Iterator

from monocontext.format.documents import Document
from monocontext.shell.call import ShellCall
from monocontext.text.monocontext import Monocontext

NOT_OURS = 125
"""The exit code of a call that the command of the shell is to answer."""
PRELUDE = (
    "\n".join(
        f'{name}() {{ __document {name} "$@"; local c=$?; [ $c = {NOT_OURS} ] || return $c; command {name} "$@"; }}'
        for name in ("head", "tail", "sed", "wc")
    )
    + """
find() {
  command find "$@" 2>/.find; local c=$?
  [ $c = 0 ] || { cat /.find >&2; __failed "$(cat /.find)"; }
  rm -f /.find; return $c
}"""
)
"""Functions that ask `document` first, and then the command of the shell. `find` stops at 1 MiB of names, and says
nothing of it in a pipe: `failed` learns of it."""
_SED = re.compile(r"(\d+|\$)(?:,(\+?\d+|\$))?p(?:;\s*(\d+)q)?")
_NUMBER = re.compile(r"([+-]?)(\d+)([kKMG]?)")
_UNITS = {"": 1, "k": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


async def failed(call: ShellCall) -> int:
    """Note a command that failed, whose complaint is the argument."""
    call.is_cut = "limit exceeded" in call.arguments[0]
    return 0


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
    found = [call.document(operand) for operand in operands]
    records = [item[1] for item in found if item is not None]
    if not records or len(records) < len(found) or (name != "wc" and len(records) > 1):
        return NOT_OURS
    if name == "wc":
        return await _count(call, {option[1] for option, _ in options}, operands, records)
    assert found[0] is not None
    view = found[0][0].view(records[0])
    parts = _sed(script, view) if name == "sed" and options else _end(name, option, value, view, records[0].bytes)
    if parts is None:
        return NOT_OURS
    for piece in parts:
        await call.write(piece)
    await call.flush()
    return 0


async def _head_of_stdin(call: ShellCall, count: int) -> int:
    """Print the first lines of stdin: the shell's own command takes 10 s for 50,000 lines."""
    pieces = call.stdin()
    while count and (piece := await anext(pieces, None)) is not None:
        lines = piece.split("\n", count)
        await call.write(piece.removesuffix(lines[-1]) if len(lines) > count else piece)
        count -= len(lines) - 1
    await call.flush()
    return 0


def _end(name: str, option: str, value: str, view: Monocontext, total_bytes: int) -> Iterator[str] | None:
    """The lines or bytes of `head` or `tail`; None if the value is not one of GNU's."""
    match = _NUMBER.fullmatch(value)
    if match is None or name == "sed":
        return None
    is_bytes, is_head = option in ("-c", "--bytes"), name == "head"
    total, number = total_bytes if is_bytes else len(view.lines), int(match[2]) * _UNITS[match[3]]
    if is_head:
        cut = total - number if match[1] == "-" else number
    else:
        cut = number - 1 if match[1] == "+" else total - number
    cut = min(max(0, cut), total)
    if is_bytes:
        return _cut(view, total, cut, is_head)
    character = view.span.line_start(cut)
    return (view.view(0, character) if is_head else view.view(character, len(view))).chunks()


def _cut(view: Monocontext, total: int, cut: int, is_head: bool) -> Iterator[str]:
    """The text before or after a byte. The characters from the nearer end are encoded, as many as there are bytes."""
    size = len(view)
    start, stop = (0, min(cut, size)) if cut <= total - cut else (max(0, size - total + cut), size)
    data = "".join(view.view(start, stop).chunks()).encode()
    cut -= 0 if stop < size or not start else total - len(data)
    if is_head:
        yield from view.view(0, start).chunks()
    yield (data[:cut] if is_head else data[cut:]).decode(errors="surrogateescape")
    if not is_head:
        yield from view.view(stop, size).chunks()


def _sed(script: str, view: Monocontext) -> Iterator[str] | None:
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
    stop = min(stop, int(quit_after), size) if quit_after else min(stop, size)
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
    await call.flush()
    return 0
