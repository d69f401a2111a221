"""Export `Kit`, which lets code in a REPL take a `Monocontext` for a `str`. See `monocontext.text.namespace`."""

from monocontext.text.namespace import Kit

__all__ = ["Kit"]
