"""Play two developers with one bucket, from the first hook to the second one's answer. See docs/sessions.md.

    python examples/two_developers.py            # starts SeaweedFS, an S3 server, on this machine

Everything is real except the two agents, which this script plays: it writes a transcript, and calls the commands that
`monocontext hooks install` puts into the settings, with the JSON that Claude Code would send. With OPENAI_API_KEY a
model makes the brief and answers the question; without it rules make the brief, and a script answers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from monocontext.sessions import Sessions, open_project
from monocontext.testing import CountingStore, SeaweedServer
from rlm import RLM, OpenAILM, ScriptedLM

ID = "84ede0c3-5b1c-4e0e-9a57-000000000001"
QUESTION = "Why does the login use a retry and not a lock, and in which turn was that decided?"
SECRET = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"

LOOK = """I look for it in what was said.
```repl
hits = search_transcripts("instead of a lock")
for hit in hits:
    print(hit["id"], hit["role"], hit["content"])
```"""
ANSWER = """```repl
hit = next(hit for hit in hits if hit["role"] == "assistant")
answer["content"] = f"{hit['content']} (turn {hit['turn_number']} of session {hit['session_id']})"
answer["ready"] = True
```"""


def main() -> dict[str, Any]:
    """Run all steps; returns the measurements."""
    with tempfile.TemporaryDirectory(prefix="two-developers-") as folder, SeaweedServer() as server:
        return walk(Path(folder), server)


def walk(folder: Path, server: SeaweedServer) -> dict[str, Any]:
    url = server.url("team")
    measured: dict[str, Any] = {}
    ana, ben = Developer("ana", folder, server), Developer("ben", folder, server)

    say("1. Ana installs the hooks in her clone, Ben in his.")
    for developer in (ana, ben):
        developer.command("monocontext", "hooks", "install", "--url", url, "--endpoint", server.endpoint)

    say("2. Ana works with her agent and closes it. The hook returns at once; the upload goes on without it.")
    transcript = ana.works()
    end = {"session_id": ID, "transcript_path": str(transcript), "reason": "prompt_input_exit"}
    measured["session_end_seconds"], _ = ana.hook("SessionEnd", **end)
    began = time.perf_counter()
    while "6 records" not in ana.log():
        time.sleep(0.05)
    measured["uploaded_after_seconds"] = time.perf_counter() - began
    print("   ", ana.log())

    say("3. Between sessions, on any machine: what is new is compiled.")
    compiled = ben.command("rlm", "compile", url, "--endpoint", server.endpoint, "--quiet")
    print("   ", compiled.strip())

    say("4. Ben opens his agent. This is what it begins with:")
    measured["session_start_seconds"], out = ben.hook("SessionStart", session_id="ben", source="startup")
    brief = json.loads(out)["hookSpecificOutput"]["additionalContext"]
    measured["brief_characters"] = len(brief)
    print("\n".join("    " + line for line in brief.splitlines()))

    say(f"5. Ben asks the raw history: {QUESTION}")
    store = CountingStore(server_store(url, server))
    began = time.perf_counter()
    with open_project(store, "github.com-acme-api") as context:
        measured["open_project_seconds"] = time.perf_counter() - began
        measured["open_project_gets"] = store.gets
        completion = RLM(lm=model(), max_iterations=8).completion(QUESTION, context)
    store.close()
    measured["answer"] = completion.answer
    print("   ", completion.answer)

    sessions = Sessions.open(server_store(url, server)).project("github.com-acme-api")
    leaked = any(SECRET in json.dumps(sessions.records(name)[1]) for name in sessions.list_sessions())
    leaked |= any(SECRET.encode() in data for data in everything(url, server))
    measured["secret_in_the_bucket"] = leaked
    say(f"6. The key that was in Ana's terminal is {'IN' if leaked else 'not in'} the bucket.")
    for name, value in measured.items():
        print(f"    {name:24} {value:.3f}" if isinstance(value, float) else f"    {name:24} {value}")
    return measured


class Developer:
    """A person with a machine: a home folder, a clone of the repository, an agent."""

    def __init__(self, name: str, folder: Path, server: SeaweedServer) -> None:
        self.home = folder / name
        self.clone = self.home / "api"
        (self.clone / ".git").mkdir(parents=True)
        (self.clone / ".git" / "config").write_text('[remote "origin"]\n\turl = git@github.com:acme/api.git\n')
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("AWS_")},
            **server.environment,
            "HOME": str(self.home),
            "MONOCONTEXT_HOME": str(self.home / ".monocontext"),
            "MONOCONTEXT_USER": f"{name}@laptop",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(Path.cwd()), os.environ.get("PYTHONPATH")])),
        }

    def command(self, program: str, *words: str) -> str:
        """Run a command of ours in the clone."""
        return self._run([sys.executable, "-P", "-m", program, *words], b"")

    def hook(self, event: str, **fields: str) -> tuple[float, str]:
        """Call the hook for an event in the settings; returns its seconds and its output."""
        settings = json.loads((self.clone / ".claude" / "settings.local.json").read_text())
        entry = settings["hooks"][event][0]["hooks"][0]
        stdin = json.dumps({"hook_event_name": event, "cwd": str(self.clone), **fields}).encode()
        began = time.perf_counter()
        out = self._run([entry["command"], *entry["args"]], stdin)
        return time.perf_counter() - began, out

    def _run(self, command: list[str], stdin: bytes) -> str:
        done = subprocess.run(
            command, input=stdin, cwd=self.clone, env=self.environment, capture_output=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{command} ended with {done.returncode}: {done.stderr.decode()}")
        return done.stdout.decode()

    def works(self) -> Path:
        """Write the transcript of a session about a bug, with a key in the output of a tool; returns its path."""
        steps: list[tuple[str, Any]] = [
            ("user", "The login fails when two requests come at once. Please fix it."),
            ("assistant", [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "env; make test"}}]),
            ("user", [{"type": "tool_result", "tool_use_id": "t1", "content": f"GITHUB_TOKEN={SECRET}\n1 failed"}]),
            ("assistant", [{"type": "text", "text": "It is a race: both requests create the session row."}]),
            ("user", "What do you suggest?"),
            ("assistant", [{"type": "text", "text": "We decided to retry once instead of a lock: the loser reads "
                                                    "the winner's row, and nobody waits."}]),
        ]  # fmt: skip
        path = self.home / ".claude" / "projects" / "-api" / f"{ID}.jsonl"
        path.parent.mkdir(parents=True)
        with path.open("w") as file:
            for n, (role, content) in enumerate(steps):
                record = {
                    "type": role, "uuid": f"u{n}", "parentUuid": f"u{n - 1}" if n else None, "sessionId": ID,
                    "cwd": str(self.clone), "gitBranch": "main", "timestamp": f"2026-02-14T10:00:{n:02d}.000Z",
                    "message": {"role": role, "content": content},
                }  # fmt: skip
                file.write(json.dumps(record) + "\n")
        return path

    def log(self) -> str:
        path = self.home / ".monocontext" / "upload.log"
        return path.read_text().strip() if path.exists() else ""


def model() -> Any:
    """The root model, or a script that plays one."""
    if os.environ.get("OPENAI_API_KEY"):
        return OpenAILM(os.environ.get("OPENAI_MODEL", "gpt-5"), base_url=os.environ.get("OPENAI_BASE_URL"))
    return ScriptedLM([LOOK, ANSWER])


def server_store(url: str, server: SeaweedServer) -> Any:
    from monocontext.stores import open_store

    return open_store(url, client=server.client())


def everything(url: str, server: SeaweedServer) -> list[bytes]:
    store = server_store(url, server)
    return [store.get(info.key).data for info in store.list()]


def say(text: str) -> None:
    print(f"\n{text}", flush=True)


if __name__ == "__main__":
    main()
