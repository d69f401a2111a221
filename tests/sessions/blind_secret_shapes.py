"""Shapes of secrets written by someone who had read neither the rules nor the other shapes.

A shape is a kind and a text. `<<generator:options>>` stands for a new random secret, which redaction has to take out.
"""

from __future__ import annotations

import base64
import random
import re
import string
import textwrap
from collections.abc import Callable

_DIGITS_LETTERS = string.ascii_letters + string.digits
_WORDS = """falcon river Copper maple Winter tiger harbor violet Sunset pepper Orbit quartz meadow rocket Lantern
cedar""".split()  # noqa: SIM905


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
    return rng.choice(
        [
            f"{word}{rng.randrange(100, 9999)}{rng.choice('!#%*+=?')}{_pick(rng, string.ascii_letters, 3)}",
            f"{_pick(rng, _DIGITS_LETTERS, 6)}{rng.choice('!#%*=?_')}{_pick(rng, _DIGITS_LETTERS, 7)}9k",
            f"{word.title()}-{rng.choice(_WORDS).title()}-{rng.randrange(10, 999)}",
        ]
    )


def _phrase(rng: random.Random) -> str:
    return (
        f"{rng.choice(_WORDS)} {rng.choice(_WORDS).title()} {rng.randrange(10, 999)} {_pick(rng, _DIGITS_LETTERS, 4)}!"
    )


def _base64(rng: random.Random, count: str) -> str:
    return base64.b64encode(rng.randbytes(int(count))).decode()


def _jwt(rng: random.Random, broken_at: str = "0", glue: str = "") -> str:
    parts = [
        base64.urlsafe_b64encode(part).decode().rstrip("=")
        for part in (
            b'{"alg":"HS256","typ":"JWT"}',
            b'{"sub":"%d","name":"Ada","iat":17%08d}' % (rng.randrange(10**9, 10**10), rng.randrange(10**8)),
            rng.randbytes(32),
        )
    ]
    token = ".".join(parts)
    at = int(broken_at)
    return token if not at else token[:at] + _GLUE[glue] + token[at:]


_GLUE = {"": "\n", "indent": "\n    ", "backslash": "\\\n", "quote": "\n> "}


def _key_body(rng: random.Random, kind: str) -> str:
    """The base64 of a private key, in lines as its tool writes them."""
    beginning, count, width = {
        "rsa": (b"\x30\x82\x04\xa4\x02\x01\x00\x02\x82\x01\x01\x00", 1180, 64),
        "pkcs8": (
            bytes.fromhex("308204be020100300d06092a864886f70d0101010500048204a8308204a40201000282010100"),
            1180,
            64,
        ),
        "ec": (b"\x30\x77\x02\x01\x01\x04\x20", 114, 64),
        "openssh": (
            b"openssh-key-v1\0\0\0\0\4none\0\0\0\4none\0\0\0\0\0\0\0\1\0\0\0\x33\0\0\0\x0bssh-ed25519\0\0\0\x20",
            250,
            70,
        ),
        "encrypted": (
            bytes.fromhex("308205133049 06092a864886f70d01050d303c301b06092a864886f70d01050c300e0408".replace(" ", "")),
            1250,
            64,
        ),
    }[kind]
    return "\n".join(textwrap.wrap(base64.b64encode(beginning + rng.randbytes(count)).decode(), width))


def _key_listing(rng: random.Random, kind: str, style: str) -> str:
    lines = _key_body(rng, kind).splitlines()
    return "\n".join(
        {
            "cat": f"{i:6}\t{line}",
            "arrow": f"{i:5}→{line}",
            "grep": f"{i}:{line}",
            "bar": f"{i:3} | {line}",
            "diff": f"+ {line}",
        }[style]
        for i, line in enumerate(lines, 2)
    )


def _broken_value(rng: random.Random, count: str, width: str, glue: str = "") -> str:
    value = _pick(rng, _DIGITS_LETTERS, int(count))
    return value[: int(width)] + _GLUE[glue] + value[int(width) :]


