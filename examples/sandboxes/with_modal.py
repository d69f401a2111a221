"""Run a model's code at Modal: the class for `RLM(runner="sandbox", runner_options={"make": ...})`."""

import modal


class ModalSandbox:
    def __init__(self):
        app = modal.App.lookup("monocontext-rlm", create_if_missing=True)
        image = modal.Image.debian_slim().pip_install("monocontext", "monocontext-rlm")
        self.sandbox = modal.Sandbox.create(app=app, image=image, block_network=True, timeout=3600)

    def start(self, command):
        self.process = self.sandbox.exec("sh", "-c", command)

    def listen(self, receive):
        for text in self.process.stdout:
            receive(text)

    def write(self, text):
        self.process.stdin.write(text)
        self.process.stdin.drain()

    def end(self):
        self.sandbox.terminate()
