"""A plain `str` of 200 MB beside the lazy text, in one host: `compare.py <module> plain|lazy`, in its environment.

Two turns: the first prints the length, head and tail, the second answers. Tells the seconds until the model was told
what the first printed, the most memory of this process and its children, and the bytes of the host's log if it has one.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from importlib import import_module
from typing import Any

from contract import ANSWER, LINE, LOOK, Turns, served

PLAIN_CHARACTERS = 200_000_000


def main(module: str, kind: str) -> None:
    host: Any = import_module(f"run_{module}")
    name = getattr(host, "NAME", "context")
    model = Turns([host.cell(LOOK.format(name=name)), host.final(repr(ANSWER))])
    with tempfile.TemporaryDirectory() as folder:
        options = host.logged(folder) if hasattr(host, "logged") else {}
        began = 0.0

        def run(context: Any) -> None:
            nonlocal began
            began = time.monotonic()
            host.run(context, model, **options)

        if kind == "plain":
            run((LINE * (PLAIN_CHARACTERS // len(LINE) + 1))[:PLAIN_CHARACTERS])
        else:
            with served() as text:
                run(getattr(host, "GIVEN", lambda context: context)(text.context))
        sizes = [os.path.getsize(os.path.join(top, name)) for top, _, files in os.walk(folder) for name in files]
        written = sum(sizes)
    usage = [resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    told = {"first_cell_seconds": model.moments[1] - began, "peak_mib": max(usage)}
    print("COMPARED " + json.dumps(told | ({"log_bytes": written} if options else {})))


if __name__ == "__main__":
    main(*sys.argv[1:])
