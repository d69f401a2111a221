"""Patterns of secrets with a recognisable form, by kind.

Each row names the pieces of text that its matches hold: a search looks for all of those at once, and tries a pattern
only where one is. A pattern's repetitions are bounded, so the cost of a long line grows only with its length. A group
named `secret` is removed, else the whole match. High entropy alone is no sign: transcripts are full of hashes.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from monocontext.sessions.secret_cookies import holds_a_session
from monocontext.sessions.secret_names import entropy, is_dummy

_AFTER = 512
"""A match that begins before its piece ends at most so many characters after the beginning of the piece."""
_RANDOM = frozenset(["cookie", "command-token"])
"""Kinds whose value must be random."""
_compile = functools.cache(re.compile)
"""Compiles a pattern when it is needed: most kinds never occur, and to compile all takes longer than other imports."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The pattern of one kind of secret."""

    kind: str
    pattern: str
    lead: int = 0
    """The most characters of a match before the piece."""
    entropy: float = 0
    """The least entropy of the secret, in bits a character."""

    def spans(self, text: str, at: int) -> list[tuple[int, int]]:
        """The span of the secret in a match around the piece at `at`; empty if there is none."""
        pattern = _compile(self.pattern)
        if self.lead:  # a search that fails goes on to the end, so the end is near
            near = pattern.finditer(text, max(0, at - self.lead), at + _AFTER)
            found = next((each for each in near if each.end() > at), None)  # the line before may match as well
        else:
            found = pattern.match(text, at)
        if found is None or found.start() > at:
            return []
        group = "secret" if "secret" in pattern.groupindex else 0
        if self.entropy and entropy(found[group]) < self.entropy:
            return []
        if group and (is_dummy(found[group]) or (self.kind in _RANDOM and not holds_a_session("", found[group]))):
            return []
        return [found.span(group)]


# Parts of patterns. The first refuses variables, place-holders and marks of an earlier redaction.
_NOT_A_VARIABLE = (
    r"(?![$<]|\{\{|%[A-Z(]|\*{3}|\.{3}|\[REDACTED|(?:null|none|true|false|undefined|os\.|process\.|env\.)\b)"
)
_W, _D, _H = "[A-Za-z0-9_-]", "[A-Za-z0-9]", "[0-9a-f]"
_END = r"(?![A-Za-z0-9])"
_GAP = r"[\"']?\s{0,3}(?:[:=]|=>|,)\s{0,3}[\"']?"
_ARGS = r"[^\n;|]{0,300}?\s"
_WORD = r"(?:(?P<open>[\"'])(?=[^\"'\n]{3,200}[\"'])|[\"']?)(?!\[REDACTED|\$|<|-)(?P<secret>(?(open)[^\"'\n]|[^\s\"']){3,200})"
# Options with short values, or with addresses; what is longer may be the key. Possessive, so the cost is linear.
_OPTIONS = (
    r"(?:[ \t]{1,4}-{1,2}[\w-]{1,30}(?:=\S{0,15}(?=\s))?(?:[ \t]{1,4}(?!-)(?:\S{1,15}(?=\s)|[^\s:/@]{0,60}[:/@]\S{0,100}))?+){0,6}+"
    r"(?:=|[ \t]{1,4})[\"']?"
)
_KEY = r"(?P<secret>[A-Za-z0-9_.=+~-]{16,2000})(?![\w/:@-])"

