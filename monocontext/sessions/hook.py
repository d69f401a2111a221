"""Run as an agent's hook: `monocontext-hook session-end|stop|session-start --url URL ...`.

At the end of a session the hook writes a job and starts a worker, which uploads the session: agents may kill a slow
hook at the end of a session. At the beginning it prints the brief. It imports little, since the agent waits for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import time

from monocontext.sessions import spool

EVENTS = ("session-start", "session-end", "stop", "pre-compact")
OPTIONS = (
    "url", "project", "endpoint", "region", "profile", "agent", "pattern", "max-dollars", "max-dollars-per-day"
)  # fmt: skip
_URL_VARIABLES = ("MONOCONTEXT_URL", "CLAUDE_PLUGIN_OPTION_URL")
"""The second one is set by our plugin in Claude Code."""
FLAGS = ("anonymous", "no-redact", "compile")
_MOST_BYTES = 4 << 20
_IDLE_SECONDS = 2.0
_MOST_SECONDS = 8.0
"""An agent may leave stdin open. So the hook stops reading after a complete JSON object, a pause of `_IDLE_SECONDS`, or
`_MOST_SECONDS` in all."""


def main(arguments: list[str] | None = None) -> int:
    """Run the console script; returns its exit code. At 1 the agent shows the error and goes on, at 2 it would stop."""
    try:
        event, options = parse_arguments(sys.argv[1:] if arguments is None else arguments)
        hook_input = read_input(0)
        if event == "session-start":
            from monocontext.sessions.brief import show_brief

            show_brief(hook_input, options)
            if spool.jobs():  # the machine was offline, or went down
                spool.start_worker()
        else:
            queue_upload(hook_input, options, goes_on=event == "stop")
    except (ValueError, OSError, RecursionError) as error:
        spool.complain(error)
        return 1
    return 0


def read_input(descriptor: int) -> dict[str, object]:
    """The JSON object that an agent writes, in UTF-8 or UTF-16; `{}` if it writes nothing. Raises `ValueError`."""
    data = bytearray()
    deadline = time.monotonic() + _MOST_SECONDS
    while _has_input(descriptor, min(_IDLE_SECONDS, deadline - time.monotonic())):
        chunk = os.read(descriptor, 1 << 16)
        data += chunk
        if len(data) > _MOST_BYTES:
            raise ValueError(f"more than {_MOST_BYTES:,} bytes on stdin")
        if not chunk:
            break
        if data.rstrip(b"\0 \t\r\n").endswith(b"}"):
            with contextlib.suppress(ValueError):  # an inner object ends here
                return _parse(data)
    return _parse(data)


def _has_input(descriptor: int, seconds: float) -> bool:
    """Wait for input or its end; returns whether it came in time. On Windows the read waits instead."""
    try:
        return bool(select.select([descriptor], [], [], max(0.0, seconds))[0])
    except OSError:
        if os.name == "nt":
            return True
        raise


def _parse(data: bytearray) -> dict[str, object]:
    found = json.loads(data) if data.strip() else {}
    if not isinstance(found, dict):
        raise ValueError(f"expected a JSON object on stdin, found {type(found).__name__}")
    return found


def queue_upload(hook_input: dict[str, object], options: dict[str, object], *, goes_on: bool = False) -> None:
    """Write the job to upload a session, and start a worker."""
    path = hook_input.get("transcript_path")
    session = hook_input.get("session_id")
    if not path and not session:
        raise ValueError("neither transcript_path nor session_id on stdin: nothing to upload")
    job: dict[str, object] = {
        "transcript_path": os.path.abspath(os.path.expanduser(str(path))) if path else "",
        "session_id": str(session or os.path.basename(str(path))),
        "cwd": str(hook_input.get("cwd") or os.getcwd()),
        "at": time.time(),
        **options,
    }
    spool.write_job(job, every_seconds=spool.COOLDOWN_SECONDS if goes_on else 0.0)
    spool.start_worker()


def parse_arguments(arguments: list[str]) -> tuple[str, dict[str, object]]:
    """The event, and options by name. Raises `ValueError`."""
    if not arguments or arguments[0] not in EVENTS:
        raise ValueError(f"usage: monocontext-hook {'|'.join(EVENTS)} --url URL")
    options: dict[str, object] = {}
    patterns: list[str] = []
    rest = iter(arguments[1:])
    for each in rest:
        name, equals, value = each.removeprefix("--").partition("=")
        if not each.startswith("--") or name not in OPTIONS + FLAGS:
            raise ValueError(f"unknown option {each!r}: there are {', '.join('--' + o for o in OPTIONS + FLAGS)}")
        if name in FLAGS:
            options[name.replace("-", "_")] = True
            continue
        if not equals:
            value = next(rest, "")
        if not value:
            raise ValueError(f"--{name} needs a value")
        if name == "pattern":
            patterns.append(value)
        else:
            options[name.replace("-", "_")] = value
    if patterns:
        options["patterns"] = patterns
    options.setdefault("url", next(filter(None, map(os.environ.get, _URL_VARIABLES)), ""))
    if not options["url"]:
        raise ValueError("no --url, and no MONOCONTEXT_URL: nothing is uploaded")
    return arguments[0], options


if __name__ == "__main__":
    sys.exit(main())
