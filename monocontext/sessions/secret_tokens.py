"""Tokens of providers that their beginning or a piece of them tells. Only data.

No letter or digit stands before a beginning, and what follows must look random, so `sk-` alone or `sk-xxxxxxxx` is no
token. Lengths are looser than today's, since providers lengthen their tokens.
"""

from __future__ import annotations

from typing import NamedTuple


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

# What follows a beginning, as a pattern: the providers, each with its beginnings; the documentation. So Chroma's tokens
# are `ck-` and 40 to 60 letters and digits. If a pattern has a group `secret`, only that is the secret.
TOKENS = {
    _UUID: "langfuse sk-lf- pk-lf- | axiom xaat- xapt- | launchdarkly api- sdk- mob- rel- | hubspot pat-na1- pat-na2- pat-eu1- pat-ap1- pat-au1- pat-ca1- | plaid access-sandbox- access-development- access-production-",
    r"[A-Za-z0-9_.-]{20,300}": "google AIza AQ.Ab GOCSPX- ya29. 1//0",  # cloud.google.com/docs/authentication/api-keys, developers.google.com/identity
    r"[A-Za-z0-9+/=_-]{20,2000}": "aws-bedrock ABSK bedrock-api-key-",  # docs.aws.amazon.com/bedrock
    _ALNUM + "{20,60}": "fireworks fw_ fpk_",  # docs.fireworks.ai
    _WORD + "{40,60}" + _END: "voyage pa- al- | optimizely 2:",
    r"\d{10,20}\|[A-Za-z0-9_-]{20,60}": "llama LLM|",  # llama.developer.meta.com
    _HEX + "{32}" + _END: "firecrawl fc- | checkly cu_ | twilio SK AC | mailgun key- pubkey-",
    _WORD + "{25,32}" + _END: "brave BSA",  # api-dashboard.search.brave.com
    _ALNUM + "{40,60}": "chroma ck-",  # docs.trychroma.com
    _ALNUM + "{22}" + _END: "modal ak- as-",  # modal.com/docs
    _WORD + "{40,64}" + _END: "browser-use bu_",  # docs.browser-use.com
    _HEX + "{28,64}": "hyperbrowser hb_",  # docs.hyperbrowser.ai
    r"(?:us_|eu_)?[0-9a-f]{40,100}": "agentmail am_",  # docs.agentmail.to
    _ALNUM + "{36,60}": "mem0 m0-",  # docs.mem0.ai
    r"[A-Za-z0-9]{16,40}_[A-Za-z0-9]{24,100}": "supermemory sm_",  # supermemory.ai/docs
    r"[A-Za-z0-9_.-]{20,200}": "zep z_1dWlkIjoi",  # help.getzep.com
    "(?<![_-]key_)" + _HEX + "{28,128}" + _END: "key key_",  # docs.cursor.com, docs.dev.runwayml.com, docs.retellai.com
    "[A-Za-z0-9+/]{30,300}={0,2}": "devin apk_user_ apk_ cog_",  # docs.devin.ai
    _HEX + "{40,80}": "coderabbit cr-",  # docs.coderabbit.ai
    _ALNUM + "{24}" + _END: "dify app- dataset-",  # docs.dify.ai
    _WORD + "{20,40}" + _END: "composio ak_ uak_",  # docs.composio.dev
    r"(?:DM\.|WS\.)?[0-9a-f]{24}\.[A-Za-z0-9]{16}": "voiceflow VF.",  # docs.voiceflow.com
    r"[A-Za-z0-9_.-]{16,320}": "gitlab glpat- glptt- gldt- glrt- glcbt- glsoat- glft- glffct- glimt- glagent- gloas- glrtr- glwt- GR1348941",  # docs.gitlab.com/security/tokens
    r"(?P<secret>[0-9a-z]{32})": "gitlab _gitlab_session=",  # docs.gitlab.com/security/tokens
    r"[A-Za-z0-9+/@_-]{40,50}": "bitbucket BBDC-",  # confluence.atlassian.com/bitbucketserver
    r"[A-Za-z0-9_=-]{24,300}": "atlassian ATATT3 ATCTT3 ATBB ATOA",  # support.atlassian.com
    _ALNUM + "{32}" + _END: "crates cio | infracost ico-",
    "[a-z0-9]{43}" + _END: "nuget oy2",  # learn.microsoft.com/nuget
    _ALNUM + "{59,80}": "artifactory AKCp cmVmd",  # jfrog.com/help
    _ALNUM + "{40}": "sonar squ_ sqp_ sqa_",  # docs.sonarsource.com
    r"[A-Za-z0-9]{8}\.[A-Za-z0-9_.-]{40,200}": "snyk snyk_uat. snyk_sat.",  # docs.snyk.io
    r"[A-Za-z0-9_-]{20}\.[A-Za-z0-9_-]{20}": "stackhawk hawk.",  # docs.stackhawk.com
    r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}": "harness pat. sat.",  # developer.harness.io
    r"(?:org|user|project)_[A-Za-z0-9]{30,100}": "depot depot_",  # depot.dev/docs
    r"[A-Za-z0-9_.-]{20,400}": "namespace nsct_ nsci_",  # namespace.so/docs
    "[A-Z0-9]{26,40}" + _END: "octopus API-",  # octopus.com/docs
    _HEX + "{64}" + _END: "codemagic-percy web_ auto_ ss_ app_",  # www.browserstack.com/docs/percy
    r"(?:dsc_)?[A-Za-z0-9]{20,60}": "mintlify mint_",  # mintlify.com/docs
    _ALNUM + "{20,64}": "render rnd_",  # render.com/docs/api
    r"[A-Za-z0-9+/=_,-]{40,1500}": "fly fm1_ fm1a_ fm1r_ fm2_ fo1_",  # fly.io/docs/security/tokens
    _ALNUM + "{30,64}": "northflank nf-",  # northflank.com/docs
    "[A-Z0-9]{17}" + _END: "scaleway SCW",  # scaleway.com/docs
    r"[0-9a-f]{24}-[0-9a-f]{146}": "cloudflare v1.0-",  # developers.cloudflare.com/ssl
    "[A-Z0-9]{16,17}" + _END: "aws-access-key AKIA ASIA ABIA ACCA A3T",  # docs.aws.amazon.com/IAM
    r"[A-Z0-9]{16}[^A-Za-z0-9/+](?:[^A-Za-z0-9/+]|[A-Za-z0-9/+]{1,39}(?![A-Za-z0-9/+])){0,40}?(?<![A-Za-z0-9/+=])(?P<secret>(?=[A-Za-z0-9/+]{0,39}[A-Z])(?=[A-Za-z0-9/+]{0,39}[0-9])[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])": "aws-secret-key AKIA ASIA ABIA ACCA",  # docs.aws.amazon.com/IAM
    _ALNUM + "{12,24}" + _END: "alibaba LTAI",  # www.alibabacloud.com/help
    _ALNUM + "{28,36}" + _END: "tencent AKID",  # cloud.tencent.com/document
    r"[A-Za-z0-9+/=_-]{30,80}": "volcengine AKLT",  # www.volcengine.com/docs
    r"[A-Za-z0-9]{16,30}/[0-9a-f]{40}": "baidu bce-v3/ALTAK-",  # cloud.baidu.com/doc
    r"[A-Za-z0-9_-]{5,300}={0,2}\.[A-Za-z0-9_-]{86}={0,2}": "yandex t1.",  # yandex.cloud/docs
    r"\d[A-Za-z0-9+/]{27}" + _END: "backblaze K00",  # www.backblaze.com/docs
    r"(?=[A-Za-z]{0,23}\d)(?=[a-z\d]{0,23}[A-Z])[A-Za-z0-9]{24}(?![A-Za-z0-9_.(])": "hashicorp-vault s.",  # developer.hashicorp.com/vault
    r"[A-Za-z0-9]{10}_[A-Za-z0-9]{60,200}": "boundary at_",  # developer.hashicorp.com/boundary
    r"(?:[a-z0-9_-]{2,40}\.)?[A-Za-z0-9]{20,60}": "doppler dp.st. dp.ct. dp.scim. dp.audit. dp.sa. dp.pt.",  # docs.doppler.com
    r"[0-9a-f-]{24,36}\.[0-9a-f]{32}\.[0-9a-f]{32}": "infisical st.",  # infisical.com/docs
    r"[A-Za-z0-9+/=]{100,2000}": "1password ops_eyJ",  # developer.1password.com
    "[A-Z0-9]{50,100}": "age AGE-SECRET-KEY-1 AGE-SECRET-KEY-PQ-1",  # age-encryption.org
    r"[a-z]{2,20}-[A-Za-z0-9]{6,40}-[A-Za-z0-9]{16,60}": "tailscale tskey-",  # tailscale.com/kb
    _WORD + "{43}": "openshift sha256~",  # docs.openshift.com
    r"[A-Za-z0-9/_+=-]{30,60}": "portainer ptr_",  # docs.portainer.io
    r"[a-z0-9]{5}:[a-z0-9]{54}": "rancher token-",  # ranchermanager.docs.rancher.com
    _WORD + "{80,400}={0,2}": "openstack gAAAAAB",  # docs.openstack.org/keystone; also keys of Fernet
    _ALNUM + "{12,80}" + _END: "neon napi_ npg_",  # neon.com/docs
    r"[A-Za-z0-9_=.-]{30,80}": "planetscale pscale_tkn_ pscale_oauth_ pscale_pw_",  # planetscale.com/docs
    _WORD + "{15,400}": "aiven AVNS_ aivenv1_",  # aiven.io/docs
    r"(?:[a-z0-9:-]{3,80})\|[A-Za-z0-9+/=]{40,200}": "convex dev: prod: preview:",  # docs.convex.dev
    _HEX + "{32}": "databricks dapi dkea dosec dose | quicknode QN_",
    _ALNUM + "{38}" + _END: "clickhouse 4b1d",  # clickhouse.com/docs/cloud
    r"[A-Za-z0-9_-]{20,400}\.[A-Za-z0-9_-]{20,100}": "tinybird p.eyJ",  # www.tinybird.co/docs
    r"[A-Za-z0-9+/]{60}": "confluent cflt",  # docs.confluent.io
    r"[A-Za-z0-9+/=]{40,200}": "elastic essu_",  # www.elastic.co/docs
    r"[A-Za-z0-9_=-]{30,120}": "dbt dbtc_ dbtu_ dbts_",  # docs.getdbt.com
    r"[A-Za-z0-9]{14}\.[0-9a-f]{64}": "airtable pat",  # airtable.com/developers
    r"[A-Za-z0-9+/=_-]{30,500}": "sentry sntrys_ sntryu_ sntrya_ sntryi_",  # docs.sentry.io
    r"[A-Za-z0-9+/=_]{30,400}": "grafana glsa_ glc_ eyJrIjoi",  # grafana.com/docs
    _WORD + "{19,60}": "new-relic NRAK- NRRA- NRII- NRJS- NRAL- NRBR- NRIQ-",  # docs.newrelic.com
    r"\d_[a-z]{2,10}_[A-Za-z0-9]{30,80}": "logfire pylf_v",  # logfire.pydantic.dev/docs
    r"[A-Z0-9a-z-]{8,24}\.[A-Za-z0-9]{64}": "dynatrace dt0c01. dt0s01. dt0s02. dt0s03. dt0s04. dt0s08. dt0s16. dt0e01.",  # docs.dynatrace.com
    _ALNUM + "{30,60}": "statsig secret- console-",  # docs.statsig.com
    "[A-Za-z0-9%-]{10,300}": "slack xoxa- xoxb- xoxe- xoxe.xoxb- xoxe.xoxp- xoxo- xoxp- xoxr- xoxs- xoxd- xoxc- xapp- xwfp-",  # api.slack.com/authentication/token-types
    r"[A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}": "discord M N O",  # discord.com/developers/docs
    r"[0-9a-f]{32}[\"']?[\s,:]{1,40}(?:\w{1,20}\s?=\s?)?[\"']?(?P<secret>[0-9a-f]{32})" + _END: "twilio AC",  # www.twilio.com/docs
    _WORD + r"{16,80}\." + _WORD + "{16,80}": "sendgrid SG.",  # www.twilio.com/docs/sendgrid
    _WORD + "{20,24}" + _END: "mandrill md-",  # mailchimp.com/developer
    r"[A-Za-z0-9]{8}_[A-Za-z0-9]{20,40}|(?=[A-Za-z]{0,30}\d)[A-Za-z0-9]{32,40}" + _END: "resend re_",  # resend.com/docs
    r"[A-Za-z0-9]{12}(?:[A-Za-z0-9]{3})?![A-Za-z0-9_.]{80,200}": "salesforce 00D",  # developer.salesforce.com
    r"[A-Za-z0-9._+/=]{80,255}": "salesforce 3MVG9 5AEP861",  # developer.salesforce.com
    r"[0-9a-f]{32}\.[0-9a-f]{32}": "zoho 1000.",  # www.zoho.com/accounts
    r"[A-Za-z0-9]{16,30}\.[A-Za-z0-9]{16,30}": "close api_",  # developer.close.com
    r"[0-9A-F]{30,40}_[A-Za-z0-9]{20,40}": "telnyx KEY0",  # developers.telnyx.com
    r"[A-Za-z0-9+/=_-]{50,80}": "intercom dG9rO",  # developers.intercom.com
    r"[A-Za-z0-9+/=]{16,200}": "customer-io-webhook whsec_ v1,whsec_",  # docs.stripe.com/webhooks, docs.svix.com
    _WORD + "{10,250}": "stripe sk_live_ sk_test_ sk_prod_ sk_org_ rk_live_ rk_test_ rk_prod_ pk_live_ pk_test_",  # docs.stripe.com/keys
    r"[A-Za-z0-9]{20,60}_secret_[A-Za-z0-9]{20,60}": "stripe pi_ seti_ cs_",  # docs.stripe.com/api
    r"(?<![/+]EAAA)" + _WORD + "{56,100}": "square EAAA",  # developer.squareup.com
    r"[A-Za-z0-9_$-]{40,200}": "paypal A21AA access_token$production$ access_token$sandbox$",  # developer.paypal.com
    _ALNUM + "{14,30}": "razorpay rzp_live_ rzp_test_",  # razorpay.com/docs
    r"[A-Za-z0-9]{12,40}(?:-X)?": "flutterwave FLWSECK- FLWSECK_TEST- FLWPUBK_TEST- FLWPUBK-",  # developer.flutterwave.com
    r"(?:live|sdbx|ntfset)_[A-Za-z0-9_]{24,100}": "paddle pdl_",  # developer.paddle.com
    r"[a-z]{2,4}_[A-Za-z0-9_-]{24,80}": "polar polar_",  # polar.sh/docs
    _ALNUM + "{54}": "easypost EZAK EZTK",  # docs.easypost.com
    _HEX + "{40}" + _END: "woocommerce ck_ cs_",  # developer.woocommerce.com
    _ALNUM + "{80,200}" + _END: "sanity sk",  # www.sanity.io/docs
    r"(?:api|ui|proxy|integration|run)_[A-Za-z0-9_]{24,60}": "apify apify_",  # docs.apify.com
    _ALNUM + "{43,60}" + _END: "notion secret_",  # developers.notion.com
    _HEX + "{64}" + "[0-9A-F]{8}": "trello ATTA",  # developer.atlassian.com/cloud/trello
    r"(?:\d{12,20}/)?\d{12,20}:[0-9a-f]{32}": "asana 1/ 2/",  # developers.asana.com
    r"[A-Za-z0-9_=.-]{100,1500}": "dropbox sl.",  # www.dropbox.com/developers
    r"[A-Za-z0-9_.=-]{40,70}": "typeform tfp_",  # www.typeform.com/developers
    _ALNUM + "{28}": "adafruit aio_",  # io.adafruit.com/api/docs
    r"[A-Za-z0-9+/]{80,120}": "fullstory na1. eu1.",  # developer.fullstory.com
    r"eyJ[A-Za-z0-9_-]{40,120}\.[A-Za-z0-9_-]{20,40}|[a-z0-9]{60}\.[a-z0-9]{22}": "mapbox pk. sk. tk.",  # docs.mapbox.com
    r"[a-z]{2,12}-[0-9a-f]{32,80}": "inngest signkey-",  # www.inngest.com/docs
    r"(?:dev|prod|stg|preview|pat|oat)_[A-Za-z0-9]{16,60}": "trigger tr_",  # trigger.dev/docs
    r"[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,120}": "authress sc_ ext_ scauth_ authress_",  # authress.io
    r"[A-Za-z0-9=_-]{26}-[A-Za-z0-9=_-]{52}": "defined-networking dnkey-",  # docs.defined.net
    r"[A-Za-z0-9.=_+/-]{20,100}": "linkedin WPL_AP1.",  # learn.microsoft.com/linkedin
    _WORD + "{80,800}": "facebook EAAC EAAM EAAG EAAB IGAA IGQV",  # developers.facebook.com
    _WORD + "{7}:" + _WORD + "{100,200}": "firebase AAAA",  # firebase.google.com/docs
    "[a-z0-9]{50,80}": "wallet nsec1 suiprivkey1",  # nips.nostr.com, docs.sui.io
    _ALNUM + "{100,110}": "wallet xprv9 zprv",  # bips.dev/32
    r"(?=[^\s\"']{0,28}\d)(?![a-z_]{8})[^\s\"']{29}(?=[\"'])": "freemius sk_",  # freemius.com/help
    _ALNUM + "{27,60}": "ngrok cr_",  # ngrok.com/docs
    _WORD + "{16,500}": "anthropic sk-ant- | openrouter sk-or- | openai sk-proj- sk-svcacct- sk-admin- sk-None- sk-service- | endor endr+ | settlemint sm_aat_ sm_pat_ sm_sat_",
    _WORD + "{20,500}": """openai sk- | tavily tvly- | browserbase bb_live_ bb_test_ bb_pr_ bb_ma_ | cursor crsr_ cursor_user_ | yandex AQVN YCAJE YCM YCN
        | github ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ | docker dckr_pat_ dckr_oat_ | vercel vcp_ vci_ vca_ vcr_ vck_ vercel_blob_rw_ | xata xau_
        | hashicorp-vault hvs. hvb. hvr. | supabase sbp_ sb_secret_ | census secret-token: | matrix syt_ mat_ mct_""",
    _WORD + "{22,500}": "square sq0atp- sq0csp- sq0idp- sqco_",
    _WORD + "{24,500}": "alchemy alcht_",
    _WORD + "{26,500}": "postman PMAK- PMAT- | retool retool_",
    _WORD + "{30,500}": """groq gsk_ | xai xai- | perplexity pplx- | replicate r8_ | hugging-face hf_ api_org_ | together tgp_v1_ | friendli flp_ | n8n n8n_api_
        | langsmith lsv2_pt_ lsv2_sk_ | braintrust bt-st- | weights-and-biases wandb_v1_ | runpod rpa_ rps_ | e2b e2b_ | daytona dtn_ | npm npm_
        | rubygems rubygems_ | jsr jsrp_ jsrd_ | deno ddp_ ddo_ ddw_ | socket sktsec_ | buildkite bkua_ bkct_ bkat_ bkpt_ bkaj_ bkcq_
        | circleci CCIPAT_ CCIPRJ_ | gitbook gb_api_ | weblate wlu_ wlp_ | netlify nfp_ nfc_ nfo_ nfb_ nfu_ | heroku HRKU- | pulumi pul-
        | netbird nbp_ | mongodb mdb_sa_sk_ | cockroach CCDB1_ | prefect pnu_ pnb_ | posthog phc_ phx_ phs_ pha_ phr_ | adobe p8e-
        | honeycomb hcaik_ hcbik_ hcxik_ hcalk_ hcblk_ hcmak_ hcamk_ hcxlk_ | ramp ramp_sec_ ramp_tok_ ramp_business_tok_ | brex bxt_
        | shippo shippo_live_ shippo_test_ | duffel duffel_test_ duffel_live_ | shopify shpat_ shpca_ shppa_ shpss_ shptka_ shpua_ shltm_
        | linear lin_api_ lin_oauth_ lin_wh_ | figma figd_ figo_ figu_ figp_ figoh_ | stytch secret-live- secret-test- | zuplo zpka_ zpka- | kong kpat_ spat_""",
    _WORD + "{36,500}": "factory fk-",
    _WORD + "{40,500}": """cerebras csk- | nvidia nvapi- | jina jina_ | llama-cloud llx- | pinecone pcsk_ | steel ste- | warp wk-1. | pypi pypi-
        | sourcegraph sgp_ slk_ sgd_ sgamp_user_ | clojars CLOJARS_ | readme rdme_ | digitalocean dop_v1_ doo_v1_ dor_v1_ | notion ntn_
        | cloudflare cfk_ cfut_ cfat_ | scalingo tk-us- | rootly rootly_ | brevo xkeysib- xsmtpsib- | onesignal os_v2_app_ os_v2_org_
        | contentful CFPAT- | frameio fio-u- | intra42 s-s4t2ud- s-s4t2af- u-s4t2ud- u-s4t2af-""",
    # Unknown providers
    r"(?:[a-z][a-z0-9]{1,9}_){0,3}[A-Za-z0-9_-]{20,200}": "sk sk_ lk_",  # elevenlabs.io/docs, docs.cartesia.ai, clerk.com/docs, docs.knock.app, liveblocks.io/docs
    r"(?:[a-z][a-z0-9]{1,9}_){0,2}[A-Za-z0-9_]{24,100}": "pk pk_",  # developers.klaviyo.com, developer.clickup.com
    r"(?=[a-z]{0,30}[A-Z0-9])(?:pub_)?[A-Za-z0-9_=-]{27,60}" + _END: "live live_ test_",  # docs.lob.com, developer.gocardless.com, docs.mollie.com
    r"(?![0-9a-f-]{20,}" + _END + r")(?:[a-z]{2,9}[_-]){0,2}[A-Za-z0-9]{24,200}": "token key- pat_ pat- tok_ token_ secret- apikey_ apikey- oat_ accesskey_",  # nobody's
}  # fmt: skip

