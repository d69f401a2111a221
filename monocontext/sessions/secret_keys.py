"""Find private keys in a text, even without a first or last line, numbered, quoted or in a diff. Does no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator

from monocontext.sessions.secret_values import Secret

_KIND = "private-key"
_KEY_MARK = re.compile(r"-----(BEGIN|END)[ +][A-Z0-9 +]{0,40}PRIVATE[ +]KEY(?:[ +]BLOCK)?-----")
_KEY_CHARACTERS = 20_000  # the longest key, with its marks
_KEY_LINE = re.compile(r"""(?x)  # a line of a key in a listing, a diff, a quotation or code
    [ \t]*(?:[+>#*|-][ \t]*){0,2}                             # the marks of a diff or a quotation, such as `+` or `> >`
    (?:[\w./-]{1,100}[:-](?=\d{1,6}[:-]))?                    # the path that grep prints before a number: `a/key.pem:`
    (?:\d{1,6}(?:[ \t]*[:|\u2192-]|\t|[ ]{1,4})[ \t]*){0,2}   # numbers of lines, such as `12:` or `3|`
    ["'`]?(?P<body>[A-Za-z0-9+/]{1,200}={0,2})                # the base64, after the quote of a string
    (?:\\?n)?["'`]?[ \t]*[+,\\$.)]{0,3}[ \t\r]*              # the end of a line of code, such as `\n" +`
    """)  # fmt: skip
_KEY_CUT = re.compile(r"[ \t\"'`\\n+>|]{0,10}(?P<body>[A-Za-z0-9+/]{40,20000}={0,2})")  # the end of a key within a line
_KEY_HEADER = re.compile(r"""(?x)  # a line before the base64: `Proc-Type: 4,ENCRYPTED`, in a listing too, or a blank one
    [ \t+>\#*|-]* (?:\d{1,6}\W{1,6})?
    (?:(?:Proc-Type|DEK-Info|Comment|Version|Hash|Charset):[ ]?[^\n]{0,100})? [ \t\r"'$,\\n+]*""")
_KEY_RUN = re.compile(r"[A-Za-z0-9+/=]{40,20000}")  # the first line of a key, or all of it on one line
_LEAST_BASE64 = 40  # characters of base64 in a key
_LEAST_LINE = 16  # characters of base64 in a line of a key, but for its last one
# How the base64 of keys begins, in DER and as OpenSSH writes it, if the line `-----BEGIN ...` before it is missing.
KEY_BEGINNINGS = ("MII MHcCAQEE MHQCAQEE MIGkAgEB MIHcAgEB MIGHAgEA MIG2AgEA MIHuAgEA MC4CAQAw b3BlbnNzaC1rZXktdjE".split())  # fmt: skip
# `MII` alone is too common: a key that begins with it has one of the last three forms.
_DER_KEY = re.compile(f"{'|'.join(KEY_BEGINNINGS[1:])}|MII...IBA[AD]|MII..(?:DB|TBX|zBJ)|MII.[\\w+/]{{2,4}}AgEA")


def find_private_keys(text: str) -> Iterator[Secret]:
    """Yield the private keys that have a first or a last line."""
    done = 0
    for mark in _KEY_MARK.finditer(text):
        if mark[1] == "BEGIN":
            if (stop := _find_key_end(text, mark.end())) is not None:
                done = stop
                yield Secret(mark.start(), stop, _KIND)
        elif mark.start() >= done and (start := _find_body_start(text, mark.start(), done)) is not None:
            yield Secret(start, mark.end(), _KIND)


def _find_key_end(text: str, start: int) -> int | None:
    """The end of the key whose first line ends at `start`, with its last line if it has one; None if it is empty."""
    end = text.find("-----END", start, start + _KEY_CHARACTERS)
    if end < 0 or "-----" in text[start:end]:
        return _find_body_end(text, start)
    last_line = _KEY_MARK.match(text, end)
    stop = last_line.end() if last_line else end
    return stop if re.search(r"[A-Za-z0-9+/]{10}", text[start:stop]) else None


def find_bare_key(text: str, offset: int, _stop: int) -> list[Secret]:
    """The private key at `offset`, base64 of DER or OpenSSH without its first line; empty if there is none."""
    run = _KEY_RUN.match(text, offset) if _DER_KEY.match(text, offset) else None
    if not run:
        return []
    newline = text.find("\n", run.end(), run.end() + 8)
    stop = _find_body_end(text, newline + 1) if newline >= 0 else None
    return [Secret(offset, run.end() if stop is None else stop, _KIND)]


def _find_body_end(text: str, start: int) -> int | None:
    """The end of a key's base64 on the lines from `start` on; None if it has too few characters for a key."""
    characters, stop, line_start = 0, start, start
    while line_start <= len(text) and line_start - start < _KEY_CHARACTERS:
        line_end = text.find("\n", line_start)
        line_end = len(text) if line_end < 0 else line_end
        line = _KEY_LINE.fullmatch(text, line_start, line_end)
        body = line["body"] if line else ""
        # A last line may be as short as a word, but words rarely have a digit and a capital letter.
        is_last_line = body.endswith("=") or (any(map(str.isdigit, body)) and any(map(str.isupper, body)))
        if line and (len(body) >= _LEAST_LINE or (characters and is_last_line)):
            characters, stop = characters + len(body), line.end("body")
        elif not _KEY_HEADER.fullmatch(text, line_start, line_end):
            if cut := _KEY_CUT.match(text, line_start, line_end):
                characters, stop = characters + len(cut["body"]), cut.end("body")
            break
        line_start = line_end + 1
    return stop if characters >= _LEAST_BASE64 else None


def _find_body_start(text: str, stop: int, least: int) -> int | None:
    """The start of a key's base64 on the lines from `least` to `stop`; None if it has too few characters for a key."""
    characters, start, line_end = 0, stop, text.rfind("\n", least, stop)
    while line_end > least and stop - line_end < _KEY_CHARACTERS:
        line_start = max(text.rfind("\n", least, line_end) + 1, least)
        line = _KEY_LINE.fullmatch(text, line_start, line_end)
        if not line or (characters and len(line["body"]) < _LEAST_LINE):
            break
        characters += len(line["body"])
        start = line.start("body")
        line_end = line_start - 1
    return start if characters >= _LEAST_BASE64 else None
