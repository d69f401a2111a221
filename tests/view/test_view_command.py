"""`monocontext view`: it serves until Ctrl-C."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

from monocontext import publish

CHECKOUT = Path(__file__).parents[2]


def test_serves_until_interrupted(tmp_path: Path) -> None:
    publish({"a": "one\n"}, tmp_path / "c")
    publish({"a": "one\n", "b": "two\n"}, tmp_path / "c", replace=True)
    command = [sys.executable, "-m", "monocontext", "view", str(tmp_path / "c"), "--generation", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=CHECKOUT) as child:
        assert child.stdout is not None
        result = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\n", child.stdout.readline())
        assert result is not None
        link = http.client.HTTPConnection("127.0.0.1", int(result[1]), timeout=30)
        link.request("GET", "/state")
        state = json.loads(link.getresponse().read())
        link.close()
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
    assert (state["version"], state["documents"]) == (1, 1)
    assert child.returncode == 0
    assert errors.startswith(f"serving {state['url']}; Ctrl-C stops it\n")
    assert "Traceback" not in errors
