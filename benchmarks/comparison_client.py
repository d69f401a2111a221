"""Run one block of docs/comparison.md in a new process: `python comparison_client.py SETUP BLOCK`.

It is run by path, so it also works in an environment without this project. Lines like `# find` begin the parts of a
block. It prints JSON: the seconds and the output of each part, and the peak memory of this process or of a child.
"""

from __future__ import annotations

import io
import json
import re
import resource
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any


def main() -> None:
    setup, block = sys.argv[1:]
    names: dict[str, Any] = {}
    exec(setup, names)
    seconds, printed = [], []
    for part in re.split(r"^# \w+$", block, flags=re.M)[1:]:
        said, began = io.StringIO(), time.perf_counter()
        with redirect_stdout(said):
            exec(part, names)
        seconds.append(time.perf_counter() - began)
        printed.append(said.getvalue().strip())
    # `ru_maxrss` of this process would include the memory of the parent at the fork.
    own = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(json.dumps({"seconds": seconds, "printed": printed, "peak_bytes": 1024 * max(int(own[0]), children)}))


if __name__ == "__main__":
    main()
