"""Run a model's code at Vercel: the class for `RLM(runner="sandbox", runner_options={"make": ...})`."""

import subprocess

from vercel.sandbox import NetworkPolicy, SnapshotSource, sync


class VercelSandbox:
    def __init__(self):
        source = SnapshotSource(snapshot_id="monocontext-rlm")
        self.sandbox = sync.create_sandbox(
            source=source, network_policy=NetworkPolicy.deny_all(), execution_time_limit=3600
        )

    def start(self, command):
        self.process = self.sandbox.create_process("sh", ["-c", command], stdin=subprocess.PIPE)

    def listen(self, receive):
        for line in self.process.stdout:
            receive(line)

    def write(self, text):
        self.process.stdin.write(text.encode())

    def end(self):
        self.sandbox.destroy()
