"""Translate the regular expressions of grep to those of Python. Pure."""

from __future__ import annotations

import re

_CLASSES = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "blank": r" \t", "cntrl": r"\x00-\x1f\x7f", "digit": "0-9",
    "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r"\s", "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_CLASS = re.compile(r"\[:(\w+):\]")
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\[:\w+:\]|[^\]])*\]|.", re.DOTALL)
_ESCAPES = {r"\<": r"\b(?=\w)", r"\>": r"\b(?<=\w)", r"\`": r"\A", r"\'": r"\Z"}
_ESCAPES |= {escape: escape for escape in (rf"\{letter}" for letter in "bBwWsS123456789")}
_TWO_REPEATS = re.compile(r"[*+?}][*+?]")  # in Python, such a repeat is lazy or possessive
_NO_INTERVAL = re.compile(r"\{(?!(?:\d+(?:,\d*)?|,\d+)\})")


def from_posix(pattern: str, *, extended: bool) -> str:
    """A pattern of `grep`, or with `extended` of `grep -E`.

    Raises `re.error` for some that are wrong, and for some that Python reads in another way.
    """
    tokens = _TOKEN.findall(pattern)
    operators = [_operator(token, extended) for token in tokens]
    shape = "".join(operator or token.strip("{}") for operator, token in zip(operators, tokens, strict=True))
    if tokens[-1:] == ["\\"] or "[" in tokens or _TWO_REPEATS.search(shape):
        raise re.error("not a pattern of Python")
    if not extended and _NO_INTERVAL.search(shape):
        raise re.error("no interval")
    parts = []
    padded = ["|", *operators, "|"]
    for token, before, operator, after in zip(tokens, padded, operators, padded[2:], strict=False):
        is_inside = before not in ("(", "|") if operator == "^" else after not in (")", "|")
        is_character = not extended and operator in ("^", "$") and is_inside
        if operator and not is_character:
            parts.append(operator)
        elif token[0] == "[":
            parts.append(_bracket(token))
        else:
            parts.append(_ESCAPES.get(token) or re.escape(token[-1]))
    return "".join(parts)


def _operator(token: str, extended: bool) -> str:
    """The operator that a token is; empty for a character."""
    if token in ("*", "^", "$", "."):
        return token
    is_operator = token[-1] in "(){}|+?" and len(token) == (1 if extended else 2) and token[0] in (token[-1], "\\")
    return token[-1] if is_operator else ""


def _bracket(token: str) -> str:
    r"""A bracket expression: in those of POSIX, `\` is a character."""
    body = token[1:-1]
    if not _CLASSES.keys() >= set(_CLASS.findall(body)):
        raise re.error("a class that POSIX does not have")
    negated = "^" if body.startswith("^") else ""
    parts = _CLASS.split(body.removeprefix("^"))
    parts[::2] = [re.sub(r"([\\\[\]&~|^])", r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [_CLASSES[name] for name in parts[1::2]]
    return f"[{negated}{''.join(parts)}]"


def from_perl(pattern: str) -> str:
    """A pattern of `grep -P` or `rg`, with the classes that Python lacks."""
    return _CLASS.sub(lambda match: _CLASSES.get(match[1], match[0]), pattern).replace(r"\h", r"[ \t]")
