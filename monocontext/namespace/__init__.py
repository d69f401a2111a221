"""What makes code in a REPL unable to tell a `Monocontext` from the `str` it stands for.

    kit = Kit()
    namespace = {"__builtins__": vars(builtins) | kit.names, "context": context}
    exec(compile(kit.transform(ast.parse(code)), "<cell>", "exec"), namespace)

Two means, both of one namespace: nothing else in the process changes.

- **Names.** `__import__` gives `re`, `json`, `io` and `csv` that take lazy texts, `print` shows the beginning of a
  large one, `open` gives files that take them. `sys.modules` is not touched, so libraries keep the real modules.
- **A pass over the code.** `isinstance(x, T)`, `type(x)`, `str(x)`, `map(str, ...)`, `", ".join([...])` and the
  patterns of `match` answer as for a `str` (lazy lists as a `list`). Only these plain forms, and only where the name
  is the builtin when the call is made; any other value meets the very call that was written.

Out of reach, and documented: `x.__class__`, `builtins.isinstance(x, str)`, `importlib.import_module("re")`, code in
strings given to `exec` and `eval`, and what libraries written in C ask of a `str` (they raise `TypeError`).
"""

from __future__ import annotations

from monocontext.namespace.kit import Kit

__all__ = ["Kit"]
