"""Judge which names say that their value is a secret, and which values can be one. Pure.

A password is recognised by its name alone; tokens and keys by name must look random as well, for code is full of
words named so (`token = tokens.next`, `CACHE_KEY = "user-list"`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from enum import IntEnum


def _split(words: str) -> list[str]:
    return words.split()


class Strength(IntEnum):
    """How sure a name makes it that its value is a secret."""

    NONE = 0
    KEY = 1
    """`key`, `auth`, the name of a provider: the value must be long and random."""
    TOKEN = 2
    """`token`, `secret`, `api_key`: the value must look random."""
    PASSWORD = 3
    """Any value that is no word of a program."""


FOREIGN = _split(
    "contraseña palavra-passe hasło jelszó lösenord şifre φράση κωδικ пароль пароля паролем парол секрет токен ключ "
    "密码 密碼 口令 密钥 密鑰 令牌 パスワード 暗証番号 秘密鍵 トークン 비밀번호 암호 비밀키 كلمة סיסמ पासवर्ड รหัสผ่าน mật khẩu schlüssel"
)
FOREIGN = [word for word in FOREIGN if not word.isascii() and word not in ("mật", "كلمة", "khẩu")] + [
    "mật khẩu",
    "كلمة المرور",
    "كلمة السر",
]
_PLAIN = (
    "password passwd passphrase passcode passwort passord passwordd pwd pass pw psw psk kennwort contrasena clave mdp "
    "motdepasse senha haslo heslo jelszo wachtwoord losenord adgangskode salasana geslo parola parool parol sifre "
    "lozinka zaporka mnemonic"
)  # fmt: skip
_PASSWORDS = frozenset([*_PLAIN.split(), "dbpass", "sshpass", "userpass", "keypass", "storepass", "requirepass", "rootpass",
                        "adminpass", "bindpw", "rootpw", "dbpw", "userpw", "adminpw", "masterauth"])  # fmt: skip
_PASSWORD_ENDS = ("password", "passwd", "passphrase", "passwort", "passcode", "kennwort", "wachtwoord", "pwd")
_TOKENS = frozenset(_split("token secret credential cred creds apikey authtoken geheim secreto"))
_TOKEN_ENDS = ("token", "secret", "apikey", "secretkey", "accesskey", "privatekey", "presharedkey", "signingkey")
_KEY_OF = frozenset(
    _split(
        "api secret private access account signing encryption auth master client shared preshared service crypt cipher "
        "license licence deploy app application storage admin root subscription consumer session jwt hmac webhook"
    )
)
_WEAK = frozenset(["key", "auth", "sig", "hmac", "schluessel"])
PROVIDERS = _split(
    "adafruit adobe algolia alibaba asana atlassian beamer bitbucket bittrex clickhouse codecov cohere coinbase "
    "confluence confluent contentful datadog droneci dropbox etsy facebook fastly finicity finnhub flickr "
    "freshbooks gitter gocardless heroku hubspot intercom jfrog artifactory bintray jira kraken kucoin launchdarkly "
    "linkedin looker mailchimp mailgun mapbox mattermost meraki messagebird netlify nytimes okta openweather plaid "
    "privateai rapidapi sendbird snyk softlayer sonar squarespace sumologic travis twilio twitch twitter typeform "
    "yandex zendesk cloudant discord cloudflare dnkey"
)
_PROVIDERS = frozenset([*PROVIDERS, "sumo", "ibm", "iam", "cos"])
_TAILS = frozenset(
    _split(
        "value prod production dev development test staging live base string plain plaintext raw text current new old "
        "main primary secondary backup data default bytes b64 base64 v x s here confirm confirmation again"
    )
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
_HUMPS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_TOKEN_LETTERS = re.compile(r"[A-Za-z0-9+/=_.~:!@#%^&*$|-]+")
_KEY_LETTERS = re.compile(r"[A-Za-z0-9+/=_-]++(?:\.[A-Za-z0-9+/=_-]{12,}+)*+")
_BASE64 = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Z]*[A-Z])[A-Za-z0-9+/]{32,}={0,2}")
_SCATTERED = re.compile(r"[0-9]++[A-Za-z]++[0-9]++[A-Za-z]++[0-9]")
_HEX = re.compile(r"[0-9a-f]{32,}|[0-9A-F]{32,}")
_LETTERS = re.compile(r"[A-Za-z]+")
_ALL_WORDS = frozenset(
    [*_PASSWORDS, *_TOKENS, *_WEAK, *FOREIGN, *_split(
        "user username name names str string text bytes int bool any optional none null test tests testing foo bar "
        "baz spam egg eggs abc type field input required varchar char object value values string secretstr get set of "
        "the to is and or not login your my enter new old me key keys api access id ok yes no false true hidden "
        "changeme code sample example auth wrong right good bad invalid valid valuable file path admin root some "
        "other a an in for with db database default empty unset anonymous guest public private client server blah "
        "hash reset grant protected method word void const var let"
    )]
)  # fmt: skip
_SAID = re.compile(
    r"(?:[.?!:]|\.\.\.)$|%[sdr(]|\{\w*\}|[()<>=]|\b(?:passwords?|token|secret|passphrase|key)\b", re.IGNORECASE,
)  # fmt: skip
_PROSE = re.compile(
    r"\b(?:the|your|is|are|was|for|must|enter|please|not|required|with|and|an?|of|to|in|on|or|if)\b", re.IGNORECASE
)


def strength_of(name: str) -> Strength:
    """The strength of a name: `dbPassword`; not `max_tokens`, `password_file`."""
    if not name.isascii() and any(word in name.lower() for word in FOREIGN):
        return Strength.PASSWORD
    words = [word.lower() for word in _WORDS.findall(name[-100:])]
    while len(words) > 1 and (words[-1] in _TAILS or words[-1].isdigit()):
        words.pop()
    if not words:
        return Strength.NONE
    if "websocket" in name.lower():  # a nonce
        return Strength.NONE
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    single = last.removesuffix("s")
    if (
        not _PASSWORDS.isdisjoint((last, single)) and name not in ("PWD", "OLDPWD", "Pass", "pass_")
    ) or single.endswith(_PASSWORD_ENDS):
        return Strength.PASSWORD if not (last == "pwd" and before == "old") else Strength.NONE
    if last == "phrase" and before in ("pass", "seed", "secret", "recovery"):
        return Strength.PASSWORD
    if last == "passe" and before in ("de", "palavra"):
        return Strength.PASSWORD
    if single in _TOKENS or single.endswith(_TOKEN_ENDS) or (last == "pat" and before and name.upper() == name):
        return Strength.TOKEN
    if single == "key" and before in _KEY_OF:
        return Strength.TOKEN
    if last == "id" and before == "key" and words[-3:-2] == ["access"]:
        return Strength.KEY
    if single in _WEAK or single.endswith("key") or not _PROVIDERS.isdisjoint(words):
        return Strength.KEY
    return Strength.NONE


def names_a_secret(name: str) -> bool:
    """Whether a field of this name holds a secret: `dbPassword`, `clientSecret`; not `max_tokens`, `cacheKey`."""
    return strength_of(name) >= Strength.TOKEN


def is_secret(value: str, strength: Strength, *, is_quoted: bool = True, is_sure: bool = True) -> bool:
    """Whether `value`, of a name of that strength, is a secret.

    `is_sure` is true of a value in a place where only values can be: in `NAME=value`, alone on its line, in JSON.
    """
    if len(value) < 4 or is_dummy(value) or len(value) > 20_000:
        return False
    if _STANDS_FOR.match(value) and not (value[0] == "/" and _BASE64.fullmatch(value) and looks_random(value, 32)):
        return False
    if strength < Strength.PASSWORD:
        letters = _TOKEN_LETTERS if strength == Strength.TOKEN else _KEY_LETTERS
        return (
            letters.fullmatch(value) is not None
            and looks_random(value, 8 if strength == Strength.TOKEN else 16)
            and (is_quoted or not is_code(value))
        )
    if (
        len(value) <= 60
        and all(word.lower() in _ALL_WORDS for word in _HUMPS.findall(value) if not word.isdigit())
        and _LETTERS.search(value)
    ):
        return any(c.isdigit() for c in value) and len(value) >= 8 and not is_code(value)
    if any(c.isspace() for c in value):
        if not is_quoted or (_SAID.search(value.rstrip(".?!") if any(map(str.isdigit, value)) else value)):
            return False
        return is_sure or any(map(is_mixed, value.split())) or (not _PROSE.search(value) and len(value) < 60)
    if is_quoted:
        return value[-1] not in ":?" and not value.startswith("--") and not _keeps_words(value)
    if is_code(value) or _CALL.match(value) or _keeps_words(value):
        return False
    return is_sure or is_mixed(value)


def is_dummy(value: str) -> bool:
    """Whether a value is made of words that documents write in place of a secret."""
    return (
        len(value) <= 60
        and sum(c.isdigit() for c in value) < 2
        and all(hump.lower() in _ALL_WORDS for hump in _HUMPS.findall(value) if not hump.isdigit())
    )


def entropy(value: str) -> float:
    """Bits a character, by Shannon."""
    return -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values())


def looks_random(value: str, least: int) -> bool:
    """Letters and digits without the humps of words: `a3F9...`, not `getUserById2`."""
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
    """A name, a dotted name or a call; a digit at the end may be a password's (`hunter2`), in the middle is one's."""
    found = _CODE.match(value)
    return (
        bool(found)
        and any(mark in value for mark in (".", "::", "->", "(", "["))
        and not (any(looks_random(part, 6) for part in value.split(".")))
    )


def _keeps_words(value: str) -> bool:
    """A key of a program (`login.password.label`, `user_password`) that is made of such words."""
    words = [word.lower() for word in _HUMPS.findall(value)]
    return (
        not any(word.isdigit() for word in words)
        and len(words) > 1
        and not _ALL_WORDS.isdisjoint(words)
        and (re.fullmatch(r"[A-Za-z_.:/ -]+", value) is not None)
    )


def is_mixed(value: str) -> bool:
    """Letters and digits, or signs, as in no word."""
    kinds = [any(map(test, value)) for test in (str.isdigit, str.islower, str.isupper)]
    return len(value) >= 5 and ((sum(kinds) >= 2 and kinds[0]) or any(c in "!@#$%^&*+=?~" for c in value[1:]))
