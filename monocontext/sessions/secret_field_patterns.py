"""Patterns for the text around the name of a secret, and for each form of its value. Only data.

Patterns are verbose: blanks in them do not count. `<margin>` stands for what a diff or a listing puts before a line.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class FieldPattern(NamedTuple):
    """A pattern with a text that it matches from end to end, and a similar text that it does not. Tests run both."""

    regex: re.Pattern[str]  # its group `value` is the value, without quotes
    example: str  # with `SECRET` for the value
    near_miss: str


def _pattern(example: str, near_miss: str, pattern: str) -> FieldPattern:
    margin = r"(?:[+-]|[ ]{0,7}\d{1,6}[:\t|\u2192])?"
    return FieldPattern(re.compile(pattern.replace("<margin>", margin), re.VERBOSE), example, near_miss)


# fmt: off
# What stands before the name
QUALIFIER = _pattern("api ", "apis ", r"""(?i:  # a word that belongs to the name: `api key`, `mot de passe`
    \b(?:api|secret|access|private|auth|access[ ]key|signing|encryption|app|client|account|license)
    | mot[ ]de | kata | mật)[ .]$""")
COMMAND = _pattern("export ", "exports ", r"""(?i:  # an option, `export NAME VALUE`, `login USER PASSWORD`
    (?<![\w-])-{1,2}[\w-]*
    | \b(?:setenv|env|export|arg|set[ ]-\w{1,3}|set|config:set|configure[ ]set|config[ ]set|secret[ ]set
        |login[ ]\S{1,100}|user(?:name)?[ ]\S{1,100})[ \t]+[\w.:/-]*)$""")
LINE_START = _pattern("  12\t- export ", "print(", r"""  # `- ` of a list, `12: ` of a listing, `export `
    (?:[+>|-][ \t]*)?(?:\d{1,6}(?:\t|[ ]*[:|\u2192-])[ \t]*)?[\w\t\x20"'*+>.$:/-]{0,100}$""")

# What stands between a word such as `secret` and the value
AFTER_WORD = _pattern("""_key"]: """, "_key.next", r"""
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
PAIR_GAP = _pattern('", "value": ', '", "values": ', r"""
    # from a name that is a value itself to its secret, perhaps after one more field, such as a type
    (?:\\{0,7}["'],\s{0,60}<margin>\s{0,60}\\{0,7}["']\w{1,20}\\{0,7}["']:[ ]?\\{0,7}["'][\w.-]{0,40})??
    (?:\\{0,7}["'])?[ \t,/]{0,80}(?:(?<=["',\x20\t/])|\r?\n<margin>\s{0,60})(?:-{2}|\\{0,7}["'])?     # key", "
        (?i:value|default|content|secretstring|data|secret-string|body)(?![\w.-])\\{0,7}["']?     # value"
        \s{0,10}[:=]?\s{0,10}                                                                       # :
    | \\{0,7}["']\s{0,4}\{[^{}]{0,400}?\b(?:default|value)\s{0,10}=\s{0,10}                         # key" { default =
    | \\{0,7}["']\s{0,4}:\s{0,4}\{[^{}]{0,200}?\\{0,7}["'](?i:value|default)\\{0,7}["']\s{0,4}:\s{0,4} # key": {"value":
    | </(?i:key|name)>\s{0,40}<margin>\s{0,40}<(?i:string|value)>""")  # `key</key><string>`

# The forms of a value
QUOTED = _pattern('SecretStr("SECRET"', '"SECRET', r"""
    (?:[rbufLRBUFN@$]{0,2}|(?:new[ ])?(?:b64decode|SecretStr|SecureString|String|Some|Secret)\()
    (?P<quote>\\{0,7}(?:\"\"\"|'''|["'`]))
    (?P<value>[A-Za-z0-9+/_.-]{200,20000}+={0,2}(?=(?P=quote))|(?:(?!(?P=quote))[^\n]){1,500})(?P=quote)""")
BARE = _pattern("SECRET", "'SECRET'", r"(?P<value>[^\s\"'`]{1,400}+[A-Za-z0-9+/=_.-]{0,2000})")
ELEMENT = _pattern(' id="1"><![CDATA[SECRET]]></', ">SECRET<br>", r"""  # the rest of an element of XML after its name
    (?:["'\x20][^<>\n]{0,80})?>\s{0,40}<margin>\s{0,40}
    (?:<!\[CDATA\[)?(?P<value>[^<>\s](?:[^<>\n]{1,498}?[^<>\s])?)(?:\]\]>)?\s{0,40}</""")
ELEMENT_TEXT = _pattern("SECRET</", "SECRET\n</", r"(?P<value>[^<>\s](?:[^<>\n]{1,498}[^<>\s])?)</")
LIST_START = _pattern("[", '("a" + ', r"""  # `[`, `{"value",`, or `- value` on the next line
    \[ | [{(](?=\s{0,80}["'][^"'\n]{1,500}["']\s{0,20}[,})]) | (?=[ \t\r]{0,80}\n<margin>[ \t]{0,60}-[ \t])""")
LIST_ITEM = _pattern(',\n+  "SECRET"', ",\n  key: ", r"""[ \t,]{0,200}(?:\r?\n<margin>\s{0,200})?(?:-[ \t]{1,4})?
    (?:\\{0,7}["'`](?P<value>[^"'`\n\\]{1,500})\\{0,7}["'`]                          # "value",
        | (?P<bare>(?!\#)[^\s"'`,\]\[{}:]{8,500})(?=[\s,\]"'\\]|$))""")  # `value`, without quotes
PROSE_WORD = _pattern("-p SECRET", "-p word", r"""  # `the password 2 a3F9...`: only a random word is one
    (?:--?[a-z]{1,12}[ =]|\d[ ])?(?P<value>[A-Za-z0-9!@#$%^&*+=?.-]{9,100})(?=[\s\"'`,;]|$)""")
YAML_BLOCK = _pattern("|\n  SECRET", "|\n  two words", r"""
    [|>][+-]?\d?[ \t]*\n<margin>[ \t]{1,60}(?P<value>[^\s"'`]{4,2000})(?=[ \t\r]*(?:$|[\n"'\\]))""")
WORDS = _pattern("garden SECRET", "ask(SECRET) again", r"""  # a passphrase to the end of its line
    (?P<value>[^\s"'`(){}<>\[\]=,;:]{2,30}(?:[ ][^\s"'`(){}<>\[\]=,;:]{2,30}){1,7})[ \t\r]*(?:$|\n)""")
