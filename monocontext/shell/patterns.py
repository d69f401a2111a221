"""Translate the regular expressions of grep to those of Python. Pure."""

from __future__ import annotations

import re

KEPT_GROUP = "kept"
"""The group of what `grep -o` prints, in a pattern that has it."""
_CLASSES = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "blank": r" \t", "cntrl": r"\x00-\x1f\x7f", "digit": "0-9",
    "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r"\s", "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_CLASS = re.compile(r"\[:(\w+):\]")
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\[:\w+:\]|[^\]])*\]|.", re.DOTALL)
_NO_INTERVAL = re.compile(r"(?<!\\)(?:\\\\)*\\\{(?!(?:\d+(?:,\d*)?|,\d+)\\\})")
_ESCAPES = {r"\<": r"\b(?=\w)", r"\>": r"\b(?<=\w)", r"\`": r"\A", r"\'": r"\Z"}
_ESCAPES |= {escape: escape for escape in (rf"\{letter}" for letter in "bBwWsS123456789")}


def from_posix(pattern: str, *, extended: bool) -> str:
    """A pattern of `grep`, or with `extended` of `grep -E`. Raises `re.error`."""
    tokens = _TOKEN.findall(pattern)
    if tokens[-1:] == ["\\"]:
        raise re.error("Trailing backslash")
    if "[" in tokens:
        raise re.error("Unmatched [, [^, [:, [., or [=")
    if not extended and _NO_INTERVAL.search("".join(token for token in tokens if token[0] != "[")):
        raise re.error("Unmatched \\{, or invalid content of \\{\\}")
    operators = [_operator(token, extended) for token in tokens]
    result: list[str] = []
    depth = 0
    for token, operator, after in zip(tokens, operators, [*operators, ")"][1:], strict=True):
        begins = not result or result[-1] in ("(", "|")
        literal = {")": not depth} if extended else {"^": not begins, "$": after not in (")", "|")}
        if operator in ("*", "+", "?") and (begins or result[-1] == "^"):
            result.append("" if extended and begins else rf"\{operator}")
        elif operator == "*" and result[-1] in ("*", "+", "?"):
            continue
        elif literal.get(operator) or (operator == "{" and begins):
            result.append(rf"\{operator}")
        elif operator:
            depth += (operator == "(") - (operator == ")")
            result.append(operator)
        elif len(token) > 1 and token[0] == "[":
            result.append(_bracket(token))
        else:
            result.append(_ESCAPES.get(token) or re.escape(token[-1]))
    return "".join(result)


def _operator(token: str, extended: bool) -> str:
    """The operator that a token is; empty for a character."""
    if token in ("*", "^", "$", "."):
        return token
    is_operator = token[-1] in "(){}|+?" and len(token) == (1 if extended else 2) and token[0] in (token[-1], "\\")
    return token[-1] if is_operator else ""


def _bracket(token: str) -> str:
    r"""A bracket expression: in those of POSIX, `\` is a character."""
    body = token[1:-1]
    if unknown := [name for name in _CLASS.findall(body) if name not in _CLASSES]:
        raise re.error(f"Invalid character class name {unknown[0]!r}")
    negated = "^" if body.startswith("^") else ""
    parts = _CLASS.split(body.removeprefix("^"))
    parts[::2] = [re.sub(r"([\\\[\]&~|^])", r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [_CLASSES[name] for name in parts[1::2]]
    return f"[{negated}{''.join(parts)}]"


def with_classes(pattern: str) -> str:
    """A pattern of `grep -P` or `rg`: the classes of POSIX in it are replaced."""
    return _CLASS.sub(lambda match: _CLASSES.get(match[1], match[0]), pattern).replace(r"\h", r"[ \t]")


def with_kept(pattern: str) -> str:
    r"""A pattern in which what follows `\K`, which Python lacks, is the group `KEPT_GROUP`."""
    outside = re.sub(r"\([^()]*\)", "", pattern)
    before, _, after = pattern.partition(r"\K")
    return f"{before}(?P<{KEPT_GROUP}>{after})" if r"\K" in outside and "|" not in outside else pattern
