"""Run a model's code at Daytona: the class for `RLM(runner="sandbox", runner_options={"make": ...})`."""

import asyncio

from daytona import CreateSandboxFromSnapshotParams, Daytona, SessionExecuteRequest


class DaytonaSandbox:
    def __init__(self):
        self.daytona = Daytona()
        params = CreateSandboxFromSnapshotParams(snapshot="monocontext-rlm", network_block_all=True, ephemeral=True)
        self.sandbox = self.daytona.create(params)

    def start(self, command):
        self.process = self.sandbox.process
        self.process.create_session("rlm")
        request = SessionExecuteRequest(command=command, run_async=True, suppress_input_echo=True)
        self.id = self.process.execute_session_command("rlm", request).cmd_id

    def listen(self, receive):
        asyncio.run(self.process.get_session_command_logs_async("rlm", self.id, receive, receive))

    def write(self, text):
        self.process.send_session_command_input("rlm", self.id, text)

    def end(self):
        self.daytona.delete(self.sandbox)
