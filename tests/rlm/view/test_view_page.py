"""What is served and what is written: no browser needed."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from view_lines import head, write

from rlm import RLMError
from rlm.cli.commands import app
from rlm.view.feed import RowFeed
from rlm.view.page import ViewServer, export, run_page

cli = CliRunner()


def get(server: ViewServer, path: str, **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
    link = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    link.request("GET", path, headers=headers)
    reply = link.getresponse()
    body = reply.read()
    link.close()
    return reply.status, reply.headers, body


def hashes(html: str, tag: str) -> list[str]:
    """Of the elements that a browser would obey."""
    found = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.S)
    return [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in found]


def test_the_policy_names_what_is_there_and_nothing_else(recorded: Path, serving: Callable[[Path], ViewServer]) -> None:
    status, headers, body = get(serving(recorded), "/")
    html = body.decode()
    rules = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
    assert status == 200
    assert rules["default-src"] == "'none'"
    assert [rules["script-src"]] == hashes(html, "script")
    assert [rules["style-src"]] == hashes(html, "style")
    assert "unsafe" not in headers["content-security-policy"]
    assert (rules["connect-src"], rules["frame-ancestors"]) == ("'self'", "'none'")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


def test_the_page_is_in_one_piece() -> None:
    html = run_page().for_server()
    assert "rests on" not in html  # nobody infers what an answer rests on, and least of all without an answer
    assert not re.search(r"https?://", html)
    assert not re.search(r"\b(?:src|href)=\"(?!data:|#)", html)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function", html)
    assert not re.search(r"\son\w+=|style=\"", html)


def test_data_is_given_as_json(recorded: Path, serving: Callable[[Path], ViewServer]) -> None:
    server = serving(recorded)
    assert json.loads(get(server, "/state")[2]) == json.loads(json.dumps(RowFeed(recorded).state()))
    assert [row["turn"] for row in json.loads(get(server, "/state?first=3&generation=0")[2])["rows"]] == [4]
    turn = json.loads(get(server, "/turn?number=1")[2])
    assert turn["response"].startswith("Two places.")
    assert turn["cells"][1]["stdout"] == "2\n"
    call = turn["cells"][1]["calls"][0]
    assert (call["response"], call["model"]) == (call["prompt"].upper(), "gpt-5-nano")
    assert json.loads(get(server, "/prompt?number=1")[2])[0]["role"] == "system"


def test_a_file_that_goes_wrong_later_is_an_error_of_the_page(
    recorded: Path, serving: Callable[[Path], ViewServer]
) -> None:
    server = serving(recorded)
    with recorded.open("a") as file:
        file.write("broken\n")
    status, _, body = get(server, "/state")
    assert (status, "line 6 is not JSON" in json.loads(body)["error"]) == (500, True)
    recorded.unlink()
    assert "there is no trajectory" in json.loads(get(server, "/state")[2])["error"]


def test_a_failed_export_overwrites_nothing(recorded: Path) -> None:
    feed, page = RowFeed(recorded), recorded.with_suffix(".html")
    page.write_text("earlier")
    for target, line, message in ((recorded, "", "is the trajectory itself"), (page, "x\n", "is not JSON")):
        recorded.write_text(before := recorded.read_text() + line)
        with pytest.raises(RLMError, match=message):
            export(feed, target)
        assert (page.read_text(), recorded.read_text()) == ("earlier", before)


def test_a_directory_means_its_newest_run(tmp_path: Path) -> None:
    for name, moment in (("new", 2_000_000_000), ("old", 1_000_000_000)):
        write(tmp_path / f"{name}.jsonl", head(query=f"the {name} one"))
        os.utime(tmp_path / f"{name}.jsonl", (moment, moment))
    (tmp_path / "link").symlink_to("page.html")
    assert cli.invoke(app, ["view", str(tmp_path), "--export", str(tmp_path / "link")]).exit_code == 0
    assert "the new one" in (tmp_path / "page.html").read_text()


def test_what_a_user_can_mend_is_one_line(tmp_path: Path, recorded: Path) -> None:
    (tmp_path / "begun.jsonl").write_text('{"type":"metadata"}')
    cases: list[tuple[list[Any], str]] = [
        ([tmp_path / "begun.jsonl"], "is not a trajectory: it has no complete line yet"),
        ([tmp_path / "none.jsonl"], "there is no trajectory at"),
        ([recorded, "--host", "256.1.1.1"], "cannot serve at 256.1.1.1"),
        ([recorded, "--export", tmp_path / "no" / "page.html"], "No such file or directory"),
    ]
    (tmp_path / "empty").mkdir()
    cases.append(([tmp_path / "empty"], "no file there ends in .jsonl"))
    for arguments, says in cases:
        result = cli.invoke(app, ["view", *map(str, arguments)])
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.output
        assert says in result.stderr
