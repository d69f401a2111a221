"""Judge which names say that their value is a secret, and which values can be one. Pure.

A password is recognised by its name alone. The value of a token or key must look random as well, since code is full of
such names (`token = tokens.next`, `CACHE_KEY = "user-list"`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from enum import IntEnum


class Strength(IntEnum):
    """How strongly a name says that its value is a secret."""

    NONE = 0
    KEY = 1
    """`key`, `auth`, the name of a provider: the value must be long and random."""
    TOKEN = 2
    """`token`, `secret`, `api_key`: the value must look random."""
    PASSWORD = 3
    """Any value that is no word of a program."""


def _split(words: str) -> list[str]:
    return words.split()


FOREIGN = [
    word.replace("_", " ")
    for word in _split(
        "contraseña hasło jelszó lösenord şifre φράση κωδικ пароль пароля паролем парол секрет токен ключ 密码 密碼 口令 密钥 "
        "密鑰 令牌 パスワード 暗証番号 秘密鍵 トークン 비밀번호 암호 비밀키 كلمة_المرور كلمة_السر סיסמ पासवर्ड รหัสผ่าน mật_khẩu schlüssel"
    )
]
"""Words for passwords and keys that have other letters than ASCII."""
_PASSWORDS = frozenset(
    _split(
        "password passwd passphrase passcode passwort passord passwordd pwd pass pw psw psk kennwort contrasena clave "
        "mdp motdepasse senha haslo heslo jelszo wachtwoord losenord adgangskode salasana geslo parola parool parol "
        "sifre lozinka zaporka mnemonic dbpass sshpass userpass keypass storepass requirepass rootpass adminpass bindpw "
        "rootpw dbpw userpw adminpw masterauth"
    )
)
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
# Words after the one that counts: `password_prod`, `token2`.
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
# Words of a name in camel case, each a "hump". Random text has many short ones.
_HUMPS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_TOKEN_LETTERS = re.compile(r"[A-Za-z0-9+/=_.~:!@#%^&*$|-]+")
_KEY_LETTERS = re.compile(r"[A-Za-z0-9+/=_-]++(?:\.[A-Za-z0-9+/=_-]{12,}+)*+")
_BASE64 = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Z]*[A-Z])[A-Za-z0-9+/]{32,}={0,2}")
_SCATTERED = re.compile(r"[0-9]++[A-Za-z]++[0-9]++[A-Za-z]++[0-9]")
_HEX = re.compile(r"[0-9a-f]{32,}|[0-9A-F]{32,}")
_LETTERS = re.compile(r"[A-Za-z]+")
# Values of these words alone are examples or texts of a program.
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
# Sentences: messages and labels about a password.
_MESSAGE = re.compile(
    r"(?:[.?!:]|\.\.\.)$|%[sdr(]|\{\w*\}|[()<>=]|\b(?:passwords?|token|secret|passphrase|key)\b", re.IGNORECASE,
)  # fmt: skip
_PROSE = re.compile(
    r"\b(?:the|your|is|are|was|for|must|enter|please|not|required|with|and|an?|of|to|in|on|or|if)\b", re.IGNORECASE
)


def strength_of(name: str) -> Strength:
    """The strength of a name. `dbPassword` has one, `max_tokens` and `password_file` have none."""
    if not name.isascii() and any(word in name.lower() for word in FOREIGN):
        return Strength.PASSWORD
    words = [word.lower() for word in _WORDS.findall(name[-100:])]
    while len(words) > 1 and (words[-1] in _TAILS or words[-1].isdigit()):
        words.pop()
    if not words or "websocket" in name.lower():  # the `Sec-WebSocket-Key` is a nonce
        return Strength.NONE
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    single = last.removesuffix("s")
    is_password = last in _PASSWORDS or single in _PASSWORDS
    if (is_password and name not in ("PWD", "OLDPWD", "Pass", "pass_")) or single.endswith(_PASSWORD_ENDS):
        return Strength.NONE if last == "pwd" and before == "old" else Strength.PASSWORD
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
    """Whether a value is a secret, given the strength of its name.

    `is_quoted`: it has quotes around it. `is_sure`: only a value can be in its place, as in `NAME=value` or JSON.
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
        if not is_quoted or (_MESSAGE.search(value.rstrip(".?!") if any(map(str.isdigit, value)) else value)):
            return False
        return is_sure or any(map(is_mixed, value.split())) or (not _PROSE.search(value) and len(value) < 60)
    if is_quoted:
        return value[-1] not in ":?" and not value.startswith("--") and not _is_program_key(value)
    if is_code(value) or _CALL.match(value) or _is_program_key(value):
        return False
    return is_sure or is_mixed(value)


def is_dummy(value: str) -> bool:
    """Whether a value consists of words that documents show in place of a secret."""
    return (
        len(value) <= 60
        and sum(c.isdigit() for c in value) < 2
        and all(hump.lower() in _ALL_WORDS for hump in _HUMPS.findall(value) if not hump.isdigit())
    )


def entropy(value: str) -> float:
    """Shannon's entropy of a text, in bits a character."""
    return -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values())


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
    return (
        _CODE.match(value) is not None
        and any(mark in value for mark in (".", "::", "->", "(", "["))
        and not any(looks_random(part, 6) for part in value.split("."))
    )


def _is_program_key(value: str) -> bool:
    """Whether a value is a key of a program, made of words without digits: `login.password.label`, `user_password`."""
    words = [word.lower() for word in _HUMPS.findall(value)]
    return (
        not any(word.isdigit() for word in words)
        and len(words) > 1
        and not _ALL_WORDS.isdisjoint(words)
        and re.fullmatch(r"[A-Za-z_.:/ -]+", value) is not None
    )


def is_mixed(value: str) -> bool:
    """Whether a value has digits among letters, or signs, as no word has."""
    has_digits, has_letters = any(map(str.isdigit, value)), any(c.islower() or c.isupper() for c in value)
    return len(value) >= 5 and ((has_digits and has_letters) or any(c in "!@#$%^&*+=?~" for c in value[1:]))
