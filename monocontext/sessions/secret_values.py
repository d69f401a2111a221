"""Judge by a name whether its value may be a secret, and by the value whether it is one. Does no I/O.

Any value of a password is a secret, unless it is code or a placeholder. The value of a token or key must look random as
well, since code is full of such names: `token = tokens.next`, `CACHE_KEY = "user-list"`.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple


class Secret(NamedTuple):
    """A secret in a text: characters [start, stop)."""

    start: int
    stop: int
    kind: str  # such as `github`, `private-key` or `named-secret`


class Strength(IntEnum):
    """How strongly a name says that its value is a secret."""

    NONE = 0
    KEY = 1  # `key`, `auth`, the name of a provider: the value must have 16 characters and look random
    TOKEN = 2  # `token`, `secret`, `api_key`: the value must have 8 characters and look random
    PASSWORD = 3  # any value that is neither code nor a placeholder


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FOREIGN = [  # words for passwords and keys with letters outside ASCII; `_` stands for a blank
    word.replace("_", " ")
    for word in "contraseña hasło jelszó lösenord şifre φράση κωδικ пароль пароля паролем парол секрет токен ключ mật_khẩu schlüssel "
    "密码 密碼 口令 密钥 密鑰 令牌 パスワード 暗証番号 秘密鍵 トークン 비밀번호 암호 비밀키 كلمة_المرور كلمة_السر סיסמ पासवर्ड รหัสผ่าน".split()
]
# The last word of a name, without a plural `s`, decides.
_PASSWORDS = _words("""
    passord passwordd pass pw psw psk contrasena clave mdp motdepasse senha haslo heslo jelszo losenord adgangskode salasana geslo parola parool parol
    sifre lozinka zaporka dbpass sshpass userpass keypass storepass requirepass rootpass adminpass bindpw rootpw dbpw userpw adminpw masterauth""")
_PASSWORD_ENDINGS = ("password", "passwd", "passphrase", "passwort", "passcode", "kennwort", "wachtwoord", "pwd")
_PASSWORD_PAIRS = frozenset("pass_phrase seed_phrase secret_phrase recovery_phrase de_passe palavra_passe".split())
_TOKENS = frozenset("token secret credential cred creds apikey authtoken geheim secreto".split())
_TOKEN_ENDINGS = ("token", "secret", "apikey", "secretkey", "accesskey", "privatekey", "presharedkey", "signingkey")
_BEFORE_KEY = _words("""
    api secret private access account signing encryption auth master client shared preshared service crypt cipher license licence deploy app
    application storage admin root subscription consumer session jwt hmac webhook""")
_KEYS = frozenset(["key", "auth", "sig", "hmac", "schluessel"])
_PROVIDERS = _words("""
    adafruit adobe algolia alibaba asana atlassian beamer bitbucket bittrex clickhouse codecov cohere coinbase confluence confluent contentful datadog
    droneci dropbox etsy facebook fastly finicity finnhub flickr freshbooks gitter gocardless heroku hubspot intercom jfrog artifactory bintray jira
    kraken kucoin launchdarkly linkedin looker mailchimp mailgun mapbox mattermost meraki messagebird netlify nytimes okta openweather plaid privateai
    rapidapi sendbird snyk softlayer sonar squarespace sumologic travis twilio twitch twitter typeform yandex zendesk cloudant discord cloudflare""")
NAME_WORDS = [  # a name that contains one of these may belong to a secret
    *"pass kennwort contrase clave mdp senha haslo heslo jelszo wachtwoord losenord adgangskode salasana geslo parol "
    "sifre lozinka zaporka palavra pw psw psk token secret cred key geheim hmac _pat phrase auth sig".split(),
    *_FOREIGN, *sorted(_PROVIDERS),
]  # fmt: skip
# Words that may follow the one that decides: `password_prod`, `token2`.
_TRAILING = _words("""
    value prod production dev development test staging live base string plain plaintext raw text current new old main primary secondary backup data
    default bytes b64 base64 v x s here confirm confirmation again""")
_NAME_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")  # APIKey2 -> API Key 2
# A value of these words alone is a placeholder, or a text of a program.
_PLAIN_WORDS = _words("""
    user username name names str string text bytes int bool any optional none null test tests testing foo bar baz spam egg eggs abc type field input
    required varchar char object value values string secretstr get set of the to is and or not login your my enter new old me key keys api access id
    ok yes no false true hidden changeme code sample example auth wrong right good bad invalid valid valuable file path admin root some other a an in
    for with db database default empty unset anonymous guest public private client server blah hash reset grant protected method word void const var
    let mypassword mysecret mypass yourpassword redacted postgres""")
_PLAIN_WORDS |= _PASSWORDS.union(_PASSWORD_ENDINGS) | _TOKENS | _KEYS
_RUNS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")  # getById2 -> get By Id 2; random text has many short runs
_REFERENCE = re.compile(r"""(?ix)  # the beginning of what stands in place of a value
    \$[\w({] | < | \{ | %[({A-Z]|%[sdr]\b | ![01]\b     # $NAME ${NAME} $(pass), <token>, {token}, %(token)s %TOKEN%, !0
    | \*{3} | \.{3} | x{4,}|X{4,}                       # ***, ..., xxxx
    | \[REDACTED | \[picture | @[\w]{0,20}[({] | \#\{   # what redaction left, @Value(...), #{token}
    | ~/ | /(?:[\w.@-]+/)+ | file:                      # ~/key, /run/secrets/key, file:key
    | (?:null|none|nil|true|false|undefined|os|process|env|secrets|vars?|self|this|your|my|dummy|placeholder|settings
        |config|args|options)(?:\b|[._-])""")  # null, os.environ, your-token; not nullable1
_PLACEHOLDER = re.compile(r"""(?x)  # your-key, ab***, 0000000; not 000
    your|Your|YOUR | (?i:example|placeholder|dummy|redacted|changeme|insert|replace)
    | x{4}|X{4} | \*{3} | \.{3} | (.)\1{6} | (?i:1234567890|abcdefgh|a1b2c3d4e5)""")
# os.environ[, tokens.next, getpass(; not tokens-next
_CODE = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*)*(?:[({\[]|\.{3}|\)|$)")
# getpass.getpass(, password), or 2fa(); not pa)ss
_CALL = re.compile(r"[\w$]*[A-Za-z_$][\w$]*(?:(?:\.|->|::)[\w$]+)*[({\[]|[^(\[{]*[)\]}][.),:;\])}]*$|\w+\(\)")
# A label or message about a password: `Wrong one!`, `{name} (again)`, `New password`; not `correct horse battery`
_MESSAGE = re.compile(r"(?i:[.?!:]$|\.\.\.$|%[sdr(]|\{\w*\}|[()<>=]|\b(?:passwords?|token|secret|passphrase|key)\b)")
_PROSE = re.compile(r"(?i)\b(?:the|your|is|are|was|for|must|enter|please|not|required|with|and|an?|of|to|in|on|or|if)\b")  # fmt: skip
_TOKEN_LETTERS = re.compile(r"[A-Za-z0-9+/=_.~:!@#%^&*$|-]+")
_KEY_LETTERS = re.compile(r"[A-Za-z0-9+/=_-]++(?:\.[A-Za-z0-9+/=_-]{12,}+)*+")  # parts between dots are long: not a.b1
_BASE64 = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Z]*[A-Z])[A-Za-z0-9+/]{32,}={0,2}")
_SALT = re.compile(r"(?=(?:[^!@#$%^*(]*[!@#$%^*(]){3})[!-~]{40,}")  # of Django and WordPress, with 3 signs or more
_SCATTERED = re.compile(r"[0-9]++[A-Za-z]++[0-9]++[A-Za-z]++[0-9]")  # 7fk2q9; not fk27q
_HEX = re.compile(r"[0-9a-f]{32,}|[0-9A-F]{32,}")


def strength_of(name: str) -> Strength:
    """How strongly a name says that its value is a secret: `dbPassword`, `API_KEY_2`, `sort_key`, `name`."""
    if not name.isascii() and any(word in name.lower() for word in _FOREIGN):
        return Strength.PASSWORD
    words = [word.lower() for word in _NAME_PARTS.findall(name[-100:])]
    while len(words) > 1 and (words[-1] in _TRAILING or words[-1].isdigit()):
        words.pop()
    if not words or "public" in words or "websocket" in name.lower():  # the `Sec-WebSocket-Key` is a nonce
        return Strength.NONE
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    singular = last.removesuffix("s")
    is_password = name not in ("Pass", "pass_") and not _PASSWORDS.isdisjoint((last, singular))
    if is_password or singular.endswith(_PASSWORD_ENDINGS):
        return Strength.NONE if (before, last) == ("old", "pwd") else Strength.PASSWORD  # `OLDPWD` is a directory
    if f"{before}_{last}" in _PASSWORD_PAIRS:
        return Strength.PASSWORD
    is_access_token = last == "pat" and before and name.upper() == name  # `GH_PAT`, a personal access token
    is_token = singular in _TOKENS or singular.endswith(_TOKEN_ENDINGS) or is_access_token
    if is_token or (singular == "key" and before in _BEFORE_KEY):
        return Strength.TOKEN
    is_key = singular in _KEYS or singular.endswith("key") or words[-3:] == ["access", "key", "id"]
    return Strength.KEY if is_key or not _PROVIDERS.isdisjoint(words) else Strength.NONE


def is_secret(value: str, strength: Strength, *, is_quoted: bool = True, is_sure: bool = True) -> bool:
    """Whether a value is a secret, given the strength of its name.

    `is_quoted`: the value is in quotes; else it may be code. `is_sure`: what is there can only be a value, as in
    `NAME=value`; else a password must not look like a word.
    """
    if not 4 <= len(value) <= 20_000 or is_dummy(value):
        return False
    is_base64 = value[0] == "/" and _BASE64.fullmatch(value) and looks_random(value, 32)  # and no path
    if _REFERENCE.match(value) and not is_base64:
        return False
    if strength < Strength.PASSWORD:
        return _is_token(value, strength) and (is_quoted or not is_code(value))
    if any(c.isspace() for c in value):
        return is_quoted and _is_passphrase(value, is_sure)
    if _is_program_key(value):
        return False
    if is_quoted:
        return value[-1] not in ":?" and not value.startswith("--")
    return not is_code(value) and not _CALL.match(value) and (is_sure or is_mixed(value))


def is_dummy(value: str) -> bool:
    """Whether a value consists of words that documents show in place of a secret: `changeme`, `my-secret-1`."""
    words = (run.lower() for run in _RUNS.findall(value) if not run.isdigit())
    return len(value) <= 60 and sum(map(str.isdigit, value)) < 2 and all(word in _PLAIN_WORDS for word in words)


def is_random_token(text: str) -> bool:
    """Whether the letters and digits of a token look random, and are no placeholder such as `xxxx` or `your-key`."""
    plain = "".join(filter(str.isalnum, text))
    if len(set(plain)) < min(8, len(plain) // 2) or _PLACEHOLDER.search(text):
        return False
    if any(looks_random(part, 16) for part in re.split("[^A-Za-z0-9]", text)):
        return True
    if not any(map(str.isdigit, plain)) and not plain.isupper():  # letters of both cases
        return len(plain) >= 10 and len(plain) <= 3.2 * len(_RUNS.findall(plain))
    return looks_random(plain, 10) or (text == plain and (plain.isupper() or sum(map(str.isdigit, plain)) >= 3))


def looks_random(value: str, least_characters: int) -> bool:
    """Whether a text has at least `least_characters` and looks random: `a3F9...`, not `getById2`.

    Random text changes between small letters, capitals and digits after two or three characters, words after five. So
    the runs of random text are short on average. The shorter a text, the more its average is a matter of chance, so the
    lower is the bound. tests/sessions/secret_texts.py has the texts that these bounds must tell apart.
    """
    if len(value) < least_characters or any(c.isspace() for c in value) or not value.isascii():
        return False
    runs = _RUNS.findall(value)
    length, digits = sum(map(len, runs)), sum(c.isdigit() for c in value)  # length: of letters and digits
    is_mostly_signs = length < least_characters * 3 // 4 or length < 0.7 * len(value)
    if is_mostly_signs or digits == length:
        return False
    is_long = length >= 28 and value.isalnum()
    if not digits:
        short_average = 2.6 if length < 24 else 3.0
        most_average = 3.9 if is_long else short_average
        return length >= 16 and length <= most_average * len(runs)
    if _HEX.fullmatch(value) or (len(value) >= 20 and value.isalnum() and _SCATTERED.search(value)):
        return True
    return len(runs) >= 4 and length <= (4.2 if is_long else 3.4) * len(runs)


def is_code(value: str) -> bool:
    """Whether a value is a dotted name or a call in a program, such as `tokens.next`."""
    has_mark = any(mark in value for mark in (".", "::", "->", "(", "["))
    return has_mark and bool(_CODE.match(value)) and not any(looks_random(part, 6) for part in value.split("."))


def is_mixed(value: str) -> bool:
    """Whether a value has digits among letters, or signs, unlike a word: `hunter2`, `p@ssword`."""
    has_digits, has_letters = any(map(str.isdigit, value)), any(c.islower() or c.isupper() for c in value)
    return len(value) >= 5 and ((has_digits and has_letters) or any(c in "!@#$%^&*+=?~" for c in value[1:]))


def _is_token(value: str, strength: Strength) -> bool:
    """Whether the value of a token or key is random: `a3F9...`, not `user-list`."""
    is_of_words = all(len(run) == 1 or run.lower() in _PLAIN_WORDS for run in _RUNS.findall(value))
    if is_of_words or _PLACEHOLDER.search(value):
        return False
    if _SALT.fullmatch(value) and looks_random("".join(filter(str.isalnum, value)), 24):
        return True
    if strength is Strength.TOKEN:
        return bool(_TOKEN_LETTERS.fullmatch(value)) and looks_random(value, 8)
    has_random_part = looks_random(max(re.split("[_-]", value), key=len), 8)
    return has_random_part and bool(_KEY_LETTERS.fullmatch(value)) and looks_random(value, 16)


def _is_passphrase(value: str, is_sure: bool) -> bool:
    """Whether several words are a passphrase (`correct horse battery`), and not a message (`Enter your password:`)."""
    has_digits = any(map(str.isdigit, value))
    if _MESSAGE.search(value.rstrip(".?!") if has_digits else value):
        return False
    return is_sure or any(map(is_mixed, value.split())) or (not _PROSE.search(value) and len(value) < 60)


def _is_program_key(value: str) -> bool:
    """Whether a value is a key of a program, made of words without digits: `login.password.label`, `user_password`."""
    words = [run.lower() for run in _RUNS.findall(value)]
    return len(words) > 1 and not _PLAIN_WORDS.isdisjoint(words) and bool(re.fullmatch(r"[A-Za-z_.:/ -]+", value))
