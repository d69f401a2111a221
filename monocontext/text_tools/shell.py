"""The tool `bash`: a shell over texts, whose documents are files. Its process asks this one for text.

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

_COMMAND_SECONDS = 45.0  # a command line may take this long
_MORE_SECONDS = 10.0  # a process that hangs ends itself this much later; clients of MCP wait for 60 seconds
_OUTPUT_BYTES = MAX_REPLY_BYTES * 3 // 4  # the most bytes of stdout in a reply; stderr has a quarter of this
_TAKEN = frozenset(["bin", "dev", "etc", "home", "kept", "proc", "root", "tmp", "usr"])  # folders of the shell itself


class Shell:
    """A shell over texts. Command lines run one after another; `/tmp` lives on between them. Safe for many threads.

    `texts` has a function for each folder, such as `/logs`, that returns its text. It is called when the folder is
    first used, then for each command line: where it returns another text, the folder has the files of that.
    """

    def __init__(self, texts: Mapping[str, Callable[[], Monocontext]], *, seconds: float = _COMMAND_SECONDS) -> None:
        if importlib.util.find_spec("bashkit") is None:
            raise MonocontextError(f"the shell is missing: {install_line('shell')}")
        self._folders, self._open, self._seconds = list(texts), list(texts.values()), seconds
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._opened: dict[int, tuple[Monocontext, ReaderServer]] = {}  # the texts that the process has used

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
        """Run a command line; returns at most `most_bytes` of its output (the GETs of what it reads).

        Raises `ToolRefusal` if its process had to be ended.
        """
        with self._lock:
            changed = [index for index, (text, _) in self._opened.items() if self._open[index]() is not text]
            for index in changed:
                del self._opened[index]
            request = {
                "command": command, "folders": self._folders, "changed": changed, "seconds": self._seconds,
                "most_bytes": most_bytes,
            }  # fmt: skip
            seconds = self._seconds + _MORE_SECONDS
            child = self._child = self._child or Child("monocontext.shell.worker", seconds)
            try:
                return Output(**json.loads(child.call(json.dumps(request).encode(), self._answer)))
            except Ended:
                why = f"was stopped after {seconds:g} s" if child.is_late else "has died, perhaps for lack of memory"
                raise ToolRefusal(f"the shell {why}; it begins anew, and /tmp is empty") from None
            finally:
                if not child.close.alive:
                    self.close()

    def close(self) -> None:
        """End the process. Idempotent; the next `run` starts another."""
        if self._child is not None:
            self._child.close()
        self._child = None
        self._opened.clear()

    def _answer(self, index: int, request: bytes) -> bytes:
        if index not in self._opened:
            text = self._open[index]()
            self._opened[index] = text, text.serve()
        return self._opened[index][1].answer(request)


def folder_of(name: str, used: Container[str] = ()) -> str:
    """The folder of a text, from its name or its URL: `/logs` for `s3://bucket/logs`. It is not one of `used`."""
    path = re.sub(r"[^\w./-]", "-", name.rstrip("/") if "://" not in name else name.rstrip("/").rpartition("/")[2])
    first, slash, rest = path.strip("./").partition("/")
    folder = f"/{first or 'text'}{'-text' if first in _TAKEN else ''}{slash}{rest}"
    while folder in used:
        folder += "-2"
    return folder
