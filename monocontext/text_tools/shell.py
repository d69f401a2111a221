"""The tool `bash`: a shell in a process of its own, whose files are the documents of texts.

Frameworks read annotations as objects, so this module does not import `annotations`.
"""

import importlib.util
import json
import re
import threading
from collections.abc import Callable, Container, Mapping

from monocontext.engine.remote import ReaderServer
from monocontext.errors import MonocontextError, ToolRefusal, install_line
from monocontext.shell.call import Output
from monocontext.shell.process import Child, Ended
from monocontext.text.monocontext import Monocontext
from monocontext.text_tools.outputs import ToolReply
from monocontext.text_tools.replies import MAX_REPLY_BYTES

_COMMAND_SECONDS = 45.0  # the longest time of a command line
_GRACE_SECONDS = 10.0  # a process that hangs is killed this much later; clients of MCP wait for 60 seconds
_OUTPUT_BYTES = MAX_REPLY_BYTES * 3 // 4  # the most bytes of stdout in a reply; stderr has a quarter of this
_RESERVED = frozenset(["bin", "dev", "etc", "home", "kept", "proc", "root", "tmp", "usr"])  # the shell's own folders


class Shell:
    """A shell over texts. Command lines run one after another; files in `/tmp` stay. Safe for use by many threads.

    `texts`: for each folder, such as `/logs`, a function that returns its text. It is called when the folder is first
    used, and then before each command line: if it returns another text, the folder has the files of the new one.
    """

    def __init__(self, texts: Mapping[str, Callable[[], Monocontext]], *, seconds: float = _COMMAND_SECONDS) -> None:
        if importlib.util.find_spec("bashkit") is None:
            raise MonocontextError(f"the shell is missing: {install_line('shell')}")
        self._folders = list(texts)
        self._open_text = list(texts.values())
        self._seconds = seconds
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._used: dict[int, tuple[Monocontext, ReaderServer]] = {}  # the texts in use, by the number of their folder

    def bash(self, command: str) -> ToolReply[Output]:
        """Run a command line in a sandboxed bash whose files are the documents of texts of any size: ls, find, cat,
        head, tail, sed, grep, rg, wc, awk, sort, uniq, cut, jq, xargs, pipes and loops. `ls /` lists the folders.

        grep -rn is fast also over thousands of files. All but /tmp is read-only; there is no network and no Python.
        Each call begins in the folder of the text, or in / if there are several. Files in /tmp stay. Output that is too
        long is cut and says how to go on.

        Args:
            command: The command line, such as grep -rn "def main" . | head
        """
        ran = self.run(command, _OUTPUT_BYTES)
        parts = [ran.stdout, ran.stderr]
        parts += [f"[exit code {ran.exit_code}]"] if ran.exit_code else []
        parts += [f"[{ran.note}]"] if ran.note else []
        text = "\n".join(part.removesuffix("\n") for part in parts if part)
        return ToolReply(text, ran)

    def run(self, command: str, most_bytes: int) -> Output:
        """Run a command line, and cut its output to `most_bytes` (GETs: those of the text that it reads).

        Raises `ToolRefusal` if the process of the shell took too long, or died.
        """
        with self._lock:
            changed = [number for number, (text, _) in self._used.items() if self._open_text[number]() is not text]
            for number in changed:
                del self._used[number]
            request = {
                "command": command, "folders": self._folders, "changed": changed, "seconds": self._seconds,
                "most_bytes": most_bytes,
            }  # fmt: skip
            seconds = self._seconds + _GRACE_SECONDS
            child = self._child = self._child or Child("monocontext.shell.worker", seconds)
            try:
                return Output(**json.loads(child.call(json.dumps(request).encode(), self._answer)))
            except Ended:
                end = f"was stopped after {seconds:g} s" if child.is_late else "has died, perhaps for lack of memory"
                raise ToolRefusal(f"the shell {end}; the next command starts a new one with an empty /tmp") from None
            finally:
                if not child.close.alive:
                    self.close()

    def close(self) -> None:
        """End the process, and forget `/tmp`. Idempotent; the next `run` starts a new process."""
        if self._child is not None:
            self._child.close()
        self._child = None
        self._used.clear()

    def _answer(self, number: int, request: bytes) -> bytes:
        if number not in self._used:
            text = self._open_text[number]()
            self._used[number] = text, text.serve()
        _, server = self._used[number]
        return server.answer(request)


def folder_of(name: str, used: Container[str] = ()) -> str:
    """A folder that is named after a text's name or URL and not in `used`: `/logs` for `s3://bucket/logs`."""
    path = re.sub(r"[^\w./-]", "-", name.rstrip("/") if "://" not in name else name.rstrip("/").rpartition("/")[2])
    first, slash, rest = path.strip("./").partition("/")
    folder = f"/{first or 'text'}{'-text' if first in _RESERVED else ''}{slash}{rest}"
    while folder in used:
        folder += "-2"
    return folder
