"""Find private keys in PEM and OpenSSH form. Pure.

A key is also found without its first or its last line, and without both if its base64 begins as keys in DER do. Its
lines may be numbered, quoted, or part of a diff or of code. The search after each mark is bounded, so the cost grows
only with the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_KEY_MARK = re.compile(r"-----(BEGIN|END)[ +][A-Z0-9 +]{0,40}PRIVATE[ +]KEY(?:[ +]BLOCK)?-----")
_KEY_CHARACTERS = 20_000
"""The longest key, with its marks."""
# The text before a line of a key in a listing, a diff, a quotation or code; its base64; the text that may follow.
_KEY_LINE = re.compile(
    r"[ \t]*(?:[+>#*|-][ \t]*){0,2}(?:[\w./-]{1,100}[:-](?=\d{1,6}[:-]))?(?:\d{1,6}(?:[ \t]*[:|\u2192-]|\t|[ ]{1,4})[ \t]*){0,2}[\"'`]?(?P<body>[A-Za-z0-9+/]{1,200}={0,2})"
    r"(?:\\?n)?[\"'`]?[ \t]*[+,\\$.)]{0,3}[ \t\r]*"
)
_KEY_CUT = re.compile(
    _KEY_LINE.pattern.replace("{1,200}", "{1,20000}").removesuffix(r"[ \t\r]*")
    + r"(?=[\"'`}\]\\]|$)|[ \t\"'`\\n]{0,10}(?P<run>[A-Za-z0-9+/]{40,20000}={0,2})"
)
_KEY_HEADER = re.compile(
    r"[ \t+>#*|-]*(?:\d{1,6}\W{1,6})?(?:(?:Proc-Type|DEK-Info|Comment|Version|Hash|Charset): ?[^\n]{0,100})?[ \t\r\"'$,\\n+]*"
)
_LEAST_BASE64 = 40
"""Characters. Less base64 is no key."""


def find_private_keys(text: str) -> Iterator[tuple[int, int]]:
    """The spans of private keys that have a first or a last line."""
    done = 0
    for mark in _KEY_MARK.finditer(text):
        if mark[1] == "BEGIN":
            end = text.find("-----END", mark.end(), mark.end() + _KEY_CHARACTERS)
            if end >= 0 and "-----" not in text[mark.end() : end]:
                closing = _KEY_MARK.match(text, end)
                stop = closing.end() if closing else end
                if not re.search(r"[A-Za-z0-9+/]{10}", text[mark.end() : stop]):
                    continue
            else:
                stop = _find_body_end(text, mark.end())
            if stop > mark.end():
                done = stop
                yield mark.start(), stop
        elif mark.start() >= done and (start := _find_body_start(text, mark.start(), done)) < mark.start():
            yield start, mark.end()


def _find_body_end(text: str, at: int) -> int:
    """The end of the base64 that begins at `at`, after a first line; `at` if there is none."""
    length, stop, begin = 0, at, at
    while begin <= len(text) and begin - at < _KEY_CHARACTERS:
        end = text.find("\n", begin)
        end = len(text) if end < 0 else end
        line = _KEY_LINE.fullmatch(text, begin, end)
        if line and (len(line["body"]) >= 16 or (length and _may_end_key(line["body"]))):
            length += len(line["body"])
            stop = line.end("body")
        elif not _KEY_HEADER.fullmatch(text, begin, end):
            cut = _KEY_CUT.match(text, begin, end)
            body = cut and (cut["body"] or cut["run"])
            if cut and body and (len(body) >= 16 or _may_end_key(body)):
                length, stop = length + len(body), cut.end("body" if cut["body"] else "run")
            break
        begin = end + 1
    return stop if length >= _LEAST_BASE64 else at


def _may_end_key(body: str) -> bool:
    return body.endswith("=") or (any(c.isdigit() for c in body) and any(c.isupper() for c in body))


def _find_body_start(text: str, at: int, least: int) -> int:
    """The beginning of the base64 that ends at `at`, before a last line; `at` if there is none. Looks no further than
    `least`."""
    length, start, end = 0, at, text.rfind("\n", least, at)
    while end > least and at - end < _KEY_CHARACTERS:
        begin = max(text.rfind("\n", least, end) + 1, least)
        line = _KEY_LINE.fullmatch(text, begin, end)
        if not line or (length and len(line["body"]) < 16):
            break
        length += len(line["body"])
        start = line.start("body")
        end = begin - 1
    return start if length >= _LEAST_BASE64 else at


# How keys in DER begin, whose first and last line may be missing.
KEY_BEGINNINGS = [
    "MIIEo", "MIIEp", "MIIEv", "MIIEw", "MIIEu", "MIICX", "MIICW", "MIICd", "MIIJK", "MIIJJ", "MIIJQ", "MIIJR",
    "MIIG4", "MIIG5", "MIIG/", "MHcCAQEE", "MHQCAQEE", "MIGkAgEB", "MIHcAgEB", "MIGHAgEA", "MIG2AgEA", "MIHuAgEA",
    "MC4CAQAwBQYDK2Vw", "MC4CAQAwBQYDK2Vu", "MIIFHDBO", "MIIFHzBJ", "MIIFLTBX", "MIIJrTBX", "b3BlbnNzaC1rZXktdjE",
]  # fmt: skip
_DER_KEY = re.compile(
    r"b3BlbnNz|MHcCAQEE|MHQCAQEE|MIGkAgEB|MIHcAgEB|MIGHAgEA|MIG2AgEA|MIHuAgEA|MC4CAQAw|MII...IBAA|MII...IBAD|MII..DB|MII..TBX|MII..zBJ|MII.[\w+/]{2,4}AgEA"
)


def match_bare_key(text: str, at: int) -> tuple[int, int] | None:
    """The span of a key in DER that begins at `at`, without its first line."""
    if not _DER_KEY.match(text, at):
        return None
    run = re.compile(r"[A-Za-z0-9+/=]{40,20000}").match(text, at)
    if not run:
        return None
    begin = text.find("\n", run.end(), run.end() + 8)
    stop = _find_body_end(text, begin + 1) if begin >= 0 else -1
    return at, max(run.end(), stop if stop > begin + 1 else 0)
