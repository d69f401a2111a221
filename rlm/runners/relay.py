"""Start a worker in a sandbox whose standard streams are text, and carry its channel as lines.

The arguments are the plan of the launcher and, optionally, a folder to create, to which cells may write.

A line is a mark, base64 of at most 3,000 bytes, and a newline. The mark is `<` towards the worker and `>` from it, so
that an echo of the input or a shell's greeting is not taken for a message. A line is shorter than 4,096 bytes, so a
pipe writes it whole and a terminal accepts it.
"""

from __future__ import annotations

import base64
import binascii
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

from rlm.runners.confine import system

TO_WORKER, FROM_WORKER = "<", ">"
CHUNK_BYTES = 3000
_MOST_LINE_CHARACTERS = 64 * CHUNK_BYTES  # ours are shorter; the rest is for a shell's or Python's lines


class LineDecoder:
    """Decodes marked base64 lines from text that arrives in pieces."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._rest = ""
        self.unmarked = ""  # the last line without the mark: if no worker starts, an error of the shell or of Python

    def decode(self, text: str) -> Iterator[bytes]:
        """Yield the bytes of each line that `text` completes. Raises ValueError for a line too long or not base64."""
        *lines, self._rest = (self._rest + text).split("\n")
        if len(self._rest) > _MOST_LINE_CHARACTERS:
            raise ValueError(f"the sandbox sent a line of more than {_MOST_LINE_CHARACTERS:,} characters")
        for line in map(str.strip, lines):
            if line.startswith(self._mark):
                try:
                    yield base64.b64decode(line[1:], validate=True)
                except binascii.Error as exc:
                    raise ValueError(f"the sandbox sent a line that is not base64: {exc}") from None
            elif line:
                self.unmarked = line[:500]


def encode_lines(mark: str, data: bytes) -> Iterator[str]:
    """Yield the lines of `mark` and base64 that carry `data`."""
    for offset in range(0, len(data), CHUNK_BYTES):
        yield f"{mark}{base64.b64encode(data[offset : offset + CHUNK_BYTES]).decode()}\n"


def main() -> None:
    """Start the launcher with the plan, and carry bytes until one side ends."""
    for folder in sys.argv[2:]:
        os.makedirs(folder, exist_ok=True)
    system.hide_memory()  # as the launcher: the worker has the same user
    command = [sys.executable, "-I", "-m", "rlm.runners.launcher", sys.argv[1]]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    threading.Thread(target=_carry_in, args=(child,), daemon=True).start()
    assert child.stdout
    while data := os.read(child.stdout.fileno(), 1 << 16):
        for line in encode_lines(FROM_WORKER, data):
            os.write(1, line.encode())
    os._exit(child.wait())  # at once, though the thread may still wait for input


def _carry_in(child: subprocess.Popen[bytes]) -> None:
    """Carry lines from stdin to the launcher until either ends."""
    assert child.stdin
    decoder = LineDecoder(TO_WORKER)
    try:
        while text := os.read(0, 1 << 16).decode("ascii", "replace"):
            for data in decoder.decode(text):
                child.stdin.write(data)
            child.stdin.flush()
    except (OSError, ValueError):
        pass  # the worker is gone, or the host sends nonsense
    child.stdin.close()


if __name__ == "__main__":
    main()
