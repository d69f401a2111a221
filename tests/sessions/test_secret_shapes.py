"""Secrets of some 700 shapes in a dozen places each are taken out; source code passes; a text costs its length."""

from __future__ import annotations

import importlib
import json
import random
import time
from pathlib import Path

import pytest

from monocontext.sessions.redaction import Redactor
from monocontext.sessions.secret_search import find_secrets
from tests.sessions.blind_secret_shapes import FIRST, SECOND, fill, survives
from tests.sessions.late_secret_shapes import FOURTH, THIRD
from tests.sessions.secret_shapes import PLACES, shapes

SEED = 11


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_each_shape_in_a_place(place: str) -> None:
    missed = []
    found = shapes(SEED)
    assert len(found) >= 600
    for name, (text, cores) in found.items():
        out = Redactor().text(PLACES[place](text))
        assert cores, name
        missed += [name for core in cores if core in out][:1]
    assert len(missed) <= len(found) // 200, missed  # a secret made at random may look like a word


@pytest.mark.parametrize(
    ("templates", "share"),
    [(FIRST, 0.99), (SECOND, 0.93), (THIRD, 0.97), (FOURTH, 0.97)],
    ids=["first", "second", "third", "fourth"],
)
def test_shapes_that_were_written_without_the_rules(templates: list[tuple[str, str]], share: float) -> None:
    """At least this share of the texts, as a tool's result in a transcript, has lost each of its secrets whole."""
    rng = random.Random(SEED)
    missed, count = [], 0
    for kind, template in templates:
        for _ in range(5):
            text, pieces = fill(template, rng)
            assert pieces, kind
            content = [{"type": "tool_result", "tool_use_id": "t", "content": f"I looked:\n{text}\nand so on."}]
            line = json.dumps({"type": "user", "message": {"role": "user", "content": content}})
            out = Redactor().record(json.loads(line))["message"]["content"][0]["content"]
            count += 1
            missed += [(kind, text)] * any(survives(piece, out) for piece in pieces)
    assert len(missed) <= (1 - share) * count, missed


def test_shapes_in_the_fields_of_a_tool_call() -> None:
    """Names of fields and the lists under them tell as much as names in a text."""
    token = "q8Zk3vN0bX5tR7wL2mC9"
    record = {
        "type": "assistant",
        "message": {"content": [{"type": "tool_use", "input": {
            "tokens": [token + "a", token + "b"], "dbPassword": "hunter2hunter", "name": "x", "max_tokens": "4096",
            "env": [{"name": "API_TOKEN", "value": token + "c"}], "key": "row-1",
        }}]},
    }  # fmt: skip
    out = json.dumps(Redactor().record(record))
    assert token not in out
    assert "hunter2hunter" not in out
    assert "4096" in out
    assert "row-1" in out


PASSWORD, TOKEN = "Zk7pQw29LmXv", "k3Jx9Qm2Lp8Vw4Zt7Rb1Nc6Yd5Hf0Gs"


@pytest.mark.parametrize(
    "text",
    [
        f"name,password,mail\nbob,{PASSWORD},b@c.test\neve,{PASSWORD},e@c.test\n", f"user\tapi_token\nbob\t{TOKEN}\n",
        f"INSERT INTO users (name, password) VALUES ('bob', '{PASSWORD}'), ('eve', '{PASSWORD}');",
        f"insert into settings(k, api_token, v) values (lower('A'), '{TOKEN}', 2)",
        f"##vso[task.setvariable variable=DB_PASSWORD;issecret=true]{PASSWORD}", f"::add-mask::{PASSWORD}",
        "https://api.openweathermap.org/data/2.5/weather?q=x&appid=9f86d081884c7d659a2feaa0c55ad015",
        f"127.0.0.1:6379> AUTH {PASSWORD}", f"redis> auth default {PASSWORD}", f'ConvertTo-SecureString "{PASSWORD}" -AsPlainText -Force',
        f"heroku config:set API={TOKEN}", f"flyctl secrets set STRIPE={TOKEN}", f"echo {TOKEN} | wrangler secret put K",
        f"login with bob / {PASSWORD}", f"you can log in as bob / {PASSWORD} today",
        f"db:5432:a:b:{PASSWORD}\ndb:5432:a:c:{PASSWORD}", f"*:*:*:bob:{PASSWORD}", f"net use \\\\files\\x {PASSWORD} /user:bob",
        f"| id | api_token |\n|---|---|\n| 1 | {TOKEN} |\n", f" id | password\n----+------\n  1 | {PASSWORD}\n(1 row)\n",
        f"jdbc:oracle:thin:bob/{PASSWORD}@//db/x", f"anyctl -u bob -p {PASSWORD} host", f"+ echo {TOKEN}\n+ docker login --password-stdin", f"credentials: admin/{PASSWORD}",
    ],
)  # fmt: skip
def test_columns_and_commands(text: str) -> None:
    out = Redactor().text(text)
    assert not any(secret in out for secret in (PASSWORD, TOKEN, "9f86d081884c7d659a2feaa0c55ad015"))


