"""Run a client in a process of its own: nothing that this one has imported, read or been told of counts for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

KEYS = {"AWS_ACCESS_KEY_ID": "access", "AWS_SECRET_ACCESS_KEY": "secret"}


def peers_folder() -> Path:
    """The virtual environment with the clients of others: $MONOCONTEXT_PEERS, else ~/.venvs/peers."""
    return Path(os.environ.get("MONOCONTEXT_PEERS") or Path.home() / ".venvs" / "peers")


def run_client(script: str, *words: object, endpoint: str, ours: bool, **environment: str) -> dict[str, Any] | None:
    """The JSON that a script prints; `None` where it lacks a package. Ours run in this environment, others in theirs.

    It has the stand-in's keys and endpoint, and none of this process's own. Raises `AssertionError` where it fails.
    """
    python = Path(sys.executable) if ours else peers_folder() / "bin" / "python"
    if not python.exists():
        return None
    kept = {k: v for k, v in os.environ.items() if not k.startswith("AWS_") and not k.lower().endswith("_proxy")}
    if ours:
        kept["PYTHONPATH"] = str(Path(__file__).parents[1])
    kept |= KEYS | environment | {"AWS_ENDPOINT_URL_S3": endpoint, "AWS_DEFAULT_REGION": "us-east-1"}
    kept |= {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    command = [str(python), script, *map(str, words)]
    done = subprocess.run(command, env=kept, capture_output=True, text=True, timeout=900)
    if "ModuleNotFoundError" in done.stderr:
        return None
    if done.returncode:
        raise AssertionError(f"{' '.join(command)}: {done.stderr.strip().splitlines()[-1]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
