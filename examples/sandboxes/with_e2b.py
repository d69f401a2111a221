"""Run a model's code at E2B: the class for `RLM(runner="sandbox", runner_options={"make": ...})`."""

import e2b


class E2BSandbox:
    def __init__(self):
        self.sandbox = e2b.Sandbox.create("monocontext-rlm", timeout=3600, allow_internet_access=False)

    def start(self, command):
        self.command = self.sandbox.commands.run(command, background=True, stdin=True, timeout=0, retain_output=False)

    def listen(self, receive):
        self.command.wait(on_stdout=receive)

    def write(self, text):
        self.command.send_stdin(text)

    def end(self):
        self.sandbox.kill()
