"""Replace the secrets in a URL, or in a text that contains one, by `***`, so that a message may show it."""

from __future__ import annotations

import re

# The patterns are compiled at their first use: few URLs need them.
_LOGIN = r"(?s)(:/+|\b(?:s3|gs|az|https?):(?!/))(?:[^/:]*:.*|[^/@]*)@|(//)[^/:]*:.*@"
"""The login before a host, and the slashes or the scheme before the login. A user name may contain `@`, and a
password also `/`. Matches `://user:password@`, `s3:token@` and `//user:a/b@`, but not the `@` of `https://host/a@b`."""
_PARAMETER = r"(?s)(?<=[?&;#])([\w.%\[\]-]+)=((?:(?![?&;#][\w.%\[\]-]+=).)*)"
"""A parameter and its value, which ends where another parameter begins, since a password may contain `&` and `#`: in
`?pw=a&b&part=2` the values are `a&b` and `2`."""
_SECRET_NAME = (
    r"(?i)sig|sas|sid|code|key|passcode|pwd|pw|otp|hmac|auth(?:orization)?|jwt|bearer|cookie|ticket|SAML\w+|session|csek"
    r"|x-(?:amz|goog|ms|oss)-.+|awsaccesskeyid|googleaccessid|phpsessid|(?:.*[-_.]|user|db)?pass"
    r"|.*(?:token|secret(?:key)?|pass[-_.]?w(?:or)?d|pass[-_.]?phrase|creds?|credentials?|signature|assertion|session[-_]?id"
    r"|access[-_.]?code|connection[-_.]?string)"
    r"|(?!(?:sort|primary|partition|foreign|object|public|cache|row)[-_.]key).*(?:[-_.]|api|app|access|account|auth|crypt|"
    r"cryption|customer|license|master|pass|private|shared|signing|sse|ssec|storage|subscription)key(?:[-_.]?(?:base64|hex))?"
)
"""The name of a parameter whose value grants access: `X-Amz-Signature`, `sig`, `access_token` or `api-key`, but not
`sort_key`, `monkey` or `signed`."""
_ESCAPE = r"(?i)%([2-7][0-9a-f])|\\{1,4}(?:u00([2-7][0-9a-f])|/)"
"""An ASCII character that a URL has percent-encoded (`%3D`), or that JSON has escaped (`\\u003d`, `\\/`)."""
_MOST_ESCAPES = 4  # how often a URL in the parameter of another URL may have been escaped


def without_secrets(text: str) -> str:
    r"""The URL, or a text that contains one, with `***` in place of logins and of the values of secret parameters.

    If a secret shows only once the text is unescaped (`https:\/\/user:password@host`, `?next=https%3A%2F%2F...`), the
    result is the unescaped text.
    """
    result = unescaped = _hide_unescaped(text)
    for _ in range(_MOST_ESCAPES):
        unescaped = re.sub(_ESCAPE, _unescape, unescaped)
        hidden = _hide_unescaped(unescaped)
        if hidden != unescaped:
            result = unescaped = hidden
    return result


def _hide_unescaped(text: str) -> str:
    # Logins are sought before the last `@` only: after it, each attempt would read the whole rest in vain.
    to_last_at, at, rest = text.rpartition("@")
    return re.sub(_PARAMETER, _hide_value, re.sub(_LOGIN, r"\1\2***@", to_last_at + at) + rest)


def _hide_value(parameter: re.Match[str]) -> str:
    name = re.sub(_ESCAPE, _unescape, parameter[1]).partition("[")[0]  # of `token[]=...` too
    if parameter[2].startswith("***") or not re.fullmatch(_SECRET_NAME, name):  # hidden before, or no secret
        return parameter[0]
    return f"{parameter[1]}=***"


def _unescape(escape: re.Match[str]) -> str:
    digits = escape[1] or escape[2]
    return chr(int(digits, 16)) if digits else "/"
