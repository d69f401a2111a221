"""Tokens of providers that their beginning or a piece of them tells. Only data.

No letter or digit stands before a beginning, and what follows must look random, so `sk-` alone or `sk-xxxxxxxx` is no
token. Lengths are looser than today's, since providers lengthen their tokens.
"""

from __future__ import annotations

from typing import NamedTuple


class Token(NamedTuple):
    """The tokens of one provider."""

    provider: str
    beginnings: str  # separated by blanks
    rest: str  # the pattern of what follows; its group `secret`, if it has one, is the secret
    documentation: str


class Piece(NamedTuple):
    """Tokens that a piece within them tells. In examples `HEX` is 32 hexadecimal digits, `SECRET` 20 letters and digits."""

    provider: str
    pieces: str  # separated by blanks
    before: int  # the most characters of a token before the piece
    pattern: str  # of the whole; its group `secret` is the secret, a group `rest` must look random
    example: str
    near_miss: str


_WORD, _ALNUM, _HEX = "[A-Za-z0-9_-]", "[A-Za-z0-9]", "[0-9a-f]"
_END = r"(?![A-Za-z0-9])"
_UUID = "[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"

# Tokens of letters, digits, `_` and `-`: the least number of these after a beginning; providers with their beginnings.
PLAIN_TOKENS = {
    16: "anthropic sk-ant- | openrouter sk-or- | openai sk-proj- sk-svcacct- sk-admin- sk-None- sk-service- | endor endr+ | settlemint sm_aat_ sm_pat_ sm_sat_",
    20: """openai sk- | tavily tvly- | browserbase bb_live_ bb_test_ bb_pr_ bb_ma_ | cursor crsr_ cursor_user_ | yandex AQVN YCAJE YCM YCN
        | github ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ | docker dckr_pat_ dckr_oat_ | vercel vcp_ vci_ vca_ vcr_ vck_ vercel_blob_rw_ | xata xau_
        | hashicorp-vault hvs. hvb. hvr. | supabase sbp_ sb_secret_ | census secret-token: | matrix syt_ mat_ mct_""",
    22: "square sq0atp- sq0csp- sq0idp- sqco_",
    24: "alchemy alcht_",
    26: "postman PMAK- PMAT- | retool retool_",
    30: """groq gsk_ | xai xai- | perplexity pplx- | replicate r8_ | hugging-face hf_ api_org_ | together tgp_v1_ | friendli flp_ | n8n n8n_api_
        | langsmith lsv2_pt_ lsv2_sk_ | braintrust bt-st- | weights-and-biases wandb_v1_ | runpod rpa_ rps_ | e2b e2b_ | daytona dtn_ | npm npm_
        | rubygems rubygems_ | jsr jsrp_ jsrd_ | deno ddp_ ddo_ ddw_ | socket sktsec_ | buildkite bkua_ bkct_ bkat_ bkpt_ bkaj_ bkcq_
        | circleci CCIPAT_ CCIPRJ_ | gitbook gb_api_ | weblate wlu_ wlp_ | netlify nfp_ nfc_ nfo_ nfb_ nfu_ | heroku HRKU- | pulumi pul-
        | netbird nbp_ | mongodb mdb_sa_sk_ | cockroach CCDB1_ | prefect pnu_ pnb_ | posthog phc_ phx_ phs_ pha_ phr_ | adobe p8e-
        | honeycomb hcaik_ hcbik_ hcxik_ hcalk_ hcblk_ hcmak_ hcamk_ hcxlk_ | ramp ramp_sec_ ramp_tok_ ramp_business_tok_ | brex bxt_
        | shippo shippo_live_ shippo_test_ | duffel duffel_test_ duffel_live_ | shopify shpat_ shpca_ shppa_ shpss_ shptka_ shpua_ shltm_
        | linear lin_api_ lin_oauth_ lin_wh_ | figma figd_ figo_ figu_ figp_ figoh_ | zuplo zpka_ zpka- | kong kpat_ spat_""",
    36: "factory fk-",
    40: """cerebras csk- | nvidia nvapi- | jina jina_ | llama-cloud llx- | pinecone pcsk_ | steel ste- | warp wk-1. | pypi pypi-
        | sourcegraph sgp_ slk_ sgd_ sgamp_user_ | clojars CLOJARS_ | readme rdme_ | digitalocean dop_v1_ doo_v1_ dor_v1_ | notion ntn_
        | cloudflare cfk_ cfut_ cfat_ | scalingo tk-us- | rootly rootly_ | brevo xkeysib- xsmtpsib- | onesignal os_v2_app_ os_v2_org_
        | contentful CFPAT- | frameio fio-u- | intra42 s-s4t2ud- s-s4t2af- u-s4t2ud- u-s4t2af-""",
}  # fmt: skip