# The same, where the rest need not look random.
STRUCTURES = {
    _WORD + r"{8,2000}+={0,2}\s{0,4}\.\s{0,4}" + _WORD + r"{8,8000}+={0,2}(?:\s{0,4}\.\s{0,4}" + _WORD + r"{16,2000}|\." + _WORD + r"{0,2000})": "jwt eyJ",  # www.rfc-editor.org/rfc/rfc7519
    r"(?:aGJH|MGVY|cmFX|aGRX)[A-Za-z0-9+/=]{40,8000}": "jwt ZXlK",  # the same, once more in base64
    r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}": "1password A3-",  # support.1password.com/secret-key
    r"\d:[\s\S]{0,8000}?Private-MAC: [0-9a-f]+": "putty-key PuTTY-User-Key-File-",  # the.earth.li/~sgtatham/putty
    r"[A-Za-z0-9./$=,+-]{20,300}": "password-hash $1$ $2a$ $2b$ $2x$ $2y$ $5$ $6$ $y$ $apr1$ $argon2id$ $argon2i$ $argon2d$ $scrypt$",  # man 5 crypt
    r"[^\n]{1,60}\n(?P<secret>(?:[ \t]{0,40}[0-9a-f]{20,80}\s{0,2}){1,400})": "ansible-vault $ANSIBLE_VAULT;",  # docs.ansible.com
}  # fmt: skip

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
