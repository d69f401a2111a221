"""No secret of any shape, in any place of a record, reaches the archive; and what is none stays."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monocontext.sessions import upload_session
from monocontext.sessions.readers import recognize_session
from monocontext.sessions.redaction import Redactor
from monocontext.stores import open_store
from sessions.agents import Claude, everything

A = "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5zA7bC9dE1fG3hI5jK7"
HEX = "0123456789abcdef" * 4
# Put together here, so that no scanner takes this file for a leak.
SECRETS = {
    "openai": "sk-" + A[:48],
    "openai-project": "sk-proj-" + A,
    "anthropic": "sk-ant-" + "api03-" + A,
    "openrouter": "sk-or-v1-" + HEX,
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "github": "ghp_" + A[:36],
    "github-fine": "github_pat_" + A,
    "gitlab": "glpat-" + A[:20],
    "slack": "xoxb-" + "1234567890-" + A[:24],
    "google": "AIza" + A[:35],
    "google-oauth": "ya29." + A,
    "stripe": "sk_live_" + A[:24],
    "twilio": "SK" + HEX[:32],
    "sendgrid": "SG." + A[:22] + "." + A[:43],
    "mailgun": "key-" + HEX[:32],
    "npm": "npm_" + A[:36],
    "pypi": "pypi-" + "AgEIcHlwaS5vcmc" + A,
    "hugging-face": "hf_" + A[:34],
    "databricks": "dapi" + HEX[:32],
    "digitalocean": "dop_v1_" + HEX,
    "shopify": "shpat_" + HEX[:32],
    "telegram": "123456789:AA" + A[:33],
    "linear": "lin_api_" + A[:40],
    "notion": "ntn_" + A[:46],
    "groq": "gsk_" + A[:52],
    "vault": "hvs." + A[:24],
    "age": "AGE-SECRET-KEY-1" + A.upper(),
    "jwt": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + A[:43],
    "pem": "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow" + A + "\n" + A + "\n-----END RSA PRIVATE KEY-----",
    "bearer": "Authorization: Bearer " + A[:30],
    "basic": "authorization: Basic " + "dXNlcjpwYXNzd29yZDEyMw==",
    "url": "postgres://dev:" + A[:12] + "@db.internal/x",
    "env": "STRIPE_WEBHOOK_SECRET=" + A[:20],
    "env-quoted": 'export DB_PASSWORD="' + A[:14] + '"',
    "json": '{"client_secret": "' + A[:20] + '"}',
    "azure": "AccountKey=" + A + "==",
    "curl": "curl -s -u dev:" + A[:16] + " https://x",
    "yaml": "client-secret: " + A[:20],
    "netrc": "machine api.acme.test login dev password " + A[:12],
    "pgpass": "db.internal:5432:prod:app:" + A[:12],
    "sshpass": "sshpass -p '" + A[:12] + "' ssh dev@host",
    "docker-auth": '{"auths": {"ghcr.io": {"auth": "' + "Ym9iOlJPY3kwNWx5cnY5" + '"}}}',
    "kubeconfig": "client-key-data: "
    + base64.b64encode(b"-----BEGIN EC " + b"PRIVATE KEY-----\nMHcCAQEEI" + A.encode()).decode(),
    "base64": base64.b64encode(f"user dev, key sk-{A[:48]}, and more".encode()).decode(),
    "base64-lines": base64.encodebytes(f"{'many words ' * 9}ghp_{A[:36]} {'and more ' * 9}".encode()).decode(),
    "url-encoded": "https://acme.test/?q=please%20use%20ghp_" + A[:36],
    "url-encoded-url": "next=postgres%3A%2F%2Fdev%3A" + A[:12] + "%40db.internal%2Fx",
    "url-with-at": "postgres://dev:" + A[:5] + "@" + A[5:12] + "@db.internal/x",
    "env-with-spaces": 'DB_PASSWORD="correct horse battery staple"',
    "bcrypt": "$2b$12$" + A[:53],
    "figma": "figd_" + A[:40],
    "airtable": "pat" + A[:14] + "." + HEX,
    "pinecone": "pcsk_" + A[:6] + "_" + A[:50],
    "langsmith": "lsv2_pt_" + HEX[:32] + "_" + HEX[:10],
    "cerebras": "csk-" + A[:48],
    "nvidia": "nvapi-" + A,
    "fireworks": "fw_" + A[:22],
    "tailscale": "tskey-auth-" + A[:12] + "-" + A[:32],
    "ngrok": "ngrok config add-authtoken " + A[:27] + "_" + A[:21],
    "rails": "secret_key_base: " + HEX * 2,
}
# What of it must not be found anywhere: the part that opens the door.
CORES = {
    "pem": A, "bearer": A[:30], "basic": "dXNlcjpwYXNzd29yZDEyMw==", "url": A[:12], "env": A[:20],
    "env-quoted": A[:14], "json": A[:20], "azure": A, "curl": A[:16], "yaml": A[:20],
    "netrc": A[:12], "pgpass": A[:12], "sshpass": A[:12], "docker-auth": "Ym9iOlJPY3kwNWx5cnY5",
    "kubeconfig": "QUklWQVRFIEtFWS0t", "base64": "hQjNkRTVmRzdoSTlqSzFs", "base64-lines": "Z2hwX2FCM2RF",
    "url-encoded": A[:36], "url-encoded-url": A[:12], "url-with-at": A[5:12], "env-with-spaces": "horse",
    "ngrok": A[:27], "rails": HEX,
}  # fmt: skip


def _escape(secret: str) -> str:
    """As JSON text whose every letter is an escape."""
    return "".join(f"\\u{ord(c):04x}" for c in secret)


PLACES: dict[str, Callable[[Claude, str], object]] = {
    "prompt": lambda s, x: s.user(f"use {x} please"),
    "answer": lambda s, x: s.says(f"I use {x}."),
    "tool-call": lambda s, x: s.calls("Bash", {"command": f"run {x}", "deep": [{"er": x}]}),
    "tool-result": lambda s, x: s.result(f"before\n{x}\nafter"),
    "tool-result-block": lambda s, x: s.result([{"type": "text", "text": x}]),
    "twin": lambda s, x: s.result("ok", toolUseResult={"stdout": x, "file": {"content": x}}),
    "json-in-text": lambda s, x: s.result(json.dumps({"out": json.dumps({"deeper": x})})),
    "escapes-in-text": lambda s, x: s.result(f'{{"out": "{_escape(x)}"}}'),
    "coloured": lambda s, x: s.result(f"\x1b[32m{x}\x1b[0m"),
    "queue": lambda s, x: s.bare(type="queue-operation", operation="remove", content=x),
    "title": lambda s, x: s.bare(type="summary", summary=f"About {x}", leafUuid="l"),
    "unknown-type": lambda s, x: s.bare(type="hologram", data={"a": [x]}),
    "field-name": lambda s, x: s.calls("Write", {x: 1}),
    "signature-of-a-tool": lambda s, x: s.calls("Sign", {"signature": x, "id": x, "uuid": x}),
}


@pytest.mark.parametrize("place", PLACES)
def test_no_secret_in_the_bucket(tmp_path: Path, place: str) -> None:
    session = Claude()
    for secret in SECRETS.values():
        PLACES[place](session, secret)
    store = open_store(tmp_path / "archive")
    report = upload_session(store, recognize_session(session.write(tmp_path)))
    kept = everything(store)
    cores = {name: CORES.get(name, secret) for name, secret in SECRETS.items()}
    assert not [name for name, core in cores.items() if core.encode() in kept or _escape(core).encode() in kept]
    assert len({finding.line for finding in report.findings}) == len(SECRETS)
    assert sum(report.counts.values()) >= len(SECRETS)


def test_a_broken_line_hides_none(tmp_path: Path) -> None:
    session = Claude()
    session.user("Hello")
    tail = "".join(f'{{"type":"user","x":{json.dumps(secret)}\n' for secret in SECRETS.values())
    store = open_store(tmp_path / "archive")
    report = upload_session(store, recognize_session(session.write(tmp_path, tail)))
    kept = everything(store)
    assert not [name for name, secret in SECRETS.items() if CORES.get(name, secret).encode() in kept]
    assert len(report.problems) == len(SECRETS)


def test_the_report_says_where_and_not_what(tmp_path: Path) -> None:
    session = Claude()
    session.user("Hello")
    session.calls("Bash", {"command": SECRETS["github"]})
    report = upload_session(open_store(tmp_path / "a"), recognize_session(session.write(tmp_path)), dry_run=True)
    (finding,) = report.findings
    assert (finding.kind, finding.line, finding.where) == ("github", 2, "message.content.0.input.command")
    assert SECRETS["github"] not in repr(report)
    assert list(open_store(tmp_path / "a").list()) == []


def test_what_ties_records_together_stays() -> None:
    signature = "ErUB" + SECRETS["openai"]
    record: dict[str, Any] = {
        "uuid": SECRETS["github"],
        "parentUuid": SECRETS["npm"],
        "sessionId": SECRETS["jwt"],
        "requestId": SECRETS["google"],
        "message": {
            "id": SECRETS["stripe"],
            "content": [{"type": "thinking", "thinking": "hm", "signature": signature}],
        },
    }
    assert Redactor().record(record) == record


def test_what_is_no_secret_stays() -> None:
    texts = [
        "task-abcdefghijklmnopqrstuvwxyz",
        "sorted(rows, key=lambda row: row.n)",
        "token = next(tokens)",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "d41d8cd98f00b204e9800998ecf8427e",
        "max_tokens=4096 and cache_key: x",
        "API_KEY=$API_KEY and TOKEN=<your token>",
        "git clone git@github.com:acme/api.git https://github.com/acme/api",
        "the password is asked for at the door",
        "a: b; c, the secret of the garden",
        "84ede0c3-0000-4000-8000-000000000001",
        "def authorization(self): return self.bearer",
        "sha512-" + base64.b64encode(bytes(range(64))).decode(),
        base64.b64encode(b"only words, and no secret at all among them").decode(),
        base64.b64encode(bytes(range(256)) * 20).decode(),
        "https://acme.test/a%20b?x=1%2F2&page=100%25",
        "main.c:5432:12:warning:unused and tests/a.py:5432:error:b:c",
        "it costs $1 or $5 a month; echo $1$2",
    ]
    redactor = Redactor()
    assert [redactor.text(text) for text in texts] == texts
    assert redactor.findings == []


def test_pictures_are_a_word(tmp_path: Path) -> None:
    session = Claude()
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo" * 1000}
    session.user([{"type": "image", "source": source}], toolUseResult={"file": {"base64": "iVBORw0KGgo" * 1000}})
    store = open_store(tmp_path / "archive")
    upload_session(store, recognize_session(session.write(tmp_path)))
    kept = everything(store)
    assert b"iVBORw0KGgoiVBOR" not in kept
    assert b"[picture: image/png, 8,250 bytes]" in kept


def test_patterns_of_the_user_and_none_at_all(tmp_path: Path) -> None:
    session = Claude()
    session.user(f"Our codename is BLUEBIRD-42 and {SECRETS['github']}")
    file = recognize_session(session.write(tmp_path))
    store = open_store(tmp_path / "a")
    report = upload_session(store, file, patterns=[r"BLUEBIRD-\d+"])
    assert report.counts == {"custom": 1, "github": 1}
    assert b"BLUEBIRD" not in everything(store)
    plain = open_store(tmp_path / "b")
    assert upload_session(plain, file, redact=False).counts == {}
    assert SECRETS["github"].encode() in everything(plain)
    assert b'"is_redacted": false' in everything(plain)


def test_placeholders_are_not_redacted_again() -> None:
    redactor = Redactor()
    once = redactor.text("\n".join(SECRETS.values()))
    again = Redactor()
    assert again.text(once) == once
    assert again.findings == []


@pytest.mark.parametrize(
    "text",
    [
        'log in with password=3D"Zk9vQ2xR7tLm4Wp" today',  # mail in quoted-printable
        "password&#x3d;Zk9vQ2xR7tLm4Wp",
        "password&#61;Zk9vQ2xR7tLm4Wp;",
        "password&equals;&quot;Zk9vQ2xR7tLm4Wp&quot;",
        'pass\u200bword = "Zk9vQ2xR7tLm4Wp"',
        'password\ufeff: "Zk9vQ2xR7tLm4Wp"',
    ],
)
def test_a_name_in_another_form_gives_its_password_away(text: str) -> None:
    assert "Zk9vQ2xR7tLm4Wp" not in Redactor().text(text)


@pytest.mark.parametrize("unseen", "\u00ad\u200b\u200d\u2060\ufeff")
def test_a_token_with_a_character_that_has_no_width_goes(unseen: str) -> None:
    token = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vX7zB9dF1hJ3lN5"
    out = Redactor().text(f"my token is {token[:12]}{unseen}{token[12:]}, ok")
    assert token[:12] not in out
    assert token[12:] not in out
