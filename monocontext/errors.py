"""The tree of all errors that `monocontext` raises.

    MonocontextError
    |-- NotFound (FileNotFoundError)       nothing there: name another place
    |   `-- NotAContext                    something is there, but no context
    |-- AlreadyExists (FileExistsError)    a conditional write lost: look, then decide
    |-- AccessDenied (PermissionError)     the store refuses these credentials
    |   `-- ForeignObject                  the context points outside what the caller allows
    |-- ContextChanged                     an object moved under a reader: refresh() and ask again
    |-- DamagedData (ValueError)           stored bytes are not what was recorded: verify, restore
    |   `-- UnsupportedFormat              written by a newer version: upgrade
    |-- InvalidText (ValueError)           text that has no UTF-8 form, or bytes that are not text
    |-- ContextTooLarge (MemoryError)      the result would not fit: write the named expression instead
    |   `-- Unhashable (TypeError)         the hash of a text that large
    |-- InvalidUrl (ValueError)            not a place that a store can be opened on
    |-- InvalidEntry (ValueError)          a key, a value or a lifetime that a memory does not take
    |-- InvalidParameters (ValueError)     a tool call without what the tool needs
    |-- UnknownTool (LookupError)          a tool call by another name
    |-- ToolRefusal                        what a tool answers a model that asked for what cannot be done
    |-- NotPicklable (TypeError)           a text that lives in this process alone
    |-- ContextClosed (ValueError)         used after close()
    `-- StoreFailure (OSError)             the store failed after retries: try again later

Errors are grouped by what a handler does about them, and derive from the builtin that code already catches.
A message is one line and says what was expected and what was found.
"""

from __future__ import annotations


class MonocontextError(Exception):
    """Base of all errors of this package."""


class NotFound(MonocontextError, FileNotFoundError):
    """No object, no bucket or no context at this address."""


class NotAContext(NotFound):
    """The manifest exists, but this call cannot read its kind."""


class AlreadyExists(MonocontextError, FileExistsError):
    """A create-only or compare-and-swap write found another object in its place."""


class AccessDenied(MonocontextError, PermissionError):
    """No credentials, wrong credentials, or credentials without this right."""


class ForeignObject(AccessDenied):
    """The context refers to an object outside its own place, and `allow=` does not name it."""


class ContextChanged(MonocontextError):
    """An object was replaced after the reader first saw it; `refresh()` opens what is there now."""


class DamagedData(MonocontextError, ValueError):
    """Stored bytes differ from what the index records: checksum, length, count or structure."""


class UnsupportedFormat(DamagedData):
    """Written by a newer version of the format, or with a feature that this version lacks."""


class InvalidText(MonocontextError, ValueError):
    """Input that is not text in the given encoding; says which input and which byte offset."""


class ContextTooLarge(MonocontextError, MemoryError):
    """The result would exceed `materialize_limit`; the message says what to write instead."""


class Unhashable(ContextTooLarge, TypeError):
    """The hash of a text above `materialize_limit`: it would have to equal the hash of the `str`."""


class InvalidUrl(MonocontextError, ValueError):
    """A URL of no known scheme, or without the parts that its scheme needs."""


class InvalidEntry(MonocontextError, ValueError):
    """A key, a value or a lifetime that a memory does not take; the message says which and why."""


class InvalidParameters(MonocontextError, ValueError):
    """A tool was called without the parameters that it needs."""


class UnknownTool(MonocontextError, LookupError):
    """A tool was called that is not served here."""


class ToolRefusal(MonocontextError):
    """A tool's answer to an impossible request of a model; the message is the answer."""


class NotPicklable(MonocontextError, TypeError):
    """A text in `memory://` lives in its process and cannot be handed to another one."""


class ContextClosed(MonocontextError, ValueError):
    """The context was closed."""


class StoreFailure(MonocontextError, OSError):
    """The store did not answer as it should, and retries did not help."""

    refusals: int = 0
    """How often the store asked for fewer requests meanwhile."""
