"""No secret, in any place of a record, reaches the archive; and what ties records together stays."""

from __future__ import annotations

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

BODY = "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5zA7b"
# Put together here, so that no scanner takes this file for a leak.
SECRETS = {
    "github": "ghp_" + BODY[:36], "aws": "AKIA" + "QW3RTYUIOPASDFGH",
    "url": "postgres://dev:" + BODY[:12] + "@db.internal/x", "env": "STRIPE_WEBHOOK_SECRET=" + BODY[:20],
    "pem": "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow" + BODY + "\n" + BODY + "\n-----END RSA PRIVATE KEY-----",
    "bearer": "Authorization: Bearer " + BODY[:30],
}  # fmt: skip
CORES = {"pem": BODY, "bearer": BODY[:30], "url": BODY[:12], "env": BODY[:20]}
"""What of it must not be found anywhere, if not the whole."""


def _escape(secret: str) -> str:
    """As JSON text whose every letter is an escape."""
    return "".join(f"\\u{ord(c):04x}" for c in secret)


PLACES: dict[str, Callable[[Claude, str], object]] = {
    "prompt": lambda s, x: s.user(f"use {x} please"),
    "answer": lambda s, x: s.says(f"I use {x}."),
    "tool-call": lambda s, x: s.calls("Bash", {"command": f"run {x}", "deep": [{"er": x}]}),
    "tool-result": lambda s, x: s.result([{"type": "text", "text": f"before\n{x}\nafter"}]),
    "twin": lambda s, x: s.result("ok", toolUseResult={"stdout": x, "file": {"content": x}}),
    "json-in-text": lambda s, x: s.result(json.dumps({"out": json.dumps({"deeper": x})})),
    "escapes-in-text": lambda s, x: s.result(f'{{"out": "{_escape(x)}"}}'),
    "queue": lambda s, x: s.bare(type="queue-operation", operation="remove", content=x),
    "title": lambda s, x: s.bare(type="summary", summary=f"About {x}", leafUuid="l"),
    "unknown-type": lambda s, x: s.bare(type="hologram", data={"a": [x]}),
    "field-name": lambda s, x: s.calls("Write", {x: 1}),
    "broken line": lambda s, x: None,
    "signature-of-a-tool": lambda s, x: s.calls("Sign", {"signature": x, "id": x, "uuid": x}),
}


@pytest.mark.parametrize("place", PLACES)
def test_no_secret_in_the_bucket(tmp_path: Path, place: str) -> None:
    session = Claude()
    session.user("Hello")
    for secret in SECRETS.values():
        PLACES[place](session, secret)
    tail = "".join(f'{{"type":"user","x":{json.dumps(secret)}\n' for secret in SECRETS.values())
    store = open_store(tmp_path / "archive")
    report = upload_session(store, recognize_session(session.write(tmp_path, tail * (place == "broken line"))))
    kept = everything(store)
    cores = {name: CORES.get(name, secret) for name, secret in SECRETS.items()}
    assert not [name for name, core in cores.items() if core.encode() in kept or _escape(core).encode() in kept]
    assert len({finding.line for finding in report.findings}) == len(SECRETS)
    assert len(report.problems) == len(SECRETS) * (place == "broken line")


def test_the_report_says_where_and_not_what(tmp_path: Path) -> None:
    session = Claude()
    session.user("Hello")
    session.calls("Bash", {"command": SECRETS["github"]})
    report = upload_session(open_store(tmp_path / "a"), recognize_session(session.write(tmp_path)), dry_run=True)
    (finding,) = report.findings
    assert (finding.kind, finding.line, finding.where) == ("github", 2, "message.content.0.input.command")
    assert SECRETS["github"] not in repr(report)
    assert list(open_store(tmp_path / "a").list()) == []


def test_fields_of_a_tool_call() -> None:
    """Names of fields and the lists under them tell as much as names in a text."""
    token = "q8Zk3vN0bX5tR7wL2mC9"
    record = {"type": "assistant", "message": {"content": [{"type": "tool_use", "input": {
        "tokens": [token + "a", token + "b"], "dbPassword": "hunter2hunter", "max_tokens": "4096",
        "pin_password": 314214987253, "headers": {"Cookie": f"lang=en; sid={token}"},
        "env": [{"name": "API_TOKEN", "value": token + "c"}, {"Key": "API_TOKEN", "Value": token},
                {"ParameterKey": "DbPassword", "ParameterValue": "hunter2hunter"}], "key": "row-1",
    }}]}}  # fmt: skip
    out = json.dumps(Redactor().record(record))
    assert not [secret for secret in (token, "hunter2hunter", "314214987253") if secret in out]
    assert '"max_tokens": "4096"' in out
    assert '"key": "row-1"' in out


def test_a_secret_that_is_one_argument_takes_no_others_with_it() -> None:
    cookie, password = "--cookie=session=Zk93hfQ2mx81LpVw77", "me:Xk29fj3lq8"
    clean = Redactor().record({"command": ["curl", cookie, "-u", password, "https://host/path", "-o", "out.html"]}, 1)
    marks = ["--cookie=[REDACTED:cookie]", "-u", "[REDACTED:command-password]"]
    assert clean == {"command": ["curl", *marks, "https://host/path", "-o", "out.html"]}


