"""Format the lines of a search as messages of `rg --json`."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from monocontext.adapters.text_bytes import byte_of, reader_of
from monocontext.shell.lines import Line, Style, with_context
from monocontext.text.monocontext import Monocontext
from monocontext.text.regex.linewise import Linewise


def json_messages(selected: Iterable[Line], context: Monocontext, style: Style, *, ascii_only: bool) -> Iterator[str]:
    """Yield the messages of `rg --json` as lines: begin, match, context and end for each file, then a summary.

    As in ripgrep, `absolute_offset` counts bytes of the file, and `start` and `end` bytes of the line. The field
    `offset`, which ripgrep does not have, counts characters of the whole text up to the first match. The counts of
    searches and bytes are those of files with a match, and `bytes_printed` is 0.
    """
    began, totals, reader = time.monotonic(), Counter[str](), reader_of(context)
    for file, lines in groupby(selected, key=lambda line: line.file):
        document = file.document
        counts = Counter(searches=1, searches_with_match=1, bytes_searched=document.bytes)
        path = {"path": {"text": file.name}}
        yield _message("begin", path, ascii_only)
        first_byte = byte_of(reader, document.start)
        for line in filter(None, with_context(file, lines, style)):
            start = context.span.line_start(document.first_line + line.number - 1)
            matches = list(_submatches(style.pattern, line.text)) if line.hit else []
            newline = "\n" if start + len(line.text) < document.stop else ""
            data = path | {
                "lines": {"text": line.text + newline}, "line_number": line.number,
                "absolute_offset": byte_of(reader, start) - first_byte, "submatches": matches,
            }  # fmt: skip
            if line.hit:
                counts += Counter(matched_lines=1, matches=len(matches))
                data["offset"] = line.hit.offset
            yield _message("match" if line.hit else "context", data, ascii_only)
        yield _message("end", path | {"binary_offset": None, "stats": _stats(began, counts)}, ascii_only)
        totals += counts
    yield _message("summary", {"elapsed_total": _elapsed(began), "stats": _stats(began, totals)}, ascii_only)


def _message(kind: str, data: dict[str, Any], ascii_only: bool) -> str:
    return json.dumps({"type": kind, "data": data}, ensure_ascii=ascii_only)


def _submatches(pattern: Linewise, text: str) -> Iterator[dict[str, Any]]:
    character = start_byte = 0  # the start of the previous match, in characters and in bytes
    for match in pattern.finditer(text):
        start_byte += len(text[character : match.start()].encode())
        character = match.start()
        yield {"match": {"text": match[0]}, "start": start_byte, "end": start_byte + len(match[0].encode())}


def _elapsed(began: float) -> dict[str, Any]:
    seconds = time.monotonic() - began
    return {"secs": int(seconds), "nanos": int(seconds % 1 * 1e9), "human": f"{seconds:.6f}s"}


def _stats(began: float, counts: Counter[str]) -> dict[str, Any]:
    names = ("searches", "searches_with_match", "bytes_searched", "bytes_printed", "matched_lines", "matches")
    return {"elapsed": _elapsed(began), **{name: counts[name] for name in names}}
