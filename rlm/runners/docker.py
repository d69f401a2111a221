"""Run cells in a Docker container: the runner `docker`. The image must contain `monocontext-rlm` of this version.

It needs only the program `docker` (or `podman`, by `program=`). The worker is the one of `subprocess`, with its seccomp
filter and its limits; its channel is the container's standard streams.
"""

from __future__ import annotations

import secrets
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from rlm.calls.subcalls import SubCalls
from rlm.errors import RunnerUnavailable
from rlm.models.log import WARNING, log
from rlm.runners.confine.limits import Limits
from rlm.runners.launcher import make_container_plan
from rlm.runners.piped_process import PipedProcess, receive_hello
from rlm.runners.remote import RemoteRunner, SharedOptions

IMAGE = "monocontext-rlm"
_KILL_SECONDS = 20.0  # the time that the engine gets to kill a container


class DockerRunner(RemoteRunner):
    """Runs cells as the user nobody in a container without network, whose files are read-only."""

    name = "docker"

    def __init__(
        self, context: object, subcalls: SubCalls, *, limits: Limits | None = None, image: str = IMAGE,
        program: str = "docker", options: Sequence[str] = (), scratch: str | None = None,
        **shared: Unpack[SharedOptions],
    ) -> None:  # fmt: skip
        """`options`: those of `docker run`, such as `--runtime=runsc`. `scratch`: a folder that cells may write to."""
        self._limits = limits or Limits()
        self._image = image
        self._program = program
        self._options = [*options, "--tmpfs", _tmpfs(scratch, self._limits)] if scratch else options
        super().__init__(context, subcalls, **shared)

    def launch(self) -> tuple[Container, Mapping[str, Any]]:
        program = shutil.which(self._program)
        if program is None:
            raise RunnerUnavailable(f"runner 'docker' needs the program {self._program!r}, which is not in PATH")
        name = f"rlm-{secrets.token_hex(8)}"
        container = Container(docker_command(program, name, self._image, self._options, self._limits), program, name)
        return container, receive_hello(container, self.name)


def docker_command(program: str, name: str, image: str, options: Sequence[str], limits: Limits) -> list[str]:
    """The command line that runs a worker in a new container."""
    return [
        program, "run", "--rm", "--interactive", "--name", name, "--network", "none", "--read-only",
        "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", "65534:65534",
        "--memory", str(limits.memory_bytes), "--memory-swap", str(limits.memory_bytes), "--pids-limit", "128",
        "--tmpfs", _tmpfs("/tmp", limits), "--workdir", "/tmp",
        # Otherwise a cell could write 64 MiB to /dev/shm and, under podman, any amount to /var/tmp, both in memory.
        "--ipc", "none", "--tmpfs", "/var/tmp:ro", "--log-driver", "none", *options, image,
        "python", "-I", "-m", "rlm.runners.launcher", make_container_plan(limits),
    ]  # fmt: skip


def _tmpfs(path: str, limits: Limits) -> str:
    return f"{path}:rw,noexec,nosuid,nodev,size={limits.disk_bytes},mode=1777"


class Container(PipedProcess):
    """The process of `docker run`, and the container that it runs."""

    def __init__(self, command: Sequence[str], program: str, name: str) -> None:
        super().__init__(command)
        self._program, self._name = program, name

    def kill(self) -> None:
        """Kill the container; then `docker run` ends by itself."""
        command = [self._program, "kill", self._name]
        try:
            subprocess.run(command, capture_output=True, timeout=_KILL_SECONDS, check=False)
        except subprocess.TimeoutExpired:  # `end` kills `docker run`, which leaves its container
            log(WARNING, "%s did not kill the container %s in %g s", self._program, self._name, _KILL_SECONDS)
