"""The tool `bash`: a shell over texts, whose documents are files.

Frameworks read annotations as objects, so this module does not import `annotations`.
"""

import re
from collections.abc import Container

from monocontext.shell.shell import Output, Shell
from monocontext.text_tools.outputs import ToolReply
from monocontext.text_tools.replies import MAX_REPLY_BYTES

_OUTPUT_BYTES = MAX_REPLY_BYTES * 3 // 4  # the most bytes of stdout in a reply; stderr has a quarter of this
_TAKEN = frozenset(["bin", "dev", "etc", "home", "kept", "proc", "root", "tmp", "usr"])
"""Folders that the shell has itself."""


def folder_of(name: str, used: Container[str] = ()) -> str:
    """The folder of a text, from its name or its URL: `/logs` for `s3://bucket/logs`. It is not one of `used`."""
    path = re.sub(r"[^\w./-]", "-", name.rstrip("/") if "://" not in name else name.rstrip("/").rpartition("/")[2])
    first, slash, rest = path.strip("./").partition("/")
    folder = f"/{first or 'text'}{'-text' if first in _TAKEN else ''}{slash}{rest}"
    while folder in used:
        folder += "-2"
    return folder


class ShellTool(Shell):
    """The tool over texts by folder, as `Shell` takes them."""

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
