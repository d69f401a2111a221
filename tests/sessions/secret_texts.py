"""Texts that hold secrets, and texts that hold none. Most were written by people who had not read the rules.

`<<generator:options>>` stands for a new random secret, which redaction has to take out.
"""

from __future__ import annotations

import base64
import random
import re
import string
import textwrap
import uuid
from collections.abc import Callable

_DIGITS_LETTERS = string.ascii_letters + string.digits
_WORDS = """falcon river Copper maple Winter tiger harbor violet Sunset pepper Orbit quartz meadow rocket Lantern
cedar""".split()  # noqa: SIM905
_SEED_WORDS = "abandon ability able about above absent absorb abstract absurd abuse access accident".split()  # noqa: SIM905


def fill(template: str, rng: random.Random) -> tuple[str, list[str]]:
    """The text of a shape with new secrets, and the pieces of them that may not be left."""
    pieces: list[str] = []

    def new(match: re.Match[str]) -> str:
        name, *options = match[1].split(":")
        value = _GENERATORS[name](rng, *options)
        pieces.extend(piece for piece in _pieces(value) if len(piece) >= 4)
        return value

    return re.sub(r"<<([^<>]+)>>", new, template), pieces


def survives(piece: str, text: str) -> bool:
    """Whether the piece is in the text, or 12 characters of it in a row are."""
    width = min(len(piece), 12)
    return any(piece[i : i + width] in text for i in range(len(piece) - width + 1))


def _pieces(value: str) -> list[str]:
    return [re.sub(r"^\s*(?:\d+\s*[→|:]\s*|[>│|+-]\s+)?|\s*[\\│|]?$", "", line) for line in value.splitlines()]


def _pick(rng: random.Random, alphabet: str, count: int) -> str:
    return "".join(rng.choices(alphabet, k=count))


def _password(rng: random.Random) -> str:
    word = rng.choice(_WORDS)
    forms = (
        f"{word}{rng.randrange(100, 9999)}{rng.choice('!#%*+=?')}{_pick(rng, string.ascii_letters, 3)}",
        f"{_pick(rng, _DIGITS_LETTERS, 6)}{rng.choice('!#%*=?_')}{_pick(rng, _DIGITS_LETTERS, 7)}9k",
        f"{word.title()}-{rng.choice(_WORDS).title()}-{rng.randrange(10, 999)}",
    )
    return rng.choice(forms)


def _phrase(rng: random.Random) -> str:
    words = f"{rng.choice(_WORDS)} {rng.choice(_WORDS).title()}"
    return f"{words} {rng.randrange(10, 999)} {_pick(rng, _DIGITS_LETTERS, 4)}!"


def _jwt(rng: random.Random, broken_at: str = "0", glue: str = "") -> str:
    claims = b'{"sub":"%d","name":"Ada","iat":17%08d}' % (rng.randrange(10**9, 10**10), rng.randrange(10**8))
    parts = (b'{"alg":"HS256","typ":"JWT"}', claims, rng.randbytes(32))
    token = ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
    at = int(broken_at)
    return token if not at else token[:at] + _GLUE[glue] + token[at:]


_GLUE = {"": "\n", "indent": "\n    ", "backslash": "\\\n", "quote": "\n> "}


def _key_body(rng: random.Random, kind: str) -> str:
    """The base64 of a private key, in lines as its tool writes them."""
    beginning, count, width = {
        "rsa": (b"\x30\x82\x04\xa4\x02\x01\x00\x02\x82\x01\x01\x00", 1180, 64),
        "pkcs8": (bytes.fromhex("308204be020100300d06092a864886f70d0101010500048204a8308204a40201000282010100"), 1180, 64),
        "ec": (b"\x30\x77\x02\x01\x01\x04\x20", 114, 64),
        "openssh": (b"openssh-key-v1\0\0\0\0\4none\0\0\0\4none\0\0\0\0\0\0\0\1\0\0\0\x33\0\0\0\x0bssh-ed25519", 250, 70),
        "encrypted": (bytes.fromhex("30820513304906092a864886f70d01050d303c301b06092a864886f70d01050c300e0408"), 1250, 64),
    }[kind]  # fmt: skip
    return "\n".join(textwrap.wrap(base64.b64encode(beginning + rng.randbytes(count)).decode(), width))


