"""Find values whose name says that they are secrets: `password=...`, `"apiKey": "..."`, `--token ...`. Pure.

A search has found a word such as `token`. The name around it is completed and judged, and the forms in which a value may
follow are tried in turn. A password is recognised by its name alone. The value of a token or key must look random as
well, since code is full of such names (`token = tokens.next`, `CACHE_KEY = "user-list"`).
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from enum import IntEnum

Span = tuple[int, int]


class Strength(IntEnum):
    """How strongly a name says that its value is a secret."""

    NONE = 0
    KEY = 1  # `key`, `auth`, the name of a provider: the value must be long and random
    TOKEN = 2  # `token`, `secret`, `api_key`: the value must look random
    PASSWORD = 3  # any value that is not a word of a program


_FOREIGN = [
    word.replace("_", " ")
    for word in "contraseña hasło jelszó lösenord şifre φράση κωδικ пароль пароля паролем парол секрет токен ключ 密码 密碼 口令 密钥 "
    "密鑰 令牌 パスワード 暗証番号 秘密鍵 トークン 비밀번호 암호 비밀키 كلمة_المرور كلمة_السر סיסמ पासवर्ड รหัสผ่าน mật_khẩu schlüssel".split()
]
"""Words for passwords and keys that have other letters than ASCII."""
_PASSWORDS = frozenset(
    "password passwd passphrase passcode passwort passord passwordd pwd pass pw psw psk kennwort contrasena clave mdp "
    "motdepasse senha haslo heslo jelszo wachtwoord losenord adgangskode salasana geslo parola parool parol sifre lozinka "
    "zaporka dbpass sshpass userpass keypass storepass requirepass rootpass adminpass bindpw rootpw dbpw userpw adminpw "
    "masterauth".split()
)
_PASSWORD_ENDS = ("password", "passwd", "passphrase", "passwort", "passcode", "kennwort", "wachtwoord", "pwd")
_PASSWORD_PAIRS = frozenset("pass_phrase seed_phrase secret_phrase recovery_phrase de_passe palavra_passe".split())
_TOKENS = frozenset("token secret credential cred creds apikey authtoken geheim secreto".split())
_TOKEN_ENDS = ("token", "secret", "apikey", "secretkey", "accesskey", "privatekey", "presharedkey", "signingkey")
_KEY_OF = frozenset(
    "api secret private access account signing encryption auth master client shared preshared service crypt cipher "
    "license licence deploy app application storage admin root subscription consumer session jwt hmac webhook".split()
)
_WEAK = frozenset(["key", "auth", "sig", "hmac", "schluessel"])
_PROVIDERS = frozenset(
    "adafruit adobe algolia alibaba asana atlassian beamer bitbucket bittrex clickhouse codecov cohere coinbase confluence "
    "confluent contentful datadog droneci dropbox etsy facebook fastly finicity finnhub flickr freshbooks gitter gocardless "
    "heroku hubspot intercom jfrog artifactory bintray jira kraken kucoin launchdarkly linkedin looker mailchimp mailgun "
    "mapbox mattermost meraki messagebird netlify nytimes okta openweather plaid privateai rapidapi sendbird snyk softlayer "
    "sonar squarespace sumologic travis twilio twitch twitter typeform yandex zendesk cloudant discord cloudflare".split()
)
NAME_WORDS = [
    *"pass kennwort contrase clave mdp senha haslo heslo jelszo wachtwoord losenord adgangskode salasana geslo parol sifre "
    "lozinka zaporka palavra pw psw psk token secret cred key geheim hmac _pat phrase auth sig".split(), *_FOREIGN, *sorted(_PROVIDERS),
]  # fmt: skip
"""A name that contains one of these may belong to a secret."""
# Words after the one that counts: `password_prod`, `token2`.
_TAILS = frozenset(
    "value prod production dev development test staging live base string plain plaintext raw text current new old main "
    "primary secondary backup data default bytes b64 base64 v x s here confirm confirmation again".split()
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

# In place of a value: variables, place-holders, marks of an earlier redaction.
_STANDS_FOR = re.compile(
    r"\$[\w({]|<|\{|%[({A-Z]|%[sdr]\b|![01]\b|\*{3}|\.{3}|x{4,}|X{4,}|\[REDACTED|\[picture|@[\w]{0,20}[({]|#\{|~/|/(?:[\w.@-]+/)+|file:|"
    r"(?:null|none|nil|true|false|undefined|os|process|env|secrets|vars?|self|this|your|my|dummy|placeholder|settings|config|args|options)"
    r"(?:\b|[._-])", re.IGNORECASE,
)  # fmt: skip
_CODE = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*)*(?:[({\[]|\.{3}|\)|$)")
_CALL = re.compile(r"[\w$]*[A-Za-z_$][\w$]*(?:(?:\.|->|::)[\w$]+)*[({\[]|[^(\[{]*[)\]}][.),:;\])}]*$|\w+\(\)")
# Words of a name in camel case, each a "hump". Random text has many short ones.
_HUMPS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_PLACE_HOLDER = re.compile(
    r"example|your|placeholder|dummy|redacted|changeme|insert|replace|x{4}|\*{3}|\.{3}|(.)\1{6}|1234567890|abcdefgh|a1b2c3d4e5",
    re.IGNORECASE,
)
_TOKEN_LETTERS = re.compile(r"[A-Za-z0-9+/=_.~:!@#%^&*$|-]+")
_KEY_LETTERS = re.compile(r"[A-Za-z0-9+/=_-]++(?:\.[A-Za-z0-9+/=_-]{12,}+)*+")
_BASE64 = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Z]*[A-Z])[A-Za-z0-9+/]{32,}={0,2}")
_SCATTERED = re.compile(r"[0-9]++[A-Za-z]++[0-9]++[A-Za-z]++[0-9]")
_HEX = re.compile(r"[0-9a-f]{32,}|[0-9A-F]{32,}")
# Values of these words alone are examples or texts of a program.
_ALL_WORDS = frozenset(
    "user username name names str string text bytes int bool any optional none null test tests testing foo bar baz spam "
    "egg eggs abc type field input required varchar char object value values string secretstr get set of the to is and or "
    "not login your my enter new old me key keys api access id ok yes no false true hidden changeme code sample example "
    "auth wrong right good bad invalid valid valuable file path admin root some other a an in for with db database default "
    "empty unset anonymous guest public private client server blah hash reset grant protected method word void const var "
    "let mypassword mysecret mypass yourpassword redacted postgres".split()
).union(_PASSWORDS, _TOKENS, _WEAK)
# Sentences: messages and labels about a password.
_MESSAGE = re.compile(r"(?i:(?:[.?!:]|\.\.\.)$|%[sdr(]|\{\w*\}|[()<>=]|\b(?:passwords?|token|secret|passphrase|key)\b)")
_PROSE = re.compile(r"(?i:\b(?:the|your|is|are|was|for|must|enter|please|not|required|with|and|an?|of|to|in|on|or|if)\b)")  # fmt: skip


def strength_of(name: str) -> Strength:
    """The strength of a name. `dbPassword` has one, `max_tokens` and `password_file` have none."""
    if not name.isascii() and any(word in name.lower() for word in _FOREIGN):
        return Strength.PASSWORD
    words = [word.lower() for word in _WORDS.findall(name[-100:])]
    while len(words) > 1 and (words[-1] in _TAILS or words[-1].isdigit()):
        words.pop()
    if not words or "public" in words or "websocket" in name.lower():  # the `Sec-WebSocket-Key` is a nonce
        return Strength.NONE
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    single = last.removesuffix("s")
    is_password = last in _PASSWORDS or single in _PASSWORDS
    if (is_password and name not in ("PWD", "OLDPWD", "Pass", "pass_")) or single.endswith(_PASSWORD_ENDS):
        return Strength.NONE if last == "pwd" and before == "old" else Strength.PASSWORD
    if f"{before}_{last}" in _PASSWORD_PAIRS:
        return Strength.PASSWORD
    if single in _TOKENS or single.endswith(_TOKEN_ENDS) or (last == "pat" and before and name.upper() == name):
        return Strength.TOKEN
    if single == "key" and before in _KEY_OF:
        return Strength.TOKEN
    is_key = single in _WEAK or single.endswith("key") or words[-3:] == ["access", "key", "id"]
    return Strength.KEY if is_key or not _PROVIDERS.isdisjoint(words) else Strength.NONE


def is_secret(value: str, strength: Strength, *, is_quoted: bool = True, is_sure: bool = True) -> bool:
    """Whether a value is a secret, given the strength of its name. `is_quoted`: it has quotes around it. `is_sure`: only a
    value can be in its place, as in `NAME=value` or JSON."""
    if len(value) < 4 or is_dummy(value) or len(value) > 20_000:
        return False
    if _STANDS_FOR.match(value) and not (value[0] == "/" and _BASE64.fullmatch(value) and looks_random(value, 32)):
        return False
    if strength < Strength.PASSWORD:
        if _PLACE_HOLDER.search(value) or all(
            hump.lower() in _ALL_WORDS or len(hump) == 1 for hump in _HUMPS.findall(value)
        ):
            return False
        if strength is Strength.KEY and not looks_random(max(re.split("[_-]", value), key=len), 8):
            return False
        letters, least = (_TOKEN_LETTERS, 8) if strength is Strength.TOKEN else (_KEY_LETTERS, 16)
        return bool(letters.fullmatch(value)) and looks_random(value, least) and (is_quoted or not is_code(value))
    if any(c.isspace() for c in value):
        is_message = _MESSAGE.search(value.rstrip(".?!") if any(map(str.isdigit, value)) else value)
        is_phrase = any(map(is_mixed, value.split())) or (not _PROSE.search(value) and len(value) < 60)
        return is_quoted and not is_message and (is_sure or is_phrase)
    if _is_program_key(value):
        return False
    if is_quoted:
        return value[-1] not in ":?" and not value.startswith("--")
    return not is_code(value) and not _CALL.match(value) and (is_sure or is_mixed(value))


def is_dummy(value: str) -> bool:
    """Whether a value consists of words that documents show in place of a secret."""
    words = (hump.lower() for hump in _HUMPS.findall(value) if not hump.isdigit())
    return len(value) <= 60 and sum(map(str.isdigit, value)) < 2 and all(word in _ALL_WORDS for word in words)


def is_random_token(text: str) -> bool:
    """Whether the letters and digits of a token are in no order, and no place-holder such as `xxxx` or `your-key`."""
    plain = "".join(filter(str.isalnum, text))
    if len(set(plain)) < min(8, len(plain) // 2) or _PLACE_HOLDER.search(text):
        return False
    if any(looks_random(part, 16) for part in re.split("[^A-Za-z0-9]", text)):
        return True
    if not any(map(str.isdigit, plain)) and not plain.isupper():
        return len(plain) >= 10 and len(plain) <= 3.2 * len(_HUMPS.findall(plain))
    return looks_random(plain, 10) or (text == plain and (plain.isupper() or sum(map(str.isdigit, plain)) >= 3))


def looks_random(value: str, least: int) -> bool:
    """Whether a text of at least `least` characters has letters and digits in no order: `a3F9...`, not `getUserById2`."""
    if len(value) < least or any(c.isspace() for c in value) or not value.isascii():
        return False
    humps = _HUMPS.findall(value)
    length = sum(map(len, humps))
    digits = sum(c.isdigit() for c in value)
    if length < least * 3 // 4 or length < 0.7 * len(value) or digits == length:
        return False
    if digits and (_HEX.fullmatch(value) or (len(value) >= 20 and value.isalnum() and _SCATTERED.search(value))):
        return True
    if digits:
        return length <= 3.4 * len(humps) and len(humps) >= 4
    return length >= 16 and length <= (2.6 if length < 24 else 3) * len(humps)


def is_code(value: str) -> bool:
    """Whether a value is a dotted name or a call of a program, such as `tokens.next`."""
    has_mark = any(mark in value for mark in (".", "::", "->", "(", "["))
    return has_mark and bool(_CODE.match(value)) and not any(looks_random(part, 6) for part in value.split("."))


def _is_program_key(value: str) -> bool:
    """Whether a value is a key of a program, made of words without digits: `login.password.label`, `user_password`."""
    words = [word.lower() for word in _HUMPS.findall(value)]
    return len(words) > 1 and not _ALL_WORDS.isdisjoint(words) and bool(re.fullmatch(r"[A-Za-z_.:/ -]+", value))


def is_mixed(value: str) -> bool:
    """Whether a value has digits among letters, or signs, unlike a word."""
    has_digits, has_letters = any(map(str.isdigit, value)), any(c.islower() or c.isupper() for c in value)
    return len(value) >= 5 and ((has_digits and has_letters) or any(c in "!@#$%^&*+=?~" for c in value[1:]))


_MARGIN = r"(?:[+-]|[ ]{0,7}\d{1,6}(?:[:\t|\u2192]))?"  # what a diff or a listing puts before a line
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
_PHRASE = re.compile(r"(?P<value>[^\s\"'`(){}<>\[\]=,;:]{2,30}(?:[ ][^\s\"'`(){}<>\[\]=,;:]{2,30}){1,7})[ \t\r]*(?:$|\n)")  # fmt: skip
# YAML: `password: |`, and the value on the next line.
_BLOCK = re.compile(r"[|>][+-]?\d?[ \t]*\n" + _MARGIN + r"[ \t]{1,60}(?P<value>[^\s\"'`]{4,2000})(?=[ \t\r]*(?:$|[\n\"'\\]))")  # fmt: skip
# The beginning of a list, and one of its items.
_LIST = re.compile(r"\[|[{(](?=\s{0,80}[\"'][^\"'\n]{1,500}[\"']\s{0,20}[,})])|(?=[ \t\r]{0,80}\n" + _MARGIN + r"[ \t]{0,60}-[ \t])")  # fmt: skip
_ITEM = re.compile(
    r"[ \t,]{0,200}(?:\r?\n"
    + _MARGIN
    + r"\s{0,200})?(?:-[ \t]{1,4})?(?:\\{0,7}[\"'`](?P<quoted>[^\"'`\n\\]{1,500})\\{0,7}[\"'`]|(?P<bare>(?!#)[^\s\"'`,\]\[{}:]{8,500})(?=[\s,\]\"'\\]|$))"
)
# From a name that is itself a value to the secret: `"name": "password", "value": `, `<key>password</key><string>`.
_BRIDGE = re.compile(
    r"(?:\\{0,7}[\"'])?[ \t,/]{0,80}(?:(?<=[\"', \t/])|\r?\n"
    + _MARGIN
    + r"\s{0,60})(?:-{2}|\\{0,7}[\"'])?(?i:value|default|content|secretstring|data|secret-string|body)(?![A-Za-z])\\{0,7}[\"']?\s{0,10}[:=]?\s{0,10}"
    r"|\\{0,7}[\"']\s{0,4}\{[^{}]{0,400}?\b(?:default|value)\s{0,10}=\s{0,10}"
    r"|\\{0,7}[\"']\s{0,4}:\s{0,4}\{[^{}]{0,200}?\\{0,7}[\"'](?i:value|default)\\{0,7}[\"']\s{0,4}:\s{0,4}"
    r"|</(?i:key|name)>\s{0,40}" + _MARGIN + r"\s{0,40}<(?i:string|value)>"
)
_XML_VALUE = re.compile(r"(?P<value>[^<>\s](?:[^<>\n]{1,498}[^<>\s])?)</")
_XML = re.compile(
    r"(?:[\"' ][^<>\n]{0,80})?>\s{0,40}"
    + _MARGIN
    + r"\s{0,40}(?:<!\[CDATA\[)?(?P<value>[^<>\s](?:[^<>\n]{1,498}?[^<>\s])?)(?:\]\]>)?\s{0,40}</"
)
# A word after a name, with an option or a digit between them.
_WORD = re.compile(r"(?:--?[a-z]{1,12}[ =]|\d[ ])?(?P<value>[A-Za-z0-9!@#$%^&*+=.?-]{9,100})(?=[\s\"'`,;]|$)")
_NAME_CHARACTERS = f"{string.ascii_letters}{string.digits}_-"
# A word before the name that belongs to it: `api key`, `mot de passe`.
_QUALIFIER = re.compile(r"(?i:\b(?:api|secret|access|private|auth|access[ ]key|signing|encryption|app|client|account|license)|mot[ ]de|kata|mật)[ .]$")  # fmt: skip
# An option, or a command that takes a name and a value: `export NAME VALUE`, `login USER PASSWORD`.
_COMMAND_BEFORE = re.compile(r"(?i:(?<![\w-])-{1,2}[\w-]*|\b(?:setenv|env|export|arg|set[ ]-\w{1,3}|set|config:set|configure[ ]set|config[ ]set|secret[ ]set|login[ ]\S{1,100}|user(?:name)?[ ]\S{1,100})[ \t]+[\w.:/-]*)$")  # fmt: skip
# The beginning of a line of settings, also in a listing or a diff.
_LINE_START = re.compile(r"(?:[+>|-][ \t]*)?(?:\d{1,6}(?:\t|[ ]*[:|\u2192-])[ \t]*)?[\w\t \"'*+>.$:/-]{0,100}$")
_TYPE_WORDS = frozenset("str string int bool text varchar bytes secretstr any object number boolean".split())
_JUDGED_CHARACTERS = 128  # the beginning by which a value without quotes is judged: it may hold a hundred names
_MOST_ITEMS = 200  # the most items of a list that are looked at after a name


@dataclass(slots=True)
class _Field:
    """A name in a text, and the place of its value."""

    text: str
    begin: int  # offset of the name
    name: str
    is_option: bool  # the name begins with a dash
    strength: Strength
    end: int  # offset after the name
    closing: str  # the quote or bracket that ends the name
    separator: str  # the text between name and value, such as `=`; empty or a space if there is none
    value_at: int  # offset of the value, its quote included
    is_tight: bool  # it is written as `name=value`, without blanks or a type

    @property
    def before(self) -> str:
        """The character before the name; empty at the beginning of the text."""
        return self.text[self.begin - 1 : self.begin]

    @property
    def is_upper(self) -> bool:
        return self.name.upper() == self.name

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
    if element and is_secret(element["value"], field.strength, is_sure=False):
        return [element.span("value")]
    # The name may itself be a value, with the secret in the next field.
    following = text[field.value_at : field.value_at + 1]
    if field.separator in ("", " ", ">", ",", "(") or following in ("", "\n") or field.before in ('"', "'"):
        bridge = _BRIDGE.match(text, field.end)
        if bridge and bridge[0].startswith("</"):
            element = _XML_VALUE.match(text, bridge.end())
            is_value = element and is_secret(element["value"], field.strength, is_sure=False)
            return [element.span("value")] if element and is_value else []
        if bridge:
            field.value_at, field.separator, field.closing = bridge.end(), ":", ""
        elif field.separator == ">":
            return []
    # A comma separates name and value only in the arguments of a call or command.
    is_argument = field.closing and (text[field.begin - 2 : field.begin - 1] == "(" or field.is_option)
    if field.separator == "," and not is_argument:
        return []
    for find in (_find_quoted, _find_listed):
        if (spans := find(field)) is not None:
            return spans
    is_password = field.strength is Strength.PASSWORD
    is_call = field.is_option and field.before in ("", " ", "\t", "'", '"', "[", ",")
    if field.separator in ("", " ") and not is_call and not field.follows_command():  # in prose, or an unknown command
        word = _WORD.match(text, field.value_at)
        is_found = word and is_password and not field.name.endswith("pass") and looks_random(word["value"], 9)
        return [word.span("value")] if word and is_found else []
    if block := _BLOCK.match(text, field.value_at):  # the line below the name, in YAML
        is_token = is_secret(block["value"], min(field.strength, Strength.TOKEN), is_quoted=False)
        return [block.span("value")] if is_token else []
    phrase = _PHRASE.match(text, field.value_at) if is_password and field.separator in (":", "：") else None
    if phrase and any(map(str.isdigit, phrase[0])) and is_secret(phrase["value"], field.strength, is_sure=False):
        return [phrase.span("value")]  # several words to the end of the line, one of them with a digit
    return _find_bare(field)


def _read_name(text: str, start: int, stop: int) -> _Field | None:
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
    is_tight = after["sep"] == "=" and after.start("sep") <= name_end and after.end("sep") >= after.end()
    return _Field(
        text, begin, name, remaining.startswith("-"), strength,
        after.end("rest"), after["close"], after["sep"], after.end(), is_tight,
    )  # fmt: skip


# The next two return None if the value has another form, and no span if it is no secret.


def _find_quoted(field: _Field) -> list[Span] | None:
    quoted = _QUOTED.match(field.text, field.value_at)
    if not quoted:
        return None
    value, separator = quoted["value"], field.separator
    if separator == " " and field.strength < Strength.PASSWORD and not field.follows_command():
        return []
    is_prose = separator == " |" or separator[:1].isalpha()
    if separator in ("(", " ") or is_prose:
        stands_alone = is_mixed(value) and not any(c in value for c in ":(\\") and not field.name.endswith("pass")
        is_assigned = separator == " " and (field.is_upper or field.follows_command())
        if not stands_alone and not is_assigned:
            return []
    if value.startswith((" ", "%")):
        return []
    is_sure = separator == "=" and field.is_upper and field.text[field.value_at - 1] == "="
    return [quoted.span("value")] if is_secret(value.rstrip("\\"), field.strength, is_sure=is_sure) else []


def _find_listed(field: _Field) -> list[Span] | None:
    if field.separator in (",", "("):
        return []
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


def _find_bare(field: _Field) -> list[Span]:
    """A value without quotes: in a file of settings, a command, a URL or prose."""
    match = _BARE.match(field.text, field.value_at)
    if not match:
        return []
    text, begin, before, strength = field.text, field.begin, field.before, field.strength
    line = text.rfind("\n", max(0, begin - 200), begin) + 1
    starts_line = _LINE_START.match(text[max(line, begin - 100) : begin]) is not None
    following = text[match.end() : match.end() + 2]
    ends_line = following[:1] in ("", "\n", "\r") or following in (" \n", "  ", " #")
    value = match["value"]
    if before in ("?", "&", ";", "#"):  # a parameter of a URL, or of a connection string
        if before != ";" or "://" in text[max(0, begin - 300) : begin]:
            strength = max(strength, Strength.TOKEN)
        value = re.split(r"[;)<>\]\\]" if before == ";" else r"^&|&(?=[\w.%\[\]-]{1,60}=)|[;#)<>\]\\]", value)[0]
    elif not (starts_line and ends_line):
        value = re.split(r"^&|[;|<>]", value)[0]  # a `&` later on may be part of a password
    value = _without_end(value)
    span = match.start(), match.start() + len(value)
    if value.lower() == field.name.lower() or value.lower() in _TYPE_WORDS or is_code(value.partition(",")[0]):
        return []
    if strength is Strength.PASSWORD and field.separator == ":" and value.isdecimal() and len(value) >= 6:
        return [span]  # a number in JSON
    is_variable = field.is_tight and field.is_upper
    is_setting = starts_line and ends_line and (field.separator in (":", "：", "") or field.is_tight)
    is_sure = is_variable or (field.is_tight and before in ("?", "&")) or (is_setting and strength is Strength.PASSWORD)
    if strength is Strength.TOKEN and is_variable and not is_code(value) and len(value) >= 8:
        strength = Strength.PASSWORD
    head = value[:_JUDGED_CHARACTERS]
    if len(head) < len(value):  # the cut may leave less of a part between dots than a token has
        head = head.rpartition(".")[0] or head
    heads = dict.fromkeys([head, _without_end(head.partition("&")[0])])  # what follows a `&` may be a further parameter
    return [span] if any(is_secret(item, strength, is_quoted=False, is_sure=is_sure) for item in heads) else []


def _without_end(value: str) -> str:
    """A value without the signs of a sentence, a program or Markdown behind it."""
    return value.rstrip(",;.\\)}]").removesuffix("**")
