"""A worker in a Docker container: the runner `docker`. The image must hold `monocontext-rlm` of this version.

Talks to the `docker` program alone (or `podman`, by `program=`). The worker is the one of `subprocess`, with its
seccomp filter and its limits, at the end of the container's standard streams.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rlm.errors import RunnerUnavailable
from rlm.runners.channel import HEAD_BYTES, MESSAGE_BYTES, Channel
from rlm.runners.confine.limits import Limits
from rlm.runners.launcher import container_plan
from rlm.runners.remote import RemoteRunner, hello_of
from rlm.subcalls import SubCalls

IMAGE = "monocontext-rlm"
_END_SECONDS = 20.0


class DockerRunner(RemoteRunner):
    """Runs cells in a container without a network, read-only, as nobody."""

    def __init__(
        self,
        context: object,
        subcalls: SubCalls,
        *,
        cell_timeout: float | None = 120.0,
        output_limit: int = 20_000,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        limits: Limits | None = None,
        image: str = IMAGE,
        program: str = "docker",
        options: Sequence[str] = (),
    ) -> None:
        """`options`: more of them for `docker run`, such as `--runtime=runsc`. Raises RunnerUnavailable."""
        place = DockerPlace(limits or Limits(), image, program, tuple(options))
        super().__init__(
            place, context, subcalls, cell_timeout=cell_timeout, output_limit=output_limit, functions=functions
        )


class DockerPlace:
    """Starts containers."""

    name = "docker"

    def __init__(self, limits: Limits, image: str, program: str, options: tuple[str, ...]) -> None:
        self._limits = limits
        self._image = image
        self._program = program
        self._options = options

    def start(self) -> tuple[Container, Mapping[str, Any]]:
        """Raises RunnerUnavailable."""
        program = shutil.which(self._program)
        if program is None:
            raise RunnerUnavailable(f"runner 'docker': no program {self._program!r} here")
        name = f"rlm-{secrets.token_hex(8)}"
        popen = subprocess.Popen(
            self.command(program, name), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        container = Container(popen, program, name)
        hello = hello_of(container.channel)
        if hello is None:
            how = container.end(gone=True)
            raise RunnerUnavailable(f"runner 'docker': {container.complaint or how}")
        return container, {**hello, "confinement": "docker"}

    def command(self, program: str, name: str) -> list[str]:
        """The command line of `docker run`. Pure."""
        limits = self._limits
        return [
            program, "run", "--rm", "--interactive", "--name", name, "--network", "none", "--read-only",
            "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", "65534:65534",
            "--memory", str(limits.memory_bytes), "--memory-swap", str(limits.memory_bytes), "--pids-limit", "128",
            "--tmpfs", f"/tmp:rw,noexec,nosuid,nodev,size={limits.disk_bytes},mode=1777", "--workdir", "/tmp",
            "--log-driver", "none", *self._options, self._image,
            "python", "-I", "-m", "rlm.runners.launcher", container_plan(limits),
        ]  # fmt: skip


class Container:
    """A container and its channel."""

    def __init__(self, popen: subprocess.Popen[bytes], program: str, name: str) -> None:
        assert popen.stdin
        assert popen.stdout
        self._popen = popen
        self._program, self._name = program, name
        self._ended: str | None = None
        self.complaint = ""
        """The last line that it wrote on stderr, once it has ended, but for advice."""
        read_fd, write_fd = os.dup(popen.stdout.fileno()), os.dup(popen.stdin.fileno())
        popen.stdout.close()
        popen.stdin.close()
        popen.stdin = popen.stdout = None
        self.channel = Channel(read_fd, write_fd, head_bytes=HEAD_BYTES, message_bytes=MESSAGE_BYTES)

    def end(self, *, gone: bool = False) -> str:
        """Kill the container; the client of it ends by itself then."""
        if self._ended is None:
            self.channel.close()
            by_itself = gone and self._exited()
            if not by_itself:
                subprocess.run(
                    [self._program, "kill", self._name], capture_output=True, timeout=_END_SECONDS, check=False
                )
            try:
                said = self._popen.communicate(timeout=_END_SECONDS)[1]
            except subprocess.TimeoutExpired:
                self._popen.kill()
                said = self._popen.communicate()[1]
            # Behind the reason the program recommends its --help.
            lines = [line for line in said.decode("utf-8", "replace").splitlines() if line and "--help" not in line]
            self.complaint = lines[-1][:500] if lines else ""
            self._ended = f"exit status {self._popen.returncode}" if by_itself else "ended"
        return self._ended

    def _exited(self) -> bool:
        """Whether it ended by itself; it gets a moment, since its channel closes a little earlier."""
        try:
            self._popen.wait(1.0)
        except subprocess.TimeoutExpired:
            return False
        return True
