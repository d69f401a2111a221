"""The agents as their users start them, with a home of their own and a model on 127.0.0.1."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agents.stand_in import Call, Reply, StandIn

TASK, COUNTED = "Count the files, please.", "There are 3 files."
LIMIT_SECONDS = 180


@dataclass
class Program:
    """One agent, installed below a folder of npm."""

    name: str
    command: str
    shell: Call
    subagent: tuple[Reply, ...]
    """What makes it start a subagent with `TASK`, and wait for it; `COUNTED` is what that one says."""
    first: tuple[str, ...] = ()
    """The words behind the command for a first prompt, which follows them; `next` for one that goes on."""
    next: tuple[str, ...] = ()
    compact: tuple[str, ...] = ()
    """A prompt that makes it compact, where nothing else does."""
    variables: dict[str, str] = field(default_factory=dict)
    """`{url}` stands for the model's."""

    def configure(self, home: Path, url: str) -> None:
        """Write the settings that no variable holds."""

    def mcp(self, name: str, command: str, arguments: Sequence[str]) -> list[str]:
        """The words that give it a server of MCP and no other."""
        settings = {"mcpServers": {name: {"command": command, "args": arguments}}}
        return ["--mcp-config", json.dumps(settings), "--strict-mcp-config"]

    def run(
        self, node_modules: Path, home: Path, model: StandIn, words: Sequence[str], prompt: str, at: Path | None = None
    ) -> str:
        """Give it a prompt and wait for its end; interrupt it as soon as the model hangs."""
        process = subprocess.Popen(
            [node_modules / ".bin" / self.command, *words, prompt],
            cwd=at or home / "work" / "api", env=self.environment(home, model.url), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        if model.is_to_hang(prompt):
            assert model.hanging.wait(LIMIT_SECONDS)
            os.killpg(process.pid, signal.SIGINT)
        try:
            said, _ = process.communicate(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return said

    def environment(self, home: Path, url: str) -> dict[str, str]:
        own = {"HOME": str(home), "PATH": os.environ["PATH"], "TERM": "xterm-256color", "NO_COLOR": "1"}
        return own | {name: value.format(url=url) for name, value in self.variables.items()}


class _Codex(Program):
    def configure(self, home: Path, url: str) -> None:
        (home / ".codex").mkdir(exist_ok=True)
        (home / ".codex" / "config.toml").write_text(
            'model = "gpt-5.1-codex"\nmodel_provider = "stand-in"\nmodel_auto_compact_token_limit = 20000\n'
            f'[features]\nmulti_agent_v2 = true\n[model_providers.stand-in]\nname = "stand-in"\nbase_url = "{url}/v1"\n'
            'wire_api = "responses"\nenv_key = "STAND_IN_KEY"\n'
            f'[projects."{home / "work" / "api"}"]\ntrust_level = "trusted"\n'
        )

    def mcp(self, name: str, command: str, arguments: Sequence[str]) -> list[str]:
        server = {"command": command, "args": arguments, "required": True, "default_tools_approval_mode": "approve"}
        given = [f"mcp_servers.{name}.{key}={json.dumps(value)}" for key, value in server.items()]
        return [word for pair in given for word in ("-c", pair)]


_SHELL = {"command": "echo out-17", "description": "Say a number"}
_CLAUDE = ("--dangerously-skip-permissions", "--model", "claude-sonnet-5", "-p")
_CODEX = ("--dangerously-bypass-approvals-and-sandbox",)

PROGRAMS = [
    Program(
        "claude-code", "claude", Call("Bash", _SHELL),
        (Call("Agent", {"description": "Count files", "prompt": TASK, "subagent_type": "general-purpose"}),),
        first=_CLAUDE, next=("--continue", *_CLAUDE), compact=("/compact",),
        variables={
            "ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "sk-none", "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
            "IS_SANDBOX": "1", "MCP_CONNECT_TIMEOUT_MS": "60000", "MCP_CONNECTION_NONBLOCKING": "0",
        },
    ),
    _Codex(
        "codex", "codex", Call("exec_command", {"cmd": "echo out-17"}),
        (
            Call("collaboration.spawn_agent", {"task_name": "count", "message": TASK, "fork_turns": "none"}),
            Call("collaboration.wait_agent", {"timeout_ms": 30_000}),
        ),
        first=("exec", *_CODEX), next=("exec", "resume", "--last", *_CODEX), variables={"STAND_IN_KEY": "none"},
    ),
]  # fmt: skip


def make_home(home: Path) -> None:
    """A home with a clone of a repository in it."""
    top = home / "work" / "api"
    top.mkdir(parents=True)
    for words in (
        ["init", "-q", "-b", "main"],
        ["remote", "add", "origin", "https://github.com/acme/api.git"],
        ["-c", "user.email=dev@example.com", "-c", "user.name=dev", "commit", "-q", "--allow-empty", "-m", "begin"],
    ):
        subprocess.run(["git", *words], cwd=top, check=True, env={"HOME": str(home), "PATH": os.environ["PATH"]})


def plain(text: str) -> str:
    """What a terminal shows, without its colours."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
