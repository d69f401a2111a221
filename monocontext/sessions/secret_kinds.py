"""What secrets look like: one pattern a kind. Pure.

Shapes with a prefix of their own come first, they hardly ever match anything else; then those that a name gives away.
High entropy alone is no sign: transcripts are full of hashes. Patterns have no unbounded repetition before a fixed
part, so that a long line costs its length and no more. A group named `secret` is what is taken out, else all.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_B = r"(?<![A-Za-z0-9])"
_BIG = r"(?<![A-Za-z0-9_])"
# What stands for a value and is none: variables, place-holders, what was redacted before.
_NO_VALUE = r"(?!\$|<|\{\{|%[A-Z(]|\*{3}|\.{3}|\[REDACTED|(?:null|none|true|false|undefined|os\.|process\.|env\.)\b)"
_NAME = (
    r"(?<![A-Za-z0-9_])[A-Z0-9_]{0,60}(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)S?[A-Z0-9_]{0,40}"
    r"[ \t]{0,3}=[ \t]{0,3}"
)

_TABLE: tuple[tuple[str, str], ...] = (
    ("private-key", r"-----BEGIN[ +](?:[A-Z0-9]+[ +]){0,3}PRIVATE[ +]KEY(?:[ +]BLOCK)?-----"
                    r"(?:[^-]|-(?!----)){0,20000}(?:-----END[ +][A-Z0-9 +]{0,40}-----)?"),
    ("putty-key", r"PuTTY-User-Key-File-\d:[\s\S]{0,8000}?Private-MAC: [0-9a-f]+"),
    ("anthropic", _B + r"sk-ant-[A-Za-z0-9_-]{16,}"),
    ("openrouter", _B + r"sk-or-(?:v\d-)?[A-Za-z0-9]{16,}"),
    ("openai", _B + r"sk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{16,}|" + _B + r"sk-[A-Za-z0-9]{20,}"),
    ("aws-access-key", _B + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])"),
    ("aws-access-key", _B + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("github", _B + r"gh[pousr]_[A-Za-z0-9]{20,}|" + _B + r"github_pat_[A-Za-z0-9_]{20,}"),
    ("gitlab", _B + r"(?:glpat|glptt|gldt|glrt|glcbt|glsoat|glft)-[A-Za-z0-9_.-]{16,}"),
    ("slack", _B + r"xox[abeoprs]-[A-Za-z0-9-]{10,}|" + _B + r"xapp-[A-Za-z0-9-]{10,}"),
    ("slack", r"https://hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/_-]{16,})"),
    ("discord", r"https://(?:\w+\.)?discord(?:app)?\.com/api/webhooks/(?P<secret>\d+/[A-Za-z0-9_-]{16,})"),
    ("discord", _BIG + r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"),
    ("google", _B + r"AIza[A-Za-z0-9_-]{35}|" + _B + r"GOCSPX-[A-Za-z0-9_-]{20,}|" + _B + r"ya29\.[A-Za-z0-9_-]{20,}"),
    ("stripe", _B + r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}|" + _B + r"whsec_[A-Za-z0-9+/=]{16,}"),
    ("square", _B + r"(?:sq0(?:atp|csp)-[A-Za-z0-9_-]{22,}|EAAA[A-Za-z0-9_-]{56,})"),
    ("shopify", _B + r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}"),
    ("twilio", _B + r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("sendgrid", _B + r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("mailgun", _B + r"key-[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("mailchimp", _B + r"[0-9a-f]{32}-us\d{1,2}(?![A-Za-z0-9])"),
    ("npm", _B + r"npm_[A-Za-z0-9]{30,}"),
    ("pypi", _B + r"pypi-[A-Za-z0-9_-]{30,}"),
    ("rubygems", _B + r"rubygems_[0-9a-f]{40,}"),
    ("docker", _B + r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    ("hugging-face", _B + r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    ("databricks", _B + r"dapi[0-9a-f]{32}"),
    ("digitalocean", _B + r"do[por]_v1_[0-9a-f]{40,}"),
    ("doppler", _B + r"dp\.(?:pt|st|ct|scim|audit)\.(?:[a-z0-9_-]{2,40}\.)?[A-Za-z0-9]{20,}"),
    ("telegram", _BIG + r"\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"),
    ("linear", _B + r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}"),
    ("notion", _B + r"(?:secret_[A-Za-z0-9]{43}|ntn_[A-Za-z0-9]{40,})"),
    ("postman", _B + r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    ("new-relic", _B + r"NR(?:AK|RA|II)-[A-Za-z0-9_-]{20,}"),
    ("grafana", _B + r"gl(?:sa|c)_[A-Za-z0-9+/=_]{30,}"),
    ("sentry", _B + r"sntry[su]_[A-Za-z0-9+/=_-]{30,}"),
    ("supabase", _B + r"sb(?:p|_secret)_[A-Za-z0-9_]{20,}"),
    ("planetscale", _B + r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{20,}"),
    ("vault", _B + r"hv[sbr]\.[A-Za-z0-9_-]{20,}"),
    ("terraform", _B + r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{40,}"),
    ("pulumi", _B + r"pul-[0-9a-f]{40}"),
    ("fly", _B + r"(?:FlyV1 )?fm[12][A-Za-z]?_[A-Za-z0-9+/=_,-]{40,}"),
    ("age", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    ("groq", _B + r"gsk_[A-Za-z0-9]{30,}"),
    ("xai", _B + r"xai-[A-Za-z0-9]{30,}"),
    ("perplexity", _B + r"pplx-[A-Za-z0-9]{30,}"),
    ("replicate", _B + r"r8_[A-Za-z0-9]{30,}"),
    ("tavily", _B + r"tvly-(?:dev-|prod-)?[A-Za-z0-9-]{20,}"),
    ("atlassian", _B + r"ATATT3[A-Za-z0-9_=-]{50,}"),
    ("heroku", _B + r"HRKU-[A-Za-z0-9_-]{30,}"),
    ("figma", _B + r"figd_[A-Za-z0-9_-]{30,}"),
    ("airtable", _B + r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("pinecone", _B + r"pcsk_[A-Za-z0-9_]{40,}"),
    ("langsmith", _B + r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    ("cerebras", _B + r"csk-[A-Za-z0-9]{40,}"),
    ("nvidia", _B + r"nvapi-[A-Za-z0-9_-]{40,}"),
    ("fireworks", _B + r"fw_(?=[a-z]{0,40}[A-Z\d])[A-Za-z0-9]{20,}"),
    ("tailscale", _B + r"tskey-[a-z]{2,20}-[A-Za-z0-9]{6,40}-[A-Za-z0-9]{16,}"),
    ("ngrok", r"(?i:authtoken)[ \t:=]{1,4}[\"']?(?P<secret>[A-Za-z0-9]{20,}_[A-Za-z0-9]{16,})"),
    ("docker", r"[\"']auth[\"']\s{0,3}:\s{0,3}[\"'](?P<secret>[A-Za-z0-9+/]{12,}={0,2})[\"']"),
    ("password-hash", r"\$(?:1|2[abxy]|5|6|y|apr1|argon2(?:id|i|d))\$[A-Za-z0-9./$=,+-]{20,}"),
    ("cloudflare", _B + r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}"),
    ("okta", r"(?i:SSWS)\s+(?P<secret>[A-Za-z0-9_-]{30,})"),
    ("azure", r"(?i:AccountKey|SharedAccessKey)=(?P<secret>[A-Za-z0-9+/]{20,}={0,2})"),
    ("azure", r"[?&](?i:sig)=(?P<secret>[A-Za-z0-9%+/=_-]{20,})"),
    ("azure", _BIG + r"[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}"),
    ("aws-signature", r"(?i:X-Amz-(?:Signature|Security-Token))=(?P<secret>[A-Za-z0-9%+/=_-]{16,})"),
    ("jwt", _B + r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{0,}"),
    ("authorization", r"(?i:authorization)[\"']?\s{0,3}[:=]\s{0,3}[\"']?"
                      r"(?:(?i:bearer|basic|token|digest|apikey|negotiate)\s+)?" + _NO_VALUE
                      + r"(?P<secret>(?!(?i:bearer|basic|token|digest|apikey|negotiate)\b)[^\s\"',;]{8,})"),
    ("authorization", _B + r"(?i:bearer)\s{1,3}" + _NO_VALUE
                      + r"(?P<secret>(?=[A-Za-z._~+/=-]{0,200}\d)[A-Za-z0-9._~+/=-]{16,})"),
    ("cookie", r"(?i:(?:set-)?cookie)[\"']?\s{0,3}:\s{0,3}[\"']?(?P<secret>[^\s=;\"']{1,100}=[^\s\"']{8,}(?:; ?[^\s=;\"']{1,100}=[^\s;\"']+){0,20})"),
    ("api-key-header", r"(?i:x-(?:api|auth|access|goog-api)-(?:key|token))[\"']?\s{0,3}[:=]\s{0,3}[\"']?" + _NO_VALUE
                       + r"(?P<secret>[^\s\"',;]{8,})"),
    ("url-credentials", r"\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s/:@\"'<>]{0,100}:(?P<secret>(?!\$|<|\{|\[REDACTED|\*{3})"
                        r"[^\s/\"'<>]{1,500})@"),
    ("url-credentials", r"\bhttps?://(?P<secret>(?!\$|<|\{|\[REDACTED)[A-Za-z0-9_-]{16,200})@"),
    # NAME=value, as in .env files, shells and their output; in quotes a value may have spaces.
    ("named-secret", _NAME + r"(?P<quote>[\"'])" + _NO_VALUE + r"(?P<secret>(?:(?!(?P=quote))[^\n\\]){4,500})(?P=quote)"),
    ("named-secret", _NAME + r"[\"']?" + _NO_VALUE + r"(?P<secret>[^\s\"';&|]{4,})"),
    # "api_key": "value", password: value, --token=value; the name in any case, so the value must look like one.
    ("named-secret", r"(?i:(?:api|access|secret|private|account|signing|encryption)[_-]?key(?:[_-]?id)?|_auth|password|passwd"
                     r"|passphrase|token|secret)[\"']?\s{0,3}(?::|=>|=)\s{0,3}"
                     r"[\"']" + _NO_VALUE + r"(?P<secret>[^\s\"']{6,})[\"']"),
    ("named-secret", r"(?i:aws_secret_access_key|aws_session_token|_authtoken|_auth|password|passwd"
                     r"|client[_-]secret|secret[_-]key(?:[_-]base)?|api[_-]?key|access[_-]token|auth[_-]token|private[_-]token)[ \t]{0,3}[:=][ \t]{0,3}" + _NO_VALUE
                     + r"(?P<secret>(?=[^\s]{0,200}\d)[^\s\"'(){},;&|]{8,})"),
    ("named-secret", r"(?i:--(?:password|passwd|token|api-key|secret|access-token|auth-token))[ =]" + _NO_VALUE
                     + r"(?P<secret>[^\s\"'-][^\s\"']{5,})"),
    ("named-secret", r"(?i:token|secret)[ \t]{0,3}[:=][ \t]{0,3}" + _NO_VALUE
                     + r"(?P<secret>(?=[A-Za-z0-9._~+/=-]{0,200}\d)(?=[^\s]{0,200}[A-Za-z])[A-Za-z0-9._~+/=-]{16,})"),
    ("command-password", r"\bcurl\b[^\n]{0,300}?\s-u\s?[\"']?[^\s:\"']{1,100}:(?!\[REDACTED)(?P<secret>[^\s\"']+)"),
    ("command-password", r"\bmysql\w{0,10}\b[^\n]{0,200}?\s-p(?!\[REDACTED)(?P<secret>[^\s\"']{4,})"),
    ("command-password", r"\bsshpass\b[^\n]{0,60}?\s-p\s?[\"']?(?!\[REDACTED)(?P<secret>[^\s\"']{4,})"),
    ("netrc", r"\bmachine\s{1,4}\S{1,200}[\s\d+-]{1,20}login\s{1,4}\S{1,200}[\s\d+-]{1,20}password\s{1,4}(?!\[REDACTED)(?P<secret>[^\s\"'\\]+)"),
    # Of Postgres: host:port:database:user:password. A line and a column of a program's message are no letters.
    ("pgpass", r"(?<![A-Za-z0-9_.:/*-])[A-Za-z0-9_.*-]{1,100}:(?:[56]\d{3}|\*):[A-Za-z_*][\w.-]{0,60}:[A-Za-z_*][\w.-]{0,60}:"
               r"(?!\[REDACTED)(?P<secret>[^\s\"'\\]{4,})"),
)  # fmt: skip

# A piece, in lower case, that a text with such a secret holds; looking for it is quicker than any pattern.
_HINTS: dict[str, str] = {
    "private-key": "-----begin",
    "putty-key": "putty-user",
    "anthropic": "sk-ant-",
    "openrouter": "sk-or-",
    "openai": "sk-",
    "aws-access-key": "akia asia abia acca",
    "gitlab": "glpat glptt gldt glrt glcbt glsoat glft",
    "google": "aiza gocspx ya29",
    "stripe": "_live_ _test_ whsec_",
    "square": "sq0 eaaa",
    "shopify": "shp",
    "twilio": "sk",
    "sendgrid": "sg.",
    "mailgun": "key-",
    "mailchimp": "-us",
    "azure": "accountkey sharedaccesskey sig= q~",
    "npm": "npm_",
    "pypi": "pypi-",
    "rubygems": "rubygems_",
    "docker": "dckr_ auth",
    "hugging-face": "hf_ api_org_",
    "databricks": "dapi",
    "digitalocean": "_v1_",
    "doppler": "dp.",
    "telegram": ":aa",
    "linear": "lin_",
    "notion": "secret_ ntn_",
    "postman": "pmak-",
    "new-relic": "nrak- nrra- nrii-",
    "grafana": "glsa_ glc_",
    "sentry": "sntry",
    "supabase": "sbp_ sb_secret_",
    "planetscale": "pscale_",
    "vault": "hvs. hvb. hvr.",
    "terraform": ".atlasv1.",
    "pulumi": "pul-",
    "fly": "fm1 fm2",
    "age": "age-secret-key",
    "groq": "gsk_",
    "xai": "xai-",
    "perplexity": "pplx-",
    "replicate": "r8_",
    "tavily": "tvly-",
    "atlassian": "atatt3",
    "heroku": "hrku-",
    "cloudflare": "v1.0-",
    "okta": "ssws",
    "aws-signature": "x-amz-",
    "jwt": "eyj",
    "cookie": "cookie",
    "api-key-header": "x-api x-auth x-access x-goog",
    "github": "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
    "slack": "xox xapp- hooks.slack",
    "named-secret": "key token secret passw passphrase _auth credential",
    "figma": "figd_",
    "airtable": "pat",
    "pinecone": "pcsk_",
    "langsmith": "lsv2_",
    "cerebras": "csk-",
    "nvidia": "nvapi-",
    "fireworks": "fw_",
    "tailscale": "tskey-",
    "ngrok": "authtoken",
    "password-hash": "$1$ $2a$ $2b$ $2x$ $2y$ $5$ $6$ $y$ $apr1$ $argon2",
    "command-password": "curl mysql sshpass",
    "netrc": "machine",
    "authorization": "authorization bearer",
    "url-credentials": "://",
}


class Shape(NamedTuple):
    """What one kind of secret looks like."""

    kind: str
    pattern: re.Pattern[str]
    hints: tuple[str, ...] = ()
    """A text without any of these, in lower case, holds none; empty: look."""


SHAPES = tuple(Shape(kind, re.compile(pattern), tuple(_HINTS.get(kind, "").split())) for kind, pattern in _TABLE)

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SECRET_WORDS = frozenset(
    ["password", "passwd", "passphrase", "secret", "token", "credential", "credentials", "apikey", "authtoken"]
)
_KEY_OF = frozenset(["api", "secret", "private", "access", "account", "signing", "encryption", "auth", "master"])


def names_a_secret(name: str) -> bool:
    """Whether a field of this name holds a secret: `dbPassword`, `clientSecret`; not `max_tokens`, `cacheKey`."""
    words = [word.lower() for word in _WORDS.findall(name[:100])]
    if not words:
        return False
    if words[-1] == "key":
        return len(words) > 1 and words[-2] in _KEY_OF
    return words[-1] in _SECRET_WORDS
