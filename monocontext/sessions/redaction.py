"""Remove secrets from records, before anything leaves this machine.

Works on the strings of a parsed record: in JSON text, escapes would hide a pattern's match, or a cut would break them.
Strings with escapes inside (JSON within a tool's result, `repr`s, URLs, coloured terminals) are also searched with
their escapes resolved, and so is text in base64, which is removed whole. Fields that tie records to each other (ids,
signatures of thinking) stay where they belong, and nowhere else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from monocontext.errors import MonocontextError
from monocontext.sessions.records import Record
from monocontext.sessions.secret_cookies import find_in_field, holds_a_session, names_a_session
from monocontext.sessions.secret_names import Strength, is_secret, names_a_secret, strength_of
from monocontext.sessions.secret_search import Span, find_secrets, merge_spans

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
_IMAGE_CHARACTERS = 256
_BASE64 = re.compile(r"[A-Za-z0-9+/=_\s-]+")


@dataclass(frozen=True, slots=True)
class Finding:
    """A secret that was taken out; does not hold it."""

    kind: str
    line: int
    """Line of the transcript file, from 1."""
    where: str
    """Path of the field, such as `message.content.0.input.command`."""
    characters: int
    """Its length."""

    def __str__(self) -> str:
        return f"line {self.line}: {self.kind} ({self.characters} characters) in {self.where}"


class Redactor:
    """Takes secrets out of records and counts them. One for each session; not safe for threads."""

    def __init__(self, patterns: Iterable[str] = (), *, enabled: bool = True) -> None:
        """`patterns` are regular expressions for the user's own kinds of secrets. Raises `MonocontextError` for an
        invalid one."""
        self.enabled = enabled
        self.findings: list[Finding] = []
        self.images = 0
        """The number of pictures replaced by a placeholder."""
        self._custom = tuple(("custom", _compile(pattern)) for pattern in patterns)

    @property
    def counts(self) -> dict[str, int]:
        """Secrets by kind."""
        return dict(sorted(Counter(finding.kind for finding in self.findings).items()))

    def sibling(self) -> Redactor:
        """A redactor of the same kinds, with counts of its own."""
        other = Redactor(enabled=self.enabled)
        other._custom = self._custom
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
                found[name] = self._clean_message(value, line)
            elif name == "payload" and isinstance(value, dict):
                found[name] = self._clean_fields(value, _PAYLOAD, line, name)
            else:
                self._put_field(found, name, value, line, name)
        return found

    def text(self, text: str, line: int = 0, where: str = "text") -> str:
        """Text without its secrets."""
        if not self.enabled or not text:
            return text
        spans = self._find_spans(text)
        if "cookie" in where.lower():  # {"Cookie": "a=b; c=d"}, {"cookies": {"a": "b"}}
            found = find_in_field(where.rpartition(".")[2], text)
            spans = merge_spans([*spans, *((*span, "cookie") for span in found)])
        return self._cut(text, spans, line, where) if spans else text

    def _cut(self, text: str, spans: list[Span], line: int, where: str) -> str:
        parts, at = [], 0
        for start, stop, kind in spans:
            parts += [text[at:start], f"[REDACTED:{kind}]"]
            self.findings.append(Finding(kind, line, where, stop - start))
            at = stop
        return "".join([*parts, text[at:]])

    def _clean_message(self, message: Record, line: int) -> Record:
        found = self._clean_fields({k: v for k, v in message.items() if k != "content"}, _MESSAGE, line, "message")
        if "content" in message:
            content = message["content"]
            if isinstance(content, list):
                found["content"] = [self._clean_block(b, line, f"message.content.{i}") for i, b in enumerate(content)]
            else:
                found["content"] = self._clean_value(content, line, "message.content")
        return found

    def _clean_block(self, block: Any, line: int, where: str) -> Any:
        if not isinstance(block, dict):
            return self._clean_value(block, line, where)
        if str(block.get("type")) in _SIGNED and block.get("signature"):
            return block if not self._holds_secret(block) else self._clean_fields(block, _BLOCK, line, where)
        return self._clean_fields(block, _BLOCK - {"signature"}, line, where)

    def _holds_secret(self, block: Record) -> bool:
        return any(isinstance(v, str) and k != "signature" and self._find_spans(v) for k, v in block.items())

    def _clean_fields(self, value: Record, unchanged: frozenset[str], line: int, where: str) -> Record:
        if (picture := self._replace_picture(value)) is not None:
            return picture
        found: Record = {}
        name_field = value.get("name") or value.get("key")  # {"name": "x-api-key", "value": ...}
        name_field = name_field if isinstance(name_field, str) else ""
        for name, each in value.items():
            if name in unchanged and isinstance(each, str):
                found[name] = each
            elif name == "value" and isinstance(each, str) and _is_value(name_field, each):
                self.findings.append(Finding("named-secret", line, f"{where}.{name}", len(each)))
                found[name] = "[REDACTED:named-secret]"
            elif name == "value" and isinstance(each, str) and (cookies := _cookies_of(name_field, each)):
                found[name] = self._cut(each, cookies, line, f"{where}.{name}")
            else:
                self._put_field(found, name, each, line, f"{where}.{name}")
        return found

    def _put_field(self, found: Record, name: str, value: Any, line: int, where: str) -> None:
        """Clean a field: its name may be a secret, and may say that its value is one."""
        clean = self.text(name, line, where[: -len(name)] + "(a name)")
        while clean in found:
            clean += "'"
        if (isinstance(value, str) and _is_value(name, value)) or _is_numeric_password(name, value):
            self.findings.append(Finding("named-secret", line, where, len(str(value))))
            found[clean] = "[REDACTED:named-secret]"
        elif isinstance(value, list) and names_a_secret(name):
            found[clean] = [self._clean_item(name, each, line, f"{where}.{i}") for i, each in enumerate(value)]
        else:
            found[clean] = self._clean_value(value, line, where)

    def _clean_item(self, name: str, value: Any, line: int, where: str) -> Any:
        """One of a list of secrets."""
        if isinstance(value, str) and _is_value(name, value):
            self.findings.append(Finding("named-secret", line, where, len(value)))
            return "[REDACTED:named-secret]"
        return self._clean_value(value, line, where)

    def _clean_value(self, value: Any, line: int, where: str) -> Any:
        if isinstance(value, str):
            return self.text(value, line, where)
        if isinstance(value, list):
            return [self._clean_value(each, line, f"{where}.{i}") for i, each in enumerate(value)]
        if isinstance(value, dict):
            return self._clean_fields(value, frozenset(), line, where)
        return value

    def _replace_picture(self, value: Record) -> Record | None:
        """The block with its base64 replaced by its type and size; None for any other block."""
        made = ("result",) if value.get("type") == "image_generation_call" else ()
        for name in ("data", "base64", "image_url", *made):
            data = value.get(name)
            if isinstance(data, str) and len(data) > _IMAGE_CHARACTERS:
                head, comma, rest = data.partition(",")
                has_head = bool(comma) and head.startswith("data:")
                body = rest if has_head else data
                if _BASE64.fullmatch(body):
                    name_field = head[5:].partition(";")[0] if has_head else "of some type"
                    kind = value.get("media_type") or name_field
                    self.images += 1
                    return {**value, name: f"[picture: {kind}, {len(body) * 3 // 4:,} bytes]"}
        return None

    def _find_spans(self, text: str) -> list[Span]:
        return find_secrets(text, self._custom)


def _is_value(name: str, value: str) -> bool:
    """Whether a field holds a secret and nothing else."""
    return names_a_secret(name) and is_secret(value, strength_of(name))


def _cookies_of(name: str, value: str) -> list[Span]:
    """The secret spans of a header or cookie with this name."""
    if "cookie" in name.lower() or (names_a_session(name) and holds_a_session(name, value)):
        return [(*span, "cookie") for span in find_in_field(name, value)]
    return []


def _is_numeric_password(name: str, value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) >= 100_000 and strength_of(name) is Strength.PASSWORD


def _compile(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise MonocontextError(f"not a regular expression: {pattern!r}: {error}") from None
