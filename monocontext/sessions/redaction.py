"""Remove secrets from records, before anything leaves this machine.

The strings of a parsed record are searched, not its JSON, where escapes would hide a secret. Fields that tie records
to each other (ids, signatures of thinking) stay unchanged, but only where agents write them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from monocontext.errors import MonocontextError
from monocontext.sessions.records import Record
from monocontext.sessions.secret_search import find_secrets
from monocontext.sessions.secret_values import Strength, is_mixed, is_secret, strength_of

_Path = tuple[str | int, ...]  # names of fields and offsets in lists; not joined, since a name may hold a dot
_UNCHANGED: dict[_Path, frozenset[str]] = {  # fields that are not searched if they hold no list or object
    (): frozenset([
        "uuid", "parentUuid", "logicalParentUuid", "leafUuid", "sessionId", "requestId", "sourceToolUseID",
        "toolUseID", "agentId", "timestamp", "type", "version", "promptId", "messageId", "ordinal", "sha256"]),
    ("message",): frozenset(["id", "model", "role", "type", "stop_reason"]),
    ("payload",): frozenset(["id", "call_id", "type", "encrypted_content", "role"])}  # fmt: skip
_UNCHANGED_IN_BLOCK = frozenset(["id", "tool_use_id", "type"])  # of a message's content
_SEALS = {"thinking": "signature", "redacted_thinking": "data"}  # the field that signs a block, which must stay whole
_MOST_INLINE_CHARACTERS = 256  # longer base64 is replaced as a picture
_MOST_ARGUMENT = 200  # characters; a longer argument of a command is a script, which is searched by itself
_OPTION = re.compile(r"--?[A-Za-z]\S*")  # `-u` or `--user=x` of a command; not `-removed line` of a diff
_BASE64 = re.compile(r"[A-Za-z0-9+/=_\r\n-]+")
_MEDIA_TYPE = re.compile(r"[a-z]{1,20}/[a-z0-9.+-]{1,40}")  # image/svg+xml


@dataclass(frozen=True, slots=True)
class Finding:
    """The kind, location and length of a secret that was removed, without the secret itself."""

    kind: str
    line: int  # line of the transcript file, from 1
    where: str  # path of the field, such as `message.content.0.input.command`
    characters: int  # length of the secret

    def __str__(self) -> str:
        return f"line {self.line}: {self.kind} ({self.characters} characters) in {self.where}"


class Redactor:
    """Removes secrets from the records of one session, and lists them in `findings`. Not safe for threads."""

    def __init__(self, patterns: Iterable[str] = (), *, enabled: bool = True) -> None:
        """`patterns`: regular expressions for the user's own secrets. Raises `MonocontextError` if one is invalid."""
        self.enabled = enabled
        self.findings: list[Finding] = []
        try:
            self._custom = [re.compile(pattern) for pattern in patterns]
        except re.error as error:
            raise MonocontextError(f"not a regular expression: {error.pattern!r}: {error}") from None

    def record(self, record: Record, line: int = 0) -> Record:
        """A copy of a record without its secrets and pictures, or the record itself if redaction is off."""
        return self._clean_fields(record, line, ()) if self.enabled else record

    def text(self, text: str, line: int = 0, where: str = "text") -> str:
        """`text` with `[REDACTED:kind]` for each secret, noted in `findings`; unchanged if redaction is off."""
        if not self.enabled or not text:
            return text
        parts, done = [], 0
        for start, stop, kind in find_secrets(text, self._custom):
            parts += [text[done:start], f"[REDACTED:{kind}]"]
            self.findings.append(Finding(kind, line, where, stop - start))
            done = stop
        return "".join([*parts, text[done:]])

    def _clean_fields(self, fields: Record, line: int, path: _Path) -> Record:
        """An object without its secrets. A field's name may be a secret itself, or say that the value is one."""
        count_before = len(self.findings)
        is_block = path[:2] == ("message", "content") and len(path) == 3 and isinstance(path[2], int)
        unchanged = _UNCHANGED_IN_BLOCK if is_block else _UNCHANGED.get(path, frozenset())
        seal = _SEALS.get(str(fields.get("type")), "") if is_block else ""
        # In {"Name": "x-api-key", "Value": ...} one field names the value of another.
        names = [value for name, value in fields.items() if name.lower().endswith(("name", "key"))]
        value_name = max((name for name in names if isinstance(name, str)), key=strength_of, default="")
        results: Record = {}
        for name, value in fields.items():
            if (name in unchanged or name == seal == "signature") and not isinstance(value, dict | list):
                results[name] = value
                continue
            clean_name = self.text(name, line, ".".join(map(str, (*path, "(a name)"))))
            while clean_name in results:
                clean_name += "'"
            judged_name = value_name if name.lower().endswith("value") and not strength_of(name) else name
            picture = "" if name == seal else _describe_picture(fields, name)
            results[clean_name] = picture or self._clean_value(judged_name, value, line, (*path, name))
        return fields if fields.get(seal) and len(self.findings) == count_before else results

    def _clean_value(self, name: str, value: Any, line: int, path: _Path) -> Any:
        """The value of a field without its secrets. `name`: of the field, also for an item of its list."""
        if isinstance(value, dict):
            return self._clean_fields(value, line, path)
        if isinstance(value, list):
            return self._clean_list(name, value, line, path)
        where, strength = ".".join(map(str, path)), strength_of(name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) >= 100_000
        is_named = isinstance(value, str) and strength >= Strength.TOKEN and is_secret(value, strength)
        if is_named or (is_number and strength is Strength.PASSWORD):  # the whole value is a secret
            self.findings.append(Finding("named-secret", line, where, len(str(value))))
            return "[REDACTED:named-secret]"
        if isinstance(value, str) and "cookie" in name.lower():
            return self.text(f"cookie: {value}", line, where).removeprefix("cookie: ")
        return self.text(value, line, where) if isinstance(value, str) else value

    def _clean_list(self, name: str, items: list[Any], line: int, path: _Path) -> list[Any]:
        """The items of a list without their secrets. In a command or a pair, an item may name the next as a secret."""
        results = [self._clean_value(name, item, line, (*path, i)) for i, item in enumerate(items)]
        if not all(isinstance(item, str) for item in items):
            return results
        is_command = any(map(_OPTION.fullmatch, items))
        separator = " " if is_command else ": "
        words = [f"'{item}'" if " " in item else item for item in results]
        secrets = find_secrets(separator.join(words), self._custom) if is_command or len(items) == 2 else []
        start = 0  # of the item's word in the joined text
        for i, (item, word) in enumerate(zip(items, words, strict=True)):
            stop = start + len(word)
            following = bisect_right(secrets, start, key=lambda secret: secret.stop)
            kind = next((secret.kind for secret in secrets[following : following + 1] if secret.start < stop), "")
            if kind and results[i] == item and len(item) <= _MOST_ARGUMENT and (is_command or is_mixed(item)):
                self.findings.append(Finding(kind, line, ".".join(map(str, (*path, i))), len(item)))
                results[i] = f"[REDACTED:{kind}]"
            start = stop + len(separator)
        return results


def _describe_picture(fields: Record, name: str) -> str:
    """A text such as `[picture: image/png, 9,000 bytes]` to replace base64 in a field; empty if the field has none."""
    data = fields[name]
    is_result = name == "result" and fields.get("type") == "image_generation_call"
    if not isinstance(data, str) or len(data) <= _MOST_INLINE_CHARACTERS:
        return ""
    head, _, body = data.partition(",") if data.startswith("data:") else ("", "", data)
    if not (head or is_result or name in ("data", "base64", "image_url")) or not _BASE64.fullmatch(body):
        return ""
    media = str(fields.get("media_type") or head.removeprefix("data:").partition(";")[0])
    return f"[picture: {media if _MEDIA_TYPE.fullmatch(media) else 'of some type'}, {len(body) * 3 // 4:,} bytes]"