HEX = "9f86d081884c7d659a2feaa0c55ad015"
DIGITS = "314214987253"


@pytest.mark.parametrize(
    "text",
    [
        f"cargo login --registry acme {TOKEN}", f"dotnet nuget push a.nupkg -k {TOKEN} -s https://x", f"nuget push a.nupkg {TOKEN} -Source x", f"wandb login --relogin {HEX}a1b2c3d4",
        f"poetry config pypi-token.acme {TOKEN}", f"snyk auth {TOKEN}", f"oc login -u bob -p {PASSWORD}", f"twine upload dist/* -p {PASSWORD}", f"mailgun.Client('{HEX}-0a1b2c3d-4e5f6a7b')",
        f"Client('AC{HEX[::-1]}',\n    '{HEX}')", f"CF={TOKEN}A", f"AAAA1234567:APA91b{TOKEN * 4}", "otpauth://totp/a?issuer=x&secret=JBSWY3DPEHPK3PXPJBSW", f"sb_secret_a-{TOKEN}",
        f'{{"password": {DIGITS}}}', f'{{"u": 1, "db_password": {DIGITS}, "x": 1}}', f'"type": "random_password", "instances": [{{"attributes": {{"result": "{PASSWORD}"}}}}]',
        f'{{"db_password": {{"sensitive": true, "type": "string", "value": "{PASSWORD}"}}}}', f"bundle config set --global gems.acme.test bob:{PASSWORD}",
    ],
)  # fmt: skip
def test_keys_that_stand_alone_and_passwords_of_digits(text: str) -> None:
    for shown in (text, json.dumps({"output": text}), json.dumps({"output": json.dumps(text)})):
        out = Redactor().text(shown)
        assert not any(secret in out for secret in (PASSWORD, TOKEN, HEX, DIGITS, "JBSWY3DPEHPK3PXPJBSW"))


@pytest.mark.parametrize(
    "text",
    [
        "| id | token_count |\n|---|---|\n| 1 | 4096 |\n", "docker run -u root -p 8080:80 nginx2", "ps -u bob -p 12345678",
        "| name | password |\n|---|---|\n| bob | $PASSWORD |\n", "name,password\nbob\n", "id,token_count\n1,4096\n", "INSERT INTO users (name, age) VALUES ('password1', 3)",
        "login with sso/v2", "log in at https://a.test/login2/step3", "auth flow v2", "?appid=440", "heroku config:set DEBUG=1",
    ],
)  # fmt: skip
def test_tables_without_secrets_stay(text: str) -> None:
    assert Redactor().text(text) == text


@pytest.mark.parametrize(
    "code",
    [
        "KEYWORD_ONLY = _ParameterKind.KEYWORD_ONLY", "POSITIONAL_OR_KEYWORD = 1", "ERRORTOKEN = token.ERRORTOKEN",
        "_KEYCRE = re.compile(r'%\\(([^)]+)\\)s')", "FOREIGN KEY=parent_id", "token = tokens.next_token", "key=lambda row: row.key2",
        "password: str | None = None", "password = getpass.getpass('Password: ')", "CACHE_KEY = 'user-list-v2'",
        "PASSWORD=$1", "TOKEN=${TOKEN:-}", "--- PASS: TestLogin1 (0.00s)", "pass  # nothing to do", "PWD=/home/bob/src1",
        "password_file = '/run/secrets/db1'", "if token == 'NAME': pass", "def login(user, password=password): ...",
        "-----BEGIN RSA PRIVATE KEY-----", "if '-----BEGIN PRIVATE KEY-----' in text:", "tokenizer = Tokenizer(vocab=vocab2)",
        "https://acme.test/list?key=name&sort=asc", "<input type=\"password\" name=\"password\">", "secret_name: db-credentials",
        "Passwort: bitte eingeben und merken", "密码: 请输入", "max_tokens=4096", "sort_keys=True, key='created_at'",
        "const { password, ...rest } = user;", "password: Joi.string().min(8)", "export type Token = { kind: 'word2' };",
        "curl -u $USER:$PASSWORD https://x", "docker login -u bob -p $PASSWORD", "echo $PW | sudo -S ls",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b", "integrity sha512-" + "Ab3/" * 20 + "==",
    ],
)  # fmt: skip
def test_code_stays(code: str) -> None:
    for text in (code, f"x\n    {code}\n", json.dumps({"a": code}), f"+{code}"):
        assert Redactor().text(text) == text


