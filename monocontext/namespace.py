"""Code in a REPL cannot tell a `Monocontext` from a `str`: `Kit`. The code is in `monocontext.text.namespace`."""

from monocontext.text.namespace import Kit

__all__ = ["Kit"]