def _key_listing(rng: random.Random, kind: str, style: str) -> str:
    lines = _key_body(rng, kind).splitlines()
    mark = {"cat": "{:6}\t", "grep": "{}:", "bar": "{:3} | "}[style]
    return "\n".join(mark.format(number) + line for number, line in enumerate(lines, 2))


def _broken_value(rng: random.Random, count: str, width: str, glue: str = "") -> str:
    value = _pick(rng, _DIGITS_LETTERS, int(count))
    return value[: int(width)] + _GLUE[glue] + value[int(width) :]


def _base64_of(rng: random.Random, *texts: str) -> str:
    return base64.b64encode(":".join(texts).replace("%", _password(rng)).replace("\\n", "\n").encode()).decode()


_GENERATORS: dict[str, Callable[..., str]] = {
    "pw": _password,
    "phrase": _phrase,
    "hex": lambda rng, count: _pick(rng, "0123456789abcdef", int(count)),
    "alnum": lambda rng, count: _pick(rng, _DIGITS_LETTERS, int(count)),
    "url": lambda rng, count: _pick(rng, _DIGITS_LETTERS + "_-", int(count)),
    "upper": lambda rng, count: _pick(rng, string.ascii_uppercase + "234567", int(count)),
    "digits": lambda rng, count: _pick(rng, string.digits, int(count)),
    "b64": lambda rng, count: base64.b64encode(rng.randbytes(int(count))).decode(),
    "aws": lambda rng: _pick(rng, _DIGITS_LETTERS + "+/", 40),
    "akia": lambda rng: "AKIA" + _pick(rng, string.ascii_uppercase + "234567", 16),
    "jwt": _jwt,
    "body": _key_body,
    "numbered": _key_listing,
    "wrapped": _broken_value,
    "b64of": _base64_of,
    "lower": lambda rng, count: _pick(rng, string.ascii_lowercase + string.digits, int(count)),
    "capital": lambda rng, count: _pick(rng, string.ascii_uppercase + string.digits, int(count)),
    "base64": lambda rng, count: _pick(rng, _DIGITS_LETTERS + "+/", int(count)),
    "uuid": lambda rng: str(uuid.UUID(int=rng.getrandbits(128), version=4)),
    "seed": lambda rng: " ".join(rng.choices(_SEED_WORDS, k=12)),
}