def _key_line(rng: random.Random, kind: str, first: str, glue: str = "") -> str:
    """A key of a vendor, broken after `first` of its characters."""
    value = {
        "github": "ghp_" + _pick(rng, _DIGITS_LETTERS, 36),
        "gitlab": "glpat-" + _pick(rng, _DIGITS_LETTERS, 20),
        "openai": "sk-proj-" + _pick(rng, _DIGITS_LETTERS + "_-", 48) + "T3BlbkFJ" + _pick(rng, _DIGITS_LETTERS, 48),
        "anthropic": "sk-ant-api03-" + _pick(rng, _DIGITS_LETTERS + "_-", 93) + "AA",
        "slack": f"xoxb-{rng.randrange(10**11, 10**12)}-{rng.randrange(10**11, 10**12)}-"
        + _pick(rng, _DIGITS_LETTERS, 24),
        "stripe": "sk_" + "live_" + _pick(rng, _DIGITS_LETTERS, 24),
    }[kind]
    return value[: int(first)] + _GLUE[glue] + value[int(first) :]


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
    "b64": _base64,
    "aws": lambda rng: _pick(rng, _DIGITS_LETTERS + "+/", 40),
    "akia": lambda rng: "AKIA" + _pick(rng, string.ascii_uppercase + "234567", 16),
    "jwt": _jwt,
    "body": _key_body,
    "numbered": _key_listing,
    "wrapped": _broken_value,
    "key": _key_line,
    "b64of": _base64_of,
}