# Kind, how it begins (case counts, no letter or digit comes before it), how it goes on. `secret_rules` has those of
# gitleaks; here are providers it does not know, and looser forms: tokens that were cut, or that are longer today.
BEGINNINGS: tuple[tuple[str, str, str], ...] = (
    ("anthropic", "sk-ant-", _W + "{16,300}"),
    ("openrouter", "sk-or-", r"(?:v\d-)?" + _D + "{16,200}"),
    ("openai", "sk-proj- sk-svcacct- sk-admin- sk-None- sk-service-", _W + "{16,300}"),
    ("openai", "sk-", _D + "{20,200}"),
    ("langfuse", "sk-lf- pk-lf-", _H + "{8}-[0-9a-f-]{20,40}"),
    ("aws-access-key", "AKIA ASIA ABIA ACCA A3T", r"(?<=AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}" + _END + "|(?<=A3T)[A-Z0-9]{17}" + _END),
    ("aws-secret-key", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}[^A-Za-z0-9/+](?:[^A-Za-z0-9/+]|[A-Za-z0-9/+]{1,39}(?![A-Za-z0-9/+])){0,40}?"
                       r"(?<![A-Za-z0-9/+=])(?P<secret>(?=[A-Za-z0-9/+]{0,39}[A-Z])(?=[A-Za-z0-9/+]{0,39}[0-9])[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"),
    ("aws-bedrock", "bedrock-api-key-", "[A-Za-z0-9+/=_-]{20,2000}"),
    ("github", "ghp_ gho_ ghu_ ghs_ ghr_", _D + "{20,300}"),
    ("github", "github_pat_", r"\w{20,300}"),
    ("gitlab", "glpat- glptt- gldt- glrt- glcbt- glsoat- glft- glffct- glimt- glagent- gloas- glrtr- glwt-", r"[A-Za-z0-9_.-]{16,320}"),
    ("gitlab", "_gitlab_session=", r"(?P<secret>[0-9a-z]{32})"),
    ("slack", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xoxd- xoxc- xapp-", "[A-Za-z0-9%-]{10,300}"),
    ("google", "AIza", _W + "{35}"),
    ("google", "GOCSPX- ya29. 1//0", r"[A-Za-z0-9_.-]{20,300}"),
    ("stripe", "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ pk_live_ pk_test_", _D + "{10,200}"),
    ("stripe", "whsec_", r"[A-Za-z0-9+/=]{16,200}"),
    ("freemius", "sk_", r"(?=[^\s\"']{0,28}\d)(?![a-z_]{8})[^\s\"']{29}(?=[\"'])"),
    ("square", "sq0atp- sq0csp- sq0idp-", _W + "{22,80}"),
    ("square", "EAAA", r"(?<![/+]EAAA)" + _W + "{56,100}"),
    ("facebook", "EAAC EAAM EAAG EAAB", _D + "{90,400}"),
    ("shopify", "shpat_ shpca_ shppa_ shpss_ shptka_", "[A-Fa-f0-9]{32}"),
    ("twilio", "SK AC", "[0-9a-f]{32}" + _END),
    ("twilio", "AC", r"[0-9a-f]{32}[\"']?[\s,:]{1,40}(?:\w{1,20}\s?=\s?)?[\"']?(?P<secret>[0-9a-f]{32})" + _END),
    ("firebase", "AAAA", _W + "{7}:" + _W + "{100,200}"),
    ("sendgrid", "SG.", _W + r"{16,80}\." + _W + "{16,80}"),
    ("mailgun", "key- pubkey-", _H + "{32}" + _END),
    ("npm", "npm_", _D + "{30,60}"),
    ("pypi", "pypi-", r"(?=[A-Za-z_-]{0,80}[0-9])" + _W + "{30,1000}"),
    ("docker", "dckr_pat_ dckr_oat_", _W + "{20,100}"),
    ("hugging-face", "hf_ api_org_", _D + "{30,60}"),
    ("databricks", "dkea dosec", _H + "{32}"),
    ("doppler", "dp.st. dp.ct. dp.scim. dp.audit. dp.sa.", r"(?:[a-z0-9_-]{2,40}\.)?" + _D + "{20,60}"),
    ("linear", "lin_oauth_ lin_wh_", _D + "{30,80}"),
    ("notion", "secret_", _D + "{43}" + _END),
    ("notion", "ntn_", _D + "{40,60}"),
    ("postman", "PMAK-", "[0-9A-Za-z]{24}-[0-9A-Za-z]{34}"),
    ("new-relic", "NRAK- NRRA- NRII- NRJS- NRAL-", _W + "{19,60}"),
    ("grafana", "glsa_ glc_", r"[A-Za-z0-9+/=_]{30,400}"),
    ("sentry", "sntrys_ sntryu_", r"[A-Za-z0-9+/=_-]{30,500}"),
    ("supabase", "sbp_ sb_secret_", r"(?=[A-Za-z_-]{0,60}\d)[A-Za-z0-9_-]{20,80}"),
    ("vault", "hvs. hvb. hvr.", _W + "{20,300}"),
    ("vault", "s.", r"(?=[A-Za-z]{0,23}\d)(?=[a-z\d]{0,23}[A-Z])[A-Za-z0-9]{24}(?![A-Za-z0-9_.(])"),
    ("fly", "fm1_ fm1a_ fm1r_ fm2_ fo1_", r"[A-Za-z0-9+/=_,-]{40,1500}"),
    ("age", "AGE-SECRET-KEY-1", "[A-Z0-9]{50,70}"),
    ("groq", "gsk_", _D + "{30,80}"),
    ("xai", "xai-", _D + "{30,120}"),
    ("replicate", "r8_", _D + "{30,60}"),
    ("tavily", "tvly-", r"(?:dev-|prod-)?[A-Za-z0-9-]{20,80}"),
    ("atlassian", "ATATT3 ATCTT3 ATBB", r"[A-Za-z0-9_=-]{24,300}"),
    ("heroku", "HRKU-", _W + "{30,100}"),
    ("figma", "figd_ figo_ figu_", _W + "{30,80}"),
    ("pinecone", "pcsk_", r"[A-Za-z0-9_]{40,100}"),
    ("langsmith", "lsv2_pt_ lsv2_sk_", _H + "{32}_" + _H + "{10}"),
    ("cerebras", "csk-", _D + "{40,80}"),
    ("nvidia", "nvapi-", _W + "{40,100}"),
    ("fireworks", "fw_", r"(?=[a-z]{0,40}[A-Z\d])[A-Za-z0-9]{20,60}"),
    ("tailscale", "tskey-", r"[a-z]{2,20}-[A-Za-z0-9]{6,40}-[A-Za-z0-9]{16,60}"),
    ("alibaba", "LTAI", "[A-Za-z0-9]{12,24}" + _END),
    ("tencent", "AKID", "[A-Za-z0-9]{32}" + _END),
    ("defined-networking", "dnkey-", r"[A-Za-z0-9=_-]{26}-[A-Za-z0-9=_-]{52}"),
    ("dropbox", "sl.", r"(?=[A-Za-z_-]{0,60}\d)[A-Za-z0-9_=-]{100,200}"),
    ("dynatrace", "dt0s01.", r"[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}"),
    ("flutterwave", "FLWSECK-", r"[A-Za-z0-9]{12,32}(?:-X)?"),
    ("gocardless", "live_", r"(?=[A-Za-z_-]{0,40}\d)[A-Za-z0-9_=-]{40}" + _END),
    ("lob", "live_pub_ test_pub_", _H + "{31}"),
    ("lob", "live_ test_", _H + "{35}" + _END),
    ("mapbox", "pk. sk.", r"eyJ?[A-Za-z0-9_-]{40,100}\.[A-Za-z0-9_-]{20,40}|(?<=pk\.)[a-z0-9]{60}\.[a-z0-9]{22}"),
    ("plaid", "access-sandbox- access-development- access-production-", r"[0-9a-f-]{36}"),
    ("sendinblue", "xsmtpsib-", _H + "{64}-[A-Za-z0-9]{16}"),
    ("sonar", "squ_ sqp_ sqa_", _D + "{40}"),
    ("typeform", "tfp_", r"[A-Za-z0-9_.=-]{40,70}"),
    ("yandex", "AQVN", _W + "{35,38}"),
    ("yandex", "t1.", r"[A-Za-z0-9_-]{5,300}={0,2}\.[A-Za-z0-9_-]{86}={0,2}"),
    ("yandex", "YCAJE", _W + "{20,40}"),
    ("discord", "M N O", r"[A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}"),
    ("jwt", "eyJ", _W + r"{8,2000}+={0,2}\s{0,4}\.\s{0,4}" + _W + r"{8,8000}+={0,2}(?:\s{0,4}\.\s{0,4}" + _W + r"{16,2000}|\." + _W + r"{0,2000})"),
    ("jwt", "ZXlK", r"(?:aGJH|MGVY|cmFX|aGRX)[A-Za-z0-9+/=]{40,8000}"),
    ("putty-key", "PuTTY-User-Key-File-", r"\d:[\s\S]{0,8000}?Private-MAC: [0-9a-f]+"),
    ("password-hash", "$1$ $2a$ $2b$ $2x$ $2y$ $5$ $6$ $y$ $apr1$ $argon2id$ $argon2i$ $argon2d$ $scrypt$", r"[A-Za-z0-9./$=,+-]{20,300}"),
    ("ansible-vault", "$ANSIBLE_VAULT;", r"[^\n]{1,60}\n(?P<secret>(?:[ \t]{0,40}[0-9a-f]{20,80}\s{0,2}){1,400})"),
    ("slack", "https://hooks.slack.com/ hooks.slack.com/", r"(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/+_-]{16,100})"),
)  # fmt: skip

