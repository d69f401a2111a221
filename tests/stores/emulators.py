"""Run Azurite, the emulator of Azure that Microsoft makes, in a process of its own."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path

ACCOUNT = "devstoreaccount1"
# The key that Azurite is known for, and no secret.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/" + "K1SZFPTOtr/KBHBeksoGMGw=="
CONTAINER = "container"


def find_azurite() -> str | None:
    return shutil.which("azurite-blob")


@contextmanager
def azurite(folder: Path) -> Iterator[str]:
    """Gives the endpoint of its account, with one container."""
    command = find_azurite()
    assert command is not None
    port = _free_port()
    arguments = [command, "--silent", "--skipApiVersionCheck", "--blobPort", str(port), "--location", str(folder)]
    with _running(arguments, port):
        _make_container(port)
        yield f"http://127.0.0.1:{port}/{ACCOUNT}"


@contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 120
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None, f"{command[0]} ended with {process.returncode}"
                assert time.monotonic() < end, f"{command[0]} does not listen"
                time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait(30)


def _free_port() -> int:
    with socket.socket() as item:
        item.bind(("127.0.0.1", 0))
        port: int = item.getsockname()[1]
        return port


def _make_container(port: int) -> None:
    date, version = formatdate(usegmt=True), "2021-08-06"
    resource = f"/{ACCOUNT}/{ACCOUNT}/{CONTAINER}\nrestype:container"
    text = "PUT" + "\n" * 12 + f"x-ms-date:{date}\nx-ms-version:{version}\n{resource}"
    signature = base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()
    headers = {"x-ms-date": date, "x-ms-version": version, "Authorization": f"SharedKey {ACCOUNT}:{signature}"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("PUT", f"/{ACCOUNT}/{CONTAINER}?restype=container", headers={**headers, "Content-Length": "0"})
    status = connection.getresponse().status
    connection.close()
    assert status == 201, status
