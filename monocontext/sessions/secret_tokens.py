"""Provider tokens that can be recognised by a prefix or by an infix (a piece). Only data.

No letter or digit stands before a prefix, and what follows must look random, so `sk-` alone or `sk-xxxxxxxx` is no
token. Lengths are looser than today's, since providers lengthen their tokens.
"""

from __future__ import annotations

from typing import NamedTuple

from monocontext.sessions.secret_phrases import Phrase


class Prefixed(NamedTuple):
    """Tokens whose rest has one pattern: those of Chroma are `ck-` and 20 to 64 letters and digits."""

    prefixes: dict[str, str]  # by provider, separated by blanks
    rest: str  # the pattern of what follows a prefix; if it has a group `secret`, only that is the secret


_WORD = "[A-Za-z0-9_-]"
_ALNUM = "[A-Za-z0-9]"
_HEX = "[0-9a-f]"
_END = r"(?![A-Za-z0-9])"

_AWS_SECRET = r"""(?x:[A-Z0-9]{16}[^A-Za-z0-9/+]  # the rest of the key id, as in AKIAIOSFODNN7EXAMPLE, and a mark
    (?:[^A-Za-z0-9/+]|[A-Za-z0-9/+]{1,39}(?![A-Za-z0-9/+])){0,40}?(?<![A-Za-z0-9/+=])  # up to 40 marks and shorter words
    (?P<secret>(?=[A-Za-z0-9/+]{0,39}[A-Z])(?=[A-Za-z0-9/+]{0,39}[0-9])[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=]))"""

