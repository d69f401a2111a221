"""The program that an agent's hooks call: `monocontext-hook session-end|stop|session-start --url URL ...`.

An agent waits for it, a second at most and then kills it. So at the end of a session it writes down what is to be done
and returns; a worker that it leaves behind does it. At the beginning it prints the brief. Nothing heavy is imported.
"""

from __future__ import annotations

import json
import os
import sys
import time

from monocontext.sessions import spool

EVENTS = ("session-start", "session-end", "stop", "pre-compact")
OPTIONS = ("url", "project", "endpoint", "region", "profile", "agent", "pattern")
FLAGS = ("anonymous", "no-redact", "compile")
_MOST_BYTES = 4 << 20


def main(arguments: list[str] | None = None) -> int:
    """The console script. Exit 1 tells the agent's user what is wrong and stops nothing; 2 would."""
    try:
        event, options = parse(sys.argv[1:] if arguments is None else arguments)
        told = json.loads(sys.stdin.buffer.read(_MOST_BYTES) or b"{}")
        if not isinstance(told, dict):
            raise ValueError(f"expected a JSON object on stdin, found {type(told).__name__}")
        if event == "session-start":
            from monocontext.sessions.brief import show_brief

            show_brief(told, options)
            if spool.jobs():  # of a machine that was offline, or went down
                spool.start_worker()
        else:
            end(told, options, goes_on=event == "stop")
    except (ValueError, OSError) as error:
        print(f"monocontext: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    return 0


def end(told: dict[str, object], options: dict[str, object], *, goes_on: bool = False) -> None:
    """Write down that a session is to be uploaded, and see that somebody does it."""
    path = told.get("transcript_path")
    session = told.get("session_id")
    if not path and not session:
        raise ValueError("neither transcript_path nor session_id on stdin: nothing to upload")
    job: dict[str, object] = {
        "transcript_path": os.path.abspath(os.path.expanduser(str(path))) if path else "",
        "session_id": str(session or os.path.basename(str(path))),
        "cwd": str(told.get("cwd") or os.getcwd()),
        "at": time.time(),
        **options,
    }
    spool.write_job(job, every_seconds=spool.COOLDOWN_SECONDS if goes_on else 0.0)
    spool.start_worker()


def parse(arguments: list[str]) -> tuple[str, dict[str, object]]:
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
            options[name] = value
    if patterns:
        options["patterns"] = patterns
    options.setdefault("url", os.environ.get("MONOCONTEXT_URL", ""))
    if not options["url"]:
        raise ValueError("no --url, and no MONOCONTEXT_URL")
    return arguments[0], options


if __name__ == "__main__":
    sys.exit(main())
