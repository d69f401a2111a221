"""Find values whose names say that they are secrets: `password=...`, `"apiKey": "..."`, `--token ...`. Does no I/O.

`secret_search` has found a word such as `token`. `_read_field` completes the name around it, judges the name, and finds
where the value begins. Then a finder for each form of a value tries, in a fixed order, until one knows the form.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from dataclasses import dataclass, replace

from monocontext.sessions import secret_field_patterns as patterns
from monocontext.sessions.secret_values import Secret, Strength, is_code, is_mixed, is_secret, looks_random, strength_of

_Part = tuple[int, int]  # start and stop of a value in the text
Finder = Callable[["_Field"], list[_Part] | None]
"""Returns the secrets in a value of its form, which may be none; None if the value has another form."""

_NAME_CHARACTERS = f"{string.ascii_letters}{string.digits}_-"
_NAME_BEFORE = 60  # characters before a word that are searched for the rest of its name
_QUALIFIER_BEFORE, _COMMAND_BEFORE = 20, 120  # characters before a name that are searched for either
_MOST_ITEMS = 200  # the most items of a list that are looked at after a name
_TYPE_WORDS = frozenset("str string int bool text varchar bytes secretstr any object number boolean".split())
_JUDGED_CHARACTERS = 128  # the beginning by which a value without quotes is judged: it may hold a hundred names


def find_named(text: str, start: int, stop: int) -> list[Secret]:
    """The secrets that belong to the name around the word from `start` to `stop`."""
    field = _read_field(text, start, stop)
    parts = _find_value(field, (_find_in_element, _find_in_pair, *_FINDERS)) if field else []
    return [Secret(*part, "named-secret") for part in parts]


def _find_value(field: _Field, finders: tuple[Finder, ...]) -> list[_Part]:
    """The spans of secrets in the value of a field, by the first finder that knows its form."""
    return next((spans for find in finders if (spans := find(field)) is not None), [])


@dataclass(slots=True)
class _Field:
    """A name in a text and the place where its value begins. Offsets are characters of the text."""

    text: str
    name: str
    name_start: int
    name_end: int
    is_upper: bool  # the name has no small letters
    is_option: bool  # the name begins with a dash
    strength: Strength
    is_password: bool  # the strength is that of a password
    before: str  # the character before the name; empty at the beginning of the text
    closing: str  # the quote or bracket that ends the name
    separator: str  # the text between name and value, such as `=`; empty or a space if there is none
    value_start: int  # of its opening quote, if it has one
    is_tight: bool  # written as `name=value`, without blanks or a type

    def follows_command(self) -> bool:
        """Whether the text before the name is a command that takes a name and a value, such as `export`."""
        start = max(0, self.name_start - _COMMAND_BEFORE)
        return patterns.COMMAND.regex.search(self.text, start, self.name_start) is not None


def _read_field(text: str, start: int, stop: int) -> _Field | None:
    """The field whose name has the word from `start` to `stop`; None if the name is not that of a secret."""
    word = text[start:stop]
    after = patterns.AFTER_WORD.regex.match(text, stop)
    if after is None:
        return None
    head = text[max(0, start - _NAME_BEFORE) : start]
    may_continue = not word.isascii() or head[-1:].isascii()
    prefix = head[len(head.rstrip(_NAME_CHARACTERS)) :] if may_continue else ""
    name_start = start - len(prefix)
    name = prefix + word + after["rest"]
    if qualifier := patterns.QUALIFIER.regex.search(text, max(0, name_start - _QUALIFIER_BEFORE), name_start):
        name = qualifier[0].replace(" ", "_") + name
    strength = strength_of(name)
    if strength is Strength.NONE or (name == "PASS" and after["sep"] != "="):  # `PASS` in the report of a test
        return None
    closed_at = after.end("prompt" if after["prompt"] else "close")
    return _Field(
        text=text, name=name, name_start=name_start, name_end=after.end("rest"), is_upper=name.upper() == name,
        is_option=prefix.startswith("-"), strength=strength, is_password=strength is Strength.PASSWORD,
        before=text[name_start - 1 : name_start], closing=after["close"], separator=after["sep"], value_start=after.end(),
        is_tight=after["sep"] == "=" and after.start("sep") <= closed_at and after.end("sep") >= after.end(),
    )  # fmt: skip


def _find_in_element(field: _Field) -> list[_Part] | None:
    """The secret in an element of XML that the name opens: `<password>value</password>`."""
    may_be_tag = field.before in ("<", "/", ":", '"', "'", ".")
    follows_tag = may_be_tag and "<" in field.text[max(0, field.name_start - 60) : field.name_start]
    element = patterns.ELEMENT.regex.match(field.text, field.name_end) if follows_tag else None
    return _secret_in(element, field) or None


def _find_in_pair(field: _Field) -> list[_Part] | None:
    """The secret after a name that is itself a value, as in `"name": "password", "value": "..."`."""
    following = field.text[field.value_start : field.value_start + 1]
    has_value = field.separator not in ("", " ", ">", ",", "(") and following not in ("", "\n")
    if has_value and field.before not in ('"', "'"):
        return None
    gap = patterns.PAIR_GAP.regex.match(field.text, field.name_end)
    if not gap:
        return [] if field.separator == ">" else None
    if gap[0].startswith("</"):
        return _secret_in(patterns.ELEMENT_TEXT.regex.match(field.text, gap.end()), field)
    return _find_value(replace(field, value_start=gap.end(), separator=":", closing=""), _FINDERS)


def _secret_in(match: re.Match[str] | None, field: _Field) -> list[_Part]:
    """The span of the value in a match, as a list; empty if there is no match, or if the value does not look secret."""
    return [match.span("value")] if match and is_secret(match["value"], field.strength, is_sure=False) else []


def _find_quoted(field: _Field) -> list[_Part] | None:
    """The secret in quotes after the name: `token = "value"`."""
    quoted = patterns.QUOTED.regex.match(field.text, field.value_start)
    # A comma separates name and value only in the arguments of a call or command.
    before = field.text[max(0, field.name_start - 9) : max(0, field.name_start - 1)].rstrip()
    is_argument = field.closing and (before.endswith("(") or field.is_option)
    if not quoted or (field.separator == "," and not is_argument):
        return [] if field.separator in (",", "(") else None
    value = quoted["value"]
    if value.startswith((" ", "%")) or not _belongs(value, field):
        return []
    is_sure = field.separator == "=" and field.is_upper and field.text[field.value_start - 1] == "="
    return [quoted.span("value")] if is_secret(value.rstrip("\\"), field.strength, is_sure=is_sure) else []


def _belongs(value: str, field: _Field) -> bool:
    """Whether a value in quotes belongs to the name even if a blank, `(`, `|` or a word such as `is` separates them."""
    may_be_password = is_mixed(value) and not any(c in value for c in ":(\\") and not field.name.endswith("pass")
    if field.separator == " ":
        return field.follows_command() or (field.is_password and (field.is_upper or may_be_password))
    return may_be_password or not (field.separator in ("(", " |") or field.separator[:1].isalpha())


def _find_listed(field: _Field) -> list[_Part] | None:
    """The secrets in a list after the name: `tokens = ["value", "value"]`."""
    may_be_list = field.separator in (":", "=", ":=", "=>")
    list_start = patterns.LIST_START.regex.match(field.text, field.value_start) if may_be_list else None
    if not list_start:
        return None
    spans, offset = [], list_start.end()
    for _ in range(_MOST_ITEMS):
        item = patterns.LIST_ITEM.regex.match(field.text, offset)
        if not item:
            break
        is_quoted = item["value"] is not None
        value = item["value"] or item["bare"]
        is_token = is_secret(value, min(field.strength, Strength.TOKEN), is_quoted=is_quoted)
        if is_token or (is_mixed(value) and is_secret(value, field.strength, is_quoted=is_quoted, is_sure=False)):
            spans.append(item.span("value" if is_quoted else "bare"))
        offset = item.end()
    return spans


def _find_in_prose(field: _Field) -> list[_Part] | None:
    """A word that looks random in prose, `the password a3F9... of`, or after an option of an unknown command."""
    is_call = field.is_option and field.before in ("", " ", "\t", "'", '"', "[", ",")
    if field.separator not in ("", " ") or is_call or field.follows_command():
        return None
    word = patterns.PROSE_WORD.regex.match(field.text, field.value_start)
    may_be_secret = field.is_password and not field.name.endswith("pass")
    return [word.span("value")] if word and may_be_secret and looks_random(word["value"], 9) else []


def _find_on_lines(field: _Field) -> list[_Part] | None:
    """The value on the line after YAML's `password: |`, or words with a digit: `password: sunny garden 1987`."""
    if block := patterns.YAML_BLOCK.regex.match(field.text, field.value_start):
        is_token = is_secret(block["value"], min(field.strength, Strength.TOKEN), is_quoted=False)
        return [block.span("value")] if is_token else []
    may_be_phrase = field.is_password and field.separator in (":", "：")
    phrase = patterns.WORDS.regex.match(field.text, field.value_start) if may_be_phrase else None
    return (_secret_in(phrase, field) or None) if phrase and any(map(str.isdigit, phrase[0])) else None