# The comment on a row of one provider names the page that documents its tokens.
TOKENS: tuple[Prefixed, ...] = (
    Prefixed({"langfuse": "sk-lf- pk-lf-", "axiom": "xaat- xapt-", "launchdarkly": "api- sdk- mob- rel-", "hubspot": "pat-na1- pat-na2- pat-eu1- pat-ap1- pat-au1- pat-ca1-", "plaid": "access-sandbox- access-development- access-production-"}, "[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"),
    Prefixed({"google": "AIza AQ.Ab GOCSPX- ya29. 1//0", "namespace": "nsct_ nsci_", "zep": "z_1dWlkIjoi", "gitlab": "glpat- glptt- gldt- glrt- glcbt- glsoat- glft- glffct- glimt- glagent- gloas- glrtr- glwt- GR1348941"}, r"[A-Za-z0-9_.-]{16,400}"),
    Prefixed({"aws-bedrock": "ABSK bedrock-api-key-", "linkedin": "WPL_AP1.", "1password": "ops_eyJ", "customer-io-webhook": "whsec_ v1,whsec_", "salesforce": "3MVG9 5AEP861"}, r"[A-Za-z0-9+/=_.-]{16,2000}"),
    Prefixed({"fireworks": "fw_ fpk_", "render": "rnd_", "mintlify": "mint_ mint_dsc_", "chroma": "ck-", "sonar": "squ_ sqp_ sqa_", "easypost": "EZAK EZTK", "mem0": "m0-", "ngrok": "cr_", "adafruit": "aio_"}, _ALNUM + "{20,64}"),
    Prefixed({"voyage": "pa- al-", "optimizely": "2:", "browser-use": "bu_"}, _WORD + "{40,64}" + _END),
    Prefixed({"llama": "LLM|"}, r"\d{10,20}\|[A-Za-z0-9_-]{20,60}"),  # llama.developer.meta.com
    Prefixed({"firecrawl": "fc-", "checkly": "cu_", "twilio": "SK AC", "mailgun": "key- pubkey-"}, _HEX + "{32}" + _END),
    Prefixed({"modal": "ak- as-", "dify": "app- dataset-"}, _ALNUM + "{22,24}" + _END),
    Prefixed({"agentmail": "am_", "coderabbit": "cr-", "woocommerce": "ck_ cs_"}, r"(?:us_|eu_)?[0-9a-f]{40,100}"),
    Prefixed({"supermemory": "sm_", "boundary": "at_", "telnyx": "KEY0"}, "[A-Za-z0-9]{10,40}_[A-Za-z0-9]{20,200}"),
    Prefixed({"key": "key_"}, "(?<![_-]key_)" + _HEX + "{28,128}" + _END),  # docs.cursor.com, docs.dev.runwayml.com, docs.retellai.com
    Prefixed({"devin": "apk_user_ apk_ cog_", "confluent": "cflt", "fullstory": "na1. eu1."}, "[A-Za-z0-9+/]{30,300}={0,2}"),
    Prefixed({"composio": "ak_ uak_", "brave": "BSA", "mandrill": "md-"}, _WORD + "{20,40}" + _END),
    Prefixed({"voiceflow": "VF.", "zoho": "1000.", "close": "api_"}, r"(?:DM\.|WS\.)?[A-Za-z0-9]{16,32}\.[A-Za-z0-9]{16,32}"),
    Prefixed({"gitlab": "_gitlab_session="}, r"(?P<secret>[0-9a-z]{32})"),  # docs.gitlab.com/security/tokens
    Prefixed({"crates": "cio", "infracost": "ico-", "tencent": "AKID"}, _ALNUM + "{28,36}" + _END),
    Prefixed({"snyk": "snyk_uat. snyk_sat.", "harness": "pat. sat.", "infisical": "st."}, r"[A-Za-z0-9_-]{8,36}\.[A-Za-z0-9_.-]{40,200}"),
    Prefixed({"octopus": "API-"}, "[A-Z0-9]{26,40}" + _END),  # octopus.com/docs
    Prefixed({"codemagic-percy": "web_ auto_ ss_ app_"}, _HEX + "{64}" + _END),  # www.browserstack.com/docs/percy
    Prefixed({"fly": "fm1_ fm1a_ fm1r_ fm2_ fo1_", "bitbucket": "BBDC-", "paypal": "A21AA access_token$production$ access_token$sandbox$"}, r"[A-Za-z0-9+/@=_,$-]{40,1500}"),
    Prefixed({"cloudflare": "v1.0-"}, r"[0-9a-f]{24}-[0-9a-f]{146}"),  # developers.cloudflare.com/ssl
    Prefixed({"aws-access-key": "AKIA ASIA ABIA ACCA A3T", "scaleway": "SCW"}, "[A-Z0-9]{16,17}" + _END),
    Prefixed({"aws-secret-key": "AKIA ASIA ABIA ACCA"}, _AWS_SECRET),  # docs.aws.amazon.com/IAM
    Prefixed({"baidu": "bce-v3/ALTAK-"}, r"[A-Za-z0-9]{16,30}/[0-9a-f]{40}"),  # cloud.baidu.com/doc
    Prefixed({"yandex": "t1."}, r"[A-Za-z0-9_-]{5,300}={0,2}\.[A-Za-z0-9_-]{86}={0,2}"),  # yandex.cloud/docs
    Prefixed({"backblaze": "K00"}, r"\d[A-Za-z0-9+/]{27}" + _END),  # www.backblaze.com/docs
    Prefixed({"hashicorp-vault": "s."}, r"(?=[A-Za-z]{0,23}\d)(?=[a-z\d]{0,23}[A-Z])[A-Za-z0-9]{24}(?![A-Za-z0-9_.(])"),  # developer.hashicorp.com/vault
    Prefixed({"doppler": "dp.st. dp.ct. dp.scim. dp.audit. dp.sa. dp.pt."}, r"(?:[a-z0-9_-]{2,40}\.)?[A-Za-z0-9]{20,60}"),  # docs.doppler.com
    Prefixed({"age": "AGE-SECRET-KEY-1 AGE-SECRET-KEY-PQ-1", "artifactory": "AKCp cmVmd", "wallet": "nsec1 suiprivkey1"}, _ALNUM + "{50,100}"),
    Prefixed({"tailscale": "tskey-"}, r"[a-z]{2,20}-[A-Za-z0-9]{6,40}-[A-Za-z0-9]{16,60}"),  # tailscale.com/kb
    Prefixed({"rancher": "token-", "firebase": "AAAA"}, _WORD + "{5,7}:" + _WORD + "{54,200}"),
    Prefixed({"neon": "napi_ npg_", "alibaba": "LTAI", "razorpay": "rzp_live_ rzp_test_"}, _ALNUM + "{12,80}" + _END),
    Prefixed({"planetscale": "pscale_tkn_ pscale_oauth_ pscale_pw_", "dbt": "dbtc_ dbtu_ dbts_", "typeform": "tfp_"}, r"[A-Za-z0-9_=.-]{30,120}"),
    Prefixed({"aiven": "AVNS_ aivenv1_", "new-relic": "NRAK- NRRA- NRII- NRJS- NRAL- NRBR- NRIQ-"}, _WORD + "{15,400}"),
    Prefixed({"convex": "dev: prod: preview:"}, r"(?:[a-z0-9:-]{3,80})\|[A-Za-z0-9+/=]{40,200}"),  # docs.convex.dev
    Prefixed({"databricks": "dapi dkea dosec dose", "quicknode": "QN_", "hyperbrowser": "hb_"}, _HEX + "{28,64}"),
    Prefixed({"clickhouse": "4b1d"}, _ALNUM + "{38}" + _END),  # clickhouse.com/docs/cloud
    Prefixed({"atlassian": "ATATT3 ATCTT3 ATBB ATOA", "sentry": "sntrys_ sntryu_ sntrya_ sntryi_", "grafana": "glsa_ glc_ eyJrIjoi", "portainer": "ptr_", "volcengine": "AKLT", "elastic": "essu_", "intercom": "dG9rO"}, r"[A-Za-z0-9+/=_-]{24,500}"),
    Prefixed({"logfire": "pylf_v"}, r"\d_[a-z]{2,10}_[A-Za-z0-9]{30,80}"),  # logfire.pydantic.dev/docs
    Prefixed({"dynatrace": "dt0c01. dt0s01. dt0s02. dt0s03. dt0s04. dt0s08. dt0s16. dt0e01.", "airtable": "pat"}, r"[A-Za-z0-9-]{8,24}\.[A-Za-z0-9]{64}"),
    Prefixed({"statsig": "secret- console-", "northflank": "nf-", "depot": "depot_org_ depot_user_ depot_project_"}, _ALNUM + "{30,100}"),
    Prefixed({"slack": "xoxa- xoxb- xoxe- xoxe.xoxb- xoxe.xoxp- xoxo- xoxp- xoxr- xoxs- xoxd- xoxc- xapp- xwfp-", "stripe": "sk_live_ sk_test_ sk_prod_ sk_org_ rk_live_ rk_test_ rk_prod_ pk_live_ pk_test_"}, "[A-Za-z0-9%_-]{10,300}"),
    Prefixed({"discord": "M N O"}, r"[A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}"),  # discord.com/developers/docs
    Prefixed({"twilio": "AC"}, r"[0-9a-f]{32}[\"']?[\s,:]{1,40}(?:\w{1,20}\s?=\s?)?[\"']?(?P<secret>[0-9a-f]{32})" + _END),  # www.twilio.com/docs
    Prefixed({"sendgrid": "SG.", "stackhawk": "hawk.", "tinybird": "p.eyJ"}, _WORD + r"{16,400}\." + _WORD + "{16,100}"),
    Prefixed({"resend": "re_"}, r"[A-Za-z0-9]{8}_[A-Za-z0-9]{20,40}|(?=[A-Za-z]{0,30}\d)[A-Za-z0-9]{32,40}" + _END),  # resend.com/docs
    Prefixed({"salesforce": "00D"}, r"[A-Za-z0-9]{12}(?:[A-Za-z0-9]{3})?![A-Za-z0-9_.]{80,200}"),  # developer.salesforce.com
    Prefixed({"stripe": "pi_ seti_ cs_"}, r"[A-Za-z0-9]{20,60}_secret_[A-Za-z0-9]{20,60}"),  # docs.stripe.com/api
    Prefixed({"square": "EAAA"}, r"(?<![/+]EAAA)" + _WORD + "{56,100}"),  # developer.squareup.com
    Prefixed({"flutterwave": "FLWSECK- FLWSECK_TEST- FLWPUBK_TEST- FLWPUBK-"}, r"[A-Za-z0-9]{12,40}(?:-X)?"),  # developer.flutterwave.com
    Prefixed({"polar": "polar_", "trigger": "tr_"}, "[a-z]{2,7}_[A-Za-z0-9_-]{16,80}"),
    Prefixed({"notion": "secret_", "nuget": "oy2"}, _ALNUM + "{43,60}" + _END),
    Prefixed({"trello": "ATTA"}, _HEX + "{64}" + "[0-9A-F]{8}"),  # developer.atlassian.com/cloud/trello
    Prefixed({"asana": "1/ 2/"}, r"(?:\d{12,20}/)?\d{12,20}:[0-9a-f]{32}"),  # developers.asana.com
    Prefixed({"dropbox": "sl."}, r"[A-Za-z0-9_=.-]{100,1500}"),  # www.dropbox.com/developers
    Prefixed({"mapbox": "pk. sk. tk."}, r"eyJ[A-Za-z0-9_-]{40,120}\.[A-Za-z0-9_-]{20,40}|[a-z0-9]{60}\.[a-z0-9]{22}"),  # docs.mapbox.com
    Prefixed({"inngest": "signkey-"}, r"[a-z]{2,12}-[0-9a-f]{32,80}"),  # www.inngest.com/docs
    Prefixed({"authress": "sc_ ext_ scauth_ authress_"}, r"[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,120}"),  # authress.io
    Prefixed({"defined-networking": "dnkey-"}, r"[A-Za-z0-9=_-]{26}-[A-Za-z0-9=_-]{52}"),  # docs.defined.net
    Prefixed({"facebook": "EAAC EAAM EAAG EAAB IGAA IGQV", "openstack": "gAAAAAB"}, _WORD + "{80,800}={0,2}"),  # also keys of Fernet
    Prefixed({"wallet": "xprv9 zprv", "sanity": "sk"}, _ALNUM + "{80,200}" + _END),
    Prefixed({"freemius": "sk_"}, r"(?=[^\s\"']{0,28}\d)(?![a-z_]{8})[^\s\"']{29}(?=[\"'])"),  # freemius.com/help
    Prefixed({"anthropic": "sk-ant-", "openrouter": "sk-or-", "openai": "sk-proj- sk-svcacct- sk-admin- sk-None- sk-service-", "endor": "endr+", "settlemint": "sm_aat_ sm_pat_ sm_sat_"}, _WORD + "{16,500}"),
    Prefixed({"openai": "sk-", "tavily": "tvly-", "browserbase": "bb_live_ bb_test_ bb_pr_ bb_ma_", "cursor": "crsr_ cursor_user_", "yandex": "AQVN YCAJE YCM YCN",
        "github": "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", "docker": "dckr_pat_ dckr_oat_", "vercel": "vcp_ vci_ vca_ vcr_ vck_ vercel_blob_rw_", "xata": "xau_",
        "hashicorp-vault": "hvs. hvb. hvr.", "supabase": "sbp_ sb_secret_", "census": "secret-token:", "matrix": "syt_ mat_ mct_",
        "square": "sq0atp- sq0csp- sq0idp- sqco_", "alchemy": "alcht_", "postman": "PMAK- PMAT-", "retool": "retool_", "paddle": "pdl_live_ pdl_sdbx_ pdl_ntfset_", "apify": "apify_api_ apify_ui_ apify_proxy_ apify_integration_ apify_run_"}, _WORD + "{20,500}"),
    Prefixed({"groq": "gsk_", "xai": "xai-", "perplexity": "pplx-", "replicate": "r8_", "hugging-face": "hf_ api_org_", "together": "tgp_v1_", "friendli": "flp_", "n8n": "n8n_api_",
        "langsmith": "lsv2_pt_ lsv2_sk_", "braintrust": "bt-st-", "weights-and-biases": "wandb_v1_", "runpod": "rpa_ rps_", "e2b": "e2b_", "daytona": "dtn_", "npm": "npm_",
        "rubygems": "rubygems_", "jsr": "jsrp_ jsrd_", "deno": "ddp_ ddo_ ddw_", "socket": "sktsec_", "buildkite": "bkua_ bkct_ bkat_ bkpt_ bkaj_ bkcq_",
        "circleci": "CCIPAT_ CCIPRJ_", "gitbook": "gb_api_", "weblate": "wlu_ wlp_", "netlify": "nfp_ nfc_ nfo_ nfb_ nfu_", "heroku": "HRKU-", "pulumi": "pul-",
        "netbird": "nbp_", "mongodb": "mdb_sa_sk_", "cockroach": "CCDB1_", "prefect": "pnu_ pnb_", "posthog": "phc_ phx_ phs_ pha_ phr_", "adobe": "p8e-",
        "honeycomb": "hcaik_ hcbik_ hcxik_ hcalk_ hcblk_ hcmak_ hcamk_ hcxlk_", "ramp": "ramp_sec_ ramp_tok_ ramp_business_tok_", "brex": "bxt_",
        "shippo": "shippo_live_ shippo_test_", "duffel": "duffel_test_ duffel_live_", "shopify": "shpat_ shpca_ shppa_ shpss_ shptka_ shpua_ shltm_",
        "linear": "lin_api_ lin_oauth_ lin_wh_", "figma": "figd_ figo_ figu_ figp_ figoh_", "stytch": "secret-live- secret-test-", "zuplo": "zpka_ zpka-", "kong": "kpat_ spat_", "factory": "fk-"}, _WORD + "{30,500}"),
    Prefixed({"cerebras": "csk-", "nvidia": "nvapi-", "jina": "jina_", "llama-cloud": "llx-", "pinecone": "pcsk_", "steel": "ste-", "warp": "wk-1.", "pypi": "pypi-",
        "sourcegraph": "sgp_ slk_ sgd_ sgamp_user_", "clojars": "CLOJARS_", "readme": "rdme_", "digitalocean": "dop_v1_ doo_v1_ dor_v1_", "notion": "ntn_",
        "cloudflare": "cfk_ cfut_ cfat_", "scalingo": "tk-us-", "rootly": "rootly_", "brevo": "xkeysib- xsmtpsib-", "onesignal": "os_v2_app_ os_v2_org_",
        "contentful": "CFPAT-", "frameio": "fio-u-", "openshift": "sha256~", "intra42": "s-s4t2ud- s-s4t2af- u-s4t2ud- u-s4t2af-"}, _WORD + "{40,500}"),
    # Unknown providers
    Prefixed({"sk": "sk_ lk_"}, r"(?:[a-z][a-z0-9]{1,9}_){0,3}[A-Za-z0-9_-]{20,200}"),  # elevenlabs.io/docs, docs.cartesia.ai, clerk.com/docs, docs.knock.app, liveblocks.io/docs
    Prefixed({"pk": "pk_"}, r"(?:[a-z][a-z0-9]{1,9}_){0,2}[A-Za-z0-9_]{24,100}"),  # developers.klaviyo.com, developer.clickup.com
    Prefixed({"live": "live_ test_"}, r"(?=[a-z]{0,30}[A-Z0-9])(?:pub_)?[A-Za-z0-9_=-]{27,60}" + _END),  # docs.lob.com, developer.gocardless.com, docs.mollie.com
    Prefixed({"token": "key- pat_ pat- tok_ token_ secret- apikey_ apikey- oat_ accesskey_"}, r"(?![0-9a-f-]{20,}" + _END + r")(?:[a-z]{2,9}[_-]){0,2}[A-Za-z0-9]{24,200}"),  # of no provider that is known
)  # fmt: skip

