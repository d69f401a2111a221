"""Remove secrets from records, before anything leaves this machine.

The strings of a parsed record are searched, not its JSON, where escapes would hide a secret or a cut would break an
escape. Strings with escapes inside (JSON within a tool's result, `repr`s, URLs, coloured terminals) are also searched
with their escapes resolved, and so is text in base64, which is removed whole. Fields that tie records to each other
(ids, signatures of thinking) stay in their own places; elsewhere a field of the same name is searched.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from monocontext.errors import MonocontextError
from monocontext.sessions.records import Record
from monocontext.sessions.secret_search import find_secrets
from monocontext.sessions.secret_values import Strength, is_secret, names_a_secret, strength_of

_ENVELOPE = frozenset([
    "uuid", "parentUuid", "logicalParentUuid", "leafUuid", "sessionId", "requestId", "sourceToolUseID",
    "toolUseID", "agentId", "timestamp", "type", "version", "promptId", "messageId", "ordinal", "sha256",
])  # fmt: skip
"""Fields of a record that are not searched, if they hold no list or object."""
_MESSAGE = frozenset(["id", "model", "role", "type", "stop_reason"])
_BLOCK = frozenset(["id", "tool_use_id", "type", "signature"])
_PAYLOAD = frozenset(["id", "call_id", "type", "encrypted_content", "role"])
"""Texts that are not searched in a message, a block of its content, and a payload of Codex."""
_SIGNED = frozenset(("thinking", "redacted_thinking"))
_MOST_INLINE = 256
"""Characters. Longer base64 is replaced as a picture."""
_BASE64 = re.compile(r"[A-Za-z0-9+/=_\s-]+")


@dataclass(frozen=True, slots=True)
class Finding:
    """The kind and place of a secret that was taken out, without the secret."""

    kind: str
    line: int
    """Line of the transcript file, from 1."""
    where: str
    """Path of the field, such as `message.content.0.input.command`."""
    characters: int
    """Length of the secret."""

    def __str__(self) -> str:
        return f"line {self.line}: {self.kind} ({self.characters} characters) in {self.where}"


class Redactor:
    """Takes secrets out of the records of one session, and counts them. Not safe for use by several threads."""

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
        """The number of secrets of each kind."""
        return dict(sorted(Counter(finding.kind for finding in self.findings).items()))

    def sibling(self) -> Redactor:
        """A redactor for the same kinds of secrets, with counts of its own."""
        other = Redactor(enabled=self.enabled)
        other._custom = self._custom
        return other

    def record(self, record: Record, line: int = 0) -> Record:
        """A copy of a record without its secrets and pictures, or the record itself if redaction is off."""
        if not self.enabled:
            return record
        results: Record = {}
        for name, value in record.items():
            if name in _ENVELOPE and not isinstance(value, dict | list):
                results[name] = value
            elif name == "message" and isinstance(value, dict):
                results[name] = self._clean_message(value, line)
            elif name == "payload" and isinstance(value, dict):
                results[name] = self._clean_fields(value, _PAYLOAD, line, name)
            else:
                self._put_field(results, name, value, line, name)
        return results

    def text(self, text: str, line: int = 0, where: str = "text") -> str:
        """Text without its secrets."""
        if not self.enabled or not text:
            return text
        parts, done = [], 0
        for start, stop, kind in find_secrets(text, self._custom):
            parts += [text[done:start], f"[REDACTED:{kind}]"]
            self.findings.append(Finding(kind, line, where, stop - start))
            done = stop
        return "".join([*parts, text[done:]])

    def _clean_message(self, message: Record, line: int) -> Record:
        result = self._clean_fields({k: v for k, v in message.items() if k != "content"}, _MESSAGE, line, "message")
        if "content" in message:
            content = message["content"]
            if isinstance(content, list):
                result["content"] = [self._clean_block(b, line, f"message.content.{i}") for i, b in enumerate(content)]
            else:
                result["content"] = self._clean_value(content, line, "message.content")
        return result

    def _clean_block(self, block: Any, line: int, where: str) -> Any:
        if not isinstance(block, dict):
            return self._clean_value(block, line, where)
        if str(block.get("type")) in _SIGNED and block.get("signature"):
            # A signature holds for the whole block: a block without secrets stays as it is.
            return self._clean_fields(block, _BLOCK, line, where) if self._holds_secret(block) else block
        return self._clean_fields(block, _BLOCK - {"signature"}, line, where)

    def _holds_secret(self, block: Record) -> bool:
        return any(isinstance(v, str) and k != "signature" and find_secrets(v, self._custom) for k, v in block.items())

    def _clean_fields(self, value: Record, unchanged: frozenset[str], line: int, where: str) -> Record:
        if (picture := self._replace_picture(value)) is not None:
            return picture
        results: Record = {}
        name_field = value.get("name") or value.get("key")  # {"name": "x-api-key", "value": ...}
        name_field = name_field if isinstance(name_field, str) else ""
        for name, item in value.items():
            if name in unchanged and isinstance(item, str):
                results[name] = item
            elif name == "value" and isinstance(item, str) and _is_value(name_field, item):
                results[name] = self._remove(item, line, f"{where}.{name}")
            else:
                self._put_field(results, name, item, line, f"{where}.{name}")
        return results

    def _put_field(self, found: Record, name: str, value: Any, line: int, where: str) -> None:
        """Clean a field: its name may be a secret, and may say that its value is one."""
        clean = self.text(name, line, where[: -len(name)] + "(a name)")
        while clean in found:
            clean += "'"
        if (isinstance(value, str) and _is_value(name, value)) or _is_numeric_password(name, value):
            found[clean] = self._remove(value, line, where)
        elif isinstance(value, str) and "cookie" in name.lower():
            found[clean] = self.text(f"cookie: {value}", line, where).removeprefix("cookie: ")
        elif isinstance(value, list) and names_a_secret(name):
            found[clean] = [self._clean_item(name, item, line, f"{where}.{i}") for i, item in enumerate(value)]
        else:
            found[clean] = self._clean_value(value, line, where)

    def _clean_item(self, name: str, value: Any, line: int, where: str) -> Any:
        """An item of a list whose name says that its items are secrets."""
        if isinstance(value, str) and _is_value(name, value):
            return self._remove(value, line, where)
        return self._clean_value(value, line, where)

    def _remove(self, value: Any, line: int, where: str) -> str:
        """Note a secret that is a whole value; returns the mark in its place."""
        self.findings.append(Finding("named-secret", line, where, len(str(value))))
        return "[REDACTED:named-secret]"

    def _clean_value(self, value: Any, line: int, where: str) -> Any:
        if isinstance(value, str):
            return self.text(value, line, where)
        if isinstance(value, list):
            return [self._clean_value(item, line, f"{where}.{i}") for i, item in enumerate(value)]
        if isinstance(value, dict):
            return self._clean_fields(value, frozenset(), line, where)
        return value

    def _replace_picture(self, value: Record) -> Record | None:
        """The block with its base64 replaced by its type and size; None for any other block."""
        names = ["data", "base64", "image_url"]
        if value.get("type") == "image_generation_call":
            names.append("result")
        for name in names:
            data = value.get(name)
            if not isinstance(data, str) or len(data) <= _MOST_INLINE:
                continue
            kind, body = "of some type", data
            if data.startswith("data:") and "," in data:
                head, _, body = data.partition(",")
                kind = head.removeprefix("data:").partition(";")[0]
            if _BASE64.fullmatch(body):
                self.images += 1
                size = f"{len(body) * 3 // 4:,} bytes"
                return {**value, name: f"[picture: {value.get('media_type') or kind}, {size}]"}
        return None


def _is_value(name: str, value: str) -> bool:
    """Whether the whole value of a field is a secret."""
    return names_a_secret(name) and is_secret(value, strength_of(name))


def _is_numeric_password(name: str, value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) >= 100_000 and strength_of(name) is Strength.PASSWORD


def _compile(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise MonocontextError(f"not a regular expression: {pattern!r}: {error}") from None
