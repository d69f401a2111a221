"""What a newcomer types first, right and wrong: exit status, stdout and stderr of each, and words for people alone."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from ran import Cli

import rlm.cli.commands


class Row(NamedTuple):
    """A command, and what it leaves behind. An empty part of stdout or stderr: that stream stays empty."""

    command: str
    code: int
    out: str = ""
    err: str = ""


ROWS = [
    Row("monocontext", 2, "", "Usage: monocontext"),
    Row("monocontext --help", 0, "Texts:"),
    Row("monocontext --version", 0, "monocontext "),
    Row("monocontext serch src x", 2, "", "did you mean search?"),
    Row("monocontext sessions lst", 2, "", "did you mean list?"),
    Row("monocontext sessions xyzzy", 2, "", "commands are upload, pull, status, list, show"),
    Row("monocontext grep FATAL app.log", 0, "0005 FATAL disk\n"),
    Row("monocontext grep -n FATAL app.log", 0, "6:0005 FATAL disk\n"),
    Row("monocontext grep app.log FATAL", 2, "", "no text at 'FATAL'; the URL comes last: `monocontext grep FATAL app"),
    Row("monocontext grep clock", 2, "", "expected two arguments, PATTERN and URL"),
    Row("monocontext grep clock src", 0, "src/a.py:    return 'clock'\nsrc/sub/b.py:# clock\n"),
    Row("monocontext grep -w cloc src", 1),
    Row("monocontext grep --column -w clock src", 0, "src/a.py:3:13:    return 'clock'\nsrc/sub/b.py:1:3:# clock\n"),
    Row("monocontext grep -l clock src", 0, "src/a.py\nsrc/sub/b.py\n"),
    Row("monocontext grep -c clock src -g '*.py'", 0, "src/a.py:1\nsrc/sub/b.py:1\n"),
    Row("monocontext grep --cout clock src", 2, "", "--count"),
    Row("monocontext grep [ src", 2, "", "(-F searches for it as plain text)"),
    Row("monocontext grep nowhere src", 1),
    Row("monocontext grep clock nosuch", 2, "", "no text is stored there"),
    Row("monocontext grep clock empty", 2, "", "contains no file to read"),
    Row("monocontext grep clock bin.dat", 2, "", "bin.dat: a binary file; convert it to text first"),
    Row("monocontext grep clock latin.txt", 2, "", ": not utf-8 at byte 2; `monocontext upload --encoding la"),
    Row("monocontext grep clock utf16.txt", 2, "", "UTF-16, not utf-8; `monocontext upload --encoding utf-16"),
    Row("monocontext grep '(?#cost $5)x$' crlf.txt", 0, "one x\r\nthree x\r\n"),
    Row("monocontext grep käse -i 'Übung ordner/Grüße an alle.txt'", 0, "Grüße, Käse\n"),
    Row("monocontext grep clock s3:bkt/x", 2, "", "did you mean s3://bkt/x?"),
    Row("monocontext grep clock s3:/bkt/x", 2, "", "did you mean s3://bkt/x?"),
    Row("monocontext grep clock arn:aws:s3:::bkt/x", 2, "", "did you mean s3://bkt/x?"),
    Row("monocontext grep clock s3://bkt/x", 2, "", "no credentials for s3://bkt/x: set AWS_ACCESS_KEY_ID"),
    Row("monocontext search src 'timeout of a socket'", 0, "src/a.py:1 ("),
    Row("monocontext search 'timeout of a socket' src", 0, "src/a.py:1 ("),
    Row("monocontext search clock", 2, "", "expected WORDS and a URL"),
    Row("monocontext search src app.log", 2, "", "which is the text, 'src' or 'app.log'?"),
    Row("monocontext search src nowhere", 1, "", "note: no passage matches these words\n"),
    Row("monocontext cat src --document a.py --lines 1:2", 0, "import socket\n"),
    Row("monocontext cat src --document b.py", 2, "", "src: no document 'b.py': did you mean sub/b.py?"),
    Row("monocontext cat app.log --lines 2-4", 2, "", "write START:STOP"),
    Row("monocontext cat nosuch", 2, "", "no context at"),
    Row("monocontext info app.log", 0, "  characters  "),
    Row("monocontext outline src", 0, "documents: a.py"),
    Row("monocontext ls-documents src", 0, "sub/b.py"),
    Row("monocontext verify app.log", 2, "", "`monocontext upload app.log FOLDER` creates one"),
    Row("monocontext upload src", 2, "", "expected one or more sources and then a URL, got only 'src'"),
    Row("monocontext upload nosuch mine", 2, "", "nosuch: no such file"),
    Row("monocontext upload src app.log", 2, "", "app.log is a file, but a context is a folder"),
    Row("monocontext upload mixed other", 0, "other: ", "mixed: left out 1 file that is not text: l.txt (not utf-8"),
    Row("monocontext upload s3://b/x mine", 2, "", "`monocontext sync s3://b/x URL` stores its objects as documents"),
    Row("monocontext upload empty nothing", 0, "nothing: 0 characters", "nothing is an empty text"),
    Row("monocontext upload src mine", 0, "mine: "),
    Row("monocontext upload src mine", 2, "", "add to it with `append`, or replace its text (--replace)"),
    Row("monocontext upload fa fb both", 0, "both: "),
    Row("monocontext grep from both", 0, "fa/x.txt:one from fa\nfb/x.txt:two from fb\n"),
    Row("monocontext append app.log mine", 0, "mine: version 2, "),
    Row("monocontext append app.log nosuch", 2, "", "nosuch to append to: `monocontext upload` creates one"),
    Row("monocontext verify mine", 0, "all as recorded"),
    Row("monocontext info mine", 0, "version  2"),
    Row("monocontext gc nosuch", 2, "", "no context at"),
    Row("monocontext gc mine", 0, "2 versions stay"),
    Row("monocontext index nosuch place", 2, "", "found no object to index"),
    Row("monocontext cite mine", 2, "", "Missing argument 'SOURCE'"),
    Row("monocontext update src mine", 2, "", "src' is a folder, not a file of JSON lines"),
    Row("monocontext verify src", 2, "", "src is a plain folder, not a context"),
    Row("monocontext get src", 2, "", "src is a folder: a / at its end fetches everything in it"),
    Row("monocontext get src/", 2, "", "give a directory as TARGET"),
    Row("monocontext rm src", 2, "", "src is a folder: -r removes everything in it"),
    Row("monocontext memory get k mem", 2, "", "no directory 'mem' for a memory"),
    Row("monocontext sessions list", 2, "", "no archive"),
    Row("monocontext hooks install", 2, "", "no archive"),
    Row("monocontext view nosuch", 2, "", "no context at"),
    Row("monocontext view src --host 256.1.1.1", 2, "", "cannot serve"),
    Row("rlm --help", 0, "Commands:"),
    Row("rlm run src", 2, "", "a run needs a CONTEXT and a QUESTION"),
    Row("rlm run src/ q", 2, "", "rlm: no API key: set OPENAI_API_KEY, or give --base-url\n"),
    Row("rlm run src/ q --runner none", 2, "", "rlm: no runner 'none': choose from "),
    Row("rlm run src/ q --base-url 127.0.0.1:9/v1 --model x", 2, "", "base_url must be a URL such as http://"),
    Row("rlm run nosuch q --base-url http://127.0.0.1:9/v1 --model x", 2, "", "nosuch: no such file or directory"),
    Row("rlm run 'a=app.log b=nope' q --base-url http://127.0.0.1:9/v1 --model x", 2, "", "rlm: nope: no such file"),
    Row("rlm run 'a=src a=src' q --base-url http://127.0.0.1:9/v1 --model x", 2, "", "two texts have the same name"),
    Row("rlm batch nosuch.jsonl", 2, "", "Missing argument 'CONTEXT'"),
    Row("rlm view nosuch", 2, "", "there is no trajectory at nosuch"),
    Row("rlm view src", 2, "", "no file there ends in .jsonl"),
]

PRIVATE = re.compile(
    r"Traceback|Exception ignored|(?<![-\w/])(manifest|roots?|generations?|kit|frames?|spans?)\b", re.IGNORECASE
)
"""What no newcomer can know. `--generation` and the like are flags, which the reference explains."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files as people have them, in the working directory, without keys or settings of this machine."""
    files = {
        "app.log": "".join(f"{number:04} {'FATAL disk' if number % 37 == 5 else 'ok'}\n" for number in range(100)),
        "src/a.py": "import socket\ntimeout = 3  # timeout\n    return 'clock'\n",
        "src/sub/b.py": "# clock\n",
        "Übung ordner/Grüße an alle.txt": "Grüße, Käse\n",
        "bin.dat": bytes(range(256)) * 10,
        "latin.txt": "Grüße\nclock\n".encode("latin-1"),
        "utf16.txt": "Grüße\nclock\n".encode("utf-16"),
        "crlf.txt": b"one x\r\ntwo clock\r\nthree x\r\n",
        "fa/x.txt": "one from fa\n",
        "fb/x.txt": "two from fb\n",
        "mixed/a.txt": "clock\n",
        "mixed/l.txt": "Käse\n".encode("latin-1"),
    }
    here = tmp_path / "here"
    for name, data in files.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    (here / "empty").mkdir()
    for name in os.environ:
        if name.startswith(("AWS_", "OPENAI_", "ANTHROPIC_", "MONOCONTEXT_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.chdir(here)
    return here


def test_first_commands(cli: Cli, folder: Path) -> None:
    """In this order, since some store what others read."""
    for row in ROWS:
        program, *words = shlex.split(row.command)
        if program == "monocontext":
            ran = cli(*words)
            code, out, err = ran.code, ran.out, ran.err
        else:
            done = CliRunner().invoke(rlm.cli.commands.app, words, prog_name="rlm")
            code, out, err = done.exit_code, done.stdout, done.stderr
            assert done.exception is None or isinstance(done.exception, SystemExit), row
        assert code == row.code, (row, out, err)
        if "in MONOCONTEXT_PYODIDE; or use --runner docker" in err:
            continue  # nothing confines a process here, which is said first
        for expected, found in (row.out, out), (row.err, err):
            assert expected in found if expected else found == "", (row, out, err)
        assert not PRIVATE.search(out + err), (row, out, err)
        assert err.startswith("Usage: ") or err.count("\n") <= 1 or "runs confined" in err, (row, err)
