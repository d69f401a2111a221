"""Sessions in cookies are taken out in each form, also quoted in JSON; counters, choices and placeholders stay."""

from __future__ import annotations

import json
import random

import pytest

from monocontext.sessions.redaction import Redactor
from monocontext.sessions.secret_search import find_secrets
from tests.sessions.cookie_shapes import INNOCENT, quoted, texts
from tests.sessions.test_secret_shapes import test_cost_grows_as_the_length as check_cost_of

SESSION = "q8Zk3vN0bX5tR7wL2mC9"


@pytest.mark.parametrize("times", [0, 1, 2])
def test_each_form_with_each_name(times: int) -> None:
    found = texts(random.Random(7))
    assert len(found) > 350
    missed = [(form, session) for form, text, session in found if session[4:16] in Redactor().text(quoted(text, times))]
    assert len(missed) <= len(found) // 200, missed  # a value made at random may look like a word


@pytest.mark.parametrize("times", [0, 1, 2])
def test_cookies_without_a_session_stay(times: int) -> None:
    for text in INNOCENT:
        assert Redactor().text(quoted(text, times)) == quoted(text, times)


def test_names_and_attributes_stay() -> None:
    header = f"Cookie: theme=dark; session={SESSION}; lang=en"
    assert Redactor().text(header) == "Cookie: theme=dark; session=[REDACTED:cookie]; lang=en"


def test_fields_of_a_tool_call() -> None:
    """The fields of a record say what they hold, as the words of a text do."""
    record = {"type": "assistant", "message": {"content": [{"type": "tool_use", "input": {
        "cookies": [{"name": "d", "value": SESSION, "domain": "a1b2c3d4e5f6g7h8.acme.test"}, {"name": "theme", "value": "dark"}],
        "headers": {"Cookie": f"lang=en; session={SESSION}"}, "cookie": {"sid": SESSION, "_ga": "GA1.1.1234567890.1699999999"},
        "har": [{"name": "sessionid", "value": SESSION}, {"name": "Cookie", "value": f"a=b; x={SESSION}"}, {"name": "commit", "value": SESSION}],
    }}]}}  # fmt: skip
    out = Redactor().record(record)["message"]["content"][0]["input"]
    assert out["cookies"] == [
        {"name": "d", "value": "[REDACTED:cookie]", "domain": "a1b2c3d4e5f6g7h8.acme.test"},
        {"name": "theme", "value": "dark"},
    ]
    assert out["headers"] == {"Cookie": "lang=en; session=[REDACTED:cookie]"}
    assert out["cookie"] == {"sid": "[REDACTED:cookie]", "_ga": "GA1.1.1234567890.1699999999"}
    assert [each["value"] for each in out["har"]] == ["[REDACTED:cookie]", "a=b; x=[REDACTED:cookie]", SESSION]


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "cookie: ", "cookies = [", "cookies={'a': ", "Cookie: a=b; ", "curl -b ", "curl ", '{"value": "', "\tTRUE\t0\ta\t", "^@", "\0", "a\0",
        '"name": "a", "value": "aaaaaaaaaaaaaaaaaa1",', "cookies:\n  a: b\n", "login a ", "auth -x ", "random_password ", "config set ",
    ],
)  # fmt: skip
def test_cost_grows_as_the_length(unit: str) -> None:
    check_cost_of(unit)


KEY, PASSWORD = "ghp_aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5", "hunter2hunter"
WIDE = f"# set it\r\n$env:GITHUB_TOKEN = '{KEY}'\r\nDB_PASSWORD={PASSWORD}\r\nCookie: a=b; session={SESSION}\r\n"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("read", ["latin-1", "utf-8", "swapped", "caret", "repr"])
def test_text_in_another_encoding(encoding: str, read: str) -> None:
    """What PowerShell writes, read in another encoding: letters with NULs between them, or with swapped bytes."""
    data = WIDE.encode(encoding)
    if read == "swapped":
        if "32" in encoding:
            pytest.skip("letters of UTF-32 are no letters of UTF-16")
        text = data.decode("utf-16-be" if encoding != "utf-16-be" else "utf-16-le")
    else:
        text = {"caret": data.decode("latin-1").replace("\0", "^@"), "repr": repr(data)}.get(read) or data.decode(
            read, "replace"
        )
    for times in (0, 1):
        out = Redactor().text(quoted(f"before {text} after", times))
        for _ in range(times):
            out = json.loads(out)["output"]
        assert out.startswith("before ")
        assert out.endswith(" after")
        plain = out.encode("utf-16-be" if encoding != "utf-16-be" else "utf-16-le").decode("latin-1")
        for shown in (plain, out):
            bare = shown.replace("\0", "").replace("^@", "").replace("\\x00", "")
            assert not [each for each in (KEY[4:], PASSWORD, SESSION) if each in bare]


def test_places_in_wide_text_are_those_of_the_text() -> None:
    text = "x " + f"key {KEY} end".encode("utf-16-le").decode("latin-1")
    ((start, stop, kind),) = find_secrets(text)
    assert text[start:stop].replace("\0", "") == KEY
    assert kind.startswith("github")