FIRST = [
    # kubeconfig
    ("kubeconfig", "users:\n- name: admin\n  user:\n    client-certificate-data: REDACTED\n    client-key-data: <<b64:1190>>\n"),
    ("kubeconfig", '{"users":[{"name":"ci","user":{"client-key-data":"<<b64:1190>>"}}]}'),
    ("kubeconfig", "$ kubectl config view --raw -o jsonpath='{.users[0].user.client-key-data}'\n<<b64of:-----BEGIN EC PRIVATE KEY-----\\nMHcCAQEEI%\\n-----END EC PRIVATE KEY----->>"),
    ("kubeconfig", "kubectl config set-credentials bob --token=<<alnum:32>>"),
    ("kubeconfig", "    user:\n      client-key-data: >-\n        <<b64:240>>\n"),
    # PEM bodies
    ("pem", "The first lines are missing:\n<<body:rsa>>\n-----END RSA PRIVATE KEY-----\n"),
    ("pem", "$ head -n 20 ~/.ssh/id_rsa\n-----BEGIN RSA PRIVATE KEY-----\n<<body:rsa>>\n"),
    ("pem", "     1\t-----BEGIN PRIVATE KEY-----\n<<numbered:pkcs8:cat>>\n    21\t-----END PRIVATE KEY-----"),
    ("pem", "    1→-----BEGIN OPENSSH PRIVATE KEY-----\n<<numbered:openssh:arrow>>\n    7→-----END OPENSSH PRIVATE KEY-----\n"),
    ("pem", "1:-----BEGIN EC PRIVATE KEY-----\n<<numbered:ec:grep>>\n5:-----END EC PRIVATE KEY-----"),
    ("pem", "$ sed -n '2,$p' server.key\n<<body:pkcs8>>\n-----END PRIVATE KEY-----"),
    ("pem", "$ grep -v -- ----- id_ed25519\n<<body:openssh>>\n$"),
    ("pem", "$ openssl genpkey -algorithm RSA | sed '1d;$d'\n<<body:pkcs8>>\n"),
    ("pem", "diff --git a/k.pem b/k.pem\n@@ -0,0 +1,5 @@\n+ -----BEGIN EC PRIVATE KEY-----\n<<numbered:ec:diff>>\n+ -----END EC PRIVATE KEY-----"),
    ("pem", "  1 | -----BEGIN ENCRYPTED PRIVATE KEY-----\n<<numbered:encrypted:bar>>\n"),
    ("pem", "    2→<<body:ec>>"),
    # DB_PWD=
    ("db_pwd", "DB_PWD=<<pw>>"),
    ("db_pwd", "export MYSQL_PWD=<<pw>>"),
    ("db_pwd", "environment:\n  - ORACLE_PWD=<<pw>>\n  - TZ=UTC"),
    ("db_pwd", "Server=tcp:db.corp.net,1433;Database=crm;Uid=svc;Pwd=<<pw>>;Encrypt=yes;"),
    ("db_pwd", 'ENV APP_DB_PWD "<<pw>>"'),
    # with spaces
    ("spaces", "DB_PASS='<<phrase>>'"),
    ("spaces", 'export ADMIN_PASSWORD="<<phrase>>"'),
    ("spaces", "smtp:\n  passphrase: '<<phrase>>'\n"),
    ("spaces", '{"user": "bob", "password": "<<phrase>>"}'),
    ("spaces", 'ssh-keygen -t ed25519 -N "<<phrase>>" -f id'),
    # *_PAT
    ("pat", "AZURE_DEVOPS_EXT_PAT=<<alnum:52>>"),
    ("pat", "export GH_PAT='<<alnum:40>>'"),
    ("pat", "GITLAB_PAT: <<url:20>>"),
    ("pat", "$env:ADO_PAT = \"<<alnum:52>>\""),
    ("pat", "gh secret set RELEASE_PAT --body <<alnum:40>>"),
    # aws configure
    ("aws_configure", "$ aws configure\nAWS Access Key ID [None]: <<akia>>\nAWS Secret Access Key [None]: <<aws>>\nDefault region name [None]: eu-west-1\n"),
    ("aws_configure", "AWS Secret Access Key [****************ab3Q]: <<aws>>"),
    ("aws_configure", "AWS Session Token [None]: <<b64:210>>"),
    ("aws_configure", "Tencent Cloud API secretKey [None]: <<alnum:32>>"),
    ("aws_configure", "aws configure set aws_secret_access_key <<aws>> --profile prod"),
    # key id and secret on one line
    ("one_line", "keys: <<akia>> <<aws>>"),
    ("one_line", "<<akia>>:<<aws>>"),
    ("one_line", "the pair is <<akia>> / <<aws>> (rotate it)"),
    ("one_line", "User name,Access key ID,Secret access key\nci-bot,<<akia>>,<<aws>>"),
    ("one_line", "s3cmd --access_key=<<akia>> --secret_key=<<aws>> ls"),
    ("one_line", 'S3FileSystem("<<akia>>", "<<aws>>")'),
    # curl --user
    ("curl", "curl --user deploy:<<pw>> https://nexus.corp.net/api"),
    ("curl", "curl -u 'admin:<<pw>>' -X PUT http://10.0.0.3:9200/_settings"),
    ("curl", "curl -sS --user=ci:<<alnum:24>> ftp://files.corp.net/"),
    ("curl", 'curl -u "$USER:<<pw>>" https://jira.corp.net'),
    ("curl", "curl --proxy-user bob:<<pw>> -x proxy:3128 https://x.org"),
    ("curl", "curl -H 'PRIVATE-TOKEN: <<url:20>>' https://git.corp.net/api/v4/user"),
    # docker login
    ("docker", "docker login -u ci -p <<pw>> registry.corp.net"),
    ("docker", "docker login --username ci --password <<alnum:28>> quay.io"),
    ("docker", "podman login -p=<<pw>> -u=bob ghcr.io"),
    ("docker", "echo <<alnum:32>> | docker login -u bob --password-stdin"),
    ("docker", "helm registry login r.corp.net -u bob -p '<<pw>>'"),
    # htpasswd
    ("htpasswd", "htpasswd -b /etc/nginx/.htpasswd bob <<pw>>"),
    ("htpasswd", "htpasswd -cbB users.txt alice '<<pw>>'"),
    ("htpasswd", "RUN htpasswd -bc /auth/htpasswd ci <<alnum:16>> && nginx -t"),
    ("htpasswd", "htpasswd -nbB admin <<pw>> | cut -d: -f2"),
    # sudo -S
    ("sudo", "echo <<pw>> | sudo -S apt-get update"),
    ("sudo", "echo '<<pw>>' | sudo -S -k systemctl restart nginx"),
    ("sudo", 'printf "%s\\n" "<<pw>>" | sudo -kS id'),
    ("sudo", "sudo -S ls /root <<< '<<pw>>'"),
    ("sudo", "sshpass -p '<<pw>>' ssh root@10.2.0.8 uptime"),
    # openssl -passin
    ("openssl", "openssl rsa -in k.pem -passin pass:<<pw>> -out plain.pem"),
    ("openssl", "openssl pkcs12 -export -passout 'pass:<<pw>>' -in c.crt"),
    ("openssl", "openssl enc -aes-256-cbc -k <<pw>> -in a -out b"),
    ("openssl", "openssl enc -d -aes-256-cbc -pbkdf2 -pass pass:<<alnum:20>> -in a.enc"),
    ("openssl", "keytool -import -storepass <<pw>> -keystore k.jks"),
    # Password for ...:
    ("prompt", "Password for 'https://bob@git.corp.net': <<pw>>\nremote: Enumerating objects"),
    ("prompt", "Password for user postgres: <<pw>>\npsql (16.1)"),
    ("prompt", "bob@10.1.2.3's password: <<pw>>\nWelcome to Ubuntu"),
    ("prompt", "[sudo] password for ada: <<pw>>\nHit:1 http://archive"),
    ("prompt", "Enter passphrase for key '/home/ada/.ssh/id_ed25519': <<phrase>>\n"),
    ("prompt", "Enter host password for user 'ci': <<pw>>"),
    # XML
    ("xml", "<server>\n  <id>nexus</id>\n  <username>ci</username>\n  <password><<pw>></password>\n</server>"),
    ("xml", '<add name="Db" connectionString="Data Source=x;User ID=sa;Password=<<pw>>"/>'),
    ("xml", "<apiToken><<alnum:34>></apiToken>"),
    ("xml", '<property name="hibernate.connection.password" value="<<pw>>"/>'),
    ("xml", '<add key="ClearTextPassword" value="<<alnum:30>>" />'),
    ("xml", "<key>client_secret</key>\n<string><<alnum:36>></string>"),
    # ansible
    ("ansible", "[web]\nh1 ansible_host=10.0.0.5 ansible_become_pass=<<pw>>"),
    ("ansible", "ansible_become_password: '<<pw>>'"),
    ("ansible", "ansible all -m ping -e 'ansible_ssh_pass=<<pw>>'"),
    ("ansible", '{"ansible_become_pass": "<<phrase>>"}'),
    ("ansible", "vault_become_pass: <<alnum:12>>"),
    # WireGuard
    ("wireguard", "[Interface]\nAddress = 10.9.0.2/32\nPrivateKey = <<b64:32>>\nDNS = 1.1.1.1"),
    ("wireguard", "[Peer]\nPresharedKey=<<b64:32>>\nAllowedIPs = 0.0.0.0/0"),
    ("wireguard", "$ wg genkey\n<<b64:32>>"),
    ("wireguard", "interface: wg0\n  private key: <<b64:32>>\n  listening port: 51820"),
    # terraform
    ("terraform", 'variable "db_password" {\n  type    = string\n  default = "<<pw>>"\n}'),
    ("terraform", 'variable "api_token" {\n  description = "token of the provider"\n  type = string\n  sensitive = true\n  default = "<<alnum:40>>"\n}'),
    ("terraform", 'terraform apply -var="db_password=<<pw>>" -auto-approve'),
    ("terraform", 'resource "aws_db_instance" "x" {\n  username = "root"\n  password = "<<pw>>"\n}'),
    ("terraform", 'output "admin_password" {\n  value = "<<pw>>"\n}'),
    # ?key=
    ("query", "GET https://maps.googleapis.com/maps/api/geocode/json?address=Ulm&key=AIza<<url:35>>"),
    ("query", "https://api.corp.net/v1/search?key=<<alnum:32>>&q=x"),
    ("query", "wget 'https://host/feed?format=xml&apikey=<<hex:32>>'"),
    ("query", "wss://stream.corp.net/?access_token=<<url:43>>"),
    ("query", "https://acct.blob.core.windows.net/c/f?sv=2022-11-02&sig=<<alnum:40>>%3D&se=2026-01-01"),
    # wrapped
    ("wrapped", "export GITHUB_TOKEN=<<key:github:12>>\n"),
    ("wrapped", "ANTHROPIC_API_KEY=<<key:anthropic:62>>\n$ "),
    ("wrapped", 'curl https://api.openai.com/v1/models -H "Authorization: Bearer <<key:openai:30:backslash>>"'),
    ("wrapped", "the key is <<key:stripe:14:indent>>, do not share"),
    ("wrapped", "SECRET_KEY=<<wrapped:64:40:backslash>>\nDEBUG=1"),
    ("wrapped", "API_TOKEN=<<wrapped:90:70>>\nNEXT=1"),
    # JSON arrays
    ("array", '{"tokens": ["<<alnum:32>>", "<<alnum:32>>"]}'),
    ("array", 'API_KEYS = ["<<hex:40>>", "<<hex:40>>", "<<hex:40>>"]'),
    ("array", "passwords:\n  - <<pw>>\n  - <<pw>>\n"),
    ("array", '"secrets": [\n  "<<alnum:24>>",\n  "<<alnum:24>>"\n]'),
    ("array", "ADMIN_TOKENS=<<hex:32>>,<<hex:32>>"),
    # JWT
    ("jwt", "Authorization: Bearer <<jwt:60>>"),
    ("jwt", "token: <<jwt:40:indent>>"),
    ("jwt", "-H 'Authorization: Bearer <<jwt:95:backslash>>'"),
    ("jwt", "> <<jwt:76:quote>>"),
    # base64
    ("base64", "echo <<b64of:password=%>> | base64 -d"),
    ("base64", "data:\n  config: <<b64of:user=ci\\npassword=%\\nhost=db>>\n"),
    ("base64", "Authorization: Basic <<b64of:bob:%>>"),
    ("base64", '{"auths":{"ghcr.io":{"auth":"<<b64of:bob:%>>"}}}'),
    # other languages
    ("words", "Passwort: <<pw>>"),
    ("words", "密码:<<pw>>"),
    ("words", "Mot de passe : <<pw>>"),
    ("words", "contraseña = \"<<pw>>\""),
    ("words", "пароль: <<pw>>"),
]  # fmt: skip

