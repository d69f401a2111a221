"""Build an environment for each host in `.venv-hosts/<name>`: python -m tests.hosts.environments [NAME...]"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
PLACE = Path(os.environ.get("MONOCONTEXT_HOSTS") or CHECKOUT / ".venv-hosts")


@dataclass(frozen=True, slots=True)
class Host:
    """A host and what it takes to run it."""

    name: str
    """As on PyPI; the name of its environment."""
    module: str
    """`run_<module>.py` runs it."""
    requirements: tuple[str, ...]
    """Pinned."""
    has_rlm: bool = False
    """Whether our `rlm` goes in too: no requirement has a package of that name."""

    @property
    def python(self) -> Path:
        return PLACE / self.name / "bin" / "python"


HOSTS = (
    Host("rlms", "rlms", ("rlms[ipython]==0.1.3",)),
    Host("dspy", "dspy", ("dspy==3.4.1",), has_rlm=True),
)
SHELL = "bashkit==0.20.1"
FRAMEWORKS = (
    Host("openai-agents", "openai_agents", ("openai-agents==0.24.0", SHELL)),
    Host("langchain", "langchain", ("langchain==1.5.2", "langgraph==1.2.24", SHELL)),
    Host("pydantic-ai", "pydantic_ai", ("pydantic-ai-slim==2.68.0", SHELL)),
    Host("llama-index", "llama_index", ("llama-index-core==0.14.25", SHELL)),
    Host("claude-agent-sdk", "claude_agent_sdk", ("claude-agent-sdk==0.2.189", "mcp==2.3.0", SHELL)),
    Host("smolagents", "smolagents", ("smolagents==1.26.0",)),
)
"""Agent frameworks, which take `monocontext.tools`; smolagents takes the text itself."""
DEEPAGENTS = Host("deepagents", "deepagents", ("deepagents==0.7.32", SHELL))


def build(host: Host, wheels: list[Path]) -> None:
    """Make or complete an environment. `monocontext` is a wheel: a checkout would put our `rlm` before the host's."""
    uv = Path(sys.executable).with_name("uv")
    if not host.python.exists():
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, PLACE / host.name], check=True)
    wheels = wheels if host.has_rlm else wheels[:1]
    install = [uv, "pip", "install", "--quiet", "--python", host.python]
    subprocess.run([*install, *host.requirements, *wheels], check=True)
    subprocess.run([*install, "--reinstall", "--no-deps", *wheels], check=True)


def main(names: list[str]) -> None:
    known = {host.name: host for host in (*HOSTS, *FRAMEWORKS, DEEPAGENTS)}
    if unknown := set(names) - set(known):
        raise SystemExit(f"no such host: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder]
        for project in (CHECKOUT, CHECKOUT / "rlm"):
            subprocess.run([*command, project], check=True, stdout=subprocess.DEVNULL)
        wheels = sorted(Path(folder).iterdir(), key=lambda wheel: "rlm" in wheel.name)
        for name in names or known:
            print(f"== {name}: {' '.join(known[name].requirements)}", flush=True)
            build(known[name], wheels)


if __name__ == "__main__":
    main(sys.argv[1:])