# Tokens of another form.
TOKENS: tuple[Token, ...] = (
    Token("langfuse", "sk-lf- pk-lf-", _UUID, "langfuse.com"),
    Token("google", "AIza AQ.Ab GOCSPX- ya29. 1//0", r"[A-Za-z0-9_.-]{20,300}", "cloud.google.com/docs/authentication/api-keys, developers.google.com/identity"),
    Token("aws-bedrock", "ABSK bedrock-api-key-", r"[A-Za-z0-9+/=_-]{20,2000}", "docs.aws.amazon.com/bedrock"),
    Token("fireworks", "fw_ fpk_", _ALNUM + "{20,60}", "docs.fireworks.ai"),
    Token("voyage", "pa- al-", _WORD + "{40,60}" + _END, "docs.voyageai.com"),
    Token("llama", "LLM|", r"\d{10,20}\|[A-Za-z0-9_-]{20,60}", "llama.developer.meta.com"),
    Token("firecrawl", "fc-", _HEX + "{32}" + _END, "docs.firecrawl.dev"),
    Token("brave", "BSA", _WORD + "{25,32}" + _END, "api-dashboard.search.brave.com"),
    Token("chroma", "ck-", _ALNUM + "{40,60}", "docs.trychroma.com"),
    Token("modal", "ak- as-", _ALNUM + "{22}" + _END, "modal.com/docs"),
    Token("browser-use", "bu_", _WORD + "{40,64}" + _END, "docs.browser-use.com"),
    Token("hyperbrowser", "hb_", _HEX + "{28,64}", "docs.hyperbrowser.ai"),
    Token("agentmail", "am_", r"(?:us_|eu_)?[0-9a-f]{40,100}", "docs.agentmail.to"),
    Token("mem0", "m0-", _ALNUM + "{36,60}", "docs.mem0.ai"),
    Token("supermemory", "sm_", r"[A-Za-z0-9]{16,40}_[A-Za-z0-9]{24,100}", "supermemory.ai/docs"),
    Token("zep", "z_1dWlkIjoi", r"[A-Za-z0-9_.-]{20,200}", "help.getzep.com"),
    Token("key", "key_", "(?<![_-]key_)" + _HEX + "{28,128}" + _END, "docs.cursor.com, docs.dev.runwayml.com, docs.retellai.com"),
    Token("devin", "apk_user_ apk_ cog_", "[A-Za-z0-9+/]{30,300}={0,2}", "docs.devin.ai"),
    Token("coderabbit", "cr-", _HEX + "{40,80}", "docs.coderabbit.ai"),
    Token("dify", "app- dataset-", _ALNUM + "{24}" + _END, "docs.dify.ai"),
    Token("composio", "ak_ uak_", _WORD + "{20,40}" + _END, "docs.composio.dev"),
    Token("voiceflow", "VF.", r"(?:DM\.|WS\.)?[0-9a-f]{24}\.[A-Za-z0-9]{16}", "docs.voiceflow.com"),
    Token("gitlab", "glpat- glptt- gldt- glrt- glcbt- glsoat- glft- glffct- glimt- glagent- gloas- glrtr- glwt- GR1348941", r"[A-Za-z0-9_.-]{16,320}", "docs.gitlab.com/security/tokens"),
    Token("gitlab", "_gitlab_session=", r"(?P<secret>[0-9a-z]{32})", "docs.gitlab.com/security/tokens"),
    Token("bitbucket", "BBDC-", r"[A-Za-z0-9+/@_-]{40,50}", "confluence.atlassian.com/bitbucketserver"),
    Token("atlassian", "ATATT3 ATCTT3 ATBB ATOA", r"[A-Za-z0-9_=-]{24,300}", "support.atlassian.com"),
    Token("crates", "cio", _ALNUM + "{32}" + _END, "doc.rust-lang.org/cargo"),
    Token("nuget", "oy2", "[a-z0-9]{43}" + _END, "learn.microsoft.com/nuget"),
    Token("artifactory", "AKCp cmVmd", _ALNUM + "{59,80}", "jfrog.com/help"),
    Token("sonar", "squ_ sqp_ sqa_", _ALNUM + "{40}", "docs.sonarsource.com"),
    Token("snyk", "snyk_uat. snyk_sat.", r"[A-Za-z0-9]{8}\.[A-Za-z0-9_.-]{40,200}", "docs.snyk.io"),
    Token("stackhawk", "hawk.", r"[A-Za-z0-9_-]{20}\.[A-Za-z0-9_-]{20}", "docs.stackhawk.com"),
    Token("harness", "pat. sat.", r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}", "developer.harness.io"),
    Token("depot", "depot_", r"(?:org|user|project)_[A-Za-z0-9]{30,100}", "depot.dev/docs"),
    Token("namespace", "nsct_ nsci_", r"[A-Za-z0-9_.-]{20,400}", "namespace.so/docs"),
    Token("octopus", "API-", "[A-Z0-9]{26,40}" + _END, "octopus.com/docs"),
    Token("codemagic-percy", "web_ auto_ ss_ app_", _HEX + "{64}" + _END, "www.browserstack.com/docs/percy"),
    Token("mintlify", "mint_", r"(?:dsc_)?[A-Za-z0-9]{20,60}", "mintlify.com/docs"),
    Token("render", "rnd_", _ALNUM + "{20,64}", "render.com/docs/api"),
    Token("fly", "fm1_ fm1a_ fm1r_ fm2_ fo1_", r"[A-Za-z0-9+/=_,-]{40,1500}", "fly.io/docs/security/tokens"),
    Token("northflank", "nf-", _ALNUM + "{30,64}", "northflank.com/docs"),
    Token("scaleway", "SCW", "[A-Z0-9]{17}" + _END, "scaleway.com/docs"),
    Token("cloudflare", "v1.0-", r"[0-9a-f]{24}-[0-9a-f]{146}", "developers.cloudflare.com/ssl"),
    Token("aws-access-key", "AKIA ASIA ABIA ACCA A3T", "[A-Z0-9]{16,17}" + _END, "docs.aws.amazon.com/IAM"),
    Token("aws-secret-key", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}[^A-Za-z0-9/+](?:[^A-Za-z0-9/+]|[A-Za-z0-9/+]{1,39}(?![A-Za-z0-9/+])){0,40}?"
        r"(?<![A-Za-z0-9/+=])(?P<secret>(?=[A-Za-z0-9/+]{0,39}[A-Z])(?=[A-Za-z0-9/+]{0,39}[0-9])[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])", "docs.aws.amazon.com/IAM"),
    Token("alibaba", "LTAI", _ALNUM + "{12,24}" + _END, "www.alibabacloud.com/help"),
    Token("tencent", "AKID", _ALNUM + "{28,36}" + _END, "cloud.tencent.com/document"),
    Token("volcengine", "AKLT", r"[A-Za-z0-9+/=_-]{30,80}", "www.volcengine.com/docs"),
    Token("baidu", "bce-v3/ALTAK-", r"[A-Za-z0-9]{16,30}/[0-9a-f]{40}", "cloud.baidu.com/doc"),
    Token("yandex", "t1.", r"[A-Za-z0-9_-]{5,300}={0,2}\.[A-Za-z0-9_-]{86}={0,2}", "yandex.cloud/docs"),
    Token("backblaze", "K00", r"\d[A-Za-z0-9+/]{27}" + _END, "www.backblaze.com/docs"),
    Token("hashicorp-vault", "s.", r"(?=[A-Za-z]{0,23}\d)(?=[a-z\d]{0,23}[A-Z])[A-Za-z0-9]{24}(?![A-Za-z0-9_.(])", "developer.hashicorp.com/vault"),
    Token("boundary", "at_", r"[A-Za-z0-9]{10}_[A-Za-z0-9]{60,200}", "developer.hashicorp.com/boundary"),
    Token("infracost", "ico-", _ALNUM + "{32}" + _END, "www.infracost.io/docs"),
    Token("doppler", "dp.st. dp.ct. dp.scim. dp.audit. dp.sa. dp.pt.", r"(?:[a-z0-9_-]{2,40}\.)?[A-Za-z0-9]{20,60}", "docs.doppler.com"),
    Token("infisical", "st.", r"[0-9a-f-]{24,36}\.[0-9a-f]{32}\.[0-9a-f]{32}", "infisical.com/docs"),
    Token("1password", "ops_eyJ", r"[A-Za-z0-9+/=]{100,2000}", "developer.1password.com"),
    Token("age", "AGE-SECRET-KEY-1 AGE-SECRET-KEY-PQ-1", "[A-Z0-9]{50,100}", "age-encryption.org"),
    Token("tailscale", "tskey-", r"[a-z]{2,20}-[A-Za-z0-9]{6,40}-[A-Za-z0-9]{16,60}", "tailscale.com/kb"),
    Token("openshift", "sha256~", _WORD + "{43}", "docs.openshift.com"),
    Token("portainer", "ptr_", r"[A-Za-z0-9/_+=-]{30,60}", "docs.portainer.io"),
    Token("rancher", "token-", r"[a-z0-9]{5}:[a-z0-9]{54}", "ranchermanager.docs.rancher.com"),
    Token("openstack", "gAAAAAB", _WORD + "{80,400}={0,2}", "docs.openstack.org/keystone; also keys of Fernet"),
    Token("neon", "napi_ npg_", _ALNUM + "{12,80}" + _END, "neon.com/docs"),
    Token("planetscale", "pscale_tkn_ pscale_oauth_ pscale_pw_", r"[A-Za-z0-9_=.-]{30,80}", "planetscale.com/docs"),
    Token("aiven", "AVNS_ aivenv1_", _WORD + "{15,400}", "aiven.io/docs"),
    Token("convex", "dev: prod: preview:", r"(?:[a-z0-9:-]{3,80})\|[A-Za-z0-9+/=]{40,200}", "docs.convex.dev"),
    Token("databricks", "dapi dkea dosec dose", _HEX + "{32}", "docs.databricks.com"),
    Token("clickhouse", "4b1d", _ALNUM + "{38}" + _END, "clickhouse.com/docs/cloud"),
    Token("tinybird", "p.eyJ", r"[A-Za-z0-9_-]{20,400}\.[A-Za-z0-9_-]{20,100}", "www.tinybird.co/docs"),
    Token("confluent", "cflt", r"[A-Za-z0-9+/]{60}", "docs.confluent.io"),
    Token("elastic", "essu_", r"[A-Za-z0-9+/=]{40,200}", "www.elastic.co/docs"),
    Token("dbt", "dbtc_ dbtu_ dbts_", r"[A-Za-z0-9_=-]{30,120}", "docs.getdbt.com"),
    Token("airtable", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}", "airtable.com/developers"),
    Token("sentry", "sntrys_ sntryu_ sntrya_ sntryi_", r"[A-Za-z0-9+/=_-]{30,500}", "docs.sentry.io"),
    Token("grafana", "glsa_ glc_ eyJrIjoi", r"[A-Za-z0-9+/=_]{30,400}", "grafana.com/docs"),
    Token("new-relic", "NRAK- NRRA- NRII- NRJS- NRAL- NRBR- NRIQ-", _WORD + "{19,60}", "docs.newrelic.com"),
    Token("axiom", "xaat- xapt-", _UUID, "axiom.co/docs"),
    Token("logfire", "pylf_v", r"\d_[a-z]{2,10}_[A-Za-z0-9]{30,80}", "logfire.pydantic.dev/docs"),
    Token("dynatrace", "dt0c01. dt0s01. dt0s02. dt0s03. dt0s04. dt0s08. dt0s16. dt0e01.", r"[A-Z0-9a-z-]{8,24}\.[A-Za-z0-9]{64}", "docs.dynatrace.com"),
    Token("checkly", "cu_", _HEX + "{32}" + _END, "checklyhq.com/docs"),
    Token("launchdarkly", "api- sdk- mob- rel-", _UUID, "launchdarkly.com/docs"),
    Token("statsig", "secret- console-", _ALNUM + "{30,60}", "docs.statsig.com"),
    Token("optimizely", "2:", _WORD + "{40,60}" + _END, "docs.developers.optimizely.com"),
    Token("slack", "xoxa- xoxb- xoxe- xoxe.xoxb- xoxe.xoxp- xoxo- xoxp- xoxr- xoxs- xoxd- xoxc- xapp- xwfp-", "[A-Za-z0-9%-]{10,300}", "api.slack.com/authentication/token-types"),
    Token("discord", "M N O", r"[A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}", "discord.com/developers/docs"),
    Token("twilio", "SK AC", _HEX + "{32}" + _END, "www.twilio.com/docs"),
    Token("twilio", "AC", r"[0-9a-f]{32}[\"']?[\s,:]{1,40}(?:\w{1,20}\s?=\s?)?[\"']?(?P<secret>[0-9a-f]{32})" + _END, "www.twilio.com/docs"),
    Token("sendgrid", "SG.", _WORD + r"{16,80}\." + _WORD + "{16,80}", "www.twilio.com/docs/sendgrid"),
    Token("mailgun", "key- pubkey-", _HEX + "{32}" + _END, "documentation.mailgun.com"),
    Token("mandrill", "md-", _WORD + "{20,24}" + _END, "mailchimp.com/developer"),
    Token("resend", "re_", r"[A-Za-z0-9]{8}_[A-Za-z0-9]{20,40}|(?=[A-Za-z]{0,30}\d)[A-Za-z0-9]{32,40}" + _END, "resend.com/docs"),
    Token("hubspot", "pat-na1- pat-na2- pat-eu1- pat-ap1- pat-au1- pat-ca1-", _UUID, "developers.hubspot.com"),
    Token("salesforce", "00D", r"[A-Za-z0-9]{12}(?:[A-Za-z0-9]{3})?![A-Za-z0-9_.]{80,200}", "developer.salesforce.com"),
    Token("salesforce", "3MVG9 5AEP861", r"[A-Za-z0-9._+/=]{80,255}", "developer.salesforce.com"),
    Token("zoho", "1000.", r"[0-9a-f]{32}\.[0-9a-f]{32}", "www.zoho.com/accounts"),
    Token("close", "api_", r"[A-Za-z0-9]{16,30}\.[A-Za-z0-9]{16,30}", "developer.close.com"),
    Token("telnyx", "KEY0", r"[0-9A-F]{30,40}_[A-Za-z0-9]{20,40}", "developers.telnyx.com"),
    Token("intercom", "dG9rO", r"[A-Za-z0-9+/=_-]{50,80}", "developers.intercom.com"),
    Token("customer-io-webhook", "whsec_ v1,whsec_", r"[A-Za-z0-9+/=]{16,200}", "docs.stripe.com/webhooks, docs.svix.com"),
    Token("stripe", "sk_live_ sk_test_ sk_prod_ sk_org_ rk_live_ rk_test_ rk_prod_ pk_live_ pk_test_", _WORD + "{10,250}", "docs.stripe.com/keys"),
    Token("stripe", "pi_ seti_ cs_", r"[A-Za-z0-9]{20,60}_secret_[A-Za-z0-9]{20,60}", "docs.stripe.com/api"),
    Token("sk", "sk_ lk_", r"(?:[a-z][a-z0-9]{1,9}_){0,3}[A-Za-z0-9_-]{20,200}", "elevenlabs.io/docs, docs.cartesia.ai, clerk.com/docs, docs.knock.app, liveblocks.io/docs"),
    Token("pk", "pk_", r"(?:[a-z][a-z0-9]{1,9}_){0,2}[A-Za-z0-9_]{24,100}", "developers.klaviyo.com, developer.clickup.com"),
    Token("square", "EAAA", r"(?<![/+]EAAA)" + _WORD + "{56,100}", "developer.squareup.com"),
    Token("paypal", "A21AA access_token$production$ access_token$sandbox$", r"[A-Za-z0-9_$-]{40,200}", "developer.paypal.com"),
    Token("razorpay", "rzp_live_ rzp_test_", _ALNUM + "{14,30}", "razorpay.com/docs"),
    Token("flutterwave", "FLWSECK- FLWSECK_TEST- FLWPUBK_TEST- FLWPUBK-", r"[A-Za-z0-9]{12,40}(?:-X)?", "developer.flutterwave.com"),
    Token("paddle", "pdl_", r"(?:live|sdbx|ntfset)_[A-Za-z0-9_]{24,100}", "developer.paddle.com"),
    Token("polar", "polar_", r"[a-z]{2,4}_[A-Za-z0-9_-]{24,80}", "polar.sh/docs"),
    Token("plaid", "access-sandbox- access-development- access-production-", _UUID, "plaid.com/docs"),
    Token("easypost", "EZAK EZTK", _ALNUM + "{54}", "docs.easypost.com"),
    Token("live", "live_ test_", r"(?=[a-z]{0,30}[A-Z0-9])(?:pub_)?[A-Za-z0-9_=-]{27,60}" + _END, "docs.lob.com, developer.gocardless.com, docs.mollie.com"),
    Token("woocommerce", "ck_ cs_", _HEX + "{40}" + _END, "developer.woocommerce.com"),
    Token("sanity", "sk", _ALNUM + "{80,200}" + _END, "www.sanity.io/docs"),
    Token("apify", "apify_", r"(?:api|ui|proxy|integration|run)_[A-Za-z0-9_]{24,60}", "docs.apify.com"),
    Token("notion", "secret_", _ALNUM + "{43,60}" + _END, "developers.notion.com"),
    Token("trello", "ATTA", _HEX + "{64}" + "[0-9A-F]{8}", "developer.atlassian.com/cloud/trello"),
    Token("asana", "1/ 2/", r"(?:\d{12,20}/)?\d{12,20}:[0-9a-f]{32}", "developers.asana.com"),
    Token("dropbox", "sl.", r"[A-Za-z0-9_=.-]{100,1500}", "www.dropbox.com/developers"),
    Token("typeform", "tfp_", r"[A-Za-z0-9_.=-]{40,70}", "www.typeform.com/developers"),
    Token("adafruit", "aio_", _ALNUM + "{28}", "io.adafruit.com/api/docs"),
    Token("fullstory", "na1. eu1.", r"[A-Za-z0-9+/]{80,120}", "developer.fullstory.com"),
    Token("mapbox", "pk. sk. tk.", r"eyJ[A-Za-z0-9_-]{40,120}\.[A-Za-z0-9_-]{20,40}|[a-z0-9]{60}\.[a-z0-9]{22}", "docs.mapbox.com"),
    Token("inngest", "signkey-", r"[a-z]{2,12}-[0-9a-f]{32,80}", "www.inngest.com/docs"),
    Token("trigger", "tr_", r"(?:dev|prod|stg|preview|pat|oat)_[A-Za-z0-9]{16,60}", "trigger.dev/docs"),
    Token("stytch", "secret-live- secret-test-", _WORD + "{30,500}", "stytch.com/docs"),
    Token("authress", "sc_ ext_ scauth_ authress_", r"[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,120}", "authress.io"),
    Token("defined-networking", "dnkey-", r"[A-Za-z0-9=_-]{26}-[A-Za-z0-9=_-]{52}", "docs.defined.net"),
    Token("linkedin", "WPL_AP1.", r"[A-Za-z0-9.=_+/-]{20,100}", "learn.microsoft.com/linkedin"),
    Token("facebook", "EAAC EAAM EAAG EAAB IGAA IGQV", _WORD + "{80,800}", "developers.facebook.com"),
    Token("firebase", "AAAA", _WORD + "{7}:" + _WORD + "{100,200}", "firebase.google.com/docs"),
    Token("quicknode", "QN_", _HEX + "{32}", "www.quicknode.com/docs"),
    Token("wallet", "nsec1 suiprivkey1", "[a-z0-9]{50,80}", "nips.nostr.com, docs.sui.io"),
    Token("wallet", "xprv9 zprv", _ALNUM + "{100,110}", "bips.dev/32"),
    Token("freemius", "sk_", r"(?=[^\s\"']{0,28}\d)(?![a-z_]{8})[^\s\"']{29}(?=[\"'])", "freemius.com/help"),
    Token("ngrok", "cr_", _ALNUM + "{27,60}", "ngrok.com/docs"),
    # Unknown providers: a word such as `token` between the name and the key
    Token("token", "key- pat_ pat- tok_ token_ secret- apikey_ apikey- oat_ accesskey_", r"(?![0-9a-f-]{20,}" + _END + r")(?:[a-z]{2,9}[_-]){0,2}[A-Za-z0-9]{24,200}", "nobody's"),
)  # fmt: skip
# Tokens whose rest need not look random.
STRUCTURES: tuple[Token, ...] = (
    Token("jwt", "eyJ", _WORD + r"{8,2000}+={0,2}\s{0,4}\.\s{0,4}" + _WORD + r"{8,8000}+={0,2}(?:\s{0,4}\.\s{0,4}" + _WORD + r"{16,2000}|\." + _WORD + r"{0,2000})", "www.rfc-editor.org/rfc/rfc7519"),
    Token("jwt", "ZXlK", r"(?:aGJH|MGVY|cmFX|aGRX)[A-Za-z0-9+/=]{40,8000}", "the same, once more in base64"),
    Token("1password", "A3-", r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}", "support.1password.com/secret-key"),
    Token("putty-key", "PuTTY-User-Key-File-", r"\d:[\s\S]{0,8000}?Private-MAC: [0-9a-f]+", "the.earth.li/~sgtatham/putty"),
    Token("password-hash", "$1$ $2a$ $2b$ $2x$ $2y$ $5$ $6$ $y$ $apr1$ $argon2id$ $argon2i$ $argon2d$ $scrypt$", r"[A-Za-z0-9./$=,+-]{20,300}", "man 5 crypt"),
    Token("ansible-vault", "$ANSIBLE_VAULT;", r"[^\n]{1,60}\n(?P<secret>(?:[ \t]{0,40}[0-9a-f]{20,80}\s{0,2}){1,400})", "docs.ansible.com"),
)  # fmt: skip