# Kind, text.
TEXTS = [
    ("kubeconfig", "users:\n- name: admin\n  user:\n    client-certificate-data: REDACTED\n    client-key-data: <<b64:1190>>\n"),
    ("kubeconfig", "$ kubectl config view --raw -o jsonpath='{.users[0].user.client-key-data}'\n<<b64of:-----BEGIN EC PRIVATE KEY-----\\nMHcCAQEEI%\\n-----END EC PRIVATE KEY----->>"),
    ("kubeconfig", "    user:\n      client-key-data: >-\n        <<b64:240>>\n"),
    ("pem", "$ openssl genpkey -algorithm RSA | sed '1d;$d'\n<<body:pkcs8>>"),
    ("pem", "$ grep -v -- ----- id_ed25519\n<<body:openssh>>"),
    ("pem", "     1\t-----BEGIN PRIVATE KEY-----\n<<numbered:pkcs8:cat>>\n    21\t-----END PRIVATE KEY-----"),
    ("pem", "key = (\n  '-----BEGIN EC PRIVATE KEY-----\\n'\n  '<<b64:48>>\\n'\n  '<<b64:48>>\\n'\n)"),
    ("pem", "The first lines are missing:\n<<body:rsa>>\n-----END RSA PRIVATE KEY-----\n"),
    ("pem", "1:-----BEGIN EC PRIVATE KEY-----\n<<numbered:ec:grep>>\n5:-----END EC PRIVATE KEY-----"),
    ("pem", "  1 | -----BEGIN ENCRYPTED PRIVATE KEY-----\n<<numbered:encrypted:bar>>\n"),
    ("db_pwd", "Server=tcp:db.corp.net,1433;Database=crm;Uid=svc;Pwd=<<pw>>;Encrypt=yes;"),
    ("db_pwd", 'ENV APP_DB_PWD "<<pw>>"'),
    ("spaces", "DB_PASS='<<phrase>>'"),
    ("spaces", 'ssh-keygen -t ed25519 -N "<<phrase>>" -f id'),
    ("pat", "GITLAB_PAT: <<url:20>>"),
    ("aws_configure", "$ aws configure\nAWS Access Key ID [None]: <<akia>>\nAWS Secret Access Key [None]: <<aws>>\nDefault region name [None]: eu-west-1\n"),
    ("aws_configure", "aws configure set aws_secret_access_key <<aws>> --profile prod"),
    ("one_line", "User name,Access key ID,Secret access key\nci-bot,<<akia>>,<<aws>>"),
    ("curl", "curl --user deploy:<<pw>> https://nexus.corp.net/api"),
    ("docker", "docker login -u ci -p <<pw>> registry.corp.net"),
    ("docker", "docker login --username ci --password <<alnum:28>> quay.io"),
    ("htpasswd", "htpasswd -b /etc/nginx/.htpasswd bob <<pw>>"),
    ("sudo", 'printf "%s\\n" "<<pw>>" | sudo -kS id'),
    ("openssl", "openssl enc -aes-256-cbc -k <<pw>> -in a -out b"),
    ("prompt", "Password for 'https://bob@git.corp.net': <<pw>>\nremote: Enumerating objects"),
    ("prompt", "bob@10.1.2.3's password: <<pw>>\nWelcome to Ubuntu"),
    ("xml", '<property name="hibernate.connection.password" value="<<pw>>"/>'),
    ("ansible", "ansible all -m ping -e 'ansible_ssh_pass=<<pw>>'"),
    ("wireguard", "[Interface]\nAddress = 10.9.0.2/32\nPrivateKey = <<b64:32>>\nDNS = 1.1.1.1"),
    ("wireguard", "$ wg genkey\n<<b64:32>>"),
    ("terraform", 'terraform apply -var="db_password=<<pw>>" -auto-approve'),
    ("query", "GET https://maps.googleapis.com/maps/api/geocode/json?address=Ulm&key=AIza<<url:35>>"),
    ("query", "https://acct.blob.core.windows.net/c/f?sv=2022-11-02&sig=<<alnum:40>>%3D&se=2026-01-01"),
    ("wrapped", "export GITHUB_TOKEN=ghp_<<wrapped:36:8>>\n"),
    ("wrapped", "ANTHROPIC_API_KEY=sk-ant-api03-<<wrapped:95:49>>\n$ "),
    ("wrapped", 'curl https://api.openai.com/v1/models -H "Authorization: Bearer sk-proj-<<wrapped:104:22:backslash>>"'),
    ("wrapped", "the key is sk_live_<<wrapped:24:6:indent>>, do not share"),
    ("array", '{"tokens": ["<<alnum:32>>", "<<alnum:32>>"]}'),
    ("array", "passwords:\n  - <<pw>>\n  - <<pw>>\n"),
    ("jwt", "Authorization: Bearer <<jwt:60>>"),
    ("jwt", "token: <<jwt:40:indent>>"),
    ("jwt", "> <<jwt:76:quote>>"),
    ("base64", "echo <<b64of:password=%>> | base64 -d"),
    ("base64", "data:\n  config: <<b64of:user=ci\\npassword=%\\nhost=db>>\n"),
    ("base64", "Authorization: Basic <<b64of:bob:%>>"),
    ("words", "contraseña = \"<<pw>>\""),
    ("kubeconfig", "- name: gke_prod\n  user:\n    auth-provider:\n      config:\n        access-token: ya29.<<url:120>>\n        expiry: '2026-01-01'\n"),
    ("pat", "echo \"##vso[task.setvariable variable=ADO_PAT]<<alnum:52>>\""),
    ("pat", "git clone https://x-access-token:<<alnum:40>>@github.com/o/r"),
    ("pat", "SYSTEM_PAT = os.environ.get('SYSTEM_PAT', '<<alnum:52>>')"),
    ("aws_configure", "AWS Access Key ID [****************QX2A]: <<akia>>\nAWS Secret Access Key [****************abcd]: <<aws>>\n"),
    ("aws_configure", "Access key ID: <<akia>>\r\nSecret access key: <<aws>>"),
    ("curl", "curl -sk \\\n  --user 'svc:<<pw>>' \\\n  https://h/api"),
    ("docker", "docker login r.corp.net <<< '<<alnum:20>>' -u bob --password-stdin"),
    ("sudo", "sudo -S true <<EOF\n<<pw>>\nEOF"),
    ("sudo", "subprocess.run(['sudo', '-S', 'ls'], input='<<pw>>\\n', text=True)"),
    ("openssl", "openssl req -new -key k.pem -passin \"pass:<<phrase>>\""),
    ("openssl", "openssl pkcs8 -topk8 -passout=pass:<<alnum:16>> -in a.pem"),
    ("ansible", "ansible_password: \"{{ 'x' }}\"\nansible_become_pass: <<pw>>  # root"),
    ("query", "GET /v2/geo?lat=1&appid=<<hex:32>> 200"),
    ("wrapped", "Your new key:\n  sk-ant-api03-<<wrapped:95:60:indent>>\n"),
    ("wrapped", "ssh host 'export AUTH_TOKEN=<<wrapped:70:50:backslash>> && run'"),
    ("jwt", "Set-Cookie: session=<<jwt:80>>; Path=/"),
    ("netrc", "machine api.heroku.com\n  login ada@example.com\n  password <<alnum:36>>\nmachine git.heroku.com\n  login ada"),
    ("pgpass", "db1.internal:5432:orders:app:<<pw>>\n*:*:*:postgres:<<pw>>"),
    ("sts", "{\n  \"Credentials\": {\n    \"AccessKeyId\": \"ASIAZX3QK7YPLM2N5B6T\",\n    \"SecretAccessKey\": \"<<aws>>\",\n    \"SessionToken\": \"<<b64:200>>\"\n  }\n}"),
    ("powershell", "$cred = New-Object PSCredential('svc', (ConvertTo-SecureString '<<pw>>' -AsPlainText -Force))"),
    ("cmd", "net use Z: \\\\files\\share /user:ACME\\ada <<pw>>"),
    ("fish", "set -Ux OPENAI_API_KEY sk-proj-<<url:60>>"),
    ("history", "  501  mysql -u root -p<<pw>> orders < dump.sql"),
    ("history", "mongosh \"mongodb+srv://app:<<alnum:18>>@cluster0.ab1cd.mongodb.net/orders\""),
    ("history", "vault login hvs.<<alnum:90>>"),
    ("history", "gh auth login --with-token <<< ghp_<<alnum:36>>"),
    ("history", "npm config set //registry.acme.test/:_authToken=<<alnum:40>>"),
    ("history", "twine upload -u __token__ -p pypi-<<url:120>> dist/*"),
    ("http", "< Set-Cookie: sessionid=<<alnum:32>>; HttpOnly; Path=/; Secure"),
    ("http", "Cookie: theme=dark; auth_token=<<hex:40>>; lang=en"),
    ("http", "X-Vault-Token: s.<<alnum:24>>"),
    ("url", "https://hooks.slack.com/services/T02AB3CD4/B05EF6GH7/<<alnum:24>>"),
    ("url", "https://discord.com/api/webhooks/1029384756102938475/<<url:68>>"),
    ("conn", "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=<<b64:64>>;EndpointSuffix=core.windows.net"),
    ("ci", "2026-11-20T10:11:12.345Z ##[debug]NPM_TOKEN=npm_<<alnum:36>>"),
    ("gcloud", "$ gcloud auth print-access-token\nya29.<<url:140>>"),
    ("ts", "const stripe = new Stripe(process.env.KEY ?? 'sk_test_<<alnum:24>>')"),
    ("wrapped", "the key is sk-ant-api03-<<wrapped:95:47:indent>> so"),
    ("shell", "read -s PW; # was <<pw>>\nPW=<<pw>> ./run.sh"),
    ("shell", "influx -username admin -password <<alnum:16>>"),
    ("shell", "xfreerdp /v:win1 /u:ada /p:<<alnum:14>>"),
    ("http", "Authorization: AWS4-HMAC-SHA256 Credential=<<akia>>/20261120/eu-west-1/s3/aws4_request"),
    ("http", "{'X-Shopify-Access-Token': 'shpat_<<hex:32>>'}"),
    ("url", "https://api.telegram.org/bot123456789:<<url:35>>/sendMessage"),
    ("url", "https://maps.googleapis.com/maps/api/js?key=AIza<<url:35>>"),
    ("sql", "SET PASSWORD FOR 'app'@'%' = PASSWORD('<<pw>>');"),
    ("wrapped", "token: xoxb-<<digits:12>>-<<wrapped:37:12:indent>>"),
    ("chat", "you can log in with ada / <<pw>> until Friday"),
    ("argv", '["deploy", "--password", "<<pw>>"]'),
    ("chat", "The API key is <<alnum:32>>"),
    ("yaml", "api_token: >-\n    <<alnum:32>>"),
    ("my.cnf", "[client]\nuser=root\npassword=\"<<pw>>\"\nhost=127.0.0.1"),
    ("s3cfg", "[default]\naccess_key = <<akia>>\nsecret_key = <<aws>>\nuse_https = True"),
    ("export", "$ export AWS_SECRET_ACCESS_KEY=<<aws>>\n$ aws s3 ls"),
    ("toml", "[tool.deploy]\napi-token = \"<<alnum:40>>\""),
    ("go", "const apiToken string = \"<<alnum:32>>\""),
    ("ruby", ":password => \"<<pw>>\""),
    ("listing", "    12\tAPI_SECRET=<<alnum:32>>"),
    ("words", "数据库的密码是<<alnum:14>>"),
    ("expect", "expect \"assword:\"\nsend \"<<alnum:14>>\\r\""),
    ("shell", "${DB_PASSWORD:-<<alnum:14>>}"),
    ("json", '{"password": 314<<digits:9>>}'),
    ("shell", "cargo login --registry acme <<alnum:32>>"),
    ("html", "&quot;password&quot;: &quot;<<pw>>&quot;"),
    ("words", "password:\u00a0<<pw>>"),
    ("mnemonic", "mnemonic: <<seed>>"),
    ("mnemonic", "Seed phrase:\n<<seed>>\n"),
    ("mnemonic", "my recovery phrase is <<seed>>."),
    ("mnemonic", 'const seed_phrase = "<<seed>>";'),
]  # fmt: skip

