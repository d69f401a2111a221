"""Run clients in processes of their own, in turns: no import or cache of this process counts for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

KEYS = {"AWS_ACCESS_KEY_ID": "access", "AWS_SECRET_ACCESS_KEY": "secret"}


def peers_folder() -> Path:
    """The virtual environment with other clients: $MONOCONTEXT_PEERS, else ~/.venvs/peers."""
    return Path(os.environ.get("MONOCONTEXT_PEERS") or Path.home() / ".venvs" / "peers")


def in_turns(
    ways: Iterable[str], rounds: int, measure: Callable[[str], dict[str, Any] | None]
) -> dict[str, list[dict[str, Any]]]:
    """The results of `measure` by way, one for each round. Each round goes through all ways, so all meet the same load.

    A way for which `measure` returns `None` is not installed: its name is printed, and the way is left out.
    """
    results: dict[str, list[dict[str, Any]]] = defaultdict(list)
    installed = list(ways)
    for _ in range(rounds):
        for way in list(installed):
            if (outcome := measure(way)) is None:
                installed.remove(way)
                print(f"(not installed here: {way})")
            else:
                results[way].append(outcome)
    return dict(results)


def run_client(script: str, *words: object, endpoint: str, **environment: str) -> dict[str, Any] | None:
    """Run a script in this Python, or else in that of the peers, and return the JSON that it prints.

    It gets the keys and endpoint of the stand-in. None if both lack a package. Raises `AssertionError` if it fails.
    """
    variables = {k: v for k, v in os.environ.items() if not k.startswith("AWS_") and not k.lower().endswith("_proxy")}
    variables |= KEYS | environment | {"AWS_ENDPOINT_URL_S3": endpoint, "AWS_DEFAULT_REGION": "us-east-1"}
    variables |= {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    ours = {"PYTHONPATH": str(Path(__file__).parents[1])}
    for python, more in ((Path(sys.executable), ours), (peers_folder() / "bin" / "python", {})):
        if not python.exists():
            continue
        command = [str(python), script, *map(str, words)]
        done = subprocess.run(command, env=variables | more, capture_output=True, text=True, timeout=900)
        if not done.returncode:
            result: dict[str, Any] = json.loads(done.stdout)
            return result
        *_, reason = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()  # a killed one says nothing
        if not reason.startswith("ModuleNotFoundError") or "'monocontext." in reason:
            raise AssertionError(f"`{' '.join(command)}` failed: {reason}")
    return None