PIECES: tuple[Piece, ...] = (
    Piece("mailchimp", "-us", 32, r"(?<![A-Za-z0-9])[0-9a-f]{32}-us\d{1,2}" + _END, "HEX-us21", "HEX-used"),
    Piece("telegram", ":A", 16, r"(?<![A-Za-z0-9_])\d{5,16}:A[A-Za-z0-9_-]{34}(?![A-Za-z0-9_-])", "123456:AAAHEX", "123456:AHEX"),
    Piece("terraform", ".atlasv1.", 14, r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,80}", "aB3dE5fG7hI9jK.atlasv1.SECRETSECRET", "aB3.atlasv1.SECRETSECRET"),
    Piece("azure", "Q~", 4, r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~-])", "abc8Q~HEX", "abcdQ~HEX"),
    Piece("azure", "JQQJ99 AZDO", 76, r"(?<![A-Za-z0-9])[A-Za-z0-9]{52,76}(?:JQQJ99[A-Za-z0-9]{10,30}|AZDO[A-Za-z0-9]{4})" + _END, "SECRETHEXJQQJ99SECRET", "HEXJQQJ99SECRET"),
    Piece("azure", "+ASt +ASb +ARm +AMC +ACR AIoT ACDb AzCa AzFu AzSe AEhb APIM", 80, r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{32,80}(?:\+ASt|\+ASb|\+ARm|\+AMC|\+ACR|AIoT|ACDb|AzCa|AzFu|AzSe|AEhb|APIM)[A-Za-z0-9+/]{5,12}={0,2}(?![A-Za-z0-9+/])", "HEX+AStaB3dE5fG==", "HEX+ASt=="),
    Piece("maxmind", "_mmk", 36, r"(?<![A-Za-z0-9_])[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk" + _END, "aB3dE5_SECRETfG7hI9jK1_mmk", "aB3dE5_SECRET_mmk"),
    Piece("facebook", "| %7C", 17, r"(?<![A-Za-z0-9])\d{15,16}(?:\||%7C)[0-9A-Za-z_-]{27,40}(?![A-Za-z0-9_-])", "123456789012345|HEX", "12345|HEX"),
    Piece("new-relic", "FFFFNRAL -NRMA", 43, r"(?<![A-Za-z0-9])[A-Za-z0-9]{28,42}(?:FFFFNRAL|-NRMA)" + _END, "HEXFFFFNRAL", "SECRETFFFFNRAL"),
    # Unknown providers, as `acme_pat_...`; what follows may not be a hash
    Piece("confluent-harness", "_key_ _pat_ _sk_ _token_ _secret_ _apikey_ -key- -pat- -token- -secret- -apikey-", 24,
        r"(?<![A-Za-z0-9_-])[a-z][a-z0-9]{1,14}(?:[_-][a-z0-9]{1,9}){0,2}[_-](?:key|pat|sk|token|secret|apikey)[_-](?:[a-z0-9]{1,6}[_-])?(?![0-9a-f]{20,}" + _END + r")(?P<rest>[A-Za-z0-9]{20,200})" + _END, "acme_pat_SECRET", "acme_pat_HEX"),
    Piece("pgpass", ":5432: :5433: :6432: :*:", 100, r"(?<![A-Za-z0-9_.:/*-])[A-Za-z0-9_.*-]{1,100}:(?:[56]\d{3}|\*):[A-Za-z_*][\w.-]{0,60}:[A-Za-z_*][\w.-]{0,60}:"
        r"(?!\[REDACTED|[*:])(?P<secret>[^\s\"'\\]{4,200})", "host:5432:orders:app:SECRET", "main.c:5432:12:warning:unused"),
)  # fmt: skip

