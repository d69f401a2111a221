"""Secrets are taken out, whatever is around them; what is none stays; a text costs its length."""

from __future__ import annotations

import json
import random
import re
import time
from pathlib import Path

import pytest

from monocontext.sessions import secret_field_patterns as patterns
from monocontext.sessions.redaction import Redactor
from monocontext.sessions.secret_field_patterns import FieldPattern
from monocontext.sessions.secret_phrases import PHRASES, Phrase
from monocontext.sessions.secret_search import find_secrets, shape_of
from monocontext.sessions.secret_tokens import PIECES, SHAPELESS
from tests.sessions.secret_texts import IN_SENTENCES, INNOCENT, TEXTS, TOKENS, fill, survives

SEED = 11
EXAMPLES = {"SECRET": "k7qd2vz6mwx4t5rjb3fh", "HEX": "3f9a1c7e5b2d8f60" * 2, "TWELVE WORDS": "able " * 11 + "able"}
INNOCENTS = [line.replace("\\n", "\n") for line in INNOCENT.strip().splitlines()]


def test_recall() -> None:
    """At least 97 % of the texts, plain and as JSON in a tool's result, have lost each of their secrets whole."""
    rng = random.Random(SEED)
    missed, count = [], 0
    for kind, template in TEXTS:
        for form in (str, str, json.dumps):
            text, pieces = fill(template, rng)
            assert pieces, kind
            content = [{"type": "tool_result", "tool_use_id": "t", "content": f"I looked:\n{form(text)}\nand so on."}]
            record = {"type": "user", "message": {"role": "user", "content": content}}
            out = Redactor().record(record)["message"]["content"][0]["content"]
            count += 1
            missed += [(kind, text)] * any(survives(piece, out) for piece in pieces)
    assert len(missed) <= 0.03 * count, missed


def with_secrets(template: str) -> str:
    return re.sub("|".join(EXAMPLES), lambda mark: EXAMPLES[mark[0]], template)


@pytest.mark.parametrize("row", PHRASES + PIECES + SHAPELESS, ids=lambda row: row.example)
def test_the_example_of_a_pattern(row: Phrase) -> None:
    """Where one of its words is, it finds the secret in the example, and nothing in the near miss."""
    spans = []
    for text in (with_secrets(row.example), with_secrets(row.near_miss)):
        offsets = {
            match.start() for word in row.words or [""] for match in re.finditer(re.escape(word), text, re.IGNORECASE)
        }
        spans.append([text[a:b] for offset in offsets for a, b, _ in shape_of(row)(text, offset)])
    assert any(secret in span for span in spans[0] for secret in EXAMPLES.values())
    assert not spans[1]


@pytest.mark.parametrize("name", [name for name, row in vars(patterns).items() if isinstance(row, FieldPattern)])
def test_the_example_of_a_field_pattern(name: str) -> None:
    """It matches from end to end, with the secret in the value; the near miss does not."""
    row: FieldPattern = getattr(patterns, name)
    match = row.regex.fullmatch(with_secrets(row.example))
    assert match
    assert "SECRET" not in row.example or EXAMPLES["SECRET"] in match["value"]
    assert not row.regex.fullmatch(with_secrets(row.near_miss))


@pytest.mark.parametrize(
    "provider", [line.partition(" ") for line in TOKENS.strip().splitlines()], ids=lambda row: row[0]
)
def test_tokens_of_providers(provider: tuple[str, str, str]) -> None:
    """A token alone in a sentence is taken out: at least 97 % of ten tokens of each provider's in each place."""
    rng = random.Random(SEED)
    missed, count = [], 0
    for template in provider[2].split():
        for place in IN_SENTENCES * 3:
            token, pieces = fill(template, rng)
            out = Redactor().text(place.format(token))
            count += 1
            missed += [(place, token, out)] * any(len(piece) > 7 and survives(piece, out) for piece in pieces)
    assert len(missed) <= 0.03 * count, missed[:5]


def test_innocent_texts_stay() -> None:
    rng = random.Random(SEED)
    texts = [fill(line, rng)[0] for line in INNOCENTS for _ in range(5)]
    shown = [form(text) for text in texts for form in (str, json.dumps, "+{}".format, "I saw {} there".format)]
    assert len(shown) >= 540
    assert [(text, found) for text in shown if (found := Redactor().text(text)) != text] == []


