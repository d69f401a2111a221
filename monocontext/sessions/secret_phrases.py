"""Secrets that the words around them give away: headers, commands, questions for a password. Data."""

from __future__ import annotations

from typing import NamedTuple


class Phrase(NamedTuple):
    """Words, and the secret near them: the group `secret` of the pattern. A group `rest` must look random."""

    kind: str
    pieces: tuple[str, ...]  # in lower case, but found in any; the pattern is tried where one of them begins
    pattern: str  # of the text from there on, in any case
    before: int = 0  # the most characters of a match before the piece


# Parts of patterns. The first refuses variables, place-holders and marks of an earlier redaction.
_NOT_A_VARIABLE = (r"(?![$<]|\{\{|%[A-Z(]|\*{3}|\.{3}|\[REDACTED|(?:null|none|true|false|undefined|os\.|process\.|env\.)\b)")  # fmt: skip
_GAP = r"[\"']?\s{0,3}(?:[:=]|=>|,)\s{0,3}[\"']?"  # between a name and its value: `: `, `=`, `" => "`
_ARGS = r"[^\n;|]{0,300}?\s"  # the arguments of a command before the option that counts
# A secret in quotes, or up to the next blank; no option and no variable
_WORD = r"(?:(?P<open>[\"'])(?=[^\"'\n]{3,200}[\"'])|[\"']?)(?!\[REDACTED|\$|<|-)(?P<secret>(?(open)[^\"'\n]|[^\s\"']){3,200})"
# Options with short values, or with addresses; what is longer may be the key. Possessive, so the cost is linear.
_OPTIONS = (r"(?:[ \t]{1,4}-{1,2}[\w-]{1,30}(?:=\S{0,15}(?=\s))?(?:[ \t]{1,4}(?!-)(?:\S{1,15}(?=\s)|[^\s:/@]{0,60}[:/@]\S{0,100}))?+){0,6}+"
            r"(?:=|[ \t]{1,4})[\"']?")  # fmt: skip
# `echo SECRET`
_ECHO = (r"\b(?:echo|printf|print)\s{1,3}(?:-\w{1,3}\s{1,2})?(?:[\"']?%s[^\s\"']{0,4}[\"']?\s{1,3})?[\"']?(?!\$|\[REDACTED)")  # fmt: skip
_STDIN = r"sudo\s[^\n|;<]{0,60}?(?:-\w{0,3}S|--stdin)\b"  # `sudo -S`, which reads the password