# No piece tells these: a key of two parts, `NAME=` with a long value. They are searched in all of a text.
SHAPELESS: tuple[Piece, ...] = (
    Piece("token", "", 0, r"[0-9a-f](?<![0-9A-Za-z.-].)[0-9a-f]{31}(?:-[0-9a-f]{8}-[0-9a-f]{8}(?![\w-])|\.(?=[a-z0-9]{0,15}[A-Z])[A-Za-z0-9]{16}(?!\w))", "HEX-a1b2c3d4-a1b2c3d4", "HEX-a1b2c3d4"),
    Piece("fal", "", 0, r"[0-9a-f](?<![0-9A-Za-z-].)[0-9a-f]{7}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}:[0-9a-f]{32}(?!\w)", "a1b2c3d4-a1b2-a1b2-a1b2-a1b2c3d4a1b2:HEX", "a1b2c3d4-a1b2-a1b2-a1b2-a1b2c3d4a1b2"),
    Piece("named-secret", "", 0, r"[A-Z](?<![\w$.-].)[A-Z0-9_]{1,40}=[\"']?(?P<secret>(?=[^\s\"']{0,200}[a-z])(?=[^\s\"']{0,200}[A-Z])(?=[^\s\"']{0,200}\d)[A-Za-z0-9_-]{32,200})(?![A-Za-z0-9+/=_.-])", "NEW_NAME=ABSECRETSECRET", "NEW_NAME=HEX"),
)  # fmt: skip
