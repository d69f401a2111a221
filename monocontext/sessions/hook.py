"""Run as an agent's hook: `monocontext-hook session-end|stop|session-start --url URL ...`.

An agent waits a second for it, then kills it. So at the end of a session it writes a job and returns; a worker that it
starts uploads the session. At the beginning it prints the brief. Nothing heavy is imported.
"""

from __future__ import annotations

import json
import os
import sys
import time

from monocontext.sessions import spool

EVENTS = ("session-start", "session-end", "stop", "pre-compact")
OPTIONS = (
    "url", "project", "endpoint", "region", "profile", "agent", "pattern", "max-dollars", "max-dollars-per-day"
)  # fmt: skip
FLAGS = ("anonymous", "no-redact", "compile")
_MOST_BYTES = 4 << 20


def main(arguments: list[str] | None = None) -> int:
    """The console script. Exit 1 shows the user the error and does not block the agent; exit 2 would."""
    try:
        event, options = parse_arguments(sys.argv[1:] if arguments is None else arguments)
        hook_input = json.loads(sys.stdin.buffer.read(_MOST_BYTES) or b"{}")
        if not isinstance(hook_input, dict):
            raise ValueError(f"expected a JSON object on stdin, found {type(hook_input).__name__}")
        if event == "session-start":
            from monocontext.sessions.brief import show_brief

            show_brief(hook_input, options)
            if spool.jobs():  # of a machine that was offline, or went down
                spool.start_worker()
        else:
            queue_upload(hook_input, options, goes_on=event == "stop")
    except (ValueError, OSError) as error:
        spool.complain(error)
        return 1
    return 0


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
    options.setdefault("url", os.environ.get("MONOCONTEXT_URL", ""))
    if not options["url"]:
        raise ValueError("no --url, and no MONOCONTEXT_URL")
    return arguments[0], options


if __name__ == "__main__":
    sys.exit(main())