@pytest.mark.slow
def test_source_code_stays() -> None:
    """At most two findings for each MB of a part of the standard library, most of them examples of passwords."""
    files = [path for path in Path(json.__file__).parents[1].rglob("*.py") if "site-packages" not in path.parts]
    texts = [path.read_text(errors="replace") for path in sorted(files)[::10]]
    size, findings = sum(map(len, texts)), sum(len(find_secrets(text)) for text in texts)
    assert size > 1.5e6
    assert findings <= size / 0.5e6


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "key=", 'password="', "-eyJ", "sk-ant-", "tokens: [", "-----BEGIN RSA PRIVATE KEY-----\n", "-----END RSA PRIVATE KEY-----\n",
        "a", "A/", "\\", "\\n", '\\"', "%25", "\n", " ", "curl ", "echo a ", "a://x:", '"name": "password", ', "<password ",
        '"token" { ', "authorization: ", "cookie: a=aaaaaaaaa; ", "1|", "password for ", "secret key ", "a" * 70 + "\n", "abc1\\\n",
        "a:5432:", "echo x | sudo ", "AKIA" + "A" * 16 + " ", "密码", "PuTTY-User-Key-File-2:", "QUJD" * 15 + "\n", "a.", "MIIEo",
        "-----BEGIN PRIVATE KEY-----\n" + ("A" * 64 + "\n") * 3, "password: ab1 cd2 ", "wg genkey\nabcd1", "login <<< ", "sudo -S <<EOF\n",
        " \\\n", "ssh-keygen -N 'a b ", "pass: 'a ", "<(echo a1", "password={'a1b2c3d4',", "a/b:1:QUJD\n", "> abc1\n", "'sudo', '-S', input='",
        "redis> auth a1", "login a/b1 ", "echo a | secret put ", "a_key_", "sk_a_", "+ASt", "a" * 60 + "JQQJ99", "signature=", "ab_pat_a1b2",
        '"password",\n"', "password a1&b2&", "password=a1&", "<password>a b ", "password>a ", "password 7 a1b2c3 ", "abcdefghijkl1\na1b2\n", "key=a.",
    ],
)  # fmt: skip
def test_cost_grows_as_the_length(unit: str) -> None:
    """Four times the text costs about four times as much, whatever is in it; a square would be sixteen times."""

    def seconds(size: int) -> float:
        text = (unit * (size // len(unit) + 1))[:size]
        best = float("inf")
        for _ in range(2):
            begin = time.process_time()
            find_secrets(text)
            best = min(best, time.process_time() - begin)
        return best

    assert seconds(20_000) < 10 * seconds(5_000) + 0.005


def test_a_long_text_hides_none() -> None:
    rng = random.Random(SEED)
    code = Path(json.decoder.__file__).read_text()
    filled = [fill(template, rng) for _, template in TEXTS if "\n" not in template]
    out = Redactor().text("\n\n".join(f"{code[i * 20 : i * 20 + 200]}\n\n{text}" for i, (text, _) in enumerate(filled)))
    left = [piece for _, pieces in filled for piece in pieces if survives(piece, out)]
    assert len(left) <= 0.03 * len(filled), left


PASSWORD_NAMES = [
    "password", "Password", "DB_PASSWORD", "dbPassword", "passphrase", "secret_phrase", "Passwort", "contraseña",
    "пароль", "密码",
]  # fmt: skip
BARE_FORMS = (
    "{}: {}", "{}={}", "export {}={}", "db:\n  {}: {}\n  port: 1", "the {} is {} and it works", "(the {}: {})", "| {} | {} |",
    "use {} {} for that", " {} 7 {}\n login local", "cmd --{} {} --x", "cmd --{}={} --x", "Server=a;{}={};Encrypt=yes", "# {}: {}\n",
    "curl -H '{}: {}' https://h.test", "https://h.test/a?u=1&{}={}&z=2", "Log in as bob, {}: {}, then go on", "+{}: {}\n-x",
)  # fmt: skip
QUOTED_FORMS = (
    '{}: "{}"', "{} = '{}'", '{{"user": "bob", "{}": "{}"}}', '{}: str = "{}"', '"name": "{}", "value": "{}"',
    'd["{}"] = "{}"', "- **{}**: `{}`", "const {} = '{}';", "<{0}>{1}</{0}>", "<key>{}</key>\n<string>{}</string>",
)  # fmt: skip


@pytest.mark.parametrize("name", PASSWORD_NAMES)
def test_a_password_is_taken_out_whole(name: str) -> None:
    """A password of signs or of words, in every place of a text: no part of it stays."""
    bare = [(form, value) for form in BARE_FORMS for value in ("Tr0ub4dor&3xyz", "0822455D0A16")]
    quoted = [
        (form, value) for form in QUOTED_FORMS for value in ("Tr0ub4dor&3xyz", "blue moon river", "sunny garden 1987")
    ]
    for form, value in bare + quoted:
        out = Redactor().text(form.format(name, value))
        assert not [piece for piece in value.replace("&", " ").split() if piece in out], out


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Wi-Fi password: sunny garden 1987\nthen go on", "sunny garden 1987"),
        ("username bob password 7 0822455D0A16", "0822455D0A16"),
        ('{"password": 314214987253}', "314214987253"),
        ("enable secret 5 $1$mERr$hx5rVt7rPNoS4wqbXKX7m0", "$1$mERr$hx5rVt7rPNoS4wqbXKX7m0"),
        ("access_key_id: 7fK2mQ9xLp0ZvB3nRt", "7fK2mQ9xLp0ZvB3nRt"),
        ('"Name": "/db/password",\n  "Type": "SecureString",\n  "Value": "Tr0ub4dor"', "Tr0ub4dor"),
        ('{"name": "DB_PASSWORD", "value": "data-7fK2mQ9xLp0Z"}', "data-"),
        ('{"name": "DB_PASSWORD", "type": "plain_text", "value": "Tr0ub4dor"}', "Tr0ub4dor"),
        (f'{{"kty": "RSA", "d": "{"k3Jd92hsKq8LmZ0p" * 9}", "p": "{"7fK2mQ9xLp0ZvB3n" * 6}"}}', "Lp0ZvB3n"),
        ('{"d": "k3Jd92hsKq8LmZ0pk3Jd92hsKq8LmZ0p", "kty": "EC"}', "Kq8LmZ0p"),
        ("unzip -P Tr0ub4dor a.zip", "Tr0ub4dor"),
        ('os.getenv("DB_PASSWORD",\n    "data-7fK2mQ9xLp0Z")', "data-"),
        ("define( 'DB_PASSWORD', 'Tr0ub4dor' );\ndb.auth('admin', 'Tr0ub4dor')", "Tr0ub4dor"),
        ("SECRET_KEY = 'g7%r(=d5tx1&5(m$tj%2l(y7)q11o0+8n84s7s$t^oiqg*)um('", "d5tx1"),
        ("ghp_a9QyOuR7fK2mQ9xLp0ZvB3nRtk3Jd92hsKq8", "k3Jd92hs"),
        ("gho_xukBjzlErLQMkubUUWULPhgmOIVQpxcqkVNd", "ULPhgmOI"),
        ("curl -d 'u=1&token=k3Jd92hsKq8L&page=2' https://h.test", "k3Jd92hsKq8L"),
        (f"?access_key_id={'k3Jd92hsKq8LmZ0p' * 7}.abcd.efgh.x.y{'Kq8LmZ0p' * 6}&z=2", "Kq8LmZ0p"),
    ],
)  # fmt: skip
def test_values_of_other_forms(text: str, secret: str) -> None:
    assert secret not in Redactor().text(text)


@pytest.mark.parametrize("before", ["", "hello\n", "the key is\n"])
@pytest.mark.parametrize("width", [20, 40, 60])
def test_a_token_that_a_terminal_cut_goes_whole(before: str, width: int) -> None:
    """The lines around it are no part of it, so they do not hide it."""
    token, _ = fill("sk-ant-api03-<<url:93>>AA", random.Random(SEED))
    lines = [token[i : i + width] for i in range(0, len(token), width)]
    out = Redactor().text(before + "\n".join(lines) + "\nworld\nagain\n")
    assert not [line for line in lines if line in out]
