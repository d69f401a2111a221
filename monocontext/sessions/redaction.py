"""Secrets out of records, before anything leaves this machine.

Works on the strings of a parsed record: in JSON text, escapes hide what a pattern looks for, or a cut would break them.
Strings that hold escapes themselves (JSON within a tool's result, `repr`s, URLs, coloured terminals) are looked at with
their escapes resolved as well, and so is text in base64, which goes whole. What ties records to each other (ids,
signatures of thinking) is left as it is, at the places where it belongs and nowhere else.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from monocontext.errors import MonocontextError
from monocontext.sessions.records import Record
from monocontext.sessions.secret_kinds import SHAPES, Shape, names_a_secret

_ENVELOPE = frozenset(
    [
        "uuid",
        "parentUuid",
        "logicalParentUuid",
        "leafUuid",
        "sessionId",
        "requestId",
        "sourceToolUseID",
        "toolUseID",
        "agentId",
        "timestamp",
        "type",
        "version",
        "promptId",
        "messageId",
        "ordinal",
        "sha256",
    ]
)
_MESSAGE = frozenset(["id", "model", "role", "type", "stop_reason"])
_BLOCK = frozenset(["id", "tool_use_id", "type", "signature"])
_PAYLOAD = frozenset(["id", "call_id", "type", "encrypted_content", "role"])
_SIGNED = frozenset(("thinking", "redacted_thinking"))
_ESCAPE = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([\"'\\/bfnrt]))|\x1b\[[0-9;?]*[A-Za-z]|%([0-9a-fA-F]{2})"
)
_MARKS = ("\\", "\x1b", "%")
"""A text without any of these has no escapes."""
# Wrapped as `base64` and mail do, or in one run. 24 characters are 18 bytes: nothing shorter has a shape.
_ENCODED = re.compile(
    r"(?<![A-Za-z0-9+/_-])(?:(?:[A-Za-z0-9+/_-]{60,76}\r?\n)+[A-Za-z0-9+/_-]{0,76}|[A-Za-z0-9+/_-]{24,})={0,2}"
)
_STANDARD = str.maketrans("-_", "+/", "\r\n=")
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_NESTED = 3
"""JSON in JSON in JSON is seen in practice: a tool's result that quotes a transcript."""
_IMAGE_CHARACTERS = 256
_BASE64 = re.compile(r"[A-Za-z0-9+/=_\s-]+")


@dataclass(frozen=True, slots=True)
class Finding:
    """A secret that was taken out. Does not say what it was."""

    kind: str
    line: int
    """Of the transcript file."""
    where: str
    """Path of the field, such as `message.content.0.input.command`."""
    characters: int
    """Its length."""

    def __str__(self) -> str:
        return f"line {self.line}: {self.kind} ({self.characters} characters) in {self.where}"


