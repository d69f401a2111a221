"""The commands `head`, `tail`, `sed -n` and `wc` over documents. They read only the part that they need."""

from __future__ import annotations

import re
from collections import Counter

from monocontext.shell.call import NOT_A_FILE, LeftToShell, ShellCall
from monocontext.shell.tree import MOST_READ_BYTES
from monocontext.text.monocontext import Monocontext

STOPPING: dict[str, str] = dict.fromkeys(("cksum", "diff", "md5sum", "rev", "sha1sum", "sha256sum"), "")
STOPPING |= {"cut": "bcdf", "expand": "t", "fold": "w", "hexdump": "efns", "nl": "bdfhilnsvw", "od": "AjNStw"}
STOPPING |= {"tac": "s", "unexpand": "t"}
"""Commands that stop in bashkit, but not in Unix, at an operand that is no file; and which letters take a value."""
_COUNTS = {"l": "lines", "w": "words", "m": "chars", "c": "bytes"}
_UNSIZED_WIDTH = 7  # the columns of each number of `wc`, as in GNU, if a folder or stdin is among its operands
_SED = re.compile(r"([1-9]\d*|\$)(?:,(\+?)(\d+|\$))?p(?:;(\d+)q)?")  # 10p  10,20p  10,+5p  $p  1,9p;9q; not /a/p


async def head_or_tail(call: ShellCall) -> int:
    """Print the first or last lines or bytes of a document. Returns 0."""
    old_form = r"^-(\d+)$" if call.name == "head" else r"^-(\d+)$|^(?=\+\d+$)"  # head -5  tail -5  tail +5
    call.arguments[:1] = [re.sub(old_form, r"-n\1", word) for word in call.arguments[:1]]
    options, operands = call.options({"n:": "lines=", "c:": "bytes="})
    unit, value = options[-1] if options else ("lines", "10")
    number = re.fullmatch(r"([+-]?)(\d+)", value)
    sign, count = (number[1], int(number[2])) if number else ("", 0)
    if number is None or (unit == "bytes" and (sign or count > MOST_READ_BYTES)):
        raise LeftToShell
    view = _view(call, operands)
    is_head = call.name == "head"
    if unit == "bytes":
        part = view.view(0, count) if is_head else view.view(max(0, len(view) - count))
        data = "".join(part.chunks()).encode()  # a character has at least one byte, so these are enough
        data = data[:count] if is_head else data[max(0, len(data) - count) :]
        await call.write(data.decode(errors="surrogateescape"))
        return 0
    all_lines = len(view.lines)
    if is_head:
        return await _write_lines(call, view, 0, all_lines - count if sign == "-" else count)
    return await _write_lines(call, view, count - 1 if sign == "+" else all_lines - count, all_lines)


async def sed(call: ShellCall) -> int:
    """Print lines of a document, as `sed -n 10,20p FILE` does. Raises `LeftToShell` for any other script."""
    options, operands = call.options({"n": "quiet"})
    script = _SED.fullmatch(operands.pop(0).replace(" ", "")) if operands else None
    if script is None or not options:
        raise LeftToShell
    view = _view(call, operands)
    all_lines = len(view.lines)
    first, sign, last, quit_after = script.groups()
    start = all_lines if first == "$" else int(first)
    stop = all_lines if last == "$" else int(last or 0)
    stop = min(start + stop if sign else max(start, stop), int(quit_after or all_lines))
    return await _write_lines(call, view, min(start - 1, stop), stop)


async def wc(call: ShellCall) -> int:
    """Print the counts of files. Only the count of words reads a document. Returns 1 if an operand is not a file."""
    options, operands = call.options(_COUNTS)
    chosen = {unit for unit, _ in options} or {"lines", "words", "bytes"}
    units = [unit for unit in _COUNTS.values() if unit in chosen]
    if not operands:
        raise LeftToShell
    kinds = ["stdin" if operand == "-" else await call.check_kind(operand) for operand in operands]
    rows = [(item, await _count(call, item, kind, units)) for item, kind in zip(operands, kinds, strict=True) if kind]
    total = sum((counts for _, counts in rows), Counter())
    most_width = max(len(str(total["bytes"])), 1 if {"directory", "stdin"}.isdisjoint(kinds) else _UNSIZED_WIDTH)
    width = most_width if len(operands) > 1 or len(units) > 1 else 1
    if len(operands) > 1:
        rows.append(("total", total))
    for name, counts in rows:
        await call.write(" ".join(f"{counts[unit]:>{width}}" for unit in units) + f" {name}\n")
    return int(not NOT_A_FILE.keys().isdisjoint(kinds))


async def _count(call: ShellCall, operand: str, kind: str, units: list[str]) -> Counter[str]:
    """The lines, words, characters and bytes of a file or of stdin. Words count as 0 if `units` does not name them."""
    if kind == "directory":
        return Counter()
    files_and_document = None if kind == "stdin" else call.document(operand)
    if files_and_document is None:
        data = await call.read_input() if kind == "stdin" else call.files.read_file(call.path(operand))
        text = data.decode(errors="replace")
        return Counter(lines=text.count("\n"), words=len(text.split()), chars=len(text), bytes=len(data))
    files, record = files_and_document
    words = _count_words(files.view(record)) if "words" in units else 0
    return Counter(lines=record.newlines, words=words, chars=len(record), bytes=record.bytes)


def _count_words(view: Monocontext) -> int:
    count, last = 0, " "
    for chunk in view.chunks():
        count += len((last + chunk).split()) - (not last.isspace())
        last = chunk[-1]
    return count


async def drop_unreadable(call: ShellCall) -> int:
    """Complain about operands that are not files, and let bashkit's own command (`STOPPING`) run on the others."""
    letters = STOPPING[call.name]
    takes_value = re.compile("--[a-z-]+" + (rf"|-\w*[{letters}]" if letters else ""))
    before_each = zip(["", *call.arguments], call.arguments, strict=False)
    operands = [word for before, word in before_each if word[:1] != "-" and not takes_value.fullmatch(before)]
    others = [word for word in operands if await call.check_kind(word) in NOT_A_FILE]
    if others and (others == operands or call.name == "diff"):
        return 2 if call.name == "diff" else 1
    call.arguments = [word for word in call.arguments if word not in others]
    call.least_status = int(bool(others))
    raise LeftToShell


def _view(call: ShellCall, operands: list[str]) -> Monocontext:
    """The text of the document that the only operand names. Raises `LeftToShell` for other or more operands."""
    files_and_document = call.document(operands[0]) if len(operands) == 1 else None
    if files_and_document is None:
        raise LeftToShell
    files, record = files_and_document
    return files.view(record)


async def _write_lines(call: ShellCall, view: Monocontext, start: int, stop: int) -> int:
    """Print lines [start, stop), counted from 0, as far as a view has them; returns 0."""
    first, last = (view.span.line_start(min(line, len(view.lines))) for line in (start, stop))
    for chunk in view.view(first, last).chunks():
        await call.write(chunk)
    return 0
