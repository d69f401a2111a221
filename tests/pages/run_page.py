"""Run the blocks of a page, `[language, line, code]` in JSON on stdin, in one namespace and folder; it may await."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import subprocess
import sys
from typing import Any


def run_python(page: str, line: int, code: str, namespace: dict[str, Any]) -> None:
    """Lines of a traceback are those of the page."""
    compiled = compile("\n" * (line - 1) + code, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    done = eval(compiled, namespace)
    if inspect.iscoroutine(done):
        asyncio.run(done)


def main() -> None:
    page, namespace = sys.argv[1], {"__name__": "__main__"}
    for language, line, code in json.load(sys.stdin):
        print(f"--- {page}:{line}", flush=True)
        if language == "python":
            run_python(page, line, code, namespace)
            sys.stdout.flush()
        else:
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", code], stdin=subprocess.DEVNULL)
            if done.returncode:
                sys.exit(f"{page}:{line}: the shell ended with {done.returncode}")


if __name__ == "__main__":
    main()
