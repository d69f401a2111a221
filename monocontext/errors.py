"""The tree of all errors that `monocontext` raises.

    MonocontextError
    |-- NotFound (FileNotFoundError)       nothing is stored there: use another URL
    |-- NotAContext (ValueError)           something is stored there, but it is not a context
    |-- AlreadyExists (FileExistsError)    a conditional write lost: read what is there, then decide
    |-- AccessDenied (PermissionError)     the store refuses this, or these credentials
    |   `-- ForeignObject                  the context refers to objects that the caller does not allow
    |-- ContextChanged                     an object was replaced during a read: refresh() and read again
    |-- DamagedData (ValueError)           stored bytes differ from the index: verify, restore
    |   `-- UnsupportedFormat              written by a newer version: upgrade
    |-- InvalidText (ValueError)           text without a UTF-8 form, or bytes that are not text
    |-- ContextTooLarge (MemoryError)      the result is above the limit: use the expression in the message
    |   `-- Unhashable (TypeError)         the hash of a text above the limit
    |-- InvalidUrl (ValueError)            no store can be opened at this URL
    |-- InvalidEntry (ValueError)          an invalid key, value or lifetime for a memory
    |-- InvalidParameters (ValueError)     a parameter of a tool or a search is missing or invalid
    |-- UnknownTool (LookupError)          a tool call with an unknown name
    |-- ToolRefusal                        a tool's reply to a request of a model that it cannot fulfil
    |-- NotPicklable (TypeError)           another process cannot open this text or store
    |-- ContextClosed (ValueError)         a text was used after close()
    |-- Unsupported (OSError)              the store cannot do this: do not try again
    `-- StoreFailure (OSError)             the store failed after retries: try again later

Each error derives from the builtin that existing code already catches. A message is one line, and says what was
expected and what was found.
"""

from __future__ import annotations


class MonocontextError(Exception):
    """Base of all errors of this package."""


class NotFound(MonocontextError, FileNotFoundError):
    """No object, bucket or context exists at this URL."""


class NotAContext(MonocontextError, ValueError):
    """Something is stored at this URL, but not a context, or not of the kind that this call reads."""


class AlreadyExists(MonocontextError, FileExistsError):
    """A conditional write or delete found another object, or another version of it, under the key."""


class AccessDenied(MonocontextError, PermissionError):
    """The credentials are missing or wrong, or do not permit the operation, or the store is read-only."""


class ForeignObject(AccessDenied):
    """The context refers to an object outside its own URL that `allow=` does not permit."""


class ContextChanged(MonocontextError):
    """An object was replaced after the text was opened. `refresh()` opens the newest version."""


class DamagedData(MonocontextError, ValueError):
    """Stored bytes differ from the index in checksum, length, count or structure."""


class UnsupportedFormat(DamagedData):
    """A newer version wrote this, or it needs a feature that this version lacks."""


class InvalidText(MonocontextError, ValueError):
    """An input is not text in the given encoding. The message names the input and the byte offset."""


class ContextTooLarge(MonocontextError, MemoryError):
    """The result would exceed `materialize_limit`. The message says what to write instead."""


class Unhashable(ContextTooLarge, TypeError):
    """A text above `materialize_limit` has no hash, since its hash would have to equal that of the `str`."""


class InvalidUrl(MonocontextError, ValueError):
    """A URL, a path, a key, a proxy or a region is invalid, or the URL needs an extra that is not installed."""


class InvalidEntry(MonocontextError, ValueError):
    """A key, a value or a lifetime is invalid for a memory. The message says why."""


class InvalidParameters(MonocontextError, ValueError):
    """A parameter of a tool or a search is missing or invalid."""


class UnknownTool(MonocontextError, LookupError):
    """No tool of this name is served."""


class ToolRefusal(MonocontextError):
    """A tool cannot fulfil the request of a model. The message is the reply to the model."""


class NotPicklable(MonocontextError, TypeError):
    """A text or store in `memory://`, or one opened with `client=`, cannot be passed to another process."""


class ContextClosed(MonocontextError, ValueError):
    """The text was used after it was closed."""


class Unsupported(MonocontextError, OSError):
    """The store cannot do this, or refuses it for good. The message says what to change."""


class StoreFailure(MonocontextError, OSError):
    """The store failed, and retries did not help."""

    refusals: int = 0
    """How often the store asked for fewer requests during the attempts."""


def install_line(extra: str, folder: str = ".") -> str:
    """The command that installs an extra, for error messages. It needs a clone, since the packages are not on PyPI.

    `folder`: where the distribution is in the clone, `.` for monocontext and `./rlm` for monocontext-rlm.
    """
    return f"in the clone of monocontext, pip install -e '{folder}[{extra}]'"
