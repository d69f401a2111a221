"""Find values whose name says that they are secrets: `password=...`, `"apiKey": "..."`, `--token ...`. Pure.

A search has found a word such as `token`. The name around it is completed, and the forms in which a value may follow
are tried in turn: XML, quotes, a list, an option of a command, indented lines, the rest of a line. `secret_names`
judges the name and the value.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass

from monocontext.sessions.secret_names import Strength, is_code, is_mixed, is_secret, looks_random, strength_of

Span = tuple[int, int]

_MARGIN = r"(?:[+-]|[ ]{0,7}\d{1,6}(?:[:\t|\u2192]))?"
"""What a diff or a listing puts before a line."""
# What may follow the word that was found, up to the value.
_AFTER = re.compile(
    # The rest of the name: `_key` after `secret`.
    r"(?P<rest>(?i:(?:[^\W是はが为為]|-){0,40}+(?:[ ](?:access[ ]key|key|token|code|passe?|phrase|khẩu|id)\b){0,2}))"
    # What closes the name, such as a quote.
    r"(?P<close>(?:\[\w{0,4}\])?(?:\\{0,7}[\"'`])?(?:\*\*)?[)\]]?)"
    # An addition, as in `Password (again):` or `Password for 'bob':`.
    r"(?P<prompt>[ ]?\[[^\]\n]{0,40}\]|[ ]?\([^)\n]{0,40}\)|[ ](?i:for|of|to|от|для|von|für|fuer|de|para|pour|per)[ ][^\n:：=\"',;(){}%]{0,80}(?:'[^'\n]{0,200}')?)?"
    # A type, as in `password: str = ...`.
    r"(?P<type>[ ]{0,3}:[ ]?(?:&(?:'\w{1,20} )?)?[A-Za-z_][\w.|\[\]? ]{0,40}?(?=[ ]?=[ ]?[\"'])|[ ](?:string|String|str)(?=[ ]=))?"
    # What separates the name from its value.
    r"[ \t]{0,40}(?P<sep>:=|=>|[!=?]?={1,3}|\|\|=?|\?\?|\?:|[ ]\|(?=[ ])|:{1,2}(?!=)|：|＝|,(?=[ ]?\\{0,7}[\"'])|\((?=\\{0,7}[\"'])|>|是|は|は、|为|"
    r"(?i:is|ist|es|est|è|é|jest|är|er|on)[ ]?:?(?=[ ][\"'`:]?\S)|[ ](?=\\{0,7}[\"'`])|(?=\s|</))(?:\*\*)?[ \t]{0,40}"
)
_QUOTED = re.compile(
    r"(?:[rbufLRBUFN@$]{0,2}|(?:new )?(?:b64decode|SecretStr|SecureString|String|Some|Secret)\()(?P<quote>\\{0,7}(?:\"\"\"|'''|[\"'`]))"
    r"(?P<value>[A-Za-z0-9+/_.-]{200,20000}+={0,2}(?=(?P=quote))|(?:(?!(?P=quote))[^\n]){1,500})(?P=quote)"
)
_BARE = re.compile(r"(?P<value>[^\s\"'`]{1,400}+[A-Za-z0-9+/=_.-]{0,2000})")
# Words to the end of the line.
_PHRASE = re.compile(
    r"(?P<value>[^\s\"'`(){}<>\[\]=,;:]{2,30}(?:[ ][^\s\"'`(){}<>\[\]=,;:]{2,30}){1,7})[ \t\r]*(?:$|\n)"
)
# YAML: `password: |` or `password:`, and the value on the next line.
_BLOCK = re.compile(
    r"[|>][+-]?\d?[ \t]*\n" + _MARGIN + r"[ \t]{1,60}(?P<value>[^\s\"'`]{4,2000})(?=[ \t\r]*(?:$|[\n\"'\\]))"
)
_NEXT_LINE = re.compile(
    r"[ \t]*\n" + _MARGIN + r"[ \t]{1,60}(?P<value>[^\s\"'`:{}\[\]()]{4,2000})(?=[ \t\r]*(?:$|[\n\"'\\]))"
)
# The beginning of a list, and one of its items.
_LIST = re.compile(
    r"\[|[{(](?=\s{0,80}[\"'][^\"'\n]{1,500}[\"']\s{0,20}[,})])|(?=[ \t\r]{0,80}\n" + _MARGIN + r"[ \t]{0,60}-[ \t])"
)
_ITEM = re.compile(
    r"[ \t,]{0,200}(?:\r?\n"
    + _MARGIN
    + r"\s{0,200})?(?:-[ \t]{1,4})?(?:\\{0,7}[\"'`](?P<quoted>[^\"'`\n\\]{1,500})\\{0,7}[\"'`]|(?P<bare>(?!#)[^\s\"'`,\]\[{}:]{8,500})(?=[\s,\]\"'\\]|$))"
)
# From a name that is itself a value to the secret: `"name": "password", "value": `, `<key>password</key><string>`.
_BRIDGE = re.compile(
    r"(?:\\{0,7}[\"'])?[ \t,/]{0,80}(?:(?<=[\"', \t/])|\r?\n"
    + _MARGIN
    + r"\s{0,60})(?:-{2}|\\{0,7}[\"'])?(?i:value|default|content|secretstring|data|secret-string|body)\\{0,7}[\"']?\s{0,10}[:=]?\s{0,10}"
    r"|\\{0,7}[\"']\s{0,4}\{[^{}]{0,400}?\b(?:default|value)\s{0,10}=\s{0,10}"
    r"|\\{0,7}[\"']\s{0,4}:\s{0,4}\{[^{}]{0,200}?\\{0,7}[\"'](?i:value|default)\\{0,7}[\"']\s{0,4}:\s{0,4}"
    r"|</(?i:key|name)>\s{0,40}" + _MARGIN + r"\s{0,40}<(?i:string|value)>"
)
_XML = re.compile(
    r"(?:[\"' ][^<>\n]{0,80})?>\s{0,40}"
    + _MARGIN
    + r"\s{0,40}(?:<!\[CDATA\[)?(?P<value>[^<>\s]{3,500})(?:\]\]>)?\s{0,40}</"
)
_XML_VALUE = re.compile(r"(?P<value>[^<>\s]{3,500})</")
_CALLED = re.compile(r"[:(\\]")
# A word after a name, with an option or a digit between them.
_WORD = re.compile(r"(?:--?[a-z]{1,12}[ =]|\d[ ])?(?P<value>[A-Za-z0-9!@#$%^&*+=.?-]{9,100})(?=[\s\"'`,;]|$)")
_NAME_CHARACTERS = f"{string.ascii_letters}{string.digits}_-"
# A word before the name that belongs to it: `api key`, `mot de passe`.
_QUALIFIER = re.compile(
    r"(?i:\b(?:api|secret|access|private|auth|access[ ]key|signing|encryption|app|client|account|license)|mot[ ]de|kata|mật)[ .]$"
)
# An option, or a command that takes a name and a value: `export NAME VALUE`, `login USER PASSWORD`.
_COMMAND_BEFORE = re.compile(
    r"(?i:(?<![\w-])-{1,2}[\w-]*|\b(?:setenv|env|export|arg|set[ ]-\w{1,3}|set|config:set|configure[ ]set|config[ ]set|secret[ ]set|login[ ]\S{1,100}|user(?:name)?[ ]\S{1,100})[ \t]+[\w.:/-]*)$"
)
# The beginning of a line of settings, also in a listing or a diff.
_LINE_START = re.compile(r"(?:[+>|-][ \t]*)?(?:\d{1,6}(?:\t|[ ]*[:|\u2192-])[ \t]*)?[\w\t \"'*+>.$:/-]{0,100}$")
_TYPE_WORDS = frozenset(
    ["str", "string", "int", "bool", "text", "varchar", "bytes", "secretstr", "any", "object", "number", "boolean"]
)
_MOST_ITEMS = 200
"""The most items of a list that are looked at after a name."""


@dataclass(slots=True)
class _Field:
    """A name in a text, and the place of its value."""

    text: str
    begin: int
    """Offset of the name."""
    name: str
    is_option: bool
    """Whether the name begins with a dash."""
    strength: Strength
    end: int
    """Offset after the name."""
    closing: str
    """The quote or bracket that ends the name."""
    separator: str
    """The text between name and value, such as `=`; empty or a space if there is none."""
    value_at: int
    """Offset of the value, its quote included."""
    has_space_before: bool
    """Whether blanks or a type come between the name and the separator."""
    has_space_after: bool
    """Whether blanks come between the separator and the value."""

    @property
    def before(self) -> str:
        """The character before the name; empty at the beginning of the text."""
        return self.text[self.begin - 1 : self.begin]

    @property
    def is_upper(self) -> bool:
        return self.name.upper() == self.name

    @property
    def is_tight(self) -> bool:
        """Whether it is written as `name=value`, without blanks."""
        return self.separator == "=" and not self.has_space_before and not self.has_space_after

    def follows_command(self) -> bool:
        """Whether the text before the name is a command that takes a name and a value, such as `export`."""
        return _COMMAND_BEFORE.search(self.text, max(0, self.begin - 120), self.begin) is not None


def find_named(text: str, start: int, stop: int) -> list[Span]:
    """The spans of secrets that belong to the name around the word from `start` to `stop`."""
    field = _read_name(text, start, stop)
    if field is None:
        return []
    is_xml = field.before in ("<", "/", ":", '"', "'", ".") and "<" in text[max(0, field.begin - 60) : field.begin]
    element = _XML.match(text, field.end) if is_xml else None
    if element and is_secret(element["value"], field.strength):
        return [element.span("value")]
    # The name may itself be a value, with the secret in the next field.
    if (
        field.separator in ("", " ", ">", ",", "(")
        or field.before in ('"', "'")
        or text[field.value_at : field.value_at + 1] in ("", "\n")
    ):
        bridge = _BRIDGE.match(text, field.end)
        if bridge and bridge[0].startswith("</"):
            element = _XML_VALUE.match(text, bridge.end())
            return [element.span("value")] if element and is_secret(element["value"], field.strength) else []
        if bridge:
            field.value_at, field.separator, field.closing = bridge.end(), ":", ""
        elif field.separator == ">":
            return []
    # A comma separates name and value only in the arguments of a call or command.
    is_argument = field.closing and (text[field.begin - 2 : field.begin - 1] == "(" or field.is_option)
    if field.separator == "," and not is_argument:
        return []
    for find in (_find_quoted, _find_listed, _find_after_blank, _find_indented, _find_phrase, _find_bare):
        spans = find(field)
        if spans is not None:
            return spans
    return []


def _read_name(text: str, start: int, stop: int) -> _Field | None:
    """The name around a word, with its separator; None if it does not say that its value is a secret."""
    after = _AFTER.match(text, stop)
    if after is None:
        return None
    head = text[max(0, start - 60) : start]
    left = head[len(head.rstrip(_NAME_CHARACTERS)) :] if not text[start:stop].isascii() or head[-1:].isascii() else ""
    begin = start - len(left)
    name = left + text[start:stop] + after["rest"]
    if qualifier := _QUALIFIER.search(text, max(0, begin - 20), begin):
        name = qualifier[0].replace(" ", "_") + name
    strength = strength_of(name)
    if strength is Strength.NONE or (name == "PASS" and after["sep"] != "="):  # `PASS` in the report of a test
        return None
    return _Field(
        text, begin, name, left.startswith("-"), strength, after.end("rest"), after["close"], after["sep"], after.end(),
        has_space_before=after.start("sep") != after.end("prompt" if after["prompt"] else "close"),
        has_space_after=after.end() != after.end("sep"),
    )  # fmt: skip


# Each of these returns None if the value has another form, and no span if it is no secret.


def _find_quoted(field: _Field) -> list[Span] | None:
    quoted = _QUOTED.match(field.text, field.value_at)
    if not quoted:
        return None
    value, separator = quoted["value"], field.separator
    if separator == " " and field.strength < Strength.PASSWORD and not field.follows_command():
        return []
    is_prose = separator == " |" or separator[:1].isalpha()
    if separator in ("(", " ") or is_prose:
        stands_alone = is_mixed(value) and not _CALLED.search(value) and not field.name.lower().endswith("pass")
        is_assigned = separator == " " and (field.is_upper or field.follows_command())
        if not stands_alone and not is_assigned:
            return []
    if value.startswith((" ", "%")):
        return []
    is_sure = separator == "=" and field.is_upper and not field.has_space_after
    return [quoted.span("value")] if is_secret(value.rstrip("\\"), field.strength, is_sure=is_sure) else []


def _find_listed(field: _Field) -> list[Span] | None:
    """The items of a list, in brackets or after dashes."""
    if field.separator in (",", "("):
        return []
    listed = _LIST.match(field.text, field.value_at) if field.separator in (":", "=", ":=", "=>") else None
    if not listed:
        return None
    spans, at = [], listed.end()
    for _ in range(_MOST_ITEMS):
        item = _ITEM.match(field.text, at)
        if not item:
            break
        group = "quoted" if item["quoted"] else "bare"
        value, is_quoted = item[group], group == "quoted"
        if is_secret(value, min(field.strength, Strength.TOKEN), is_quoted=is_quoted) or (
            is_mixed(value) and is_secret(value, field.strength, is_quoted=is_quoted, is_sure=False)
        ):
            spans.append(item.span(group))
        at = item.end()
    return spans


def _find_after_blank(field: _Field) -> list[Span] | None:
    """The word after a name without a separator, in prose or an unknown command. Known commands are not meant."""
    if field.separator not in ("", " "):
        return None
    if field.follows_command() or (field.is_option and field.before in ("", " ", "\t", "'", '"', "[", ",")):
        return None
    word = _WORD.match(field.text, field.value_at)
    is_password = field.strength is Strength.PASSWORD and not field.name.endswith("pass")
    return [word.span("value")] if word and is_password and looks_random(word["value"], 9) else []


def _find_indented(field: _Field) -> list[Span] | None:
    """The line below the name, in YAML."""
    block = _BLOCK.match(field.text, field.value_at)
    if not block and field.separator == ":":
        block = _NEXT_LINE.match(field.text, field.value_at)
    if not block:
        return None
    strength = min(field.strength, Strength.TOKEN)
    return [block.span("value")] if is_secret(block["value"], strength, is_quoted=False) else []


def _find_phrase(field: _Field) -> list[Span] | None:
    """A password of several words, one of them with a digit, to the end of the line."""
    if field.separator not in (":", "：") or field.strength is not Strength.PASSWORD:
        return None
    phrase = _PHRASE.match(field.text, field.value_at)
    is_found = phrase and any(map(str.isdigit, phrase[0])) and is_secret(phrase["value"], field.strength, is_sure=False)
    return [phrase.span("value")] if phrase and is_found else None


def _find_bare(field: _Field) -> list[Span]:
    """A value without quotes: in a file of settings, a command, a URL or prose."""
    found = _BARE.match(field.text, field.value_at)
    if not found:
        return []
    text, begin, before, strength = field.text, field.begin, field.before, field.strength
    line = text.rfind("\n", max(0, begin - 200), begin) + 1
    starts_line = _LINE_START.match(text[max(line, begin - 100) : begin]) is not None
    following = text[found.end() : found.end() + 2]
    ends_line = following[:1] in ("", "\n", "\r") or following in (" \n", "  ", " #")
    value = found["value"]
    if before in ("?", "&", ";", "#"):  # a parameter of a URL, or of a connection string
        if before != ";" or "://" in text[max(0, begin - 300) : begin]:
            strength = max(strength, Strength.TOKEN)
        value = re.split(r"[&;)<>\]\\]" if before == ";" else r"[&;#)<>\]\\]", value)[0]
    elif not (starts_line and ends_line):
        value = re.split(r"[;|<>&]", value)[0]
    value = value.rstrip(",;.\\)}]").removesuffix("**")
    span = found.start(), found.start() + len(value)
    if value.lower() == field.name.lower() or value.lower() in _TYPE_WORDS or is_code(value.partition(",")[0]):
        return []
    if strength is Strength.PASSWORD and field.separator == ":" and value.isdecimal() and len(value) >= 6:
        return [span]  # a number in JSON
    is_variable = field.is_tight and field.is_upper
    is_setting = starts_line and ends_line and (field.separator in (":", "：", "") or field.is_tight)
    is_sure = is_variable or (field.is_tight and before in ("?", "&")) or (is_setting and strength is Strength.PASSWORD)
    if strength is Strength.TOKEN and is_variable and not is_code(value) and len(value) >= 8:
        strength = Strength.PASSWORD
    return [span] if is_secret(value, strength, is_quoted=False, is_sure=is_sure) else []
