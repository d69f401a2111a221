"""Patterns for secrets that are recognised by the words around them: in URLs, headers and commands. Only data.

Patterns are verbose: blanks in them do not count. `<WORD>` and the like stand for the parts in `_PARTS`. In the
examples, `SECRET` is 20 letters and digits, and `HEX` is 32 hexadecimal digits.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_PARTS = {
    # a secret in quotes, or up to the next blank; no option and no variable
    "WORD": r"""(?: (?P<open>["'])(?=[^"'\n]{3,200}["']) | ["']? ) (?!\[REDACTED|\$|<|-)
        (?P<secret>(?(open) [^"'\n] | [^\s"'] ){3,200})""",
    "BARE": r"""(?P<secret>[^\s"']{3,200})""",
    "NEW": r"(?!\[REDACTED|\$)",  # not the mark of an earlier redaction, and no variable
    "VALUE": r"""(?! [$<] | \{\{ | %[A-Z(] | \*{3} | \.{3} | \[REDACTED  # the same, and no other place-holder
        | (?:null|none|true|false|undefined|os\.|process\.|env\.)\b )""",
    "GAP": r"""["']?\s{0,3}(?:[:=]|=>|,)\s{0,3}["']?""",  # between a name and its value: `: `, `=`, `" => "`
    "ARGS": r"[^\n;|]{0,300}?\s",  # the arguments of a command before the option that counts
    # Options whose values are short, or addresses: a longer one may be the key. Possessive, so the cost is linear.
    "OPTIONS": r"""(?: [ \t]{1,4}-{1,2}[\w-]{1,30} (?:=\S{0,15}(?=\s))?
        (?:[ \t]{1,4}(?!-)(?:\S{1,15}(?=\s)|[^\s:/@]{0,60}[:/@]\S{0,100}))?+ ){0,6}+ (?:=|[ \t]{1,4})["']?""",
    "ECHO": r"""\b(?:echo|printf|print)\s{1,3}(?:-\w{1,3}\s{1,2})?(?:["']?%s[^\s"']{0,4}["']?\s{1,3})?["']?<NEW>""",
    "SUDO": r"sudo\s[^\n|;<]{0,60}?(?:-\w{0,3}S|--stdin)\b",  # `sudo -S`, which reads the password from stdin
}


class Phrase(NamedTuple):
    """A pattern for a text with certain words. Its group `secret` is the secret; a group `rest` must look random."""

    words: tuple[str, ...]  # in lower case, but found in any; the pattern is tried where one of them begins
    example: str  # a text that the pattern matches from one of the words on, with `SECRET` for the secret
    near_miss: str  # a similar text in which it matches nothing
    pattern: str  # of the text from the word on
    before: int = 0  # the most characters of a match before the word
    kind: str = "command-password"
    is_cased: bool = False  # whether the case of letters counts


def expand(pattern: str) -> str:
    """The pattern of a phrase with its parts in full, for `re.VERBOSE`."""
    return re.sub("<([A-Z]+)>", lambda part: expand(_PARTS[part[1]]), pattern)


PHRASES = (
    # URLs that hold a secret: webhooks, signed links, passwords
    Phrase(("hooks.slack.com/",), "hooks.slack.com/services/SECRET", "hooks.slack.com/about", r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Z0-9/+_-]{16,100})", kind="slack"),
    Phrase(("/api/webhooks/",), "discord.com/api/webhooks/123456/SECRET", "/api/webhooks/list", r"/api/webhooks/(?P<secret>\d{5,40}/[A-Z0-9_-]{16,100})", kind="discord"),
    Phrase((".webhook.office.com/",), "acme.webhook.office.com/webhookb2/SECRET@SECRET", "acme.webhook.office.com/webhookb2/", r"\.webhook\.office\.com/(?P<secret>webhookb2/[A-Z0-9@/_-]{40,300})", kind="teams"),
    Phrase(("hooks.zapier.com/",), "hooks.zapier.com/hooks/catch/123/SECRET", "hooks.zapier.com/hooks/catch/", r"hooks\.zapier\.com/hooks/(?:catch|standard)/(?P<secret>[A-Z0-9/_-]{8,80})", kind="zapier"),
    Phrase((".make.com/", ".integromat.com/"), "hook.eu2.make.com/SECRET", "www.make.com/integrations", r"(?:hook[a-z0-9.]{0,12}\.(?:make|integromat)\.com/|\.make\.com/(?=[a-z0-9]{28,40}(?![a-z0-9])))(?P<secret>[a-z0-9]{20,60})", before=18, kind="make"),
    Phrase(("maker.ifttt.com/",), "maker.ifttt.com/trigger/name/with/key/SECRET", "maker.ifttt.com/trigger/name", r"""maker\.ifttt\.com/[^\s"']{0,100}?/key/(?P<secret>[A-Z0-9_-]{16,80})""", kind="ifttt"),
    Phrase((".m.pipedream.net",), "https://SECRET.m.pipedream.net", "api.m.pipedream.net", r"//(?P<secret>[a-z0-9]{10,40})\.m\.pipedream\.net", before=44, kind="pipedream"),
    Phrase((".tines.com/webhook/",), "acme.tines.com/webhook/HEX/HEX", "acme.tines.com/webhook/HEX", r"\.tines\.com/webhook/(?P<secret>[0-9a-f]{32}/[0-9a-f]{32})", kind="tines"),
    Phrase(("/open-apis/bot/",), "open.feishu.cn/open-apis/bot/v2/hook/SECRET", "open.feishu.cn/open-apis/bot/v3/info", r"/open-apis/bot/(?:v2/)?hook/(?P<secret>[A-Z0-9-]{20,60})", kind="feishu"),
    Phrase(("/bot",), "api.telegram.org/bot123456:AAHEX/getMe", "api.telegram.org/bots", r"/bot\d{5,16}:(?P<secret>[A-Z0-9_-]{30,40})(?![A-Z0-9_-])", kind="telegram"),
    Phrase(("/hooks/",), "chat.acme.test/hooks/SECRET/HEX", "chat.acme.test/hooks/SECRET", r"/hooks/(?P<secret>(?=[a-z]{0,24}\d)[a-z0-9]{26}|[a-z0-9]{17,24}/[a-z0-9]{24,64})(?![a-z0-9])", kind="hook"),
    Phrase(("/build_hooks/",), "api.netlify.com/build_hooks/HEX", "api.netlify.com/build_hooks/list", r"/build_hooks/(?P<secret>[0-9a-f]{20,40})", kind="netlify"),
    Phrase(("/integrations/deploy/",), "/v1/integrations/deploy/prj_SECRET/SECRET", "/v1/integrations/deploy/prj_SECRET", r"/integrations/deploy/(?P<secret>prj_[A-Z0-9]{16,60}/[A-Z0-9]{6,40})", kind="vercel"),
    Phrase(("/integration/",), "events.pagerduty.com/integration/HEX/enqueue", "/integration/SECRET", r"/integration/(?P<secret>[0-9a-f]{32})(?![a-z0-9])", kind="pagerduty"),
    Phrase(("hc-ping.com/",), "hc-ping.com/SECRET", "hc-ping.com/docs", r"hc-ping\.com/(?P<secret>[A-Z0-9_-]{20,60})", kind="healthchecks"),
    Phrase((".alchemy.com/v2/", ".infura.io/v3/", ".infura.io/ws/v3/", ".quiknode.pro/", "rpc.ankr.com/"), "main.infura.io/v3/HEX", "main.infura.io/v3/docs", r"\.?(?:alchemy\.com/v2|infura\.io/(?:ws/)?v3|quiknode\.pro|rpc\.ankr\.com/[a-z0-9_]{2,40})/(?P<secret>[A-Z0-9_-]{28,70})", kind="node"),
    Phrase(("/private-",), "calendar.google.com/calendar/ical/name/private-HEX/basic.ics", "/private-beta/", r"/private-(?P<secret>[0-9a-f]{32})/", kind="calendar"),
    Phrase(("api.softlayer.com/",), "api.softlayer.com/rest/v3/HEXHEX", "api.softlayer.com/rest/v3/HEX", r"api\.softlayer\.com/(?:soap|rest)/v3(?:\.1)?/(?P<secret>[a-z0-9]{64})", kind="softlayer"),
    Phrase(("code=",), "acme.azurewebsites.net/api/a?code=SECRETSECRET", "acme.test/a?code=404", r"(?<=[?&])code=(?P<secret>[A-Z0-9_%/+-]{40,100}={0,2})", kind="azure"),
    Phrase(("signature",), "acme.test/a?X-Amz-Signature=HEX", "signature=of_a_function_with_two_arguments", r"""signature(?:(?<=[?&;, ]signature)=|(?<=x-...-signature)["']?[=:]\s?["']?|(?<=x-....-signature)["']?[=:]\s?["']?)(?P<secret>(?=[A-Z_%~-]{0,60}\d)[A-Z0-9%+/=_~-]{26,4000})""", kind="signed-url"),
    Phrase(("appid=",), "api.openweathermap.org/data?appid=HEX", "acme.test/a?appid=12", r"(?<=[?&])appid=(?P<secret>[0-9a-f]{32})(?![a-z0-9])", kind="url-parameter"),
    Phrase(("://",), "postgres://name:SECRET@host", "postgres://name:$PASSWORD@host", r"""(?<=[a-z0-9])://[^\s/:@"'<>`]{0,100}:(?P<secret>(?![$<{]|\[REDACTED|\*{3}|%[sd(]|pass|pwd\b|secret[:@]|\w{1,3}@)[^\s/"'<>`(]{1,300})@(?=[\w\[{$])""", kind="url-credentials"),
    Phrase(("://",), "https://SECRET@host", "https://name@host", r"(?<=http|ttps)://(?P<secret>(?![$<{]|\[REDACTED)(?=[a-z_-]{0,100}\d)[a-z0-9_-]{16,200})@", kind="url-credentials"),
    # Headers, commands and code
    Phrase(("authorization",), "Authorization: Bearer SECRET", "Authorization: Bearer token", r"""authorization<GAP>
        (?:(?:bearer|basic|token|digest|apikey|api-key|negotiate|ssws|aws4-hmac-sha256)\s{1,3})? <VALUE>
        (?P<secret> (?!(?:bearer|basic|token|digest|apikey|negotiate)\b) (?=[^\s"',;]{0,200}[0-9=])
            (?![a-z0-9_.]{1,60}[(\[{}]) [^\s"',;\\]{8,4000} )""", kind="authorization"),
    Phrase(("bearer",), "bearer SECRET", "the bearer of good news", r"""bearer\s{1,3}["']? <VALUE>
        (?P<secret>(?=[A-Za-z._~+/=-]{0,200}\d)[A-Za-z0-9._~+/=-]{16,4000})""", kind="authorization"),
    Phrase(("cookie",), "Set-Cookie: session=SECRET; Path=/", "Set-Cookie: theme=dark; Path=/", r"""cookie["']?\s{0,2}[:=]\s{0,2}["']?
        (?= [^\r\n"'`\\<>{}()]{1,2000}? = (?!GA\d) (?P<rest>[A-Za-z0-9._~+/%:|-]{16,4000}) )
        (?P<secret>[^\r\n"'`\\<>{}()]{17,4000})""", kind="cookie"),
    Phrase(("otpauth:", "otpauth%3a"), "otpauth://totp/name?secret=SECRET", "otpauth://totp/name?digits=6", r"""otpauth(?::|%3a)
        [^\s"'<>\\]{0,400}? (?:[?&]|%3f|%26)secret(?:=|%3d) (?P<secret>[a-z2-7]{8,256}={0,6})""", kind="totp"),
    Phrase(("login", "setapikey", "authtoken", "auth "), "vault login SECRET", "vault login -method=github", r"""
        (?<=[a-z0-9_.-][ \t-])(?:login|setapikey|authtoken|auth)(?:\s(?:init|login|token|add|set))? <OPTIONS>
        (?P<secret>(?P<rest>[A-Za-z0-9_.=+~-]{16,2000})) (?![\w/:@-])""", kind="command-token"),
    Phrase(("curl",), "curl -u name:SECRET https://host", "curl -u $NAME:$PASSWORD https://host", r"""\bcurl\b[^\n]{0,600}?\s
        (?:-u|--user=?|-U|--proxy-user=?)[ =]?["']?[^\s:"']{0,100}: <NEW> (?P<secret>[^\s"']{1,200})"""),
    Phrase(("http",), "http -a name:SECRET GET https://host", "http -v GET https://host:8080", r"""(?<![\w/:.-])https?\s(?:[^\n;|]{0,200}?\s)?
        (?:-a|--auth)[ =]? ["']?[^\s:"']{1,100}: <BARE>"""),
    Phrase(("mysql", "mariadb"), "mysql -u root -pSECRET", "mysql -u root -p", r"""\b(?:mysql\w{0,10}|mariadb[\w-]{0,10})\b
        [^\n;|]{0,200}?\s -p(?!\[REDACTED|\$|assword|ort|rotocol)["']?(?P<secret>[^\s"'=-][^\s"']{3,100})"""),
    Phrase(("7z",), "7z a -pSECRET out.7z", "7z a -p out.7z", r"\b7z[ar]?\s[axelu]\s[^\n;|]{0,200}?(?<=\s)-p(?!\s)<WORD>"),
    Phrase(("login", "twine", "poetry", "conan", "mongo", "az "), "docker login -p SECRET", "docker login -p 8080", r"""
        \b(?:login|twine|poetry|conan|mongo\w{0,7}|az)\b <ARGS> (?:-p|--pass(?:word)?)[ =] (?!\d{1,5}(?!\w)) <WORD>"""),
    Phrase((" -u ", " --user ", " --username "), "tool --user name -p SECRET", "tool --user name -p 8080", r"""
        \s(?:-u|--user(?:name)?)\s[^\s"'$-]\S{0,80}\s (?:-p|--pass(?:word)?)[ =]["']? (?!\[REDACTED)
        (?P<secret>(?=[^\s"']{0,60}\d)(?=[^\s"']{0,60}[A-Za-z])[^\s"':/$<>]{8,100})(?=[\s"']|$)"""),
    Phrase(("sshpass",), "sshpass -p SECRET ssh host", "sshpass -p $PASSWORD ssh host", r"\bsshpass\b[^\n]{0,60}?\s-p\s?<WORD>"),
    Phrase(("ssh-keygen",), "ssh-keygen -N 'SECRET' -f id", "ssh-keygen -N '' -f id", r"\bssh-keygen\b <ARGS> (?-i:-[NP])\s{0,2} <WORD>"),
    Phrase(("redis-cli",), "redis-cli -a SECRET", "redis-cli -a $PASSWORD", r"\bredis-cli <ARGS> (?:-a|--pass)[ =]{1,2} <WORD>"),
    Phrase(("openssl",), "openssl enc -k SECRET", "openssl enc -k $PASSWORD", r"\bopenssl <ARGS> (?-i:-k|-K|-passwd)[ =]{1,2} <WORD>"),
    Phrase(("ldap",), "ldapsearch -w SECRET", "ldapsearch -W -x", r"\bldap[a-z]{3,8} <ARGS> (?-i:-w)[ =]{1,2} <WORD>"),
    Phrase(("sqlcmd", "ipmitool", "zip", "unzip"), "sqlcmd -U name -P SECRET", "sqlcmd -U name -p secret", r"""
        \b(?:sqlcmd|ipmitool|(?:un)?zip) <ARGS> (?-i:-P)[ =]{1,2} <WORD>"""),
    Phrase(("smbclient", "lftp"), "smbclient //host/share -U name%SECRET", "smbclient //host/share -U name", r"""
        \b(?: smbclient<ARGS>-U\s?["']?[^\s%"']{1,100}% | lftp<ARGS>-u\s?["']?[^\s,"']{1,100}, ) <BARE>"""),
    Phrase(("htpasswd",), "htpasswd -b file name SECRET", "htpasswd -c file name", r"""
        \bhtpasswd\s[^\n;|]{0,20}? -[a-zA-Z]{0,6}b[a-zA-Z0-9]{0,6}\s (?:-\S{1,10}\s){0,4} (?:\S{1,200}[ \t]{1,2}){1,2}
        <WORD> [ \t]*(?:$|[\n;|&>"'\\])"""),
    Phrase(("pass:",), "openssl rsa -passin pass:SECRET", "openssl rsa -passin pass:$PASSWORD", r"""
        -(?:passin|passout|pass|password|k|storepass)[ =]{1,3} (?P<open>["'])? pass: (?!\$|\[REDACTED|<)
        (?P<secret>(?(open)[^"'<\n]|[^\s"'<]){2,200})""", before=12),
    Phrase(("sudo",), "echo SECRET | sudo -S id", "echo $SECRET | sudo -S id", r"""
        <ECHO> (?P<secret>[^\n"'|<>]{2,200}?) ["']?\s{0,3}\|\s{0,3}(?:\w{1,20}\s){0,3}? <SUDO>""", before=320),
    Phrase(("sudo",), "sudo -S id <<< SECRET", "sudo -S id <<< $SECRET", r"""<SUDO>[^\n|;<]{0,200}
        (?:<<<\s{0,3}["']?|<<-?\s{0,3}["']?\w{1,20}["']?[ \t]{0,3}\n) <NEW><BARE>"""),
    Phrase(("sudo",), "run(['sudo', '-S', 'id'], input='SECRET')", "run(['sudo', '-n', 'id'], input='text')", r"""
        sudo["'],\s{0,3}["'](?:-\w{0,3}S|--stdin)["'][^\n]{0,200}? \binput=b?["'](?P<secret>[^"'\n\\]{3,200})"""),
    Phrase(("--password-stdin", "--with-token", "chpasswd", "| passwd", "| kinit", "| wg", "| cryptsetup",
            "secret put", "secret set", "secrets create"), "echo SECRET | docker login --password-stdin", "echo $SECRET | docker login --password-stdin", r"""
        <ECHO> (?P<secret>[^\n"'|<>$]{3,200}?) ["']?\s{0,3}(?:\||\n\+{1,3}\s)[^\n|;]{0,200}? (?: --password-stdin
        | --with-token | chpasswd | passwd | kinit | wg\ pubkey | cryptsetup | secret\ (?:put|set) | secrets\ create
        )\b""", before=400),
    Phrase(("secrets set", "secret set", "from-literal"), "kubectl create secret x --from-literal=a=SECRET", "kubectl create secret x --from-literal=a=$SECRET", r"""
        (?: secrets?\ set\s(?:[^\s=]{1,60}\s){0,6} | from-literal[= ]["']? )[\w.-]{1,80}=<WORD>"""),
    Phrase(("login", "--with-token"), "gh auth login --with-token <<< SECRET", "gh auth login --with-token < file", r"""
        (?:\blogin\b[^\n|;]{0,200}?|--with-token\s{0,2})<<<\s{0,3}<WORD>"""),
    Phrase(("<(echo", "<(printf"), "wg set wg0 private-key <(echo SECRET)", "wg set wg0 private-key <(echo $KEY)", r"""
        <\((?:echo|printf)\s{1,3}(?:-\w\s)? (?:["']?%s[^\s"']{0,4}["']?\s)?["']?
        (?P<secret>(?=[^\s"')]{0,100}\d)[^\s"'()$]{8,200})["']?\)"""),
    Phrase(("net user", "net use ", "/user:", "/u:"), r"net use Z: \\host\share /user:name SECRET", r"net use Z: \\host\share /user:name /savecred", r"""
        (?: \bnet\s{1,2}user\s{1,2}\S{1,60}\s{1,2}(?!/) | \bnet\suse\s(?:[a-z*]:?\s)?\\\\\S{1,200}\s(?![/-])
        | (?<![\w/])/user:\S{1,80}\s{1,2}(?![/-]) | /u:\S{1,80}\s{1,2}/p: )<WORD>""", before=40),
    Phrase(("requirepass", "masterauth"), "requirepass SECRET", "requirepass $PASSWORD", r"(?:requirepass|masterauth)\s{1,3}<WORD>"),
    Phrase(("redis", ":6379>"), "redis:6379> AUTH SECRET", "redis:6379> GET name", r"""
        (?:redis|:\d{2,5})[^\n>]{0,10}>\s?auth\s{1,2}(?:[a-z]{1,40}\s)?<WORD>""", before=24),
    Phrase(("identified",), "CREATE USER name IDENTIFIED BY 'SECRET'", "CREATE USER name IDENTIFIED EXTERNALLY", r"""identified\s{1,3}
        (?:with\s{1,3}\S{1,40}\s{1,3})?by\s{1,3}(?:password\s{1,3})? ["'](?P<secret>[^"'\n]{2,200})["']"""),
    Phrase(("oracle:thin:", "oracle:oci:", "sqlplus", "sqlldr", "expdp", "impdp"), "sqlplus name/SECRET@host", "sqlplus name@host", r"""
        (?:oracle:(?:thin|oci):|(?:sqlplus|sqlldr|expdp|impdp)\s(?:-\S{1,10}\s){0,3})
        [^\s/@"']{1,60}/ (?P<secret>[^\s/@"']{3,100})@"""),
    Phrase(("basicauth(", "login(", "auth=(", ".auth("), "HTTPBasicAuth('name', 'SECRET')", "HTTPBasicAuth('name', 'password')", r"""
        (?:basicauth|login|\.auth|auth=)\(\s{0,40} ["'][^"'\n]{1,100}["'] \s{0,3},\s{0,40}
        ["'](?P<secret>(?=[^"'\n]{0,60}\d)[^"'\n\s:/]{6,100})["']"""),
    Phrase(("assword:",), "expect 'password:' { send 'SECRET' }", "expect 'password:' { send_password }", r"""assword:[ ]?[*]?["'}]
        [\s\S]{0,60}?\bsend(?:line)?[\s(]{1,4}(?:--\s)?["'](?P<secret>[^"'\n\r\\]{3,100})"""),
    Phrase(("convertto-securestring",), "ConvertTo-SecureString 'SECRET' -AsPlainText", "ConvertTo-SecureString '$password' -AsPlainText", r"""
        convertto-securestring\s{1,3}(?:-string\s{1,3})?["'](?!\$)(?P<secret>[^"'\n]{3,200})["']"""),
    Phrase(("password ", "secret ", "key-string "), "enable secret 5 SECRET", "enable secret 5 times", r"""
        (?:password|secret|key-string)\s(?:level\s\d{1,2}\s)?[05-9]\s
        (?P<secret>(?=[^\s"'`]{0,60}\d)[^\s"'`]{6,200})(?=\s|$)""", kind="router-password"),
    Phrase(("##vso[task.setvariable", "::add-mask::"), "::add-mask::SECRET", "::add-mask::$SECRET", r"""
        (?: ::add-mask:: | \#\#vso\[task\.setvariable\s[^\]\n]{0,200}
            \b(?:issecret=true|\w*(?:pass|pwd|token|secret|key|pat)\w*)[^\]\n]{0,100}\] )
        <NEW> (?P<secret>[^\s"'\\]{3,4000})""", kind="ci-variable"),
    Phrase(("output -raw", "wg genkey", "wg genpsk", "openssl rand", "pwgen", "auth token", "print-access-token",
            "print-identity-token", "get-login-password", "get-access-token", "create token",
            "secrets versions access", "op read", "pass show"), "wg genkey\nSECRET", "wg genkey | tee key\nSECRET", r"""
        [^\n|>&;`)]{3,200}\r?\n(?P<secret>(?=[^\n]{0,100}\d)[A-Za-z0-9+/_.-]{16,4000}={0,2})[ \t\r]*(?:$|\n)""",
        kind="printed-secret"),
    Phrase(("login", "log in", "credentials", "creds"), "log in with name / SECRET", "log in with name / password", r"""
        (?:log[ ]?in|credentials?|creds)\b[^\n]{0,12}?(?:with|as|are|is|:|=)? \s{0,2}[A-Za-z][\w.@-]{1,40}\s?/\s?
        (?P<secret> (?=[^\s/]{0,40}\d) (?=[^\s/]{0,40}[A-Za-z]) [^\s/,;:)"'.]{7,60} )
        (?=[\s,;)"'.]|$)(?!\.[a-z])""", kind="login"),
    Phrase(('"kty"', '"d"', '"k"', '"p"', '"q"', '"dp"', '"dq"', '"qi"'), '{"kty": "EC", "d": "SECRET"}', '{"kty": "EC", "x": "SECRET"}', r"""
        (?: "kty"[^{}]{0,1500}? "[dk]" | "(?:[dkpq]|d[pq]|qi)" (?=\s{0,3}:\s{0,3}" (?: (?P<rest>[\w-]{80,2000})"
        | [\w-]{16,2000}"[^{}]{0,1500}"kty" )) ) \s{0,3}:\s{0,3}" (?P<secret>[\w-]{16,2000})" """, kind="private-key"),
    Phrase(("mnemonic", "seed phrase", "seed_phrase", "seedphrase", "seed words", "recovery phrase", "recovery_phrase",
            "recoveryphrase"), "seed phrase: TWELVE WORDS", "seed phrase: two words", r"""
        (?: (?P<open>(?:mnemonic|seed|recovery)[ _]?(?:phrase|words)\b[^\n]{0,30}?(?:[:=]|\bis\b|\n))
            | mnemonic\b[^\n]{0,20}?[:=] )[\s"'`*\[]{0,6} (?:\d{1,2}[.)]\s?)?
        (?P<secret>(?:[a-z]{3,8} (?(open) [\s,"'\\]{1,4}(?:\d{1,2}[.)]\s?)? | [ ]) ){11,23}[a-z]{3,8})\b""",
        kind="wallet"),
    Phrase(("machine",), "machine host login name password SECRET", "machine host login name account SECRET", r"""\bmachine\s{1,4}\S{1,200}[\s\d+-]{1,20}
        login\s{1,4}\S{1,200}[\s\d+-]{1,20}password\s{1,4}(?!\[REDACTED)(?P<secret>[^\s"'\\]{1,200})""", kind="netrc"),
)  # fmt: skip