# Rows where the rest need not look random.
STRUCTURES: tuple[Prefixed, ...] = (
    Prefixed({"jwt": "eyJ"}, _WORD + r"{8,2000}+={0,2}\s{0,4}\.\s{0,4}" + _WORD + r"{8,8000}+={0,2}(?:\s{0,4}\.\s{0,4}" + _WORD + r"{16,2000}|\." + _WORD + r"{0,2000})"),  # www.rfc-editor.org/rfc/rfc7519
    Prefixed({"jwt": "ZXlK"}, r"(?:aGJH|MGVY|cmFX|aGRX)[A-Za-z0-9+/=]{40,8000}"),  # the same, once more in base64
    Prefixed({"1password": "A3-"}, r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),  # support.1password.com/secret-key
    Prefixed({"putty-key": "PuTTY-User-Key-File-"}, r"\d:[\s\S]{0,8000}?Private-MAC: [0-9a-f]+"),  # the.earth.li/~sgtatham/putty
    Prefixed({"password-hash": "$1$ $2a$ $2b$ $2x$ $2y$ $5$ $6$ $y$ $apr1$ $argon2id$ $argon2i$ $argon2d$ $scrypt$"}, r"[A-Za-z0-9./$=,+-]{20,300}"),  # man 5 crypt
    Prefixed({"ansible-vault": "$ANSIBLE_VAULT;"}, r"[^\n]{1,60}\n(?P<secret>(?:[ \t]{0,40}[0-9a-f]{20,80}\s{0,2}){1,400})"),  # docs.ansible.com
)  # fmt: skip

