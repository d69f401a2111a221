"""What a command line may not do: reach the host, the network or the environment, or take without bound."""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from monocontext import Monocontext, publish

pytest.importorskip("bashkit")
from monocontext.errors import ToolRefusal
from monocontext.text_tools.shell import Shell

SECRET = "the-secret-of-the-host"
READERS = ("cat", "head -1", "tail -1", "grep -r .", "sed -n p", "awk 1", "sort", "wc", "ls -la", "find", "stat", "base64",
           "od -c", "cp -r {} /tmp/x; cat /tmp/x", "ln -s {} /tmp/l; cat /tmp/l", "source", ". ", "xargs cat <", "tac", "cut -c1-99",
           "mapfile -t x <", "diff /dev/null", "strings", "jq . ", "tar cf -", "bash", "dd if=", "rg .", "rev", "nl")  # fmt: skip
"""Commands that read a file; `{}` stands for it, else it is the last argument."""
NETWORK = ("curl -s {}", "wget -qO- {}", "exec 3<>/dev/tcp/127.0.0.1/{port}; cat <&3", "cat < /dev/tcp/127.0.0.1/{port}",
           "echo x > /dev/udp/127.0.0.1/{port}", "nc 127.0.0.1 {port}", "ssh 127.0.0.1", "telnet 127.0.0.1 {port}", "curl file://{file}",
           "git clone {}", "python3 -c 'import socket'", "perl -e 1", "openssl s_client -connect 127.0.0.1:{port}",
           "http {}", "ftp 127.0.0.1", "rsync 127.0.0.1::", "socat - TCP:127.0.0.1:{port}", "dig x", "ping -c1 127.0.0.1", "wget {}")  # fmt: skip
ENVIRONMENT = ("env", "printenv", "set", "export -p", "declare -x", "echo $SHELL_TEST_SECRET", "cat /proc/self/environ", "cat /proc/1/environ",
               "ps aux", "ps eww", "compgen -v", "awk 'BEGIN {for (k in ENVIRON) print ENVIRON[k]}'", "jq -n env", "bash -c env", "sh -c set",
               "xargs env < /dev/null", "find / -name environ -exec cat {} +", "strings /proc/self/environ", "echo ${!S*}",
               "eval echo '$SHELL_TEST_SECRET'")  # fmt: skip
BOMBS = ("yes", "yes | sort", "cat /dev/zero", "cat /dev/zero | tr '\\0' a", "cat /dev/urandom | base64", "while :; do echo x; done",
         "for ((;;)); do :; done", ":(){ :|:& };:", "f() { f; }; f", "x=a; while :; do x=$x$x; done", "seq 999999999", "seq 1e18 | tail -1",
         "awk 'BEGIN {while (1) print}'", "awk 'BEGIN {x = \"a\"; while (1) x = x x}'", "printf '%999999999d' 1", "printf 'a%.0s' {1..99999999}",
         "echo {1..999999999}", "echo {a..z}{a..z}{a..z}{a..z}{a..z}{a..z}", "head -c 99999999999 /dev/zero | wc -c", "sleep 999",
         "until false; do sleep 1; done", "tail -f big", "dd if=/dev/zero of=/tmp/f bs=1M count=99999", "for i in $(seq 99999); do touch /tmp/$i; done",
         "while :; do echo x >> /tmp/g; done", "grep -E '(a|a)*b' -r .", "sed ':a;s/^/x/;ba' big", "jq -n 'def f: f; f'", "jq -n '[range(1e9)]'",
         "bash -c 'while :; do :; done'", "eval \"$(yes 'echo x;' | head -99999)\"", "cat big big big big | cat - big | sort | uniq -c",
         "x=$(cat big big big)", "find / / / / -exec cat {} +", "base64 big | base64 | base64 | base64", "perl -e 'while(1){}'",
         "trap '' TERM INT; while :; do :; done", "wait", "read x", "cat", "cat -", "exec sleep 999", "coproc yes", "mkfifo /tmp/p; cat /tmp/p",
         "ulimit -v unlimited; yes", "timeout 999 yes", "nohup yes &", "grep -r '' / / / /", "tac /dev/zero", "sort /dev/urandom")  # fmt: skip
ODD_NAMES = ["../../{file}", "..", "a/../../../{file}", "/{file}", "new\nline", "esc\x1b[2J", "nul\0nul", "$(cat {file})", "`cat {file}`", "; cat {file}",
             "a b", "'", '"', "\\", "*", "?", "[a]", "~", "~root", "-rf", "--help", "{file}", "%2e%2e%2f", "\u202e", "\ufeff", "a" * 300, ".", "./x",
             "con", "é"]  # fmt: skip


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("host") / "secret"
    path.write_text(SECRET)
    return path


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory, secret: Path) -> Iterator[Shell]:
    place = tmp_path_factory.mktemp("text")
    names = {name.replace("{file}", str(secret)): f"document {i}\n" for i, name in enumerate(ODD_NAMES)}
    publish(names | {"big": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n" * 100_000}, place)
    with pytest.MonkeyPatch.context() as patch, Monocontext.open(place) as text:
        patch.setenv("SHELL_TEST_SECRET", SECRET)
        shell = Shell({"/text": lambda: text}, seconds=4)
        shell.run("true", 100)
        yield shell
        shell.close()


def attacks(secret: Path) -> list[str]:
    paths = [str(secret), f"/text/../..{secret}", f"../../../../..{secret}"]
    paths += ["/proc/self/cwd", "/proc/self/root/etc/shadow"]
    lines = [
        command.replace("{}", path) if "{}" in command else f"{command} {path}".replace("if= ", "if=")
        for i, command in enumerate(READERS)
        for path in (paths[0], paths[1 + i % 4])
    ]
    lines += [line.replace("{}", "http://127.0.0.1:9/").format(port=9, file=secret) for line in NETWORK]
    lines += [*ENVIRONMENT, *BOMBS]
    lines += [f"cat {json.dumps(name.replace('{file}', str(secret)))}" for name in ODD_NAMES]
    return [*lines, "cat *", "cat ./*", "for f in *; do cat $f; done", "eval cat *", "find . -type f -exec cat {} +", "ls | xargs cat",
            "grep -r . .", "find . | xargs -0 cat", 'ls -1 | while read f; do cat "$f"; done', "cp -r . /tmp/all; cat /tmp/all/*",
            "cat $(ls)", f"cd {secret.parent}; ls", f"cd ..; cd ..; cat .{secret}", "cat /root/.ssh/*", "cat ~/.aws/credentials",
            "ls /work /var /opt /srv", "kill -9 1", "kill -9 $PPID", "chmod 777 / -R", "rm -rf / --no-preserve-root"]  # fmt: skip


@pytest.mark.slow
def test_nothing_of_the_host_is_seen_and_all_of_it_ends(shell: Shell, secret: Path) -> None:
    lines = attacks(secret)
    assert len(lines) >= 200
    marker = secret.parent / "marker"
    for line in lines:
        began = time.monotonic()
        try:
            ran = shell.run(line, 20_000)
            seen = ran.stdout + ran.stderr
            assert len(seen) < 30_000, line
        except ToolRefusal as error:
            seen = str(error)
        assert time.monotonic() - began < 16, line
        assert SECRET not in seen, line
        assert "root:x:0:0" not in seen, line
    assert shell.run("cat /text/big | head -c 3", 100).stdout == "aaa"  # it still works, and the text is whole
    assert secret.read_text() == SECRET
    assert not marker.exists()
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 3 << 20  # KiB
    assert os.environ["SHELL_TEST_SECRET"] == SECRET