def _find_bare(field: _Field) -> list[_Part]:
    """The secret without quotes in settings, a command, a URL or prose: `token=value`. Accepts any form: tried last."""
    match = patterns.BARE.regex.match(field.text, field.value_start)
    if not match:
        return []
    fills_line = _fills_line(field, match.end())
    value = _without_end(_cut_off_next(match["value"], field, fills_line))
    is_type = value.lower() == field.name.lower() or value.lower() in _TYPE_WORDS
    if is_type or is_code(value.partition(",")[0]):
        return []
    is_number = field.is_password and field.separator == ":" and value.isdecimal() and len(value) >= 6  # in JSON
    is_value_secret = is_number or _is_bare_secret(value, field, fills_line)
    return [(match.start(), match.start() + len(value))] if is_value_secret else []


_FINDERS: tuple[Finder, ...] = (_find_quoted, _find_listed, _find_in_prose, _find_on_lines, _find_bare)


def _is_bare_secret(value: str, field: _Field, fills_line: bool) -> bool:
    """Whether a value without quotes is a secret. Its context counts: `TOKEN=users` is one, `token: users` is not."""
    is_connection = field.before == ";" and "://" not in field.text[max(0, field.name_start - 300) : field.name_start]
    is_parameter = field.before in ("?", "&", ";", "#") and not is_connection  # of a URL
    is_variable = field.is_tight and field.is_upper  # of an environment
    is_setting = fills_line and (field.separator in (":", "：", "") or field.is_tight)
    strength = max(field.strength, Strength.TOKEN) if is_parameter else field.strength
    if strength is Strength.TOKEN and is_variable and not is_code(value) and len(value) >= 8:
        strength = Strength.PASSWORD
    is_sure = is_variable or (field.is_tight and field.before in ("?", "&")) or (is_setting and field.is_password)
    begin = value[:_JUDGED_CHARACTERS]
    if len(begin) < len(value):  # the cut may leave less of a part between dots than a token has
        begin = begin.rpartition(".")[0] or begin
    forms = {begin, _without_end(begin.partition("&")[0])}  # what follows a `&` may be a further parameter
    return any(is_secret(form, strength, is_quoted=False, is_sure=is_sure) for form in forms)


def _fills_line(field: _Field, end: int) -> bool:
    """Whether a name and its value, which ends at `end`, are alone on their line, as in a file of settings."""
    line_start = field.text.rfind("\n", max(0, field.name_start - 200), field.name_start) + 1
    head = field.text[max(line_start, field.name_start - 100) : field.name_start]
    following = field.text[end : end + 2]
    ends_line = following[:1] in ("", "\n", "\r") or following in (" \n", "  ", " #")
    return ends_line and patterns.LINE_START.regex.match(head) is not None


def _cut_off_next(value: str, field: _Field, fills_line: bool) -> str:
    """A value without the next parameter, command or tag, which may follow without a blank."""
    if field.before == ";":
        return re.split(r"[;)<>\]\\]", value)[0]
    if field.before in ("?", "&", "#"):
        return re.split(r"^&|&(?=[\w.%\[\]-]{1,60}=)|[;#)<>\]\\]", value)[0]
    return value if fills_line else re.split(r"^&|[;|<>]", value)[0]  # a `&` later on may be part of a password


def _without_end(value: str) -> str:
    """A value without the punctuation at its end, of a sentence, a program or Markdown."""
    return value.rstrip(",;.\\)}]").removesuffix("**")