# Tokens with one of some pieces in them
PIECES: tuple[Phrase, ...] = (
    Phrase(("-us",), "HEX-us21", "HEX-used", r"(?<![A-Za-z0-9])[0-9a-f]{32}-us\d{1,2}" + _END, before=32, kind="mailchimp", is_cased=True),
    Phrase((":A",), "123456:AAAHEX", "123456:AHEX", r"(?<![A-Za-z0-9_])\d{5,16}:A[A-Za-z0-9_-]{34}(?![A-Za-z0-9_-])", before=16, kind="telegram", is_cased=True),
    Phrase((".atlasv1.",), "aB3dE5fG7hI9jK.atlasv1.SECRETSECRET", "aB3.atlasv1.SECRETSECRET", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,80}", before=14, kind="terraform", is_cased=True),
    Phrase(("Q~",), "abc8Q~HEX", "abcdQ~HEX", r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~-])", before=4, kind="azure", is_cased=True),
    Phrase(("JQQJ99", "AZDO"), "SECRETHEXJQQJ99SECRET", "HEXJQQJ99SECRET", r"(?<![A-Za-z0-9])[A-Za-z0-9]{52,76}(?:JQQJ99[A-Za-z0-9]{10,30}|AZDO[A-Za-z0-9]{4})" + _END, before=76, kind="azure", is_cased=True),
    Phrase(("+ASt", "+ASb", "+ARm", "+AMC", "+ACR", "AIoT", "ACDb", "AzCa", "AzFu", "AzSe", "AEhb", "APIM"), "HEX+AStaB3dE5fG==", "HEX+ASt==", r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{32,80}(?:\+ASt|\+ASb|\+ARm|\+AMC|\+ACR|AIoT|ACDb|AzCa|AzFu|AzSe|AEhb|APIM)[A-Za-z0-9+/]{5,12}={0,2}(?![A-Za-z0-9+/])", before=80, kind="azure", is_cased=True),
    Phrase(("_mmk",), "aB3dE5_SECRETfG7hI9jK1_mmk", "aB3dE5_SECRET_mmk", r"(?<![A-Za-z0-9_])[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk" + _END, before=36, kind="maxmind", is_cased=True),
    Phrase(("|", "%7C"), "123456789012345|HEX", "12345|HEX", r"(?<![A-Za-z0-9])\d{15,16}(?:\||%7C)[0-9A-Za-z_-]{27,40}(?![A-Za-z0-9_-])", before=17, kind="facebook", is_cased=True),
    Phrase(("FFFFNRAL", "-NRMA"), "HEXFFFFNRAL", "SECRETFFFFNRAL", r"(?<![A-Za-z0-9])[A-Za-z0-9]{28,42}(?:FFFFNRAL|-NRMA)" + _END, before=43, kind="new-relic", is_cased=True),
    # Unknown providers, as `acme_pat_...`; what follows may not be a hash
    Phrase(("_key_", "_pat_", "_sk_", "_token_", "_secret_", "_apikey_", "-key-", "-pat-", "-token-", "-secret-", "-apikey-"), "acme_pat_SECRET", "acme_pat_HEX", r"(?<![A-Za-z0-9_-])[a-z][a-z0-9]{1,14}(?:[_-][a-z0-9]{1,9}){0,2}[_-](?:key|pat|sk|token|secret|apikey)[_-](?:[a-z0-9]{1,6}[_-])?(?![0-9a-f]{20,}" + _END + r")(?P<rest>[A-Za-z0-9]{20,200})" + _END, before=24, kind="confluent-harness", is_cased=True),
    Phrase((":5432:", ":5433:", ":6432:", ":*:"), "host:5432:orders:app:SECRET", "main.c:5432:12:warning:unused", r"(?<![A-Za-z0-9_.:/*-])[A-Za-z0-9_.*-]{1,100}:(?:[56]\d{3}|\*):[A-Za-z_*][\w.-]{0,60}:[A-Za-z_*][\w.-]{0,60}:"
        r"(?!\[REDACTED|[*:])(?P<secret>[^\s\"'\\]{4,200})", before=100, kind="pgpass", is_cased=True),
)  # fmt: skip