@pytest.mark.parametrize(
    ("items", "secret"),
    [
        (["curl", "-u", "bob:Zx9kq21!", "https://h.test"], 2), (["mysql", "-u", "root", "-pTr0ub4dor&3"], 3),
        (["docker", "login", "-p", "correct horse"], 3), (["deploy", "--password", "Tr0ub4dor&3"], 2),
        (["DB_PASSWORD", "Tr0ub4dor&3"], 1), (["rg", "-n", "password", "src"], None), (["password", "email"], None),
        (["-password = ask()", "+password:", "+ab12cd34"], None),
        (["python", "-c", "import os\nprint(os.environ['API_KEY'])"], None),
    ],
)  # fmt: skip
def test_the_arguments_of_a_command_are_read_as_one(items: list[str], secret: int | None) -> None:
    out = Redactor().record({"payload": {"action": {"command": items}}})["payload"]["action"]["command"]
    assert [i for i, (before, after) in enumerate(zip(items, out, strict=True)) if before != after] == (
        [] if secret is None else [secret]
    )


def test_what_ties_records_together_stays() -> None:
    token = SECRETS["github"]
    record: dict[str, Any] = {
        "uuid": token, "parentUuid": token, "sessionId": token, "requestId": token,
        "message": {"id": token, "content": [{"type": "thinking", "thinking": "hm", "signature": "ErUB" + token}]},
    }  # fmt: skip
    assert Redactor().record(record) == record


@pytest.mark.parametrize("kind", ["thinking", "redacted_thinking"])
def test_a_sealed_block_stays_whole_unless_it_holds_a_secret(kind: str) -> None:
    seal = {"signature" if kind == "thinking" else "data": "ErUBCkYIBxgCIkDq" * 40}

    def clean(**more: Any) -> Any:
        return Redactor().record({"message": {"content": [{"type": kind, **seal, **more}]}})["message"]["content"][0]

    assert clean(thinking="hm", n=[1]) == {"type": kind, **seal, "thinking": "hm", "n": [1]}
    for more in ({"thinking": SECRETS["github"]}, {"deep": [{"x": SECRETS["github"]}]}, {SECRETS["github"]: 1}):
        assert SECRETS["github"] not in json.dumps(out := clean(**more))
        assert seal.items() <= out.items()
    if kind == "redacted_thinking":  # what is encrypted has no token in it
        assert SECRETS["github"] not in json.dumps(clean(data=f"a {SECRETS['github']} b"))


def test_pictures_are_a_word(tmp_path: Path) -> None:
    session = Claude()
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo" * 1000}
    session.user([{"type": "image", "source": source}], toolUseResult={"file": {"base64": "iVBORw0KGgo" * 1000}})
    store = open_store(tmp_path / "archive")
    upload_session(store, recognize_session(session.write(tmp_path)))
    kept = everything(store)
    assert b"iVBORw0KGgoiVBOR" not in kept
    assert b"[picture: image/png, 8,250 bytes]" in kept


@pytest.mark.parametrize("name", ["data", "base64", "image_url", "result"])
def test_a_picture_hides_none(name: str) -> None:
    """Only the field with the picture is replaced; all others of its object are searched."""
    picture = {name: "iVBORw0KGgo" * 50, "type": "image_generation_call", "media_type": SECRETS["github"]}
    block = {**picture, "text": SECRETS["github"], "deep": {"password": "blue moon river"}}
    for record in (block, {"message": {"content": [block]}}, {"payload": {"output": [block]}}, {"message": block}):
        out = json.dumps(Redactor().record(record))
        assert not [secret for secret in (SECRETS["github"], "blue moon river", "iVBOR") if secret in out]
        assert "[picture: of some type, 412 bytes]" in out


def test_a_picture_in_a_message_of_a_chat_is_a_word() -> None:
    pictures = [{"image_url": {"url": "data:image/png;base64," + "iVBORw0KGgo" * 50}}]
    record = {"role": "user", "content": pictures, "data": "The quick brown fox jumps over the lazy dog " * 10}
    marks = [{"image_url": {"url": "[picture: image/png, 412 bytes]"}}]
    assert Redactor().record(record) == {**record, "content": marks}


@pytest.mark.parametrize(
    "outer",
    [
        lambda inner: {"message.content.0": inner}, lambda inner: {"": inner}, lambda inner: {"a": {"message": inner}},
        lambda inner: {"message": {"content": {"0": inner}}}, lambda inner: {"message": {"content.0": inner}},
        lambda inner: {"message": {"content": [[inner]]}},
    ],
)  # fmt: skip
def test_names_of_fields_open_no_door(outer: Callable[[object], dict[str, Any]]) -> None:
    """The fields that stay are those of one place; a name with a dot does not lead there."""
    inner = {"id": SECRETS["github"], "tool_use_id": SECRETS["github"], "uuid": SECRETS["github"]}
    assert SECRETS["github"] not in json.dumps(Redactor().record(outer(inner)))


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


def test_marks_are_not_redacted_again() -> None:
    once = Redactor().text("\n".join(SECRETS.values()))
    again = Redactor()
    assert again.text(once) == once
    assert again.findings == []
