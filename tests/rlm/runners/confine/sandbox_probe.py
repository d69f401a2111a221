"""A host with secrets and a worker: it prints its facts, then answers a JSON object with `code` a line."""

from __future__ import annotations

import json
import os
import resource
import socket
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from rlm import ScriptedLM
from rlm.calls.subcalls import SubCalls
from rlm.calls.usage import Usage
from rlm.runners.confine.limits import Limits
from rlm.runners.docker import DockerRunner
from rlm.runners.process import ProcessRunner
from rlm.runners.remote import RemoteRunner

SECRET = "planted-secret-4711"
LIMITS = Limits(memory_bytes=2 << 30, disk_bytes=8 << 20)


def main() -> None:
    home = Path(tempfile.mkdtemp(prefix="sandbox-home-"))
    (home / ".aws").mkdir()
    files = [home / ".aws" / "credentials", home / "secret.txt", Path(f"/dev/shm/sandbox-{os.getpid()}")]
    for file in files:
        file.write_text(SECRET)
        file.chmod(0o644)
    os.environ |= {"HOME": str(home), "AWS_SECRET_ACCESS_KEY": SECRET}
    held = os.open(files[1], os.O_RDONLY)
    os.set_inheritable(held, True)
    server = socket.create_server(("127.0.0.1", 0))
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind(f"\0sandbox-{os.getpid()}")
    abstract.listen()
    datagrams = [str(home / "datagrams"), f"\0sandbox-datagrams-{os.getpid()}"]
    listening = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in datagrams]
    for one, place in zip(listening, datagrams, strict=True):
        one.bind(place)
    threading.Thread(target=_accept, args=(server,), daemon=True).start()
    way, *container = sys.argv[1:]
    shared: Any = {"subcalls": SubCalls(ScriptedLM(str.upper), Usage()), "cell_timeout": 60, "limits": LIMITS}
    runner: Any
    if container:
        runner = DockerRunner("the context", image=container[0], program=container[1], **shared)
    else:
        runner = ProcessRunner("the context", mechanisms=[way], **shared)
    facts = {
        "pid": os.getpid(), "uid": os.getuid(), "port": server.getsockname()[1], "files": [str(file) for file in files],
        "abstract": f"sandbox-{os.getpid()}", "confinement": runner.confinement, "fd": held,
        "worker": runner._worker._popen.pid, "datagrams": datagrams, "disk_bytes": LIMITS.disk_bytes,
    }  # fmt: skip
    print(json.dumps(facts), flush=True)
    for line in sys.stdin:
        print(json.dumps(_answer(runner, json.loads(line)["code"])), flush=True)
    runner.close()
    for file in files:
        file.unlink()


def _answer(runner: RemoteRunner, code: str) -> dict[str, Any]:
    try:
        result = runner.run(code)
    except Exception as exc:
        return {"raised": type(exc).__name__, "message": str(exc)}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"stdout": result.stdout, "stderr": result.stderr, "answer": result.final_answer, "peak_kb": peak}


def _accept(server: socket.socket) -> None:
    while True:
        server.accept()[0].close()


main()