PHRASES = (  # with an example of each
    Phrase(kind="authorization", pieces=("authorization",),  # Authorization: Bearer SECRET
        pattern=r"authorization" + _GAP + r"(?:(?:bearer|basic|token|digest|apikey|api-key|negotiate|ssws|aws4-hmac-sha256)\s{1,3})?" + _NOT_A_VARIABLE
            + r"(?P<secret>(?!(?:bearer|basic|token|digest|apikey|negotiate)\b)(?=[^\s\"',;]{0,200}[0-9=])(?![a-z0-9_.]{1,60}[(\[{}])[^\s\"',;\\]{8,4000})"),
    Phrase(kind="authorization", pieces=("bearer",),  # bearer SECRET
        pattern=r"bearer\s{1,3}[\"']?" + _NOT_A_VARIABLE + r"(?P<secret>(?=[A-Za-z._~+/=-]{0,200}\d)[A-Za-z0-9._~+/=-]{16,4000})"),
    Phrase(kind="cookie", pieces=("cookie",),  # Set-Cookie: session=SECRET; Path=/
        pattern=r"cookie[\"']?\s{0,2}[:=]\s{0,2}[\"']?(?=[^\r\n\"'`\\<>{}()]{1,2000}?=(?!GA\d)(?P<rest>[A-Za-z0-9._~+/%:|-]{16,4000}))"
            r"(?P<secret>[^\r\n\"'`\\<>{}()]{17,4000})"),
    Phrase(kind="totp", pieces=("otpauth:", "otpauth%3a"),  # otpauth://totp/name?secret=SECRET
        pattern=r"otpauth(?::|%3a)[^\s\"'<>\\]{0,400}?(?:[?&]|%3f|%26)secret(?:=|%3d)(?P<secret>[a-z2-7]{8,256}={0,6})"),
    Phrase(kind="azure", pieces=("accountkey", "sharedaccesskey", "sharedaccesssignature"),  # AccountName=name;AccountKey=SECRET
        pattern=r"(?:accountkey|sharedaccess(?:key|signature))[\"']?\s{0,2}[=:]\s{0,2}[\"']?(?P<secret>[A-Za-z0-9+/]{20,200}={0,2})"),
    Phrase(kind="command-token", pieces=("login", "setapikey", "authtoken", "auth "),  # vault login SECRET
        pattern=r"(?<=[a-z0-9_.-][ \t-])(?:login|setapikey|authtoken|auth)(?:\s(?:init|login|token|add|set))?" + _OPTIONS
            + r"(?P<secret>(?P<rest>[A-Za-z0-9_.=+~-]{16,2000}))(?![\w/:@-])"),
    Phrase(kind="command-password", pieces=("curl",),  # curl -u name:SECRET https://host
        pattern=r"\bcurl\b[^\n]{0,600}?\s(?:-u|--user|-U|--proxy-user|--user=|--proxy-user=)[ =]?[\"']?[^\s:\"']{0,100}:(?!\[REDACTED|\$)(?P<secret>[^\s\"']{1,200})"),
    Phrase(kind="command-password", pieces=("http",),  # http -a name:SECRET GET https://host
        pattern=r"(?<![\w/:.-])https?\s(?:[^\n;|]{0,200}?\s)?(?:-a|--auth)[ =]?[\"']?[^\s:\"']{1,100}:(?P<secret>[^\s\"']{3,200})"),
    Phrase(kind="command-password", pieces=("mysql", "mariadb"),  # mysql -u root -pSECRET
        pattern=r"\b(?:mysql\w{0,10}|mariadb[\w-]{0,10})\b[^\n;|]{0,200}?\s-p(?!\[REDACTED|\$|assword|ort|rotocol)[\"']?(?P<secret>[^\s\"'=-][^\s\"']{3,100})"),
    Phrase(kind="command-password", pieces=("7z",),  # 7z a -pSECRET out.7z
        pattern=r"\b7z[ar]?\s[axelu]\s[^\n;|]{0,200}?(?<=\s)-p(?!\s)" + _WORD),
    Phrase(kind="command-password", pieces=("login", "twine", "poetry", "conan", "mongo", "az "),  # docker login -u name -p SECRET
        pattern=r"\b(?:login|twine|poetry|conan|mongo\w{0,7}|az)\b" + _ARGS + r"(?:-p|--pass(?:word)?)[ =](?!\d{1,5}(?!\w))" + _WORD),
    Phrase(kind="command-password", pieces=(" -u ", " --user ", " --username "),  # tool --user name -p SECRET
        pattern=r"\s(?:-u|--user(?:name)?)\s[^\s\"'$-]\S{0,80}\s(?:-p|--pass(?:word)?)[ =][\"']?"
            + r"(?!\[REDACTED)(?P<secret>(?=[^\s\"']{0,60}\d)(?=[^\s\"']{0,60}[A-Za-z])[^\s\"':/$<>]{8,100})(?=[\s\"']|$)"),
    Phrase(kind="command-password", pieces=("sshpass",),  # sshpass -p SECRET ssh host
        pattern=r"\bsshpass\b[^\n]{0,60}?\s-p\s?" + _WORD),
    Phrase(kind="command-password", pieces=("ssh-keygen",),  # ssh-keygen -N 'SECRET' -f id
        pattern=r"\bssh-keygen\b" + _ARGS + r"(?-i:-[NP])\s{0,2}" + _WORD),
    Phrase(kind="command-password", pieces=("redis-cli", "openssl", "ldap", "sqlcmd", "ipmitool", "zip", "keytool", "jarsigner"),  # redis-cli -a SECRET
        pattern=r"\b(?:redis-cli" + _ARGS + r"(?:-a|--pass)|openssl" + _ARGS + r"(?-i:-k|-K|-passwd)|ldap[a-z]{3,8}" + _ARGS + r"(?-i:-w)|(?:sqlcmd|ipmitool|(?:un)?zip)"
            + _ARGS + r"(?-i:-P)|(?:keytool|jarsigner)" + _ARGS + r"-(?:store|key|src|dest)[a-z]{0,8}pass(?:wd|word)?)[ =]{1,2}" + _WORD),
    Phrase(kind="command-password", pieces=("smbclient", "lftp"),  # smbclient //host/share -U name%SECRET
        pattern=r"\b(?:smbclient" + _ARGS + r"-U\s?[\"']?[^\s%\"']{1,100}%|lftp" + _ARGS + r"-u\s?[\"']?[^\s,\"']{1,100},)(?P<secret>[^\s\"']{3,200})"),
    Phrase(kind="command-password", pieces=("htpasswd",),  # htpasswd -b file name SECRET
        pattern=r"\bhtpasswd\s[^\n;|]{0,20}?-[a-zA-Z]{0,6}b[a-zA-Z0-9]{0,6}\s(?:-\S{1,10}\s){0,4}(?:\S{1,200}[ \t]{1,2}){1,2}" + _WORD + r"[ \t]*(?:$|[\n;|&>\"'\\])"),
    Phrase(kind="command-password", pieces=("pass:",), before=12,  # openssl rsa -passin pass:SECRET
        pattern=r"-(?:passin|passout|pass|password|k|storepass)[ =]{1,3}(?P<open>[\"'])?pass:(?!\$|\[REDACTED|<)(?P<secret>(?(open)[^\"'<\n]|[^\s\"'<]){2,200})"),
    Phrase(kind="command-password", pieces=("sudo",), before=320,  # echo SECRET | sudo -S id
        pattern=_ECHO + r"(?P<secret>[^\n\"'|<>]{2,200}?)[\"']?\s{0,3}\|\s{0,3}(?:\w{1,20}\s){0,3}?" + _STDIN),
    Phrase(kind="command-password", pieces=("sudo",),  # sudo -S id <<< SECRET
        pattern=_STDIN + r"[^\n|;<]{0,200}(?:<<<\s{0,3}[\"']?|<<-?\s{0,3}[\"']?\w{1,20}[\"']?[ \t]{0,3}\n)(?!\[REDACTED|\$)(?P<secret>[^\s\"']{3,200})"),
    Phrase(kind="command-password", pieces=("sudo",),  # run(['sudo', '-S', 'id'], input='SECRET')
        pattern=r"sudo[\"'],\s{0,3}[\"'](?:-\w{0,3}S|--stdin)[\"'][^\n]{0,200}?\binput=b?[\"'](?P<secret>[^\"'\n\\]{3,200})"),
    Phrase(kind="command-password", pieces=("--password-stdin", "--with-token", "chpasswd", "| passwd", "| kinit", "| wg", "| cryptsetup", "secret put",
        "secret set", "secrets create"), before=400,  # echo SECRET | docker login --password-stdin
        pattern=_ECHO + r"(?P<secret>[^\n\"'|<>$]{3,200}?)[\"']?\s{0,3}(?:\||\n\+{1,3}\s)[^\n|;]{0,200}?"
            r"(?:--password-stdin|--with-token|chpasswd|passwd|kinit|wg pubkey|cryptsetup|secret (?:put|set)|secrets create)\b"),
    Phrase(kind="command-password", pieces=("secrets set", "secret set", "from-literal"),  # kubectl create secret generic name --from-literal=a=SECRET
        pattern=r"(?:secrets? set\s(?:[^\s=]{1,60}\s){0,6}|from-literal[= ][\"']?)[\w.-]{1,80}=" + _WORD),
    Phrase(kind="command-password", pieces=("login", "--with-token"),  # gh auth login --with-token <<< SECRET
        pattern=r"(?:\blogin\b[^\n|;]{0,200}?|--with-token\s{0,2})<<<\s{0,3}" + _WORD),
    Phrase(kind="command-password", pieces=("<(echo", "<(printf"),  # wg set wg0 private-key <(echo SECRET)
        pattern=r"<\((?:echo|printf)\s{1,3}(?:-\w\s)?(?:[\"']?%s[^\s\"']{0,4}[\"']?\s)?[\"']?(?P<secret>(?=[^\s\"')]{0,100}\d)[^\s\"'()$]{8,200})[\"']?\)"),
    Phrase(kind="command-password", pieces=("net user", "net use ", "/user:", "/u:"), before=40,  # net use Z: \\host\share /user:name SECRET
        pattern=r"(?:\bnet\s{1,2}user\s{1,2}\S{1,60}\s{1,2}(?!/)|\bnet\suse\s(?:[a-z*]:?\s)?\\\\\S{1,200}\s(?![/-])|(?<![\w/])/user:\S{1,80}\s{1,2}"
            r"(?![/-])|/u:\S{1,80}\s{1,2}/p:)" + _WORD),
    Phrase(kind="command-password", pieces=("requirepass", "masterauth"),  # requirepass SECRET
        pattern=r"(?:requirepass|masterauth)\s{1,3}" + _WORD),
    Phrase(kind="command-password", pieces=("redis", "redis>", ":6379>"), before=24,  # redis:6379> AUTH SECRET
        pattern=r"(?:redis|:\d{2,5})[^\n>]{0,10}>\s?auth\s{1,2}(?:[a-z]{1,40}\s)?" + _WORD),
    Phrase(kind="command-password", pieces=("identified",),  # CREATE USER name IDENTIFIED BY 'SECRET'
        pattern=r"identified\s{1,3}(?:with\s{1,3}\S{1,40}\s{1,3})?by\s{1,3}(?:password\s{1,3})?[\"'](?P<secret>[^\"'\n]{2,200})[\"']"),
    Phrase(kind="command-password", pieces=("oracle:thin:", "oracle:oci:", "sqlplus", "sqlldr", "expdp", "impdp"),  # sqlplus name/SECRET@host
        pattern=r"(?:oracle:(?:thin|oci):|(?:sqlplus|sqlldr|expdp|impdp)\s(?:-\S{1,10}\s){0,3})[^\s/@\"']{1,60}/(?P<secret>[^\s/@\"']{3,100})@"),
    Phrase(kind="command-password", pieces=("basicauth(", "login(", "auth=(", ".auth("),  # HTTPBasicAuth('name', 'SECRET')
        pattern=r"(?:basicauth|login|\.auth|auth=)\(\s{0,40}[\"'][^\"'\n]{1,100}[\"']\s{0,3},\s{0,40}[\"'](?P<secret>(?=[^\"'\n]{0,60}\d)[^\"'\n\s:/]{6,100})[\"']"),
    Phrase(kind="command-password", pieces=("assword:", "password:"),  # expect 'password:' ... send 'SECRET'
        pattern=r"p?assword:[ ]?[*]?[\"'}][\s\S]{0,60}?\bsend(?:line)?[\s(]{1,4}(?:--\s)?[\"'](?P<secret>[^\"'\n\r\\]{3,100})"),
    Phrase(kind="command-password", pieces=("convertto-securestring",),  # ConvertTo-SecureString 'SECRET' -AsPlainText
        pattern=r"convertto-securestring\s{1,3}(?:-string\s{1,3})?[\"'](?!\$)(?P<secret>[^\"'\n]{3,200})[\"']"),
    Phrase(kind="router-password", pieces=("password ", "secret ", "key-string "),  # enable secret 5 SECRET
        pattern=r"(?:password|secret|key-string)\s(?:level\s\d{1,2}\s)?[05-9]\s(?P<secret>(?=[^\s\"'`]{0,60}\d)[^\s\"'`]{6,200})(?=\s|$)"),
    Phrase(kind="ci-variable", pieces=("##vso[task.setvariable", "::add-mask::"),  # ::add-mask::SECRET
        pattern=r"(?:##vso\[task\.setvariable\s[^\]\n]{0,200}\b(?:issecret=true|\w*(?:pass|pwd|token|secret|key|pat)\w*)[^\]\n]{0,100}\]|::add-mask::)(?!\$|\[REDACTED)"
            r"(?P<secret>[^\s\"'\\]{3,4000})"),
    Phrase(kind="printed-secret", pieces=("output -raw", "wg genkey", "wg genpsk", "openssl rand", "pwgen", "auth token", "print-access-token",
        "print-identity-token", "get-login-password", "get-access-token", "create token", "secrets versions access", "op read", "pass show"),  # on the next line
        pattern=r"[^\n|>&;`)]{3,200}\r?\n(?P<secret>(?=[^\n]{0,100}\d)[A-Za-z0-9+/_.-]{16,4000}={0,2})[ \t\r]*(?:$|\n)"),
    Phrase(kind="login", pieces=("login", "log in", "credentials", "creds"),  # log in with name / SECRET
        pattern=r"(?:log ?in|credentials?|creds)\b[^\n]{0,12}?(?:with|as|are|is|:|=)?\s{0,2}[A-Za-z][\w.@-]{1,40}\s?/\s?(?P<secret>(?=[^\s/]{0,40}\d)"
            r"(?=[^\s/]{0,40}[A-Za-z])[^\s/,;:)\"'.]{7,60})(?=[\s,;)\"'.]|$)(?!\.[a-z])"),
    Phrase(kind="wallet",  # seed phrase: twelve words
        pieces=("mnemonic", "seed phrase", "seed_phrase", "seedphrase", "seed words", "recovery phrase", "recovery_phrase", "recoveryphrase"),
        pattern=r"(?:(?P<open>(?:mnemonic|seed|recovery)[ _]?(?:phrase|words)\b[^\n]{0,30}?(?:[:=]|\bis\b|\n))|mnemonic\b[^\n]{0,20}?[:=])[\s\"'`*\[]{0,6}"
            r"(?:\d{1,2}[.)]\s?)?(?P<secret>(?:[a-z]{3,8}(?(open)[\s,\"'\\]{1,4}(?:\d{1,2}[.)]\s?)?|[ ])){11,23}[a-z]{3,8})\b"),
    Phrase(kind="netrc", pieces=("machine",),  # machine host login name password SECRET
        pattern=r"\bmachine\s{1,4}\S{1,200}[\s\d+-]{1,20}login\s{1,4}\S{1,200}[\s\d+-]{1,20}password\s{1,4}(?!\[REDACTED)(?P<secret>[^\s\"'\\]{1,200})"),
)  # fmt: skip