# Kind, pieces (in lower case; case does not count; `~` is a space), characters before it, pattern (from there on, any case).
WORDS: tuple[tuple[str, str, int, str], ...] = (
    ("authorization", "authorization", 0, r"authorization" + _GAP + r"(?:(?:bearer|basic|token|digest|apikey|api-key|negotiate|aws4-hmac-sha256)\s{1,3})?" + _NOT_A_VARIABLE
                      + r"(?P<secret>(?!(?:bearer|basic|token|digest|apikey|negotiate)\b)(?=[^\s\"',;]{0,200}[0-9=])(?![a-z0-9_.]{1,60}[(\[{}])[^\s\"',;\\]{8,4000})"),
    ("authorization", "bearer", 0, r"bearer\s{1,3}[\"']?" + _NOT_A_VARIABLE + r"(?P<secret>(?=[A-Za-z._~+/=-]{0,200}\d)[A-Za-z0-9._~+/=-]{16,4000})"),
    ("cookie", "jsessionid phpsessid connect.sid asp.net_sessionid laravel_session user_session wordpress_logged_in .aspxauth __host- __secure-", 0,
               r"[._]{0,2}[a-z][\w.-]{3,80}[\"']?\s{0,2}[=:]\s{0,2}[\"']?(?P<secret>[^\s\"'`;,\\<>{}()]{16,4096})"),
    ("totp", "otpauth: otpauth%3a", 0, r"otpauth(?::|%3a)[^\s\"'<>\\]{0,400}?(?:[?&]|%3f|%26)secret(?:=|%3d)(?P<secret>[a-z2-7]{8,256}={0,6})"),
    ("okta", "ssws", 0, r"ssws\s{1,3}(?P<secret>[A-Za-z0-9_-]{30,60})"),
    ("ngrok", "authtoken", 0, r"authtoken[ \t:=]{1,4}[\"']?(?P<secret>[A-Za-z0-9]{20,60}_[A-Za-z0-9]{16,60})"),
    ("docker", "auth", 0, r"(?<=[\"'])auth[\"']\s{0,3}:\s{0,3}[\"'](?P<secret>[A-Za-z0-9+/]{12,500}={0,2})[\"']"),
    ("url-credentials", "://", 0, r"(?<=[a-z0-9])://[^\s/:@\"'<>`]{0,100}:(?P<secret>(?![$<{]|\[REDACTED|\*{3}|%[sd(]|pass|pwd\b|secret[:@]|\w{1,3}@)[^\s/\"'<>`(]{1,300})@(?=[\w\[{$])"),
    ("url-credentials", "://", 0, r"(?<=http|ttps)://(?P<secret>(?![$<{]|\[REDACTED)(?=[a-z_-]{0,100}\d)[a-z0-9_-]{16,200})@"),
    ("azure", "accountkey sharedaccesskey sharedaccesssignature", 0, r"(?:accountkey|sharedaccess(?:key|signature))[\"']?\s{0,2}[=:]\s{0,2}[\"']?(?P<secret>[A-Za-z0-9+/]{20,200}={0,2})"),
    ("azure", "sig=", 0, r"(?<=[?&;])sig=(?P<secret>[A-Za-z0-9%+/=_-]{20,200})"),
    ("aws-signature", "x-amz-", 0, r"x-amz-(?:signature|security-token)[\"']?[=:]\s?[\"']?(?P<secret>[A-Za-z0-9%+/=_-]{16,4000})"),
    ("discord", "/api/webhooks/", 0, r"/api/webhooks/(?P<secret>\d{5,40}/[A-Za-z0-9_-]{16,100})"),
    ("teams", ".webhook.office.com/", 0, r"\.webhook\.office\.com/(?P<secret>webhookb2/[A-Za-z0-9@/_-]{40,300})"),
    ("softlayer", "api.softlayer.com/soap/", 0, r"api\.softlayer\.com/soap/v3(?:\.1)?/(?P<secret>[a-z0-9]{64})"),
    ("command-password", "curl", 0, r"\bcurl\b[^\n]{0,600}?\s(?:-u|--user|-U|--proxy-user|--user=|--proxy-user=)[ =]?[\"']?[^\s:\"']{0,100}:(?!\[REDACTED|\$)(?P<secret>[^\s\"']{1,200})"),
    ("command-password", "wget", 0, r"\bwget\b" + _ARGS + r"--(?:http-|ftp-|proxy-)?password[ =]" + _WORD),
    ("command-password", "http", 0, r"(?<![\w/:.-])https?\s" + r"(?:[^\n;|]{0,200}?\s)?(?:-a|--auth)[ =]?[\"']?[^\s:\"']{1,100}:(?P<secret>[^\s\"']{3,200})"),
    ("command-password", "mysql mariadb mongo", 0, r"\b(?:mysql\w{0,10}|mariadb[\w-]{0,10})\b[^\n;|]{0,200}?\s-p(?!\[REDACTED|\$|assword|ort|rotocol)[\"']?(?P<secret>[^\s\"'=-][^\s\"']{3,100})"),
    ("command-password", "mongo", 0, r"\bmongo(?:sh|dump|restore|export|import)?\b" + _ARGS + r"-p\s" + _WORD),
    ("command-password", "ssh", 0, r"\bsshpass\b[^\n]{0,60}?\s-p\s?" + _WORD),
    ("command-password", "login", 0, r"\blogin\b[^\n;|]{0,200}?\s(?:-p|--pass(?:word)?)[ =](?!\d{1,5}(?!\w))" + _WORD),
    ("command-password", "twine poetry conan expo svn", 0, r"\b(?:twine|poetry|conan|expo|svn)\b" + _ARGS + r"(?:-p|--password)[ =]" + _WORD),
    # A key by itself: `cargo login KEY`, `nuget push a.nupkg -k KEY`, `poetry config pypi-token.acme KEY`.
    ("command-token", "login setapikey authtoken auth~", 0, r"(?<=[a-z0-9_.-][ \t-])(?:login|setapikey|authtoken|auth)(?:\s(?:init|login|token|add|set))?" + _OPTIONS + _KEY),
    ("command-token", "nuget hatch codecov service~install", 0, r"(?:nuget\spush|hatch\spublish|codecov|service\sinstall)\b" + r"(?:\s{1,4}[^\s;|&]{1,200}){0,6}?\s{1,4}(?:-{1,2}\w[\w-]{0,20}=)?[\"']?" + _KEY),
    ("command-token", "config", 0, r"config\s(?:--?\w[\w-]{0,20}\s){0,3}(?:create\s\S{1,60}\s)?[\w./-]{0,60}(?:token|oauth|basic|pass|secret|key|auth)[\w./-]{0,60}(?:\s[\w@.-]{1,60})?\s{1,4}[\"']?(?P<secret>[A-Za-z0-9_.=+/~-]{16,2000})(?![\w-])"),
    ("command-password", "config", 0, r"config\s(?:set\s)?(?:--?\w[\w-]{0,20}\s){0,3}(?:http-basic\.\S{1,80}\s\S{1,60}\s|[\w.-]{1,80}\.[\w-]{1,80}\s[\w@.-]{1,60}:)[\"']?(?P<secret>(?=[^\s\"']{0,60}\d)[^\s\"'/]{6,200})"),
    ("command-password", "mc~alias mc~config", 0, r"mc\s(?:alias|config\shost)\s(?:set|add)\s\S{1,60}\s\S{1,200}\s\S{1,80}\s" + _WORD),
    ("terraform", "random_password bcrypt_hash", 0, r"(?:random_password|bcrypt_hash)(?:(?!random_password|bcrypt_hash\b)[\s\S]){0,1500}?\bresult[\"']?\s{0,20}[=:]\s{0,4}(?P<open>[\"'])(?P<secret>(?!\[REDACTED)[^\"'\n]{4,200})[\"']"),
    ("command-password", "htpasswd", 0, r"\bhtpasswd\s[^\n;|]{0,20}?-[a-zA-Z]{0,6}b[a-zA-Z0-9]{0,6}\s(?:-\S{1,10}\s){0,4}(?:\S{1,200}[ \t]{1,2}){1,2}" + _WORD + r"[ \t]*(?:$|[\n;|&>\"'\\])"),
    ("command-password", "sudo", 320, r"\b(?:echo|printf|print)\s{1,3}(?:-\w{1,3}\s{1,2})?(?:[\"']?%s[^\s\"']{0,4}[\"']?\s{1,3})?[\"']?(?!\$|\[REDACTED)(?P<secret>[^\n\"'|<>]{2,200}?)[\"']?\s{0,3}\|\s{0,3}(?:\w{1,20}\s){0,3}?sudo\s[^\n|;]{0,60}?(?:-\w{0,3}S|--stdin)\b"),
    ("command-password", "sudo", 0, r"sudo\s[^\n|;<]{0,60}?(?:-\w{0,3}S|--stdin)\b[^\n|;<]{0,200}<<<\s{0,3}" + _WORD),
    ("command-password", "--password-stdin --with-token chpasswd |~passwd |~kinit |~wg |~cryptsetup", 400, r"\b(?:echo|printf|print)\s{1,3}(?:-\w{1,3}\s{1,2})?[\"']?(?!\$|\[REDACTED)(?P<secret>[^\n\"'|<>$]{3,200}?)[\"']?\s{0,3}(?:\||\n\+{1,3}\s)[^\n|;]{0,200}?(?:--password-stdin|--with-token|chpasswd|passwd|kinit|wg pubkey|cryptsetup)\b"),
    ("command-password", "pass:", 12, r"-(?:passin|passout|pass|password|k|storepass)[ =]{1,3}(?P<open>[\"'])?pass:(?!\$|\[REDACTED|<)(?P<secret>(?(open)[^\"'<\n]|[^\s\"'<]){2,200})"),
    ("command-password", "sudo", 0, r"sudo\s[^\n|;<]{0,60}?(?:-\w{0,3}S|--stdin)\b[^\n|;<]{0,200}<<-?\s{0,3}[\"']?\w{1,20}[\"']?[ \t]{0,3}\n(?P<secret>[^\n]{3,200})\n"),
    ("command-password", "sudo", 0, r"sudo[\"'],\s{0,3}[\"'](?:-\w{0,3}S|--stdin)[\"'][^\n]{0,200}?\binput=b?[\"'](?P<secret>[^\"'\n\\]{3,200})"),
    ("command-password", "login", 0, r"\blogin\b[^\n|;]{0,200}?<<<\s{0,3}" + _WORD),
    ("command-password", "<(echo <(printf", 0, r"<\((?:echo|printf)\s{1,3}(?:-\w\s)?(?:[\"']?%s[^\s\"']{0,4}[\"']?\s)?[\"']?(?P<secret>(?=[^\s\"')]{0,100}\d)[^\s\"'()$]{8,200})[\"']?\)"),
    ("command-password", "openssl", 0, r"\bopenssl\s[^\n;|]{0,200}?\s(?:-k|-K|-passwd)\s" + _WORD),
    ("command-password", "keytool jarsigner", 0, r"\b(?:keytool|jarsigner)\b" + _ARGS + r"-(?:store|key|src|dest)[a-z]{0,8}pass(?:wd|word)?[ =]" + _WORD),
    ("command-password", "redis-cli", 0, r"\bredis-cli\b" + _ARGS + r"(?:-a|--pass)[ =]" + _WORD),
    ("command-password", "smbclient", 0, r"\bsmbclient\b" + _ARGS + r"-U\s?[\"']?[^\s%\"']{1,100}%(?P<secret>[^\s\"']{3,200})"),
    ("command-password", "ldap", 0, r"\bldap(?:search|modify|add|delete|passwd|whoami)\b" + _ARGS + r"-w\s{1,2}" + _WORD),
    ("command-password", "sqlcmd osql", 0, r"\b(?:sqlcmd|osql)\b" + _ARGS + r"(?-i:-P)\s?" + _WORD),
    ("command-password", "ipmitool", 0, r"\bipmitool\b" + _ARGS + r"(?-i:-P)\s?" + _WORD),
    ("command-password", "zip", 0, r"\b(?:un)?zip\b" + _ARGS + r"(?-i:-P)\s{1,2}" + _WORD),
    ("command-password", "7z", 0, r"\b7z[ar]?\s" + r"[axelu]\s[^\n;|]{0,200}?(?<=\s)-p(?!\s)" + _WORD),
    ("command-password", "ssh", 0, r"\bssh-keygen\b" + _ARGS + r"(?-i:-[NP])\s{0,2}" + _WORD),
    ("printed-secret", "output~-raw wg~genkey wg~genpsk openssl~rand pwgen auth~token print-access-token print-identity-token get-login-password get-access-token create~token", 0,
                       r"[^\n|>&;`)]{3,200}\r?\n(?P<secret>(?=[^\n]{0,100}\d)[A-Za-z0-9+/_.-]{16,4000}={0,2})[ \t\r]*(?:$|\n)"),
    ("command-password", "net~user", 0, r"\bnet\s{1,2}user\s{1,2}\S{1,60}\s{1,2}(?!/)" + _WORD),
    ("command-password", "~-u~ ~--user~ ~--username~", 0, r"\s(?:-u|--user(?:name)?)\s[^\s\"'$-]\S{0,80}\s(?:-p|--pass(?:word)?)[ =][\"']?"
                         r"(?!\[REDACTED)(?P<secret>(?=[^\s\"']{0,60}\d)(?=[^\s\"']{0,60}[A-Za-z])[^\s\"':/$<>]{8,100})(?=[\s\"']|$)"),
    ("command-password", "/u:", 0, r"/u:\S{1,80}\s{1,2}/p:" + _WORD),
    ("telegram", "/bot", 0, r"/bot\d{5,16}:(?P<secret>[A-Za-z0-9_-]{30,40})(?![A-Za-z0-9_-])"),
    ("command-password", "/user:", 0, r"/user:\S{1,80}\s{1,2}(?![/-])" + _WORD),
    ("command-password", "net~use~", 0, r"\bnet\suse\s(?:[a-z*]:?\s)?\\\\\S{1,200}\s(?![/-])" + _WORD + r"\s/u"),
    ("command-password", "requirepass masterauth", 0, r"(?:requirepass|masterauth)\s{1,3}" + _WORD),
    ("command-password", "identified", 0, r"identified\s{1,3}(?:with\s{1,3}\S{1,40}\s{1,3})?by\s{1,3}(?:password\s{1,3})?[\"'](?P<secret>[^\"'\n]{2,200})[\"']"),
    ("command-password", "az~login", 0, r"az\s{1,2}login\b" + _ARGS + r"-p\s{1,2}" + _WORD),
    ("command-password", "passphrase", 0, r"(?<=wpa_)passphrase\s{1,2}(?:\"[^\"\n]{1,60}\"|'[^'\n]{1,60}'|\S{1,60})\s{1,2}" + _WORD),
    ("command-password", "--with-token", 0, r"--with-token\s{0,2}<<<\s{0,2}" + _WORD),
    ("command-password", "lftp", 0, r"\blftp\b" + _ARGS + r"-u\s?[\"']?[^\s,\"']{1,100},(?P<secret>[^\s\"']{3,100})"),
    ("command-password", "oracle:thin: oracle:oci:", 0, r"oracle:(?:thin|oci):[^\s/@\"']{1,60}/(?P<secret>[^\s/@\"']{3,100})@"),
    ("command-password", "sqlplus sqlldr expdp impdp", 0, r"\b(?:sqlplus|sqlldr|expdp|impdp)\s(?:-\S{1,10}\s){0,3}[^\s/\"']{1,60}/(?P<secret>[^\s\"'@]{3,100})@"),
    ("command-password", "basicauth( login( auth=(", 0, r"(?:basicauth|login|auth=)\(\s{0,40}[\"'][^\"'\n]{1,100}[\"']\s{0,3},\s{0,40}[\"'](?P<secret>(?=[^\"'\n]{0,60}\d)[^\"'\n\s:/]{6,100})[\"']"),
    ("command-password", "nmcli", 0, r"\bnmcli\b" + _ARGS + r"password\s{1,2}" + _WORD),
    ("command-password", "assword: password:", 0, r"p?assword:[ ]?[*]?[\"'}][\s\S]{0,60}?send(?:line)?[\s(]{1,4}(?:--\s)?[\"'](?P<secret>[^\"'\n\r\\]{3,100})"),
    ("command-password", "set-authtoken", 0, r"set-authtoken\s{1,2}" + _WORD),
    ("ci-variable", "##vso[task.setvariable", 0, r"##vso\[task\.setvariable\s[^\]\n]{0,200}\b(?:issecret=true|\w*(?:pass|pwd|token|secret|key)\w*)[^\]\n]{0,100}\](?!\$|\[REDACTED)(?P<secret>[^\s\"']{3,4000})"),
    ("ci-variable", "::add-mask::", 0, r"::add-mask::(?!\$|\[REDACTED)(?P<secret>[^\s\"'\\]{3,4000})"),
    ("url-parameter", "appid=", 1, r"(?<=[?&])appid=(?P<secret>[0-9a-f]{32})(?![0-9a-f])"),
    ("command-password", "auth~", 24, r"(?:redis[^\n]{0,16}>|(?<![^\n])(?:\d[\d.:]{3,22}>)?)\s?auth\s(?:[a-z]{1,40}\s)?[\"']?(?P<secret>(?=[^\s\"']{0,100}\d)[^\s\"'(),:;=]{6,200})[\"']?(?=[ \t\r]*(?:$|[\n\\]))"),
    ("command-password", "convertto-securestring", 0, r"convertto-securestring\s{1,3}(?:-string\s{1,3})?[\"'](?!\$)(?P<secret>[^\"'\n]{3,200})[\"']"),
    ("command-secret", "config:set secrets~set secret~set env~set env:set vars~set", 0, r"(?:config:set|secrets?\sset|env[ :]set|vars\sset)\s[^\n;|]{0,200}?(?<=\s)[a-z_]\w{0,60}=[\"']?(?P<secret>(?=[A-Za-z_.-]{0,80}\d)[A-Za-z0-9+/=_.-]{20,400})"),
    ("command-secret", "secret~put secrets~create versions~add", 200, r"\b(?:echo|printf)\s{1,3}(?:-\w{1,3}\s{1,2})?[\"']?(?!\$|\[REDACTED)(?P<secret>[^\s\"'|<>$]{6,400})[\"']?\s{0,3}\|[^\n|;]{0,120}?(?:secret\sput|secrets\screate|versions\sadd)"),
    ("login", "login log~in credentials creds", 0, r"(?:log ?in|credentials?|creds)\b[^\n]{0,12}?(?:with|as|are|is|:|=)?\s{0,2}[A-Za-z][\w.@-]{1,40}\s?/\s?(?P<secret>(?=[^\s/]{0,40}\d)(?=[^\s/]{0,40}[A-Za-z])[^\s/,;:)\"'.]{7,60})(?=[\s,;)\"'.]|$)(?!\.[a-z])"),
    ("netrc", "machine", 0, r"\bmachine\s{1,4}\S{1,200}[\s\d+-]{1,20}login\s{1,4}\S{1,200}[\s\d+-]{1,20}password\s{1,4}(?!\[REDACTED)(?P<secret>[^\s\"'\\]{1,200})"),
)  # fmt: skip

