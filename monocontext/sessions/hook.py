"""Run as an agent's hook: `monocontext-hook session-start|pre-compact|stop|session-end --url URL ...`.

Each hook starts a process that uploads what the archive lacks, and does not wait for it, since agents kill slow hooks.
A hook imports little, since the agent waits for it, and always exits with 0: another status may stop the agent.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from typing import Any

EVENTS = ("session-start", "pre-compact", "stop", "session-end")
OPTIONS = ("url", "project", "endpoint", "region", "profile", "agent", "pattern", "max-dollars")
FLAGS = ("anonymous", "no-redact", "compile", "user")
_URL_VARIABLES = ("MONOCONTEXT_URL", "CLAUDE_PLUGIN_OPTION_URL")  # the second one is set by our plugin in Claude Code
_MOST_BYTES = 4 << 20  # of the JSON that an agent writes
_IDLE_SECONDS = 2.0  # an agent may leave stdin open: reading ends after a pause this long
_MOST_SECONDS = 8.0  # of reading in all
_LOG_BYTES = 1 << 20  # the size at which the log of uploads begins again


def main(arguments: list[str] | None = None) -> int:
    """Run the console script. Returns its exit code, which is always 0."""
    try:
        event, options = parse_arguments(sys.argv[1:] if arguments is None else arguments)
        hook_input = read_input(0)
        fields = {name: hook_input[name] for name in ("transcript_path", "session_id") if hook_input.get(name)}
        cwd = hook_input.get("cwd") or os.getcwd()  # the latter raises if the directory is gone, such as a worktree's
        start_upload({**options, **fields, "event": event, "cwd": cwd})
        if event == "session-start":
            from monocontext.sessions.brief import show_brief

            show_brief(hook_input, options, complain)
    except (Exception, KeyboardInterrupt) as error:
        complain(error)
    return 0


def start_upload(job: dict[str, object]) -> None:
    """Start the process that uploads. It gets its own process session, so it outlives the agent and its terminal."""
    path = log_path()
    try:
        os.makedirs(home(), mode=0o700, exist_ok=True)
        if os.path.exists(path) and os.stat(path).st_size > _LOG_BYTES:
            os.replace(path, path + ".1")
        log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError as error:
        complain(error)
        log = subprocess.DEVNULL
    # -P: no module is imported from the agent's directory.
    command = [sys.executable, "-P", "-m", "monocontext.sessions.background_upload", json.dumps(job)]
    subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


def read_input(descriptor: int) -> dict[str, object]:
    """The JSON object that an agent writes to `descriptor`; `{}` for no data. Raises `ValueError` for other data."""
    data = bytearray()
    deadline = time.monotonic() + _MOST_SECONDS
    while True:
        seconds = max(0.0, min(_IDLE_SECONDS, deadline - time.monotonic()))
        if os.name != "nt" and not select.select([descriptor], [], [], seconds)[0]:  # Windows selects only sockets
            break
        chunk = os.read(descriptor, 1 << 16)
        data += chunk
        if len(data) > _MOST_BYTES:
            raise ValueError(f"expected at most {_MOST_BYTES:,} bytes on stdin, found more")
        if not chunk:
            break
        if data.rstrip(b"\0 \t\r\n").endswith(b"}"):
            with contextlib.suppress(ValueError):  # an inner object ends here
                json.loads(data)
                break
    result = json.loads(data) if data.strip() else {}
    if not isinstance(result, dict):
        raise ValueError(f"expected a JSON object on stdin, found {type(result).__name__}")
    return result


def parse_arguments(arguments: list[str]) -> tuple[str, dict[str, object]]:
    """The event and the options, by name, in the arguments of a hook. Raises `ValueError` if they are invalid."""
    if not arguments or arguments[0] not in EVENTS:
        raise ValueError(f"usage: monocontext-hook {'|'.join(EVENTS)} --url URL")
    options: dict[str, Any] = {}
    rest = iter(arguments[1:])
    for item in rest:
        name, equals, value = item.removeprefix("--").partition("=")
        if not item.startswith("--") or name not in OPTIONS + FLAGS:
            raise ValueError(f"unknown option {item!r}: choose from {', '.join('--' + o for o in OPTIONS + FLAGS)}")
        if name not in FLAGS and not (value := value if equals else next(rest, "")):
            raise ValueError(f"--{name} needs a value")
        if name == "pattern":
            options.setdefault("patterns", []).append(value)
        else:
            options[name.replace("-", "_")] = name in FLAGS or value
    options.setdefault("url", next(filter(None, map(os.environ.get, _URL_VARIABLES)), ""))
    if not options["url"]:
        raise ValueError("neither --url nor MONOCONTEXT_URL is set: nothing is uploaded")
    return arguments[0], options


def home() -> str:
    """The folder of briefs, locks and the log: `MONOCONTEXT_HOME`, else `~/.monocontext`."""
    return os.environ.get("MONOCONTEXT_HOME") or os.path.join(os.path.expanduser("~"), ".monocontext")


def log_path() -> str:
    return os.path.join(home(), "upload.log")


def write_file(path: str | os.PathLike[str], data: bytes, mode: int = 0o600) -> None:
    """Write a file completely or not at all."""
    temporary = f"{os.fspath(path)}.{os.getpid()}.tmp"
    with open(temporary, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(data)
    os.chmod(temporary, mode)
    os.replace(temporary, path)


def one_line(text: object) -> str:
    """A text on one line, with control characters escaped, since a terminal would obey them."""
    words = " ".join(str(text).split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)


def complain(error: object) -> None:
    """Print an error on stderr."""
    with contextlib.suppress(OSError, ValueError):
        print(f"monocontext: {one_line(error)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
