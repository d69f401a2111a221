"""Patterns for URLs that hold a secret: webhooks, signed links, passwords. Only data.

In the examples `SECRET` is 20 letters and digits, and `HEX` is 32 hexadecimal digits.
"""

from __future__ import annotations

from monocontext.sessions.secret_phrases import Phrase

ADDRESSES = (
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
    Phrase(("sig=",), "acme.blob.core.windows.net/a?sig=SECRET", "acme.test/a?design=SECRET", r"(?<=[?&;])sig=(?P<secret>[A-Z0-9%+/=_-]{20,200})", kind="azure"),
    Phrase(("code=",), "acme.azurewebsites.net/api/a?code=SECRETSECRET", "acme.test/a?code=404", r"(?<=[?&])code=(?P<secret>[A-Z0-9_%/+-]{40,100}={0,2})", kind="azure"),
    Phrase(("signature",), "acme.test/a?X-Amz-Signature=HEX", "signature=of_a_function_with_two_arguments", r"""signature(?:(?<=[?&;, ]signature)=|(?<=x-...-signature)["']?[=:]\s?["']?|(?<=x-....-signature)["']?[=:]\s?["']?)(?P<secret>(?=[A-Z_%~-]{0,60}\d)[A-Z0-9%+/=_~-]{26,4000})""", kind="signed-url"),
    Phrase(("x-amz-security-token",), "X-Amz-Security-Token: SECRET", "X-Amz-Security-Token: none", r"""x-amz-security-token["']?[=:]\s?["']?(?P<secret>[A-Z0-9%+/=_-]{16,4000})""", kind="signed-url"),
    Phrase(("appid=",), "api.openweathermap.org/data?appid=HEX", "acme.test/a?appid=12", r"(?<=[?&])appid=(?P<secret>[0-9a-f]{32})(?![a-z0-9])", kind="url-parameter"),
    Phrase(("://",), "postgres://name:SECRET@host", "postgres://name:$PASSWORD@host", r"""(?<=[a-z0-9])://[^\s/:@"'<>`]{0,100}:(?P<secret>(?![$<{]|\[REDACTED|\*{3}|%[sd(]|pass|pwd\b|secret[:@]|\w{1,3}@)[^\s/"'<>`(]{1,300})@(?=[\w\[{$])""", kind="url-credentials"),
    Phrase(("://",), "https://SECRET@host", "https://name@host", r"(?<=http|ttps)://(?P<secret>(?![$<{]|\[REDACTED)(?=[a-z_-]{0,100}\d)[a-z0-9_-]{16,200})@", kind="url-credentials"),
)  # fmt: skip