# Tokens as providers make them in 2026, by their documentation: `provider beginning<<mark>>...`, alone in a sentence.
TOKENS = r"""
anthropic sk-ant-api03-<<url:93>>AA sk-ant-admin01-<<url:93>>AA sk-ant-oat01-<<url:93>>AA
openai sk-<<alnum:48>> sk-proj-<<url:74>>T3BlbkFJ<<url:74>> sk-svcacct-<<url:74>>T3BlbkFJ<<url:74>> sk-admin-<<url:58>>T3BlbkFJ<<url:58>>
openai-like sk-<<hex:32>> sk-or-v1-<<hex:64>> sk-kimi-<<alnum:64>> sk-helicone-<<lower:7>>-<<lower:7>>-<<lower:7>>-<<lower:7>> sk-lf-<<uuid>>
google AIza<<url:35>> AQ.Ab8R<<url:45>> GOCSPX-<<url:28>> ya29.<<url:140>> 1//0<<url:60>>
bedrock ABSK<<base64:120>>= bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t<<base64:300>>
models gsk_<<alnum:52>> xai-<<alnum:80>> pplx-<<alnum:48>> r8_<<alnum:37>> hf_<<alnum:34>> fw_<<alnum:22>> tgp_v1_<<url:43>> csk-<<lower:48>> nvapi-<<url:64>>
models pa-<<url:43>> jina_<<hex:32>><<url:28>> flp_<<alnum:40>> llx-<<alnum:48>> tvly-dev-<<alnum:32>> fc-<<hex:32>> BSA<<url:28>> pcsk_<<alnum:6>>_<<alnum:63>> ck-<<alnum:44>>
models lsv2_pt_<<hex:32>>_<<hex:10>> bt-st-<<alnum:40>> wandb_v1_<<url:77>> rpa_<<capital:36>><<lower:6>> e2b_<<hex:40>> dtn_<<hex:64>> bb_live_<<url:27>> bu_<<url:43>>
models <<hex:32>>.<<alnum:15>>X <<uuid>>:<<hex:32>> crsr_<<hex:64>> key_<<hex:64>> apk_user_<<base64:60>> sk_<<hex:48>> sk_car_<<alnum:22>> app-<<alnum:24>> ak-<<alnum:22>>
code ghp_<<alnum:36>> gho_<<alnum:36>> ghs_<<alnum:36>> ghr_<<alnum:76>> github_pat_<<alnum:22>>_<<alnum:59>> glpat-<<url:20>> glrt-<<url:20>> gldt-<<url:20>> glptt-<<hex:40>>
code ATATT3<<url:180>>=<<hex:8>> ATCTT3xFfG<<url:160>>=<<hex:8>> BBDC-<<base64:44>> npm_<<alnum:36>> pypi-AgEIcHlwaS5vcmc<<url:150>> rubygems_<<hex:48>> oy2<<lower:43>>
code dckr_pat_<<url:27>> dckr_oat_<<url:32>> AKCp<<alnum:69>> squ_<<hex:40>> sktsec_<<alnum:40>>_api bkua_<<hex:40>> CCIPAT_<<alnum:22>>_<<hex:40>> PMAK-<<hex:24>>-<<hex:34>>
code pat.<<url:22>>.<<alnum:24>>.<<alnum:20>> sgp_<<hex:16>>_<<hex:40>> API-<<capital:26>> rdme_<<lower:70>> mint_<<alnum:24>> gb_api_<<alnum:40>> CLOJARS_<<lower:60>> cio<<alnum:32>>
hosts vcp_<<alnum:56>> vck_<<alnum:56>> vercel_blob_rw_<<alnum:16>>_<<alnum:30>> nfp_<<alnum:36>> rnd_<<alnum:28>> fm2_<<base64:200>> HRKU-AA<<url:58>> dop_v1_<<hex:64>>
hosts cfut_<<alnum:40>><<hex:8>> cfat_<<alnum:40>><<hex:8>> v1.0-<<hex:24>>-<<hex:146>> AKIA<<upper:16>> ASIA<<upper:16>> LTAI<<alnum:20>> SCW<<capital:17>> AKID<<alnum:32>>
hosts hvs.<<url:95>> hvb.<<url:140>> pul-<<hex:40>> dp.pt.<<alnum:43>> dp.st.prd.<<alnum:43>> <<alnum:14>>.atlasv1.<<url:67>> tskey-auth-<<alnum:12>>CNTRL-<<alnum:32>> nbp_<<alnum:36>>
hosts ops_eyJ<<base64:260>> A3-<<upper:6>>-<<upper:11>>-<<upper:5>>-<<upper:5>>-<<upper:5>> AGE-SECRET-KEY-1<<upper:58>> K005<<base64:27>> sha256~<<url:43>> ptr_<<base64:43>>=
azure <<alnum:3>>8Q~<<url:34>> <<alnum:52>>JQQJ99<<alnum:26>> <<alnum:76>>AZDO<<alnum:4>> <<base64:76>>+ASt<<base64:6>>== <<base64:42>>+ACR<<base64:6>> <<base64:33>>AzCa<<base64:5>>=
data napi_<<lower:64>> npg_<<alnum:12>> sbp_<<hex:40>> sb_secret_<<url:31>> pscale_tkn_<<url:43>> pscale_pw_<<url:43>> mdb_sa_sk_<<url:40>> xau_<<alnum:33>> AVNS_<<url:19>>
data dapi<<hex:32>> 4b1d<<alnum:38>> cflt<<base64:60>> dbtc_<<url:43>> pnu_<<alnum:36>> pat<<alnum:14>>.<<hex:64>> prod:happy-animal-123|<<base64:120>>= secret-token:<<alnum:36>>
watch phc_<<alnum:43>> phx_<<alnum:43>> sntryu_<<hex:64>> sntrys_eyJ<<base64:180>>_<<base64:43>> glsa_<<alnum:32>>_<<hex:8>> glc_eyJ<<base64:120>>= NRAK-<<capital:27>> hcaik_<<lower:58>>
watch xaat-<<uuid>> pylf_v1_us_<<alnum:43>> dt0c01.<<capital:24>>.<<capital:64>> rootly_<<hex:64>> cu_<<hex:32>> sdk-<<uuid>> secret-<<alnum:43>> <<hex:32>>FFFFNRAL
talk xoxb-<<digits:12>>-<<digits:13>>-<<alnum:24>> xoxp-<<digits:12>>-<<digits:12>>-<<digits:13>>-<<hex:32>> xapp-1-A<<capital:10>>-<<digits:13>>-<<hex:64>> SG.<<url:22>>.<<url:43>>
talk M<<alnum:23>>.G<<alnum:5>>.<<url:38>> <<digits:10>>:AA<<url:33>> SK<<hex:32>> key-<<hex:32>> <<hex:32>>-<<hex:8>>-<<hex:8>> <<hex:32>>-us21 xkeysib-<<hex:64>>-<<alnum:16>> re_<<alnum:8>>_<<alnum:24>>
talk os_v2_app_<<lower:103>> pat-na1-<<uuid>> pat-eu1-<<uuid>> 1000.<<hex:32>>.<<hex:32>> KEY0<<capital:0>>1A2B<<digits:28>>_<<alnum:22>> syt_<<alnum:12>>_<<alnum:20>>_<<alnum:6>> whsec_<<base64:32>>
money sk_live_<<alnum:99>> sk_test_<<alnum:24>> rk_live_<<alnum:99>> sq0csp-<<url:43>> EAAA<<url:60>> rzp_live_<<alnum:14>> FLWSECK-<<hex:32>>-X pdl_live_apikey_<<lower:26>>_<<alnum:22>>_<<alnum:3>>
money polar_oat_<<alnum:43>> access-production-<<uuid>> shippo_live_<<hex:40>> EZAK<<alnum:54>> duffel_live_<<url:43>> live_<<hex:35>> live_<<alnum:30>> shpat_<<hex:32>> ck_<<hex:40>>
work lin_api_<<alnum:40>> ntn_<<digits:11>><<alnum:35>> secret_<<alnum:43>> figd_<<url:40>> ATTA<<hex:64>><<digits:8>> 2/<<digits:16>>/<<digits:16>>:<<hex:32>> sl.u.<<url:140>> tfp_<<url:59>>
work CFPAT-<<url:43>> apify_api_<<alnum:36>> pk.<<lower:60>>.<<lower:22>> sk.eyJ<<url:60>>.<<url:22>> n8n_api_<<lower:40>> signkey-prod-<<hex:64>> tr_prod_<<alnum:20>> aio_<<alnum:28>>
unknown newco_sk_<<alnum:32>> acme_pat_<<alnum:40>> foo-key-<<alnum:36>> bar_secret_<<alnum:30>> tok_<<alnum:32>> pat_<<alnum:64>>
urls https://hooks.slack.com/services/T<<capital:9>>/B<<capital:10>>/<<alnum:24>> https://discord.com/api/webhooks/<<digits:19>>/<<url:68>> https://hooks.zapier.com/hooks/catch/<<digits:8>>/<<lower:7>>/
urls https://acme.webhook.office.com/webhookb2/<<uuid>>@<<uuid>>/IncomingWebhook/<<hex:32>>/<<uuid>> https://hook.eu2.make.com/<<lower:32>> https://x.tines.com/webhook/<<hex:32>>/<<hex:32>>
urls https://oapi.dingtalk.com/robot/send?access_token=<<hex:64>> https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=<<uuid>> https://open.feishu.cn/open-apis/bot/v2/hook/<<uuid>>
urls https://acct.blob.core.windows.net/c/f?sv=2022-11-02&sr=b&sig=<<base64:43>>%3D https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature=<<hex:64>>
urls https://storage.googleapis.com/b/o?X-Goog-Signature=<<hex:256>> https://acme.test/f?token=<<alnum:32>> https://acme.test/cb#access_token=<<url:43>> https://f.azurewebsites.net/api/f?code=<<url:54>>==
urls https://eth-mainnet.g.alchemy.com/v2/<<url:32>> https://api.netlify.com/build_hooks/<<hex:24>> https://api.vercel.com/v1/integrations/deploy/prj_<<alnum:28>>/<<alnum:10>> https://hook.integromat.com/<<lower:32>> wss://mainnet.infura.io/ws/v3/<<hex:32>> https://eo<<lower:14>>.m.pipedream.net https://bob:<<alnum:16>>@h.test/x
"""
IN_SENTENCES = (
    "use {} now", "{}", "it is {}.", "`{}`", "the key ({}), then go on", "export NEW_NAME={}", "Authorization: Bearer {}",
    '{{"apiKey": "{}"}}', "before\n{}\nafter", "x = '{}'", "\x1b[32m{}\x1b[0m", 'out: "{{\\"log\\": \\"\\n{}\\n\\"}}"',
)  # fmt: skip
"""Where a token stands: alone, in code, in a header, in colour, in JSON within JSON."""