@pytest.mark.slow
def test_the_standard_library_stays() -> None:
    """At most one finding for each MB of what is no secret."""
    files = [path for path in Path(json.__file__).parents[1].rglob("*.py") if "site-packages" not in path.parts]
    size = findings = 0
    for path in files:
        text = path.read_text(errors="replace")
        size += len(text)
        findings += len(find_secrets(text))
    assert size > 15e6
    assert findings <= size / 1e6


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "key=", 'password="', "-eyJ", "sk-ant-", "tokens: [", "-----BEGIN RSA PRIVATE KEY-----\n", "-----END RSA PRIVATE KEY-----\n",
        "a", "A/", "\\", "\\n", '\\"', "%25", "\n", " ", "curl ", "echo a ", "a://x:", '"name": "password", ', "<password ",
        '"token" { ', "authorization: ", "cookie: a=aaaaaaaaa; ", "1|", "password for ", "secret key ", "&amp;", "a" * 70 + "\n",
        "abc1\\\n", "a:5432:", "echo x | sudo ", "AKIA" + "A" * 16 + " ", "密码", "PuTTY-User-Key-File-2:", "QUJD" * 15 + "\n",
        "-----BEGIN PRIVATE KEY-----\n" + ("A" * 64 + "\n") * 3, "a.", "MIIEo",
        "password: ab1 cd2 ", "wg genkey\nabcd1", "login <<< ", "sudo -S <<EOF\n", " \\\n", "ssh-keygen -N 'a b ", "pass: 'a ",
        "<(echo a1", "password={'a1b2c3d4',", "a/b:1:QUJD\n", "> abc1\n", "'sudo', '-S', input='",
        "password,token\n", "insert into t (password) values ('a1b2c3d4') ", "redis> auth a1", "login a/b1 ", "echo a | secret put ",
    ],
)  # fmt: skip
def test_cost_grows_as_the_length(unit: str) -> None:
    """Four times the text costs about four times as much, whatever is in it; a square would be sixteen times."""

    def seconds(size: int) -> float:
        text = (unit * (size // len(unit) + 1))[:size]
        best = float("inf")
        for _ in range(3):
            begin = time.process_time()
            find_secrets(text)
            best = min(best, time.process_time() - begin)
        return best

    assert seconds(40_000) < 10 * seconds(10_000) + 0.005


def test_what_was_found_is_not_lost_in_a_long_text() -> None:
    rng = random.Random(SEED)
    code = Path(json.decoder.__file__).read_text()
    texts = [text for text, _ in shapes(SEED).values() if "\n" not in text]
    cores = [core for text, found in shapes(SEED).values() if "\n" not in text for core in found]
    rng.shuffle(texts)
    out = Redactor().text("\n\n".join(f"{code[i * 20 : i * 20 + 200]}\n\n{text}" for i, text in enumerate(texts)))
    left = [core for core in cores if core in out]
    assert len(left) <= len(cores) // 100, left


PLUGINS = {
    "artifactory.ArtifactoryDetector", "aws.AWSKeyDetector", "azure_storage_key.AzureStorageKeyDetector", "basic_auth.BasicAuthDetector",
    "github_token.GitHubTokenDetector", "gitlab_token.GitLabTokenDetector", "jwt.JwtTokenDetector", "mailchimp.MailchimpDetector",
    "npm.NpmDetector", "openai.OpenAIDetector", "pypi_token.PypiTokenDetector", "sendgrid.SendGridDetector", "slack.SlackDetector",
    "softlayer.SoftlayerDetector", "square_oauth.SquareOAuthDetector", "stripe.StripeDetector", "telegram_token.TelegramBotTokenDetector",
    "twilio.TwilioKeyDetector", "cloudant.CloudantDetector", "discord.DiscordBotTokenDetector", "ibm_cloud_iam.IbmCloudIamDetector",
    "ibm_cos_hmac.IbmCosHmacDetector", "keyword.KeywordDetector",
}  # fmt: skip
OTHERS = {
    "npm": "//registry.npmjs.org/:_authToken=npm_" + "aB3d5F7h9" * 4,
    "square": "sq0csp-" + "aB3_" * 10 + "x9Z",
    "softlayer": "sl_api_key = '" + "0a1b2c3d" * 8 + "'",
    "cloudant": "https://bob:" + "0a1b2c3d" * 8 + "@bob.cloudant.com",
    "discord": "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ." + "ZnCjm1XVW7vRze4b7Cq4se7kKWs",
    "ibm-iam": "ibm_cloud_iam_api_key = '" + "aB3-" * 11 + "'",
    "ibm-cos": "cos_hmac_secret_access_key = '" + "0a1b2c3d" * 6 + "'",
}


@pytest.mark.slow
@pytest.mark.parametrize("plugin", sorted(PLUGINS))
def test_what_detect_secrets_finds(plugin: str) -> None:
    """Each value that a detector of detect-secrets finds among our shapes is gone from what we send."""
    pytest.importorskip("detect_secrets")
    module, _, name = plugin.partition(".")
    detector = getattr(importlib.import_module(f"detect_secrets.plugins.{module}"), name)()
    found, left = 0, []
    texts = {key: text for key, (text, _) in shapes(SEED).items()} | OTHERS
    for key, text in texts.items():
        out = Redactor().text(text)
        for line in text.splitlines():
            for told in detector.analyze_line(filename="a.py", line=line, line_number=1):
                value = told.secret_value or ""
                found += 1
                # The detector of keywords tells words as well, and takes what stands around a value for a part of it.
                whole = [
                    word
                    for word in value.replace('"', " ").replace("'", " ").split()
                    if sum(map(str.isdigit, word)) >= 2
                ]
                left += [(key, word) for word in (whole if name == "KeywordDetector" else [value]) if word in out]
    assert found > 0
    assert not left