class Redactor:
    """Takes secrets out of records and keeps account of them. One for each session; not for many threads."""

    def __init__(self, patterns: Iterable[str] = (), *, enabled: bool = True) -> None:
        """`patterns` are regular expressions of the user's own kinds of secrets. Raises `MonocontextError` for one that
        is none."""
        self.enabled = enabled
        self.findings: list[Finding] = []
        self.images = 0
        """Pictures that a placeholder stands for."""
        self._shapes = [*SHAPES, *(Shape("custom", _compiled(pattern)) for pattern in patterns)]

    @property
    def counts(self) -> dict[str, int]:
        """Secrets by kind."""
        return dict(sorted(Counter(finding.kind for finding in self.findings).items()))

    def sibling(self) -> Redactor:
        """One that does the same and has an account of its own."""
        other = Redactor(enabled=self.enabled)
        other._shapes = self._shapes
        return other

    def record(self, record: Record, line: int = 0) -> Record:
        """The record without its secrets and pictures; the one given is not changed."""
        if not self.enabled:
            return record
        found: Record = {}
        for name, value in record.items():
            if name in _ENVELOPE and not isinstance(value, dict | list):
                found[name] = value
            elif name == "message" and isinstance(value, dict):
                found[name] = self._message(value, line)
            elif name == "payload" and isinstance(value, dict):
                found[name] = self._fields(value, _PAYLOAD, line, name)
            else:
                self._put(found, name, value, line, name)
        return found

    def text(self, text: str, line: int = 0, where: str = "text") -> str:
        """Text without its secrets."""
        if not self.enabled or not text:
            return text
        spans = self._spans(text)
        if not spans:
            return text
        parts, at = [], 0
        for start, stop, kind in spans:
            parts += [text[at:start], f"[REDACTED:{kind}]"]
            self.findings.append(Finding(kind, line, where, stop - start))
            at = stop
        return "".join([*parts, text[at:]])

    def _message(self, message: Record, line: int) -> Record:
        found = self._fields({k: v for k, v in message.items() if k != "content"}, _MESSAGE, line, "message")
        if "content" in message:
            content = message["content"]
            if isinstance(content, list):
                found["content"] = [self._block(b, line, f"message.content.{i}") for i, b in enumerate(content)]
            else:
                found["content"] = self._value(content, line, "message.content")
        return found

    def _block(self, block: Any, line: int, where: str) -> Any:
        if not isinstance(block, dict):
            return self._value(block, line, where)
        if str(block.get("type")) in _SIGNED and block.get("signature"):
            return block if not self._holds_secret(block) else self._fields(block, _BLOCK, line, where)
        return self._fields(block, _BLOCK - {"signature"}, line, where)

    def _holds_secret(self, block: Record) -> bool:
        return any(isinstance(v, str) and k != "signature" and self._spans(v) for k, v in block.items())

    def _fields(self, value: Record, kept: frozenset[str], line: int, where: str) -> Record:
        if (picture := self._picture(value)) is not None:
            return picture
        found: Record = {}
        told = value.get("name") or value.get("key")  # {"name": "x-api-key", "value": ...}
        is_pair = isinstance(told, str) and names_a_secret(told)
        for name, each in value.items():
            if name in kept and isinstance(each, str):
                found[name] = each
            elif is_pair and name == "value" and isinstance(each, str) and _is_value(each):
                self.findings.append(Finding("named-secret", line, f"{where}.{name}", len(each)))
                found[name] = "[REDACTED:named-secret]"
            else:
                self._put(found, name, each, line, f"{where}.{name}")
        return found

    def _put(self, found: Record, name: str, value: Any, line: int, where: str) -> None:
        """A field, whose name may be a secret and may say that its value is one."""
        clean = self.text(name, line, where[: -len(name)] + "(a name)")
        while clean in found:
            clean += "'"
        if isinstance(value, str) and names_a_secret(name) and _is_value(value):
            self.findings.append(Finding("named-secret", line, where, len(value)))
            found[clean] = "[REDACTED:named-secret]"
        else:
            found[clean] = self._value(value, line, where)

    def _value(self, value: Any, line: int, where: str) -> Any:
        if isinstance(value, str):
            return self.text(value, line, where)
        if isinstance(value, list):
            return [self._value(each, line, f"{where}.{i}") for i, each in enumerate(value)]
        if isinstance(value, dict):
            return self._fields(value, frozenset(), line, where)
        return value

    def _picture(self, value: Record) -> Record | None:
        """What stands for data in base64: its type and size."""
        for name in ("data", "base64", "image_url"):
            data = value.get(name)
            if isinstance(data, str) and len(data) > _IMAGE_CHARACTERS:
                head, comma, rest = data.partition(",")
                has_head = bool(comma) and head.startswith("data:")
                body = rest if has_head else data
                if _BASE64.fullmatch(body):
                    told = head[5:].partition(";")[0] if has_head else "of some type"
                    kind = value.get("media_type") or told
                    self.images += 1
                    return {**value, name: f"[picture: {kind}, {len(body) * 3 // 4:,} bytes]"}
        return None

    def _spans(self, text: str) -> list[tuple[int, int, str]]:
        """Where secrets stand: not overlapping, in order."""
        found = self._matches(text) + self._encoded(text)
        view, places = text, list[int]()
        for _ in range(_NESTED):
            plain, at = _resolved(view)
            if plain == view:
                break
            places = [places[i] for i in at] if places else at
            view = plain
            spans = self._matches(view) + self._encoded(view)
            found += [(places[start], places[stop], kind) for start, stop, kind in spans]
        merged: list[tuple[int, int, str]] = []
        for start, stop, kind in sorted(found, key=lambda span: (span[0], -span[1])):
            if merged and start < merged[-1][1]:
                if stop > merged[-1][1]:
                    merged[-1] = (merged[-1][0], stop, merged[-1][2])
            else:
                merged.append((start, stop, kind))
        return merged

    def _encoded(self, text: str) -> list[tuple[int, int, str]]:
        """Where text in base64 holds a secret. Pictures and hashes are no text when decoded."""
        found = []
        for match in _ENCODED.finditer(text):
            run = match[0].translate(_STANDARD)
            run = run[: len(run) - (len(run) % 4 == 1)]  # the first letter of a group that was cut
            try:
                plain = base64.b64decode(run + "=" * (-len(run) % 4)).decode()
            except ValueError:
                continue
            if kinds := self._matches(plain):
                found.append((*match.span(), kinds[0][2]))
        return found

    def _matches(self, text: str) -> list[tuple[int, int, str]]:
        found = []
        lower = text.lower()
        for shape in self._shapes:
            if shape.hints and not any(hint in lower for hint in shape.hints):
                continue
            for match in shape.pattern.finditer(text):
                start, stop = match.span("secret" if "secret" in shape.pattern.groupindex else 0)
                if start < stop:
                    found.append((start, stop, shape.kind))
        return found


def _resolved(text: str) -> tuple[str, list[int]]:
    """Text with one level of escapes taken away, and where each of its characters begins in `text` (and its end)."""
    if not any(mark in text for mark in _MARKS):
        return text, []
    parts: list[str] = []
    places: list[int] = []
    at = 0
    for match in _ESCAPE.finditer(text):
        parts.append(text[at : match.start()])
        places.extend(range(at, match.start()))
        code = match[1] or match[2] or match[4]
        if code or match[3]:
            parts.append(chr(int(code, 16)) if code else _LETTERS.get(match[3], match[3]))
            places.append(match.start())
        at = match.end()
    parts.append(text[at:])
    places.extend(range(at, len(text) + 1))
    return "".join(parts), places


def _is_value(value: str) -> bool:
    return len(value) >= 4 and " " not in value.strip() and not value.startswith(("$", "<", "[REDACTED", "{{", "***"))


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise MonocontextError(f"not a regular expression: {pattern!r}: {error}") from None