# No secrets: hashes and ids, place-holders, lines of documents and code. A line each, `\n` is a line end.
INNOCENT = r'''
<<uuid>>
commit <<hex:40>>
index <<hex:7>>..<<hex:7>> 100644
sha256:<<hex:64>>
integrity sha512-<<base64:86>>==
"integrity": "sha384-<<base64:64>>"
h1:<<base64:43>>=
image: ghcr.io/acme/app@sha256:<<hex:64>>
d41d8cd98f00b204e9800998ecf8427e  empty.txt
<img src="data:image/png;base64,iVBORw0KGgo<<base64:400>>">
toolu_01<<alnum:22>> msg_01<<alnum:22>> req_011<<alnum:21>>
call_<<alnum:24>> resp_<<hex:48>> fc_<<hex:48>> chatcmpl-<<alnum:29>> run_<<alnum:24>>
"sessionId": "<<uuid>>", "parentUuid": "<<uuid>>"
traceparent: 00-<<hex:32>>-<<hex:16>>-01
etag: W/"<<hex:32>>"
x-amz-request-id: <<capital:16>>
arn:aws:iam::<<digits:12>>:role/deploy-<<lower:8>>
pod/api-<<lower:10>>-<<lower:5>> Running
chunk-<<capital:8>>.js main.<<hex:20>>.css
node_modules/.cache/babel-loader/<<hex:64>>.json
Linux-node-<<hex:64>>
cache_key_<<hex:40>>
snapshot-<<digits:12>> ami-<<hex:17>> vpc-<<hex:17>> i-<<hex:17>>
01<<capital:24>>
pi_<<alnum:24>> cus_<<alnum:14>> evt_<<alnum:24>>
price_1<<alnum:23>> prod_<<alnum:14>>
/tmp/pytest-of-bob/pytest-12/test_token_<<hex:8>>0
gist.github.com/bob/<<hex:32>>
https://youtu.be/<<url:11>>?t=10
https://docs.google.com/document/d/<<url:44>>/edit
https://acme.test/a%20b?x=1%2F2&page=100%25&utm_source=x&session_count=2
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI<<base64:43>> bob@host
SHA256:<<base64:43>> bob@host (ED25519)
-----BEGIN CERTIFICATE-----\n<<base64:64>>\n<<base64:64>>\n-----END CERTIFICATE-----
-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE<<base64:28>>\n<<base64:60>>\n-----END PUBLIC KEY-----
"publicKey": "<<base64:43>>="
publicKeyToken="<<hex:16>>"
Sec-WebSocket-Key: <<base64:22>>==
Cookie: theme=dark; lang=en; _ga=GA1.1.1234567890.1699999999
sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx sk-ant-api03-xxxxxxxxxxxxxxxxxxxx sk-proj-...
export OPENAI_API_KEY=sk-your-key-here
ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx ghp_1234567890abcdefghijklmnopqrstuvwxyz
AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY
AWS_SECRET_ACCESS_KEY=<your-secret-key> TOKEN=${TOKEN:-} PASSWORD=$1 API_KEY=***
xoxb-your-token-here hf_YOUR_TOKEN_HERE sk_test_your_stripe_key re_123456789 nfp_XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX
postgres://user:password@localhost/db https://user:***@host https://<token>@github.com/acme/app
Authorization: Bearer <token> Authorization: Bearer $TOKEN
api_key = os.environ["API_KEY"] token = next(tokens) password = getpass.getpass("Password: ")
password: str | None = None\nsecret_name: db-credentials\nmax_tokens=4096
The password is asked for at the door, and the token of thanks is small.
Passwords are stored in the password database. Enter your password below.
key=lambda row: row.key2, sort_keys=True, KEYWORD_ONLY = _ParameterKind.KEYWORD_ONLY
"""`https://user:password@`, also with"""\n_X = "1"
'price_key': 'cache_write_5m_mtok'
spec = "key1=value1//key2=value2//..."
if '-----BEGIN PRIVATE KEY-----' in text:
const { password, ...rest } = user; type Token = { kind: 'word2' };
curl -u $USER:$PASSWORD https://x; docker run -u root -p 8080:80 nginx2; ps -u bob -p 12345678
log in at https://a.test/login2/step3 or login with sso/v2
main.c:5432:12:warning:unused and tests/a.py:5432:error:b:c
it costs $1 or $5 a month; echo $1$2
the task-abcdefghijklmnopqrstuvwxyz and disk-usage-report-2026-11-28-final
pk_column_name_of_table sk_learn_model_v2_final test_token_is_refused_when_2_keys_match
_`RFC6749#Token`: https://tools.ietf.org/html/rfc6749#section-3.2 $2 of 3; s.split("."); re_compile_pattern_1; am_i_ready; hb_interval_ms_5000; key_of_row_12
mnemonic = "dcb "
secret-santa-list-2026-for-the-whole-team app-settings-for-production-2
'''