# Kind, pattern of a word without a beginning of its own.
SHAPELESS: tuple[tuple[str, str], ...] = (
    ("mailgun", r"[0-9a-f](?<![0-9A-Za-z-].)[0-9a-f]{31}-[0-9a-f]{8}-[0-9a-f]{8}(?![0-9A-Za-z-])"),
    ("named-secret", r"[A-Z](?<![\w$.-].)[A-Z0-9_]{1,40}=[\"']?(?P<secret>(?=[^\s\"']{0,200}[a-z])(?=[^\s\"']{0,200}[A-Z])(?=[^\s\"']{0,200}\d)[A-Za-z0-9_-]{32,200})(?![A-Za-z0-9+/=_.-])"),
)  # fmt: skip

# Kind, pieces that it holds (case counts), characters before it, pattern.
PIECES: tuple[tuple[str, str, int, str], ...] = (
    ("mailchimp", "-us", 32, r"(?<![A-Za-z0-9])[0-9a-f]{32}-us\d{1,2}(?![A-Za-z0-9])"),
    ("telegram", ":A", 16, r"(?<![A-Za-z0-9_])\d{5,16}:A[A-Za-z0-9_-]{34}(?![A-Za-z0-9_-])"),
    ("terraform", ".atlasv1.", 14, r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,80}"),
    ("azure", "Q~", 4, r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~-])"),
    ("maxmind", "_mmk", 36, r"(?<![A-Za-z0-9_])[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk(?![A-Za-z0-9])"),
    ("facebook", "| %7C", 17, r"(?<![A-Za-z0-9])\d{15,16}(?:\||%7C)[0-9A-Za-z_-]{27,40}(?![A-Za-z0-9_-])"),
    # Of Postgres: host:port:database:user:password. A line and a column of a program's message are no letters.
    ("pgpass", ":5432: :5433: :6432: :*:", 100, r"(?<![A-Za-z0-9_.:/*-])[A-Za-z0-9_.*-]{1,100}:(?:[56]\d{3}|\*):[A-Za-z_*][\w.-]{0,60}:[A-Za-z_*][\w.-]{0,60}:"
               r"(?!\[REDACTED|[*:])(?P<secret>[^\s\"'\\]{4,200})"),
)  # fmt: skip