# Written after the rules were mended by the first; measured once before anything was mended by them.
SECOND = [
    ("kubeconfig", "- name: gke_prod\n  user:\n    auth-provider:\n      config:\n        access-token: ya29.<<url:120>>\n        expiry: '2026-01-01'\n"),
    ("kubeconfig", "client_key_data = <<b64:610>>\nclient_certificate_data = none"),
    ("kubeconfig", "echo '<<b64:1190>>' | base64 -d > /tmp/client.key"),
    ("pem", "    20→<<body:openssh>>\n    21→-----END OPENSSH PRIVATE KEY-----"),
    ("pem", "private_key: |\n  -----BEGIN PRIVATE KEY-----\n  <<body:pkcs8>>"),
    ("pem", "key = (\n  '-----BEGIN EC PRIVATE KEY-----\\n'\n  '<<b64:48>>\\n'\n  '<<b64:48>>\\n'\n)"),
    ("pem", "server.key:2:<<b64:48>>\nserver.key:3:<<b64:48>>\nserver.key:4:<<b64:48>>\nserver.key:5:-----END RSA PRIVATE KEY-----"),
    ("pem", "$ tail -n +2 deploy_key | head -3\n<<body:openssh>>"),
    ("db_pwd", "set PGPWD=<<pw>>\r\npsql -h db"),
    ("db_pwd", "jdbc:sqlserver://h:1433;databaseName=x;user=sa;pwd=<<pw>>"),
    ("db_pwd", "spring.datasource.pwd=<<pw>>"),
    ("db_pwd", "docker run -e REDIS_PWD=<<pw>> -d redis:7"),
    ("spaces", "ADMIN_PASSPHRASE: \"<<phrase>>\"  # for the vault"),
    ("spaces", "gpg --batch --passphrase '<<phrase>>' -d a.gpg"),
    ("spaces", "password = '<<phrase>>'\nconnect(password)"),
    ("pat", "echo \"##vso[task.setvariable variable=ADO_PAT]<<alnum:52>>\""),
    ("pat", "git clone https://x-access-token:<<alnum:40>>@github.com/o/r"),
    ("pat", "SYSTEM_PAT = os.environ.get('SYSTEM_PAT', '<<alnum:52>>')"),
    ("aws_configure", "AWS Access Key ID [****************QX2A]: <<akia>>\nAWS Secret Access Key [****************abcd]: <<aws>>\n"),
    ("aws_configure", "Access key ID: <<akia>>\r\nSecret access key: <<aws>>"),
    ("aws_configure", "mc alias set s3 https://s3.corp.net <<akia>> <<aws>>"),
    ("one_line", "| ci-bot | <<akia>> | <<aws>> |"),
    ("one_line", "aws_access_key_id=<<akia>>;aws_secret_access_key=<<aws>>"),
    ("one_line", "boto3.client('s3', aws_access_key_id='<<akia>>', aws_secret_access_key='<<aws>>')"),
    ("curl", "curl -fsSL -u bob:<<pw>> -o out.tgz https://art.corp.net/x.tgz"),
    ("curl", "curl -X POST https://h/login -d 'username=ada&password=<<alnum:14>>'"),
    ("curl", "curl -sk \\\n  --user 'svc:<<pw>>' \\\n  https://h/api"),
    ("docker", "sudo docker login r.corp.net --username=bob --password='<<pw>>'"),
    ("docker", "docker login r.corp.net <<< '<<alnum:20>>' -u bob --password-stdin"),
    ("docker", "kubectl create secret docker-registry r --docker-username=bob --docker-password=<<pw>>"),
    ("htpasswd", "docker run --rm httpd:2 htpasswd -Bbn bob '<<pw>>' > auth"),
    ("htpasswd", "htpasswd -b -c ./pw ci \"<<alnum:18>>\""),
    ("sudo", "echo \"<<pw>>\" | sudo -S -p '' make install"),
    ("sudo", "sudo -S true <<EOF\n<<pw>>\nEOF"),
    ("sudo", "subprocess.run(['sudo', '-S', 'ls'], input='<<pw>>\\n', text=True)"),
    ("openssl", "openssl req -new -key k.pem -passin \"pass:<<phrase>>\""),
    ("openssl", "openssl pkcs8 -topk8 -passout=pass:<<alnum:16>> -in a.pem"),
    ("prompt", "Password for [ada@CORP.NET]: <<pw>>"),
    ("prompt", "(ada@10.0.0.4) Password: <<pw>>\nLast login: Mon"),
    ("prompt", "Enter PEM pass phrase: <<pw>>\nVerifying"),
    ("prompt", "New password: <<pw>>\nRetype new password: <<pw>>"),
    ("xml", "<settings><proxy><proxyPassword><<pw>></proxyPassword></proxy></settings>"),
    ("xml", "<wsse:Password Type=\"PasswordText\"><<pw>></wsse:Password>"),
    ("xml", "<jenkins><secretBytes><<b64:90>></secretBytes></jenkins>"),
    ("ansible", "ansible_password: \"{{ 'x' }}\"\nansible_become_pass: <<pw>>  # root"),
    ("ansible", "ansible-playbook site.yml --extra-vars 'ansible_become_pass=<<alnum:15>> env=prod'"),
    ("wireguard", "wg set wg0 private-key <(echo <<b64:32>>)"),
    ("wireguard", "  PrivateKey: \"<<b64:32>>\",\n  Address: 10.0.0.1"),
    ("terraform", "db_password = \"<<pw>>\"\nregion = \"eu\""),
    ("terraform", "export TF_VAR_db_password='<<pw>>'"),
    ("terraform", "locals {\n  admin_pw = \"<<pw>>\"\n}"),
    ("query", "GET /v2/geo?lat=1&appid=<<hex:32>> 200"),
    ("query", "https://hooks.corp.net/t?token=<<alnum:24>>"),
    ("wrapped", "Your new key:\n  sk-ant-api03-<<wrapped:95:60:indent>>\n"),
    ("wrapped", "ssh host 'export AUTH_TOKEN=<<wrapped:70:50:backslash>> && run'"),
    ("array", "auth_tokens: ['<<alnum:30>>', '<<alnum:30>>']"),
    ("array", "VALID_API_KEYS = {\n    \"<<hex:32>>\",\n    \"<<hex:32>>\",\n}"),
    ("jwt", "Set-Cookie: session=<<jwt:80>>; Path=/"),
    ("base64", "{\"data\": {\"password\": \"<<b64of:%>>\"}, \"kind\": \"Secret\"}"),
    ("words", "Kennwort für ada: <<pw>>"),
]  # fmt: skip
