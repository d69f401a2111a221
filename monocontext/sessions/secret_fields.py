"""Find values whose names say that they are secrets: `password=...`, `"apiKey": "..."`, `--token ...`. Does no I/O.

A search has found a word such as `token`. The name around it is completed and judged, then each form is tried in which
a value may follow. Above each stands its pattern. A finder returns None if the value has another form, so that the next
one tries, and an empty list if this form holds no secret.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from dataclasses import dataclass, replace

from monocontext.sessions.secret_values import Strength, is_code, is_mixed, is_secret, looks_random, strength_of

Span = tuple[int, int]


def find_named(text: str, start: int, stop: int) -> list[Span]:
    """The spans of secrets that belong to the name around the word from `start` to `stop`."""
    field = _read_field(text, start, stop)
    return _find_value(field, _find_in_element, _find_beyond) if field else []


def _find_value(field: _Field, *first: Callable[[_Field], list[Span] | None]) -> list[Span]:
    """The spans of secrets in the value of a field. The finders in `first` try before those of every value."""
    finders = (*first, _find_quoted, _find_listed, _find_in_prose, _find_on_lines, _find_bare)
    return next((spans for find in finders if (spans := find(field)) is not None), [])


@dataclass(slots=True)
class _Field:
    """A name in a text, and the place of its value."""

    text: str
    begin: int  # offset of the name
    before: str  # the character before the name; empty at the beginning of the text
    name: str
    is_upper: bool
    is_option: bool  # the name begins with a dash
    strength: Strength
    is_password: bool
    end: int  # offset after the name
    closing: str  # the quote or bracket that ends the name
    separator: str  # the text between name and value, such as `=`; empty or a space if there is none
    value_at: int  # offset of the value, its quote included
    is_tight: bool  # it is written as `name=value`, without blanks or a type

    def follows_command(self) -> bool:
        """Whether the text before the name is a command that takes a name and a value, such as `export`."""
        return _COMMAND.search(self.text, max(0, self.begin - 120), self.begin) is not None


def _compile(pattern: str) -> re.Pattern[str]:
    """A pattern in which `<margin>` stands for what a diff or a listing puts before a line."""
    return re.compile(pattern.replace("<margin>", r"(?:[+-]|[ ]{0,7}\d{1,6}(?:[:\t|\u2192]))?"), re.VERBOSE)


_NAME_CHARACTERS = f"{string.ascii_letters}{string.digits}_-"
_QUALIFIER = _compile(r"""(?i:  # a word before the name that belongs to it: `api key`, `mot de passe`
    \b(?:api|secret|access|private|auth|access[ ]key|signing|encryption|app|client|account|license)
    | mot[ ]de | kata | mật)[ .]$""")
_AFTER = _compile(r"""  # what may follow the word that was found, up to the value
    # `_key` after `secret`, ` code` after `pass`; then what closes the name: `"]`, `**`
    (?P<rest>(?i:(?:[^\W是はが为為]|-){0,40}+(?:\ (?:access[ ]key|key|token|code|passe?|phrase|khẩu|id)\b){0,2}))
    (?P<close>(?:\[\w{0,4}\])?(?:\\{0,7}["'`])?(?:\*\*)?[)\]]?)
    (?P<prompt>[ ]?\[[^\]\n]{0,40}\] | [ ]?\([^)\n]{0,40}\)                                   # Password (again):
        | [ ](?i:for|of|to|от|для|von|für|fuer|de|para|pour|per)[ ][^\n:：="',;(){}%]{0,80}(?:'[^'\n]{0,200}')?
    )?
    (?P<type>[ ]{0,3}:[ ]?(?:&(?:'\w{1,20}[ ])?)?[A-Za-z_][\w.|\[\]? ]{0,40}?(?=[ ]?=[ ]?["'])  # key: &'a str = "...
        | [ ](?:string|String|str)(?=[ ]=))?                                                  # key string = ...
    [ \t\u00a0]{0,40}
    (?P<sep>:= | => | [!=?]?={1,3} | \|\|=? | \?\? | \?: | [ ]\|(?=[ ])     # key == "...   key || "...   | key | ...
        | :{1,2}(?!=) | ： | ＝                                             # key: ...   Key::...
        | ,(?=(?:\r?\n<margin>)?\s{0,60}\\{0,7}["']) | \((?=\\{0,7}["']) | >         # "key", "...   key("...   <key>...
        | 是 | は | は、 | 为
        | (?i:is|ist|es|est|è|é|jest|är|er|on)[ ]?:?(?=[ ]["'`:]?\S)        # the key is ...
        | [ ](?=\\{0,7}["'`]) | (?=\s|</)                                   # --key "...   --key ...   key</name>
    )(?:(?<=,)\r?\n<margin>\s{0,60})?(?:\*\*)?[ \t\u00a0]{0,40}""")
_COMMAND = _compile(r"""(?i:  # before a name and its value: an option, `export NAME VALUE`, `login USER PASSWORD`
    (?<![\w-])-{1,2}[\w-]*
    | \b(?:setenv|env|export|arg|set[ ]-\w{1,3}|set|config:set|configure[ ]set|config[ ]set|secret[ ]set
        |login[ ]\S{1,100}|user(?:name)?[ ]\S{1,100})[ \t]+[\w.:/-]*)$""")


def _read_field(text: str, start: int, stop: int) -> _Field | None:
    """The name around a word, with its separator; None if it does not say that its value is a secret."""
    after = _AFTER.match(text, stop)
    if after is None:
        return None
    head = text[max(0, start - 60) : start]
    may_continue = not text[start:stop].isascii() or head[-1:].isascii()
    remaining = head[len(head.rstrip(_NAME_CHARACTERS)) :] if may_continue else ""
    begin = start - len(remaining)
    name = remaining + text[start:stop] + after["rest"]
    if qualifier := _QUALIFIER.search(text, max(0, begin - 20), begin):
        name = qualifier[0].replace(" ", "_") + name
    strength = strength_of(name)
    if strength is Strength.NONE or (name == "PASS" and after["sep"] != "="):  # `PASS` in the report of a test
        return None
    name_end = after.end("prompt" if after["prompt"] else "close")
    return _Field(
        text=text, begin=begin, before=text[begin - 1 : begin], name=name, is_upper=name.upper() == name,
        is_option=remaining.startswith("-"), strength=strength, is_password=strength is Strength.PASSWORD,
        end=after.end("rest"), closing=after["close"], separator=after["sep"], value_at=after.end(),
        is_tight=after["sep"] == "=" and after.start("sep") <= name_end and after.end("sep") >= after.end(),
    )  # fmt: skip


def _secret_in(match: re.Match[str] | None, field: _Field) -> list[Span]:
    """The span of the value that a form found, if it looks like a secret: the form alone does not make it one."""
    return [match.span("value")] if match and is_secret(match["value"], field.strength, is_sure=False) else []


_ELEMENT = _compile(r"""  # the rest of `<password id="1">`, and `value</` or `<![CDATA[value]]></`
    (?:["'\x20][^<>\n]{0,80})?>\s{0,40}<margin>\s{0,40}
    (?:<!\[CDATA\[)?(?P<value>[^<>\s](?:[^<>\n]{1,498}?[^<>\s])?)(?:\]\]>)?\s{0,40}</""")


def _find_in_element(field: _Field) -> list[Span] | None:
    """`<password>value</password>`"""
    may_be_one = field.before in ("<", "/", ":", '"', "'", ".")
    is_below = may_be_one and "<" in field.text[max(0, field.begin - 60) : field.begin]
    return (_secret_in(_ELEMENT.match(field.text, field.end), field) or None) if is_below else None


_BRIDGE = _compile(r"""  # from a name that is itself a value to the secret, perhaps after a field such as a type
    (?:\\{0,7}["'],\s{0,60}<margin>\s{0,60}\\{0,7}["']\w{1,20}\\{0,7}["']:[ ]?\\{0,7}["'][\w.-]{0,40})??
    (?:\\{0,7}["'])?[ \t,/]{0,80}(?:(?<=["',\x20\t/])|\r?\n<margin>\s{0,60})(?:-{2}|\\{0,7}["'])?     # key", "
        (?i:value|default|content|secretstring|data|secret-string|body)(?![\w.-])\\{0,7}["']?     # value"
        \s{0,10}[:=]?\s{0,10}                                                                       # :
    | \\{0,7}["']\s{0,4}\{[^{}]{0,400}?\b(?:default|value)\s{0,10}=\s{0,10}                         # key" { default =
    | \\{0,7}["']\s{0,4}:\s{0,4}\{[^{}]{0,200}?\\{0,7}["'](?i:value|default)\\{0,7}["']\s{0,4}:\s{0,4} # key": {"value":
    | </(?i:key|name)>\s{0,40}<margin>\s{0,40}<(?i:string|value)>""")  # `key</key><string>`
_ELEMENT_VALUE = re.compile(r"(?P<value>[^<>\s](?:[^<>\n]{1,498}[^<>\s])?)</")


def _find_beyond(field: _Field) -> list[Span] | None:
    """A name that is itself a value, as in `"name": "password", "value": ...`: the secret is further on."""
    following = field.text[field.value_at : field.value_at + 1]
    has_value = field.separator not in ("", " ", ">", ",", "(") and following not in ("", "\n")
    if has_value and field.before not in ('"', "'"):
        return None
    bridge = _BRIDGE.match(field.text, field.end)
    if not bridge:
        return [] if field.separator == ">" else None
    if bridge[0].startswith("</"):
        return _secret_in(_ELEMENT_VALUE.match(field.text, bridge.end()), field)
    return _find_value(replace(field, value_at=bridge.end(), separator=":", closing=""))


_QUOTED = _compile(r"""  # b"value", SecretStr("value")
    (?:[rbufLRBUFN@$]{0,2}|(?:new[ ])?(?:b64decode|SecretStr|SecureString|String|Some|Secret)\()
    (?P<quote>\\{0,7}(?:\"\"\"|'''|["'`]))
    (?P<value>[A-Za-z0-9+/_.-]{200,20000}+={0,2}(?=(?P=quote))|(?:(?!(?P=quote))[^\n]){1,500})(?P=quote)""")


def _find_quoted(field: _Field) -> list[Span] | None:
    """`token = "value"`"""
    quoted = _QUOTED.match(field.text, field.value_at)
    # A comma separates name and value only in the arguments of a call or command.
    before = field.text[max(0, field.begin - 9) : max(0, field.begin - 1)].rstrip()
    is_argument = field.closing and (before.endswith("(") or field.is_option)
    if not quoted or (field.separator == "," and not is_argument):
        return [] if field.separator in (",", "(") else None
    value = quoted["value"]
    if value.startswith((" ", "%")) or not _belongs(value, field):
        return []
    is_sure = field.separator == "=" and field.is_upper and field.text[field.value_at - 1] == "="
    return [quoted.span("value")] if is_secret(value.rstrip("\\"), field.strength, is_sure=is_sure) else []


def _belongs(value: str, field: _Field) -> bool:
    """Whether a value in quotes is that of the name, though a blank, `(`, `|` or a word such as `is` separates them."""
    may_be_password = is_mixed(value) and not any(c in value for c in ":(\\") and not field.name.endswith("pass")
    if field.separator == " ":
        return field.follows_command() or (field.is_password and (field.is_upper or may_be_password))
    return may_be_password or not (field.separator in ("(", " |") or field.separator[:1].isalpha())


_LIST = _compile(r"""  # the beginning of a list: `[`, `{"value",`, or `- value` on the next line
    \[ | [{(](?=\s{0,80}["'][^"'\n]{1,500}["']\s{0,20}[,})]) | (?=[ \t\r]{0,80}\n<margin>[ \t]{0,60}-[ \t])""")
_ITEM = _compile(r"""[ \t,]{0,200}(?:\r?\n<margin>\s{0,200})?(?:-[ \t]{1,4})?
    (?:\\{0,7}["'`](?P<quoted>[^"'`\n\\]{1,500})\\{0,7}["'`]                     # "value",
        | (?P<bare>(?!\#)[^\s"'`,\]\[{}:]{8,500})(?=[\s,\]"'\\]|$))""")  # `value`
_MOST_ITEMS = 200  # the most items of a list that are looked at after a name


def _find_listed(field: _Field) -> list[Span] | None:
    """`tokens = ["value", "value"]`"""
    listed = _LIST.match(field.text, field.value_at) if field.separator in (":", "=", ":=", "=>") else None
    if not listed:
        return None
    spans, offset = [], listed.end()
    for _ in range(_MOST_ITEMS):
        if not (item := _ITEM.match(field.text, offset)):
            break
        value, is_quoted = item["quoted"] or item["bare"], bool(item["quoted"])
        is_token = is_secret(value, min(field.strength, Strength.TOKEN), is_quoted=is_quoted)
        if is_token or (is_mixed(value) and is_secret(value, field.strength, is_quoted=is_quoted, is_sure=False)):
            spans.append(item.span("quoted" if is_quoted else "bare"))
        offset = item.end()
    return spans


_PROSE_WORD = re.compile(r"(?:--?[a-z]{1,12}[ =]|\d[ ])?(?P<value>[A-Za-z0-9!@#$%^&*+=.?-]{9,100})(?=[\s\"'`,;]|$)")


def _find_in_prose(field: _Field) -> list[Span] | None:
    """`the password a3F9... of`, `password 2 a3F9...`, or an unknown command: only a random word."""
    is_call = field.is_option and field.before in ("", " ", "\t", "'", '"', "[", ",")
    if field.separator not in ("", " ") or is_call or field.follows_command():
        return None
    word = _PROSE_WORD.match(field.text, field.value_at)
    is_found = word and field.is_password and not field.name.endswith("pass") and looks_random(word["value"], 9)
    return [word.span("value")] if word and is_found else []


_BLOCK = _compile(r"""[|>][+-]?\d?[ \t]*\n<margin>[ \t]{1,60}(?P<value>[^\s"'`]{4,2000})(?=[ \t\r]*(?:$|[\n"'\\]))""")
_PHRASE = _compile(r"""(?P<value>[^\s"'`(){}<>\[\]=,;:]{2,30}(?:[ ][^\s"'`(){}<>\[\]=,;:]{2,30}){1,7})[ \t\r]*(?:$|\n)""")  # fmt: skip


def _find_on_lines(field: _Field) -> list[Span] | None:
    """`password: |` of YAML with the value on the next line; or words with a digit, `password: correct 4 horse`."""
    if block := _BLOCK.match(field.text, field.value_at):
        is_token = is_secret(block["value"], min(field.strength, Strength.TOKEN), is_quoted=False)
        return [block.span("value")] if is_token else []
    may_be_phrase = field.is_password and field.separator in (":", "：")
    phrase = _PHRASE.match(field.text, field.value_at) if may_be_phrase else None
    return (_secret_in(phrase, field) or None) if phrase and any(map(str.isdigit, phrase[0])) else None


_BARE = re.compile(r"(?P<value>[^\s\"'`]{1,400}+[A-Za-z0-9+/=_.-]{0,2000})")
_LINE_START = _compile(r"""  # `- ` of a list, `12: ` of a listing, `export `
    (?:[+>|-][ \t]*)?(?:\d{1,6}(?:\t|[ ]*[:|\u2192-])[ \t]*)?[\w\t\x20"'*+>.$:/-]{0,100}$""")
_TYPE_WORDS = frozenset("str string int bool text varchar bytes secretstr any object number boolean".split())
_JUDGED_CHARACTERS = 128  # the beginning by which a value without quotes is judged: it may hold a hundred names


def _find_bare(field: _Field) -> list[Span]:
    """`token=value` in a file of settings, a command, a URL or prose."""
    match = _BARE.match(field.text, field.value_at)
    if not match:
        return []
    is_line = _fills_line(field, match.end())
    value = _without_end(_cut_off_next(match["value"], field, is_line))
    span = match.start(), match.start() + len(value)
    if value.lower() == field.name.lower() or value.lower() in _TYPE_WORDS or is_code(value.partition(",")[0]):
        return []
    if field.is_password and field.separator == ":" and value.isdecimal() and len(value) >= 6:
        return [span]  # a number in JSON
    strength, is_variable = field.strength, field.is_tight and field.is_upper
    is_connection = field.before == ";" and "://" not in field.text[max(0, field.begin - 300) : field.begin]
    if field.before in ("?", "&", ";", "#") and not is_connection:  # a parameter of a URL
        strength = max(strength, Strength.TOKEN)
    if strength is Strength.TOKEN and is_variable and not is_code(value) and len(value) >= 8:
        strength = Strength.PASSWORD
    is_setting = is_line and (field.separator in (":", "：", "") or field.is_tight)
    is_sure = is_variable or (field.is_tight and field.before in ("?", "&")) or (is_setting and field.is_password)
    begin = value[:_JUDGED_CHARACTERS]
    if len(begin) < len(value):  # the cut may leave less of a part between dots than a token has
        begin = begin.rpartition(".")[0] or begin
    forms = {begin, _without_end(begin.partition("&")[0])}  # what follows a `&` may be a further parameter
    return [span] if any(is_secret(form, strength, is_quoted=False, is_sure=is_sure) for form in forms) else []


def _fills_line(field: _Field, end: int) -> bool:
    """Whether the line of a name and its value, which ends at `end`, has nothing else, as in a file of settings."""
    line = field.text.rfind("\n", max(0, field.begin - 200), field.begin) + 1
    is_first = _LINE_START.match(field.text[max(line, field.begin - 100) : field.begin]) is not None
    following = field.text[end : end + 2]
    return is_first and (following[:1] in ("", "\n", "\r") or following in (" \n", "  ", " #"))


def _cut_off_next(value: str, field: _Field, is_line: bool) -> str:
    """A value up to what separates it from the next one."""
    if field.before == ";":
        return re.split(r"[;)<>\]\\]", value)[0]
    if field.before in ("?", "&", "#"):
        return re.split(r"^&|&(?=[\w.%\[\]-]{1,60}=)|[;#)<>\]\\]", value)[0]
    return value if is_line else re.split(r"^&|[;|<>]", value)[0]  # a `&` later on may be part of a password


def _without_end(value: str) -> str:
    """A value without the signs of a sentence, a program or Markdown behind it."""
    return value.rstrip(",;.\\)}]").removesuffix("**")