# Without a piece, so searched in all of a text: a key of two parts, `NAME=` with a long value.
SHAPELESS: tuple[Phrase, ...] = (
    Phrase((), "HEX-a1b2c3d4-a1b2c3d4", "HEX-a1b2c3d4", r"[0-9a-f](?<![0-9A-Za-z.-].)[0-9a-f]{31}(?:-[0-9a-f]{8}-[0-9a-f]{8}(?![\w-])|\.(?=[a-z0-9]{0,15}[A-Z])[A-Za-z0-9]{16}(?!\w))", kind="token", is_cased=True),
    Phrase((), "a1b2c3d4-a1b2-a1b2-a1b2-a1b2c3d4a1b2:HEX", "a1b2c3d4-a1b2-a1b2-a1b2-a1b2c3d4a1b2", r"[0-9a-f](?<![0-9A-Za-z-].)[0-9a-f]{7}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}:[0-9a-f]{32}(?!\w)", kind="fal", is_cased=True),
    Phrase((), "NEW_NAME=ABSECRETSECRET", "NEW_NAME=HEX", r"[A-Z](?<![\w$.-].)[A-Z0-9_]{1,40}=[\"']?(?P<secret>(?=[^\s\"']{0,200}[a-z])(?=[^\s\"']{0,200}[A-Z])(?=[^\s\"']{0,200}\d)[A-Za-z0-9_-]{32,200})(?![A-Za-z0-9+/=_.-])", kind="named-secret", is_cased=True),
)  # fmt: skip
