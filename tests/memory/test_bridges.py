"""The bridge to LangGraph, run with the real package: it is installed into a folder of its own for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PACKAGES = ["langgraph-checkpoint>=2.0.20"]
CONTRACT = Path(__file__).with_name("contract_langgraph.py")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--retries", "1", "--target", str(folder), *PACKAGES]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"pip cannot fetch {PACKAGES}: {done.stderr.strip().splitlines()[-1]}")
    return folder


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_langgraph(packages: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(packages), str(CHECKOUT)])}
    done = subprocess.run([sys.executable, CONTRACT, tmp_path], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("kept\n")


def test_the_rest_needs_none_of_them() -> None:
    code = "import monocontext.memory, sys; assert not {'langgraph', 'boto3', 'numpy'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=CHECKOUT)
    assert done.returncode == 0, done.stderr
