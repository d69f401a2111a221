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
    for name in ("head", "tail", "sed", "wc")
)
"""Functions that ask `document` first, and then the command of the shell. bashkit reads nothing from a pipe into a
function that is named `cat`."""
_SED = re.compile(r"(\d+|\$)(?:,(\+?\d+|\$))?p(?:;\s*(\d+)q)?")


_CONTROLS = {code: f"^{chr(code + 64)}" for code in range(32) if code not in (9, 10)} | {127: "^?"}
"""Control characters as `cat -v` prints them."""


async def cat(call: Call) -> int:
    """Answer `cat ARGUMENT...`."""
    try:
        options, operands = getopt.gnu_getopt(call.arguments, "AETbenstuv", ["number", "show-all", "show-ends"])
    except getopt.GetoptError as error:
        await call.complain(error.msg)
        return 1
    flags = {"number": "n", "show-all": "A", "show-ends": "E"}
    letters = set("".join(flags.get(name.lstrip("-"), name[1:]) for name, _ in options))
    letters |= set("vET") if "A" in letters else set("vE") if "e" in letters else set("vT") if "t" in letters else set()
    status, number, was_blank, rest = 0, 0, False, ""
    for operand in operands or ["-"]:
        if operand != "-" and call.document(operand) is None and (reason := call.why_unreadable(operand)):
            await call.complain(f"{operand}: {reason}")
            status = 1
            continue
        async for piece in call.pieces(operand):
            if not letters - {"u"}:
                await call.write(piece)
                continue
            *lines, rest = (rest + piece).split("\n")
            for line in lines:
                if not ("s" in letters and was_blank and not line):
                    number += bool(line) or "b" not in letters
                    await call.write(_decorate(line, letters, number) + ("$\n" if "E" in letters else "\n"))
                was_blank = not line
    if rest:
        await call.write(_decorate(rest, letters, number + 1))
    await call.flush()
    return status


def _decorate(line: str, letters: set[str], number: int) -> str:
    """A line as `cat` prints it with options; it numbers blank lines too, but for `-b`."""
    if "v" in letters:
        line = line.translate(_CONTROLS)
        line = "".join(
            char if char < "\x80" else "".join(_meta(byte) for byte in char.encode(errors="surrogateescape"))
            for char in line
        )
    if "T" in letters:
        line = line.replace("\t", "^I")
    return f"{number:>6}\t{line}" if ("b" in letters and line) or ("n" in letters and "b" not in letters) else line


def _meta(byte: int) -> str:
    """A byte above 127 as `cat -v` prints it."""
    low = byte - 128
    return f"M-^{chr(low + 64)}" if low < 32 else "M-^?" if low == 127 else f"M-{chr(low)}"


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
    if name == "head" and not operands and re.fullmatch(r"\d+", value := options[-1][1] if options else "10"):
        return await _head_of_stdin(call, int(value))
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


async def _head_of_stdin(call: Call, count: int) -> int:
    """Print the first lines of stdin: the shell's own command takes 10 s for 50,000 lines."""
    pieces = call.pieces("-")
    while count and (piece := await anext(pieces, None)) is not None:
        lines = piece.split("\n", count)
        await call.write(piece.removesuffix(lines[-1]) if len(lines) > count else piece)
        count -= len(lines) - 1
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
