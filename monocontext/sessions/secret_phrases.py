"""Secrets that the words around them give away: headers, commands, questions for a password; and private keys. Pure.

A private key in PEM or OpenSSH form is also found without its first or its last line, and without both if its base64
begins as keys in DER do. Its lines may be numbered, quoted, or part of a diff or of code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Parts of patterns. The first refuses variables, place-holders and marks of an earlier redaction.
_NOT_A_VARIABLE = (r"(?![$<]|\{\{|%[A-Z(]|\*{3}|\.{3}|\[REDACTED|(?:null|none|true|false|undefined|os\.|process\.|env\.)\b)")  # fmt: skip
_GAP = r"[\"']?\s{0,3}(?:[:=]|=>|,)\s{0,3}[\"']?"
_ARGS = r"[^\n;|]{0,300}?\s"
_WORD = r"(?:(?P<open>[\"'])(?=[^\"'\n]{3,200}[\"'])|[\"']?)(?!\[REDACTED|\$|<|-)(?P<secret>(?(open)[^\"'\n]|[^\s\"']){3,200})"
# Options with short values, or with addresses; what is longer may be the key. Possessive, so the cost is linear.
_OPTIONS = (
    r"(?:[ \t]{1,4}-{1,2}[\w-]{1,30}(?:=\S{0,15}(?=\s))?(?:[ \t]{1,4}(?!-)(?:\S{1,15}(?=\s)|[^\s:/@]{0,60}[:/@]\S{0,100}))?+){0,6}+"
    r"(?:=|[ \t]{1,4})[\"']?"
)
_ECHO = (r"\b(?:echo|printf|print)\s{1,3}(?:-\w{1,3}\s{1,2})?(?:[\"']?%s[^\s\"']{0,4}[\"']?\s{1,3})?[\"']?(?!\$|\[REDACTED)")  # fmt: skip
_STDIN = r"sudo\s[^\n|;<]{0,60}?(?:-\w{0,3}S|--stdin)\b"

# Kind, pieces (in lower case; case does not count; `~` is a space), characters before it, pattern (from there on, any case).
PHRASES: tuple[tuple[str, str, int, str], ...] = (
    ("authorization", "authorization", 0, r"authorization" + _GAP + r"(?:(?:bearer|basic|token|digest|apikey|api-key|negotiate|ssws|aws4-hmac-sha256)\s{1,3})?" + _NOT_A_VARIABLE
                      + r"(?P<secret>(?!(?:bearer|basic|token|digest|apikey|negotiate)\b)(?=[^\s\"',;]{0,200}[0-9=])(?![a-z0-9_.]{1,60}[(\[{}])[^\s\"',;\\]{8,4000})"),
    ("authorization", "bearer", 0, r"bearer\s{1,3}[\"']?" + _NOT_A_VARIABLE + r"(?P<secret>(?=[A-Za-z._~+/=-]{0,200}\d)[A-Za-z0-9._~+/=-]{16,4000})"),
    ("cookie", "cookie", 0, r"cookie[\"']?\s{0,2}[:=]\s{0,2}[\"']?(?=[^\r\n\"'`\\<>{}()]{1,2000}?=(?!GA\d)(?P<rest>[A-Za-z0-9._~+/%:|-]{16,4000}))(?P<secret>[^\r\n\"'`\\<>{}()]{17,4000})"),
    ("totp", "otpauth: otpauth%3a", 0, r"otpauth(?::|%3a)[^\s\"'<>\\]{0,400}?(?:[?&]|%3f|%26)secret(?:=|%3d)(?P<secret>[a-z2-7]{8,256}={0,6})"),
    ("azure", "accountkey sharedaccesskey sharedaccesssignature", 0, r"(?:accountkey|sharedaccess(?:key|signature))[\"']?\s{0,2}[=:]\s{0,2}[\"']?(?P<secret>[A-Za-z0-9+/]{20,200}={0,2})"),
    ("command-token", "login setapikey authtoken auth~", 0, r"(?<=[a-z0-9_.-][ \t-])(?:login|setapikey|authtoken|auth)(?:\s(?:init|login|token|add|set))?" + _OPTIONS + r"(?P<secret>(?P<rest>[A-Za-z0-9_.=+~-]{16,2000}))(?![\w/:@-])"),
    ("command-password", "curl", 0, r"\bcurl\b[^\n]{0,600}?\s(?:-u|--user|-U|--proxy-user|--user=|--proxy-user=)[ =]?[\"']?[^\s:\"']{0,100}:(?!\[REDACTED|\$)(?P<secret>[^\s\"']{1,200})"),
    ("command-password", "http", 0, r"(?<![\w/:.-])https?\s(?:[^\n;|]{0,200}?\s)?(?:-a|--auth)[ =]?[\"']?[^\s:\"']{1,100}:(?P<secret>[^\s\"']{3,200})"),
    ("command-password", "mysql mariadb", 0, r"\b(?:mysql\w{0,10}|mariadb[\w-]{0,10})\b[^\n;|]{0,200}?\s-p(?!\[REDACTED|\$|assword|ort|rotocol)[\"']?(?P<secret>[^\s\"'=-][^\s\"']{3,100})"),
    ("command-password", "7z", 0, r"\b7z[ar]?\s[axelu]\s[^\n;|]{0,200}?(?<=\s)-p(?!\s)" + _WORD),
    ("command-password", "login twine poetry conan mongo az~", 0, r"\b(?:login|twine|poetry|conan|mongo\w{0,7}|az)\b" + _ARGS + r"(?:-p|--pass(?:word)?)[ =](?!\d{1,5}(?!\w))" + _WORD),
    ("command-password", "~-u~ ~--user~ ~--username~", 0, r"\s(?:-u|--user(?:name)?)\s[^\s\"'$-]\S{0,80}\s(?:-p|--pass(?:word)?)[ =][\"']?"
                         r"(?!\[REDACTED)(?P<secret>(?=[^\s\"']{0,60}\d)(?=[^\s\"']{0,60}[A-Za-z])[^\s\"':/$<>]{8,100})(?=[\s\"']|$)"),
    ("command-password", "sshpass", 0, r"\bsshpass\b[^\n]{0,60}?\s-p\s?" + _WORD),
    ("command-password", "ssh-keygen", 0, r"\bssh-keygen\b" + _ARGS + r"(?-i:-[NP])\s{0,2}" + _WORD),
    ("command-password", "redis-cli openssl ldap sqlcmd ipmitool zip keytool jarsigner", 0,
                         r"\b(?:redis-cli" + _ARGS + r"(?:-a|--pass)|openssl" + _ARGS + r"(?-i:-k|-K|-passwd)|ldap[a-z]{3,8}" + _ARGS + r"(?-i:-w)|(?:sqlcmd|ipmitool|(?:un)?zip)" + _ARGS
                         + r"(?-i:-P)|(?:keytool|jarsigner)" + _ARGS + r"-(?:store|key|src|dest)[a-z]{0,8}pass(?:wd|word)?)[ =]{1,2}" + _WORD),
    ("command-password", "smbclient lftp", 0, r"\b(?:smbclient" + _ARGS + r"-U\s?[\"']?[^\s%\"']{1,100}%|lftp" + _ARGS + r"-u\s?[\"']?[^\s,\"']{1,100},)(?P<secret>[^\s\"']{3,200})"),
    ("command-password", "htpasswd", 0, r"\bhtpasswd\s[^\n;|]{0,20}?-[a-zA-Z]{0,6}b[a-zA-Z0-9]{0,6}\s(?:-\S{1,10}\s){0,4}(?:\S{1,200}[ \t]{1,2}){1,2}" + _WORD + r"[ \t]*(?:$|[\n;|&>\"'\\])"),
    ("command-password", "pass:", 12, r"-(?:passin|passout|pass|password|k|storepass)[ =]{1,3}(?P<open>[\"'])?pass:(?!\$|\[REDACTED|<)(?P<secret>(?(open)[^\"'<\n]|[^\s\"'<]){2,200})"),
    ("command-password", "sudo", 320, _ECHO + r"(?P<secret>[^\n\"'|<>]{2,200}?)[\"']?\s{0,3}\|\s{0,3}(?:\w{1,20}\s){0,3}?" + _STDIN),
    ("command-password", "sudo", 0, _STDIN + r"[^\n|;<]{0,200}(?:<<<\s{0,3}[\"']?|<<-?\s{0,3}[\"']?\w{1,20}[\"']?[ \t]{0,3}\n)(?!\[REDACTED|\$)(?P<secret>[^\s\"']{3,200})"),
    ("command-password", "sudo", 0, r"sudo[\"'],\s{0,3}[\"'](?:-\w{0,3}S|--stdin)[\"'][^\n]{0,200}?\binput=b?[\"'](?P<secret>[^\"'\n\\]{3,200})"),
    ("command-password", "--password-stdin --with-token chpasswd |~passwd |~kinit |~wg |~cryptsetup secret~put secrets~create", 400,
                         _ECHO + r"(?P<secret>[^\n\"'|<>$]{3,200}?)[\"']?\s{0,3}(?:\||\n\+{1,3}\s)[^\n|;]{0,200}?(?:--password-stdin|--with-token|chpasswd|passwd|kinit|wg pubkey|cryptsetup|secret put|secrets create)\b"),
    ("command-password", "login --with-token", 0, r"(?:\blogin\b[^\n|;]{0,200}?|--with-token\s{0,2})<<<\s{0,3}" + _WORD),
    ("command-password", "<(echo <(printf", 0, r"<\((?:echo|printf)\s{1,3}(?:-\w\s)?(?:[\"']?%s[^\s\"']{0,4}[\"']?\s)?[\"']?(?P<secret>(?=[^\s\"')]{0,100}\d)[^\s\"'()$]{8,200})[\"']?\)"),
    ("command-password", "net~user net~use~ /user: /u:", 40, r"(?:\bnet\s{1,2}user\s{1,2}\S{1,60}\s{1,2}(?!/)|\bnet\suse\s(?:[a-z*]:?\s)?\\\\\S{1,200}\s(?![/-])|(?<![\w/])/user:\S{1,80}\s{1,2}(?![/-])|/u:\S{1,80}\s{1,2}/p:)" + _WORD),
    ("command-password", "requirepass masterauth", 0, r"(?:requirepass|masterauth)\s{1,3}" + _WORD),
    ("command-password", "redis redis> :6379>", 24, r"(?:redis|:\d{2,5})[^\n>]{0,10}>\s?auth\s{1,2}(?:[a-z]{1,40}\s)?" + _WORD),
    ("command-password", "identified", 0, r"identified\s{1,3}(?:with\s{1,3}\S{1,40}\s{1,3})?by\s{1,3}(?:password\s{1,3})?[\"'](?P<secret>[^\"'\n]{2,200})[\"']"),
    ("command-password", "oracle:thin: oracle:oci: sqlplus sqlldr expdp impdp", 0, r"(?:oracle:(?:thin|oci):|(?:sqlplus|sqlldr|expdp|impdp)\s(?:-\S{1,10}\s){0,3})[^\s/@\"']{1,60}/(?P<secret>[^\s/@\"']{3,100})@"),
    ("command-password", "basicauth( login( auth=(", 0, r"(?:basicauth|login|auth=)\(\s{0,40}[\"'][^\"'\n]{1,100}[\"']\s{0,3},\s{0,40}[\"'](?P<secret>(?=[^\"'\n]{0,60}\d)[^\"'\n\s:/]{6,100})[\"']"),
    ("command-password", "assword: password:", 0, r"p?assword:[ ]?[*]?[\"'}][\s\S]{0,60}?\bsend(?:line)?[\s(]{1,4}(?:--\s)?[\"'](?P<secret>[^\"'\n\r\\]{3,100})"),
    ("command-password", "convertto-securestring", 0, r"convertto-securestring\s{1,3}(?:-string\s{1,3})?[\"'](?!\$)(?P<secret>[^\"'\n]{3,200})[\"']"),
    ("router-password", "password~ secret~ key-string~", 0, r"(?:password|secret|key-string)\s(?:level\s\d{1,2}\s)?[05-9]\s(?P<secret>(?=[^\s\"'`]{0,60}\d)[^\s\"'`]{6,200})(?=\s|$)"),
    ("ci-variable", "##vso[task.setvariable ::add-mask::", 0, r"(?:##vso\[task\.setvariable\s[^\]\n]{0,200}\b(?:issecret=true|\w*(?:pass|pwd|token|secret|key|pat)\w*)[^\]\n]{0,100}\]|::add-mask::)(?!\$|\[REDACTED)(?P<secret>[^\s\"'\\]{3,4000})"),
    ("printed-secret", "output~-raw wg~genkey wg~genpsk openssl~rand pwgen auth~token print-access-token print-identity-token get-login-password get-access-token create~token", 0,
                       r"[^\n|>&;`)]{3,200}\r?\n(?P<secret>(?=[^\n]{0,100}\d)[A-Za-z0-9+/_.-]{16,4000}={0,2})[ \t\r]*(?:$|\n)"),
    ("login", "login log~in credentials creds", 0, r"(?:log ?in|credentials?|creds)\b[^\n]{0,12}?(?:with|as|are|is|:|=)?\s{0,2}[A-Za-z][\w.@-]{1,40}\s?/\s?(?P<secret>(?=[^\s/]{0,40}\d)(?=[^\s/]{0,40}[A-Za-z])[^\s/,;:)\"'.]{7,60})(?=[\s,;)\"'.]|$)(?!\.[a-z])"),
    ("wallet", "mnemonic seed~phrase recovery~phrase", 0, r"(?:mnemonic|phrase)\b[^\n]{0,20}?[:=][\s\"']{0,4}(?P<secret>(?:[a-z]{3,8}[ ]){11,23}[a-z]{3,8})"),
    ("netrc", "machine", 0, r"\bmachine\s{1,4}\S{1,200}[\s\d+-]{1,20}login\s{1,4}\S{1,200}[\s\d+-]{1,20}password\s{1,4}(?!\[REDACTED)(?P<secret>[^\s\"'\\]{1,200})"),
)  # fmt: skip

_KEY_MARK = re.compile(r"-----(BEGIN|END)[ +][A-Z0-9 +]{0,40}PRIVATE[ +]KEY(?:[ +]BLOCK)?-----")
_KEY_CHARACTERS = 20_000  # the longest key, with its marks
# The text before a line of a key in a listing, a diff, a quotation or code; its base64; the text that may follow.
_KEY_LINE = re.compile(
    r"[ \t]*(?:[+>#*|-][ \t]*){0,2}(?:[\w./-]{1,100}[:-](?=\d{1,6}[:-]))?(?:\d{1,6}(?:[ \t]*[:|\u2192-]|\t|[ ]{1,4})[ \t]*){0,2}[\"'`]?(?P<body>[A-Za-z0-9+/]{1,200}={0,2})"
    r"(?:\\?n)?[\"'`]?[ \t]*[+,\\$.)]{0,3}[ \t\r]*"
)
# The end of a key in the middle of a line.
_KEY_CUT = re.compile(r"[ \t\"'`\\n+>|]{0,10}(?P<body>[A-Za-z0-9+/]{40,20000}={0,2})")
_KEY_HEADER = re.compile(r"[ \t+>#*|-]*(?:\d{1,6}\W{1,6})?(?:(?:Proc-Type|DEK-Info|Comment|Version|Hash|Charset): ?[^\n]{0,100})?[ \t\r\"'$,\\n+]*")  # fmt: skip
_KEY_RUN = re.compile(r"[A-Za-z0-9+/=]{40,20000}")
_LEAST_BASE64 = 40  # characters. Less base64 is no key.
KEY_BEGINNINGS = ("MII MHcCAQEE MHQCAQEE MIGkAgEB MIHcAgEB MIGHAgEA MIG2AgEA MIHuAgEA MC4CAQAw b3BlbnNzaC1rZXktdjE".split())  # fmt: skip
"""How keys in DER and OpenSSH begin, whose first and last line may be missing."""
_DER_KEY = re.compile(f"{'|'.join(KEY_BEGINNINGS[1:])}|MII...IBA[AD]|MII..(?:DB|TBX|zBJ)|MII.[\\w+/]{{2,4}}AgEA")


def find_private_keys(text: str) -> Iterator[tuple[int, int]]:
    """The spans of private keys that have a first or a last line."""
    done = 0
    for mark in _KEY_MARK.finditer(text):
        if mark[1] == "BEGIN":
            end = text.find("-----END", mark.end(), mark.end() + _KEY_CHARACTERS)
            if end >= 0 and "-----" not in text[mark.end() : end]:
                closing = _KEY_MARK.match(text, end)
                stop = closing.end() if closing else end
                if not re.search(r"[A-Za-z0-9+/]{10}", text[mark.end() : stop]):
                    continue
            else:
                stop = _find_body_end(text, mark.end())
            if stop > mark.end():
                done = stop
                yield mark.start(), stop
        elif mark.start() >= done and (start := _find_body_start(text, mark.start(), done)) < mark.start():
            yield start, mark.end()


def match_bare_key(text: str, offset: int) -> tuple[int, int] | None:
    """The span of a private key (DER in base64) without a first line that begins at `offset`; None if none does."""
    if not _DER_KEY.match(text, offset) or not (run := _KEY_RUN.match(text, offset)):
        return None
    begin = text.find("\n", run.end(), run.end() + 8)
    stop = _find_body_end(text, begin + 1) if begin >= 0 else -1
    return offset, max(run.end(), stop if stop > begin + 1 else 0)


def _find_body_end(text: str, start: int) -> int:
    """The end of the base64 that begins at `start`, after a first line; `start` if there is none."""
    length, stop, begin = 0, start, start
    while begin <= len(text) and begin - start < _KEY_CHARACTERS:
        end = text.find("\n", begin)
        end = len(text) if end < 0 else end
        line = _KEY_LINE.fullmatch(text, begin, end)
        body = line["body"] if line else ""
        may_end = body.endswith("=") or (any(map(str.isdigit, body)) and any(map(str.isupper, body)))
        if line and (len(body) >= 16 or (length and may_end)):
            length += len(line["body"])
            stop = line.end("body")
        elif not _KEY_HEADER.fullmatch(text, begin, end):
            if cut := _KEY_CUT.match(text, begin, end):
                length, stop = length + len(cut["body"]), cut.end("body")
            break
        begin = end + 1
    return stop if length >= _LEAST_BASE64 else start


def _find_body_start(text: str, stop: int, least: int) -> int:
    """The beginning of the base64 that ends at `stop`, before a last line, and not before `least`; else `stop`."""
    length, start, end = 0, stop, text.rfind("\n", least, stop)
    while end > least and stop - end < _KEY_CHARACTERS:
        begin = max(text.rfind("\n", least, end) + 1, least)
        line = _KEY_LINE.fullmatch(text, begin, end)
        if not line or (length and len(line["body"]) < 16):
            break
        length += len(line["body"])
        start = line.start("body")
        end = begin - 1
    return start if length >= _LEAST_BASE64 else stop
