"""The bridges, run with the real packages: they are installed into a folder of their own for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PACKAGES = ["langgraph-checkpoint>=2.0.17", "anthropic>=2"]
CONTRACTS = sorted(Path(__file__).parent.glob("contract_*.py"))


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
@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda path: path.stem)
def test_contract(packages: Path, contract: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(packages), str(CHECKOUT)])}
    done = subprocess.run([sys.executable, contract, tmp_path], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("kept\n")


def test_there_are_contracts() -> None:
    assert [path.stem for path in CONTRACTS] == ["contract_anthropic", "contract_langgraph"]


def test_the_rest_needs_none_of_them() -> None:
    code = "import monocontext.memory, sys; assert not {'anthropic', 'langgraph', 'boto3', 'numpy'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=CHECKOUT)
    assert done.returncode == 0, done.stderr
